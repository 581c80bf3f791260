#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_BCAST_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_BCAST_H

/** Broadcasts on a simulated SCC: those of transports/mpb, priced. */

#include "core/sim/timed/tiled/tiled.h"

enum qn_scc_bcast_kind {
    QN_SCC_IN_TURN,       /* OC-Bcast, synchronous */
    QN_SCC_BY_INTERRUPTS, /* OC-Bcast, asynchronous */
    QN_SCC_BINOMIAL,
    QN_SCC_SCATTER_ALLGATHER,
};

struct qn_scc_bcast_opts {
    const struct qn_tiled *machine; /* an SCC; borrowed */
    enum qn_scc_bcast_kind kind;
    uint32_t cores;   /* 2 to 48, from 0 on */
    uint32_t k;       /* fan-out of OC-Bcast, 1 .. cores - 1 */
    uint32_t lines;   /* of a message, at least 1 */
    uint32_t calls;   /* of each source in a row: 1 for latency */
    uint32_t sources; /* by interrupts: 1 to cores, spread evenly, all at the
                         same time; 0 is 1. Else core 0 alone */
};

struct qn_scc_bcast_result {
    double us;     /* from the first call until the last core has the last
                      message in memory, and knows that its children have */
    double mb_s;   /* bytes of all messages / that, 10^6 bytes per second */
    bool complete; /* all cores have the bytes of all sources */
};

/** @return QN_OK, QN_EINVAL (opts), QN_ENOMEM. */
int qn_scc_bcast_run(struct qn_scc_bcast_result *out,
                     const struct qn_scc_bcast_opts *o);

#endif
