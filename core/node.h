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

/** Each ordered pair of nodes has two lanes, laid out once, so that a new
 *  topology needs no new memory. */
enum qn_lane {
    QN_LANE_DIRECT, /* point to point: requests, accepts, control */
    QN_LANE_TREE,   /* broadcast along the current topology */
    QN_LANES
};

#endif
