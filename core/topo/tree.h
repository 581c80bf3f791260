#ifndef QN_TOPO_TREE_H
#define QN_TOPO_TREE_H

/**
 * Topologies: broadcast trees over nodes, up to QN_MEMBERS_MAX of them.
 *
 * A tree is its root, each node's parent and each node's children in send
 * order. The static shapes that need no costs (static_trees.h) are found by
 * name.
 *
 * A builder works on ranks: rank 0 is the root and the other ranks are the
 * members in the order given. So the same members in another order make the
 * same shape with the nodes in other places.
 *
 * Pure: no allocation, any thread.
 */

#include <stdbool.h>

#include "core/node.h"
#include "core/topo/shape.h"

/** Plain data, copied by assignment: 8 KiB, so that happens when the tree
 *  changes and not per message. Two equal trees are equal bytes. */
struct qn_tree {
    uint32_t n; /* members, 1 .. QN_MEMBERS_MAX */
    qn_node_t root;
    uint16_t parent[QN_MEMBERS_MAX];      /* by node; parent[root] == root; not
                                             in the tree: QN_NO_MEMBER */
    uint16_t child_count[QN_MEMBERS_MAX]; /* by node */
    uint16_t child_at[QN_MEMBERS_MAX];    /* by node: first child in `child` */
    uint16_t child[QN_MEMBERS_MAX];       /* all n-1 children, grouped by
                                             parent, each group in send order */
};

/**
 * Build a named tree.
 *
 * @param t      Filled; untouched on failure.
 * @param name   "sequential", "binary", "fibonacci" or "tree:k=N"; "ring:k=N":
 *               how a broadcast spreads in a diamond ring
 *               (qn_diamond_ring_edges), so each node but the root sends only
 *               to later ones of the order.
 * @param order  [n] the members, distinct node ids < QN_MEMBERS_MAX; order[0]
 * is the root. Borrowed.
 * @param n      1 .. QN_MEMBERS_MAX.
 * @return QN_OK; QN_ENOENT unknown name; QN_EINVAL bad members or n.
 *
 * O(n).
 */
int qn_tree_build(struct qn_tree *t, const char *name, const qn_node_t *order,
                  uint32_t n);

/**
 * Put a planned tree onto the nodes of a group.
 *
 * @param t     Filled; untouched on failure.
 * @param s     A tree over cores 0 .. s->n-1 of a machine.
 * @param node  [s->n] the node that runs on each of these cores. Borrowed.
 * @return QN_OK; QN_EINVAL nodes that are not distinct or not below
 *         QN_MEMBERS_MAX, or no tree.
 */
int qn_tree_place(struct qn_tree *t, const struct qn_shape *s,
                  const qn_node_t *node);

/** Name of the i-th static shape, NULL past the last; without "tree:k=N". */
const char *qn_tree_name_at(uint32_t i);

/** Check any bytes: QN_OK if t is a spanning tree of its members (one root,
 *  one parent each, no cycle, child lists and parents agree), else QN_EINVAL.
 *  O(QN_MEMBERS_MAX). */
int qn_tree_check(const struct qn_tree *t);

/** True if the tree has this node. */
static inline bool qn_tree_has(const struct qn_tree *t, qn_node_t v)
{
    return v < QN_MEMBERS_MAX && t->parent[v] != QN_NO_MEMBER;
}

/** The smallest number that is above all members of a valid tree: the length of
 *  arrays by node. O(QN_MEMBERS_MAX). */
uint32_t qn_tree_bound(const struct qn_tree *t);

/** Edges from the root to the deepest node of a valid tree. O(n * depth). */
uint32_t qn_tree_depth(const struct qn_tree *t);

#endif
