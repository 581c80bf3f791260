#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_CHECK_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_CHECK_H

/** Are the verdicts of a replay the same with other seeds, and with jitter?
 *  One thread. */

#include "loadgen/simulate/locks/locks_replay.h"

#define QN_LOCKS_CHECK_SEEDS  3u
#define QN_LOCKS_CHECK_JITTER 0.05

struct qn_locks_check {
    uint32_t runs, rows; /* of all, of one; filled */
    uint32_t missed;     /* rows of the first that do not hold; filled */
    /** Each row of the first run. */
    qn_replay_row_fn *each;
    /** A row of another run whose verdict is another one. */
    void (*differs)(void *ctx, const struct qn_replay_row *row, uint64_t seed,
                    double jitter);
    void *ctx;
};

/** Replay with QN_LOCKS_CHECK_SEEDS seeds from that of `o` on, each without
 *  jitter and with QN_LOCKS_CHECK_JITTER. @return as qn_locks_replay. */
int qn_locks_check(struct qn_locks_check *c,
                   const struct qn_locks_replay_opts *o,
                   struct qn_parse_error *parse_error);

#endif
