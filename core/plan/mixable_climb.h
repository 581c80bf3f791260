#ifndef QN_CORE_PLAN_MIXABLE_CLIMB_H
#define QN_CORE_PLAN_MIXABLE_CLIMB_H

/**
 * Local search among trees in which parents come before their children: of
 * mixable_trees.c, for groups that are too large for its exact recursion.
 *
 * Nodes are ranks, positions in the order; rank 0 is the root. A tree is each
 * rank's parent, for the order of a parent's children that is best is known: by
 * r + T, largest first, where T is the time from a node's message to the last
 * one below (core/topo/TREES.md).
 *
 * Pure, any thread, no allocation, 2 KB of stack.
 */

#include <stdint.h>

#include "core/machine/machine.h"
#include "core/topo/tree.h"

/** Trees to try, at most: with 64 members 1 ms of a core or less. */
#define QN_MIXABLE_CLIMB_MOVES 2000u

/**
 * Hang each rank, with what is below it, from the earlier rank that makes the
 * broadcast fastest, until none makes it faster.
 *
 * @param e       A spanning tree over ranks: each parent below its children.
 *                Replaced by one that is not slower.
 * @param costs   Between nodes. Borrowed.
 * @param order   [e->n] the node of each rank. Borrowed.
 * @param moves   The most trees that are tried.
 * @return how many were tried.
 */
uint32_t qn_mixable_climb(struct qn_edges *e, const struct qn_machine *costs,
                          const qn_node_t *order, uint32_t moves);

#endif
