#ifndef QN_LOADGEN_SIMULATE_PIPELINE_H
#define QN_LOADGEN_SIMULATE_PIPELINE_H

/**
 * Acknowledged broadcasts on the timed machine, over a tree or a diamond ring,
 * as the paper on diamond rings measures them (pipeline_times.h). The nodes run
 * the shipping code (core/coll/sequenced_broadcast.h).
 *
 * One thread, one call at a time; allocates.
 */

#include "core/qp.h"
#include "core/sim/timed/timed.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/tree.h"
#include "loadgen/simulate/net/pipeline_times.h"

struct qn_pipeline_opts {
    const struct qn_transport *transport;
    struct qn_prices *prices;           /* for all nodes */
    const struct qn_tree *tree;         /* over nodes 0 .. n-1, or */
    const struct qn_diamond_ring *ring; /* its cores are the nodes */
    uint32_t nodes;
    uint32_t size; /* bytes, at most 48 */
    uint64_t seed;
    uint64_t operation_ns; /* that an operation costs the root beside its
                              messages */
};

/** @return QN_OK; QN_EINVAL: the transport has no room for all nodes;
 *  QN_EIO: a node did not come to its end; QN_ENOMEM. */
int qn_pipeline_run(struct qn_pipeline_result *r,
                    const struct qn_pipeline_opts *o);

#endif
