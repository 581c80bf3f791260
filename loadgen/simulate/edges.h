#ifndef QN_LOADGEN_SIMULATE_EDGES_H
#define QN_LOADGEN_SIMULATE_EDGES_H

/**
 * Queuepairs along the edges of a tree, in memory of this process: what the
 * nodes of a simulated machine need to run a collective. There is no full mesh:
 * 1024 nodes have 1023 edges.
 *
 * Made and closed outside of a run.
 */

#include "core/qp.h"
#include "core/topo/tree.h"

/** Fields are private, but `qp`. */
struct qn_edges_net {
    uint32_t nodes;
    struct qn_qp ***qp; /* [nodes][nodes] by node and peer; NULL: no edge */
    void **lane;        /* [2 * nodes] by child: down to it, and up from it */
};

/** @param cells    Of each lane.
 *  @param msg_max  Bytes of a message.
 *  @return QN_OK; QN_EINVAL; QN_ENOMEM, then nothing is left to close. */
int qn_edges_net_open(struct qn_edges_net *e, const struct qn_transport *t,
                      const struct qn_tree *tree, uint32_t cells,
                      uint32_t msg_max);

void qn_edges_net_close(struct qn_edges_net *e);

#endif
