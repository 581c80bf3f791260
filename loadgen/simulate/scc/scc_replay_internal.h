#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_REPLAY_INTERNAL_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_REPLAY_INTERNAL_H

/** What the rows share: scc_replay.c has those of broadcasts, scc_replay_chip.c
 *  those of single operations and of the closed model. */

#include "core/sim/timed/tiled/tiled.h"
#include "loadgen/simulate/scc/scc_bcast.h"
#include "loadgen/simulate/scc/scc_replay.h"

struct qn_scc_replay {
    struct qn_tiled machine;
    qn_replay_row_fn *row;
    void *ctx;
    int rc; /* the first run that failed */
};

/** A row. @param what  Its text, a format. */
void qn_scc_replay_row(struct qn_scc_replay *r, const struct qn_replay_claim *c,
                       double got, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/** C1: the closed model. C4: interrupts. C6: put and get. */
void qn_scc_replay_model(struct qn_scc_replay *r);
void qn_scc_replay_interrupts(struct qn_scc_replay *r);
void qn_scc_replay_transfers(struct qn_scc_replay *r);

#endif
