#ifndef QN_CORE_PLAN_RING_OR_TREE_H
#define QN_CORE_PLAN_RING_OR_TREE_H

/**
 * Does a group's pipeline of broadcasts go faster over a diamond ring than
 * along the planned tree, by what messages cost? And which node has which place
 * on the ring?
 *
 * The tree is that of qn_mixable_tree_build, made for the latency of one
 * broadcast; the ring's links are a tree of small degree
 * (qn_diamond_ring_edges), in which no node sends much. The tree has the
 * members in the order of their numbers, behind node 0; the ring has them in
 * that order, or in that of the planner's map (diamond_ring_map.h) if a long
 * burst is predicted to be faster so. Then it must be faster than the tree in
 * that order, too. They are compared by the predicted time of a burst of 1, 2,
 * 4, ... broadcasts (core/topo/pipeline_sim.h): latency counts in a short one,
 * the busiest node in a long one.
 *
 * Deterministic, allocates, any thread.
 */

#include "core/machine/machine.h"
#include "core/topo/tree.h"

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
 * At most 2 * QN_RING_OR_TREE_ARITY + 2 simulations of 255 broadcasts, and a
 * map for each arity.
 */
int qn_ring_or_tree_choose(struct qn_ring_or_tree *out,
                           const struct qn_machine *costs);

/**
 * The order of the nodes on a ring of this arity.
 *
 * @param order   [costs->n] filled: the node of each rank, the root first; any
 *                node may be the root. On failure by number.
 * @param part    Filled: what part of the time that a long burst takes in the
 *                order of the numbers it takes in this one; 1: it is that one.
 * @param costs   Between nodes, 2 .. QN_NODES_MAX of them. Borrowed.
 * @return QN_OK; QN_EINVAL (arity, number of nodes); QN_ENOMEM.
 */
int qn_ring_order(qn_node_t *order, double *part,
                  const struct qn_machine *costs, uint32_t arity);

#endif
