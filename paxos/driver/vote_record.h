#ifndef QN_PAXOS_DRIVER_VOTE_RECORD_H
#define QN_PAXOS_DRIVER_VOTE_RECORD_H

/**
 * The record of a voter of the utility log (PROTOCOL.md 4): what must outlive
 * its process, in memory that does.
 *
 *     area   | copy 0                    | copy 1                    |
 *     copy   sequence, checksum, version, count | vote | entries
 *
 * It holds the vote (QN_OUT_PERSIST) and the entries below it. The two copies
 * are written in turns, so one is always whole: a writer that is killed between
 * any two stores leaves the record before, and an answer that rests on the new
 * one has not been given then.
 *
 * Threads: one incarnation of a voter writes; the next one reads before it
 * writes.
 */

#include <stddef.h>

#include "paxos/machine/utility.h"

/** Bytes of an area, at least. */
#define QN_VOTE_RECORD_BYTES   (2 * (192u + QN_UL_KEPT * QN_UL_BYTES))
/** A copy that is being written begins with it: no page is filled with it by
 *  accident, and no copy has so great a number. */
#define QN_VOTE_RECORD_WRITING UINT64_C(0xa5c3965a17e84d2b)

/**
 * Write the newest record. The first one is qn_vote_record_renew's.
 *
 * @param area   [bytes] shared, aligned to QN_CACHELINE; the same in all
 *               incarnations of the voter.
 * @param bytes  At least QN_VOTE_RECORD_BYTES, the same in all incarnations.
 * @param vote   Borrowed.
 * @param u      Borrowed: its entries below vote->index go along.
 */
void qn_vote_record_write(void *area, size_t bytes, const struct qn_vote *vote,
                          const struct qn_utility *u);

/**
 * The same, where there is no record, as the group begins, or it is damaged and
 * void: both copies. Until the second one is written the area reads as damaged.
 */
void qn_vote_record_renew(void *area, size_t bytes, const struct qn_vote *vote,
                          const struct qn_utility *u);

/**
 * Read the newest record.
 *
 * @param vote   Filled.
 * @param log    [cap] filled: the entries that were kept, by index; the last
 *               one has index vote->index - 1.
 * @param cap    At least QN_UL_KEPT.
 * @param count  Filled.
 * @return QN_OK; QN_ECORRUPT: it is damaged (all zero, too), so it is not
 *         known what this voter has answered: it must not vote
 *         (qn_onepaxos_opts.mute). But for `log` nothing is filled then.
 */
int qn_vote_record_read(const void *area, size_t bytes, struct qn_vote *vote,
                        struct qn_ul_entry *log, uint32_t cap, uint32_t *count);

#endif
