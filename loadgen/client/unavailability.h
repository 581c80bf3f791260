#ifndef QN_LOADGEN_CLIENT_UNAVAILABILITY_H
#define QN_LOADGEN_CLIENT_UNAVAILABILITY_H

/**
 * Unavailability windows: the longest time without a successful reply, per
 * operation and address. It is what a fail-over costs its clients, however many
 * connections they have.
 *
 * A window lasts from one success to the next one, on any connection of any
 * thread; the beginning and the end of the measured time count as successes.
 *
 * Any thread reports successes. Reporting is lock-free, except for the first
 * report of a longer window than any before. One thread begins and ends.
 */

#include "core/base/clock.h"
#include "loadgen/workload/mix.h"

#include <stdbool.h>
#include <stdint.h>

/** Rows in addition to those of enum qn_op. */
enum {
    QN_UNAVAILABILITY_READ = QN_OP_COUNT, /* any operation that only reads */
    QN_UNAVAILABILITY_WRITE,              /* any that writes */
    QN_UNAVAILABILITY_ROWS
};

struct qn_unavailability;

/** Result of one row of one address. */
struct qn_unavailability_row {
    bool asked;        /* the mix contains the operation */
    qn_time_t longest; /* ns */
    qn_time_t began; /* beginning of the longest window, ns since the beginning
                        of its run */
};

/** "get" ... "reads", "writes". */
const char *qn_unavailability_name(uint32_t row);

/** @param mix        Operations of the load. Borrowed.
 *  @param addresses  >= 1.
 *  @return QN_OK or QN_ENOMEM. */
int qn_unavailability_create(struct qn_unavailability **out,
                             const struct qn_mix *mix, uint32_t addresses);

/** NULL is accepted. */
void qn_unavailability_destroy(struct qn_unavailability *s);

/** Begin a run that is measured from `from` to `to` (QN_TIME_NEVER: until
 *  qn_unavailability_end). Successes outside this time do not count. Called
 *  once per repetition: the longest window of all is kept. */
void qn_unavailability_begin(struct qn_unavailability *s, qn_time_t from,
                             qn_time_t to);

/**
 * Report successful operations.
 *
 * @param ops  Bit 1 << op for each kind.
 */
void qn_unavailability_success(struct qn_unavailability *s, uint32_t address,
                               uint32_t ops, qn_time_t now);

/** End the run at `to`: closes windows that are still open. No other thread may
 *  report any more. */
void qn_unavailability_end(struct qn_unavailability *s, qn_time_t to);

/** Result, after the end. @param address  >= addresses: all addresses as
 *  one. */
struct qn_unavailability_row qn_unavailability_get(
    const struct qn_unavailability *s, uint32_t address, uint32_t row);

#endif
