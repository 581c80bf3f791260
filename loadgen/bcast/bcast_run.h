#ifndef QN_LOADGEN_BCAST_BCAST_RUN_H
#define QN_LOADGEN_BCAST_BCAST_RUN_H

/**
 * Runs the programs of loadgen/operation on threads that are pinned to cores,
 * over a mesh of queuepairs.
 *
 * The calling thread waits for the nodes. Nodes that share a core sleep when
 * there is nothing to do; others spin.
 */

#include "core/qp.h"
#include "loadgen/operation/operation.h"

struct qn_bcast_run_opts {
    const struct qn_transport
        *transport;       /* kept for the call, like all pointers here */
    const uint32_t *core; /* [n] CPU of each node */
    struct qn_operation_opts operation;
    bool pthread; /* QN_COLLECTIVE_BARRIER: measure pthread_barrier_wait
                     instead */
};

/** Measure once and add to r. @return QN_OK; QN_EINVAL; QN_ENOMEM; QN_EIO: a
 *  node could not start, or no message came for QN_OPERATION_PATIENCE. */
int qn_bcast_run_measure(struct qn_operation_result *r,
                         const struct qn_bcast_run_opts *o);

#endif
