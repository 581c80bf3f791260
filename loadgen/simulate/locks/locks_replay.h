#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_REPLAY_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_REPLAY_H

/** Locks and delegation on simulated machines beside what was measured on the
 *  hardware (Petrovic, EPFL thesis, chapters 6 and 7): rows L1 to L10. One
 *  thread. */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/parse_error.h"
#include "loadgen/simulate/row/replay_row.h"

struct qn_locks_replay_opts {
    const char *machines; /* folder of machine files */
    uint64_t seed;
    double jitter; /* of each price, 0 .. 1 */
    bool small;    /* fewer runs, for tests: those rows that take one run of a
                      machine with few cores, or two */
    const char *only; /* rows of this figure, as "L6"; NULL: all */
};

/** Run all rows. @return QN_OK; errors of qn_locks_machine_load, then
 *  `parse_error` is filled; QN_ENOMEM; QN_ECORRUPT: a count was wrong. */
int qn_locks_replay(const struct qn_locks_replay_opts *o,
                    qn_replay_row_fn *each, void *ctx,
                    struct qn_parse_error *parse_error);

#endif
