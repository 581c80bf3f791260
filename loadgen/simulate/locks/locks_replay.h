#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_REPLAY_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_REPLAY_H

/** Locks and delegation on simulated machines beside what was measured on the
 *  hardware (Petrovic, EPFL thesis, chapters 6 and 7): rows L1 to L10. One
 *  thread. */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/parse_error.h"

struct qn_locks_replay_opts {
    const char *machines; /* folder of machine files */
    uint64_t seed;
    double jitter; /* of each price, 0 .. 1 */
    bool small;    /* fewer runs, for tests: those rows that take one run of a
                      machine with few cores, or two */
    const char *only; /* rows of this figure, as "L6"; NULL: all */
};

/** One row: it holds if `got` is at least `limit`, or at most if `most`. */
struct qn_locks_row {
    const char *id;
    char what[160];
    const char *published;
    const char *why; /* if it does not hold: the reason; or NULL */
    double limit, got;
    bool most;
};

typedef void qn_locks_row_fn(void *ctx, const struct qn_locks_row *row);

/** Run all rows. @return QN_OK; errors of qn_locks_machine_load, then
 *  `parse_error` is filled; QN_ENOMEM; QN_ECORRUPT: a count was wrong. */
int qn_locks_replay(const struct qn_locks_replay_opts *o, qn_locks_row_fn *each,
                    void *ctx, struct qn_parse_error *parse_error);

#endif
