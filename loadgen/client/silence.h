#ifndef QN_LOADGEN_CLIENT_SILENCE_H
#define QN_LOADGEN_CLIENT_SILENCE_H

/**
 * The longest time without a successful answer, per operation and address: what
 * a fail-over costs its clients, however many connections they have.
 *
 * A silence lasts from one success to the next one, of any connection of any
 * thread, and from the beginning and to the end of the measured time.
 *
 * Any thread reports successes; lock-free but for the first reports of a
 * longer silence than any before. One thread begins and ends.
 */

#include "core/base/clock.h"
#include "loadgen/workload/mix.h"

#include <stdbool.h>
#include <stdint.h>

/** The rows beside those of enum qn_op. */
enum {
    QN_SILENCE_READ = QN_OP_COUNT, /* any operation that only reads */
    QN_SILENCE_WRITE,              /* any that writes */
    QN_SILENCE_ROWS
};

struct qn_silence;

/** What one row of one address knows. */
struct qn_silence_row {
    bool asked;        /* the mix contains it */
    qn_time_t longest; /* ns */
    qn_time_t began;   /* when it began, ns since the beginning of its run */
};

/** "get" ... "reads", "writes". */
const char *qn_silence_name(uint32_t row);

/** @param mix        Which operations are asked. Borrowed.
 *  @param addresses  >= 1.
 *  @return QN_OK or QN_ENOMEM. */
int qn_silence_create(struct qn_silence **out, const struct qn_mix *mix,
                      uint32_t addresses);

/** NULL is accepted. */
void qn_silence_destroy(struct qn_silence *s);

/** The measured time is from `from` to `to` (QN_TIME_NEVER: until the end is
 *  declared); what succeeds before or after does not count. Again for each
 *  repetition: the longest of all is kept. */
void qn_silence_begin(struct qn_silence *s, qn_time_t from, qn_time_t to);

/**
 * Operations have succeeded.
 *
 * @param ops  A bit 1 << op for each kind.
 */
void qn_silence_success(struct qn_silence *s, uint32_t address, uint32_t ops,
                        qn_time_t now);

/** The measured time was over at `to`: close what was silent then. No other
 *  thread may report any more. */
void qn_silence_end(struct qn_silence *s, qn_time_t to);

/** After the end. @param address  >= addresses: all of them as one. */
struct qn_silence_row qn_silence_get(const struct qn_silence *s,
                                     uint32_t address, uint32_t row);

#endif
