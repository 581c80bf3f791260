#ifndef QN_CORE_PLAN_MIXABLE_TREES_H
#define QN_CORE_PLAN_MIXABLE_TREES_H

/**
 * Broadcast trees of a group whose members change: the best one by what
 * messages cost, or what is left of a given one. Trees of different moments can
 * be mixed.
 *
 * While nodes disagree about the tree, any trees mixed may send a message round
 * for ever (core/group/group.h). So only trees are looked at in which a node
 * that is not the root sends to later members only, in the order given. Which
 * of two equal nodes comes first is no matter, so little is lost: see
 * test_ordered.c.
 *
 * For consensus groups: nodes are below QN_NODES_MAX, though a tree may have
 * more (core/topo/tree.h).
 *
 * Pure, no allocation, about 80 KB of stack, any thread.
 */

#include "core/machine/machine.h"
#include "core/topo/tree.h"

#define QN_MIXABLE_TREE_EXACT 10u /* members; above it, searched */

/**
 * Up to QN_MIXABLE_TREE_EXACT members the best of these trees. Else the faster
 * of two that local search (mixable_climb.h) has improved: one that repeatedly
 * informs the member that can be informed first, and a balanced one of four
 * children.
 *
 * @param t        Filled; untouched on failure.
 * @param costs    Between nodes: index i is node i. Borrowed.
 * @param order    [n] distinct nodes below costs->n; order[0] is the root.
 * @param n        1 .. QN_NODES_MAX.
 * @return QN_OK, QN_EINVAL. Exact O(3^n); else O(n^3), and at most
 *         QN_MIXABLE_CLIMB_MOVES trees from each of the two.
 */
int qn_mixable_tree_build(struct qn_tree *t, const struct qn_machine *costs,
                          const qn_node_t *order, uint32_t n);

/**
 * A given tree, for the members and the root of the moment.
 *
 * Whose parent is no member hangs below the nearest ancestor that is one, in
 * its parent's place. A root that is not the plan's leaves its place there,
 * keeps its children and serves the plan's root first (which has its place only
 * as a member: else the root takes that, too). So with all members and its own
 * root the tree is the plan.
 *
 * @param t      Filled; untouched on failure.
 * @param plan   Over nodes, of which every parent is lower than its children:
 *               that is the order. A node of it that is not below
 *               QN_NODES_MAX: QN_EINVAL.
 * @param order  [n] distinct nodes of the plan; order[0] is the root.
 * @param n      1 .. plan->n.
 * @return QN_OK, QN_EINVAL. O(n^2).
 */
int qn_mixable_tree_from(struct qn_tree *t, const struct qn_tree *plan,
                         const qn_node_t *order, uint32_t n);

/** When the last member of a tree over nodes has been informed, in the unit of
 *  the costs (README.md of this folder: broadcast). O(n). */
double qn_mixable_tree_latency(const struct qn_tree *t,
                               const struct qn_machine *costs);

#endif
