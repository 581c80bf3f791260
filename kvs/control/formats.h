#ifndef QN_KVS_CONTROL_FORMATS_H
#define QN_KVS_CONTROL_FORMATS_H

/**
 * The versions of all that the processes of a group share, so that a process of
 * another build knows whether it can join before it touches anything.
 *
 * A group speaks one version of each format, that of its first process. A build
 * has a range of versions that it can write and read. A process that wants to
 * join (an adopter, kvs/control/adopt.h) receives the group's versions, one
 * message each, and fits if all of them lie in its ranges. A format that the
 * group does not name was unknown to its build: version 0.
 *
 * A change of a format raises its `newest`. `oldest` follows at once, unless
 * the build can still write the older one as long as a group speaks it.
 *
 * Pure, any thread.
 */

#include <stddef.h>
#include <stdint.h>

/** Their numbers travel: never reordered, new ones at the end. */
enum qn_format {
    QN_FORMAT_HANDOVER, /* control messages, their kinds, their order */
    QN_FORMAT_OUTBOX,   /* what peers map of each other, channels included */
    QN_FORMAT_COMMONS,
    QN_FORMAT_MESSAGES, /* of 1Paxos, batches, records of votes, rings */
    QN_FORMAT_COMMANDS, /* in the log, and what replicas ask each other */
    QN_FORMAT_SNAPSHOT, /* of kvs' content */
    QN_FORMAT_TRANSFER, /* chunks and messages of a transfer, library's state */
    QN_FORMATS,
};

struct qn_format_range {
    const char *name; /* as a user reads it */
    uint32_t oldest, newest;
};

/** The range of this build. @return NULL: this build does not know the
 *  format. */
const struct qn_format_range *qn_format_at(uint32_t format);

/**
 * Check whether this build speaks all versions of a group.
 *
 * @param spoken  [count] version of each format by number; `count` may be less
 *                or more than QN_FORMATS.
 * @param why     [cap] Filled if not: one line that names the format, both
 *                versions, and what to do.
 * @return QN_OK; QN_EINVAL.
 */
int qn_formats_fit(const uint32_t *spoken, uint32_t count, char *why,
                   size_t cap);

/** The same against other ranges; for tests. */
int qn_formats_fit_ranges(const struct qn_format_range *own, uint32_t own_count,
                          const uint32_t *spoken, uint32_t count, char *why,
                          size_t cap);

#endif
