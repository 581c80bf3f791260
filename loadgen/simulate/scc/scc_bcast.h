#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_BCAST_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_BCAST_H

/** Broadcasts on a simulated SCC: transports/mpb/ocbcast, priced. */

#include "core/sim/timed/tiled/tiled.h"

struct qn_scc_bcast_opts {
    const struct qn_tiled *machine; /* an SCC; borrowed */
    uint32_t cores;                 /* 2 to 48, from 0 on */
    uint32_t k;                     /* fan-out */
    uint32_t lines;                 /* of a message, at least 1 */
    uint32_t calls;                 /* in a row: 1 for latency */
    bool async;                     /* by interrupts, from core 0 */
};

struct qn_scc_bcast_result {
    double us;     /* from the root's call until the last core has the last
                      message in memory, and knows that its children have */
    double mb_s;   /* bytes of all messages / that, 10^6 bytes per second */
    bool complete; /* all cores have the bytes of the root */
};

/** @return QN_OK, QN_EINVAL (opts), QN_ENOMEM. */
int qn_scc_bcast_run(struct qn_scc_bcast_result *out,
                     const struct qn_scc_bcast_opts *o);

#endif
