#ifndef QN_CORE_PLAN_RING_OR_TREE_H
#define QN_CORE_PLAN_RING_OR_TREE_H

/**
 * Does a group's pipeline of broadcasts go faster over a diamond ring than
 * along the planned tree, by what messages cost?
 *
 * The tree is that of qn_mixable_tree_build, made for the latency of one
 * broadcast; the ring's links are a tree of small degree
 * (qn_diamond_ring_edges), in which no node sends much. Both have the members
 * in the order of their numbers, behind node 0. They are compared by the
 * predicted time of a burst of 1, 2, 4, ... broadcasts (core/topo/
 * pipeline_sim.h): latency counts in a short one, the busiest node in a long
 * one.
 *
 * Deterministic, allocates, any thread.
 */

#include "core/machine/machine.h"

#define QN_RING_OR_TREE_ARITY 8u   /* rings of up to this arity are tried */
#define QN_RING_OR_TREE_GAIN  0.95 /* of the tree's time, at most */

struct qn_ring_or_tree {
    uint32_t ring; /* arity of the ring that is fastest in a long burst; 0: no
                      ring is faster */
    uint32_t from; /* the shortest burst, in broadcasts, in which it is */
    double ring_cycles, tree_cycles; /* for each broadcast of a long burst; with
                                        `ring` 0 equal */
};

/**
 * @param out    Filled; on failure: no ring.
 * @param costs  Between nodes, 1 .. QN_NODES_MAX of them. Borrowed.
 * @return QN_OK; QN_EINVAL; QN_ENOMEM.
 *
 * At most QN_RING_OR_TREE_ARITY + 1 simulations of 255 broadcasts.
 */
int qn_ring_or_tree_choose(struct qn_ring_or_tree *out,
                           const struct qn_machine *costs);

#endif
