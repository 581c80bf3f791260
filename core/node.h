#ifndef QN_NODE_H
#define QN_NODE_H

/** Names that every layer shares: nodes, slots, epochs, lanes. */

#include <stdint.h>

typedef uint32_t qn_node_t;  /* index of a node in its group, [0, n) */
typedef uint64_t qn_slot_t;  /* position in the replicated log, from 1 */
typedef uint32_t qn_epoch_t; /* index into the utility log, from 0 */

/** Nodes of a consensus group: masks of its nodes are one u64. */
#define QN_NODES_MAX   64u
/** Members of a topology: of a tree, and of a context on it. Their sets are
 *  core/node_set.h. */
#define QN_MEMBERS_MAX 1024u
/** No member: what a tree says of a node that it does not have. Larger than any
 *  member, so what is below QN_MEMBERS_MAX is not it. */
#define QN_NO_MEMBER   QN_MEMBERS_MAX

/** Each ordered pair of nodes has lanes, laid out once, so that a new topology
 *  needs no new memory. The first two are those of consensus. A program may
 *  have more (qn_outbox_opts.lanes), from QN_LANES on, one for each context or
 *  collective that runs beside it. */
enum qn_lane {
    QN_LANE_DIRECT, /* point to point: requests, accepts, control */
    QN_LANE_TREE,   /* broadcast along the current topology */
    QN_LANES
};

#define QN_LANES_MAX 8u /* of an ordered pair of nodes */

#endif
