#ifndef QN_LOADGEN_SIMULATE_EDGES_H
#define QN_LOADGEN_SIMULATE_EDGES_H

/**
 * Queuepairs along the edges of a tree or of a diamond ring, in memory of this
 * process: what the nodes of a simulated machine need to run a collective.
 * There is no full mesh unless it is asked for: 1024 nodes of a tree have 1023
 * edges. Of a transport
 * with a device they share one.
 *
 * Made and closed outside of a run.
 */

#include "core/qp.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/tree.h"

/** A device, and the attachment of each node. Fields are private. */
struct qn_edges_device {
    void *memory; /* NULL: the transport has lanes */
    struct qn_device **port;
    uint32_t nodes;
};

/** Nothing if the transport has lanes. @return QN_OK; QN_EINVAL: it has no room
 *  for all nodes; QN_ENOMEM, then nothing is left to close. */
int qn_edges_device_open(struct qn_edges_device *d,
                         const struct qn_transport *t, uint32_t nodes);

/** Close all nets on it first. */
void qn_edges_device_close(struct qn_edges_device *d);

/** Fields are private, but `qp`. */
struct qn_edges_net {
    uint32_t nodes;
    struct qn_qp ***qp; /* [nodes][nodes] by node and peer; NULL: no edge */
    void **lane;        /* [lanes] */
    uint32_t lanes;
};

struct qn_edges_opts {
    const struct qn_transport *transport;
    const struct qn_edges_device *device; /* of that transport, kept; lanes
                                             need none */
    enum qn_lane lane;                    /* of it: one net has one */
    const struct qn_tree *tree;           /* borrowed */
    const struct qn_diamond_ring *ring;   /* if there is no tree: borrowed; its
                                             cores are the nodes */
    bool all;         /* between any two nodes of the tree */
    uint32_t cells;   /* of each lane */
    uint32_t msg_max; /* bytes of a message; 0: any */
};

/** @return QN_OK; QN_EINVAL; QN_ENOMEM, then nothing is left to close. */
int qn_edges_net_open(struct qn_edges_net *e, const struct qn_edges_opts *o);

void qn_edges_net_close(struct qn_edges_net *e);

#endif
