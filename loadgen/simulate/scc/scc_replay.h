#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_REPLAY_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_REPLAY_H

/** Broadcasts, transfers and interrupts on a simulated SCC beside what was
 *  measured on the hardware. */

#include <stdbool.h>

#include "core/machine/parse_error.h"

/** One row: it holds if `got` is at least `limit`, or at most if `most`. */
struct qn_scc_row {
    const char *id;
    char what[160];
    const char *published; /* NULL: nothing in print */
    const char *why;       /* if it does not hold: the reason; or NULL */
    double limit, got;
    bool most;
};

typedef void qn_scc_row_fn(void *ctx, const struct qn_scc_row *row);

/** Run all rows on the machine of a file, an SCC. @return QN_OK; those of
 *  qn_tiled_load, then `parse_error` is filled; QN_ENOMEM; QN_ECORRUPT: a
 *  broadcast was not complete. */
int qn_scc_replay(const char *path, qn_scc_row_fn *each, void *ctx,
                  struct qn_parse_error *parse_error);

#endif
