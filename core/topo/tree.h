#ifndef QN_TOPO_TREE_H
#define QN_TOPO_TREE_H

/**
 * Topologies: broadcast trees over the nodes 0..n-1 of a group.
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

#include "core/node.h"
#include "core/topo/shape.h"

/** Plain data, copied by assignment. Two equal trees are equal bytes. */
struct qn_tree {
    uint32_t n; /* members, 1 .. QN_NODES_MAX */
    qn_node_t root;
    qn_node_t parent[QN_NODES_MAX];     /* by node; parent[root] == root; no
                                           member: QN_NODES_MAX */
    uint32_t child_count[QN_NODES_MAX]; /* by node */
    uint32_t child_at[QN_NODES_MAX];    /* by node: first child in `child` */
    qn_node_t child[QN_NODES_MAX];      /* all n-1 children, grouped by parent,
                                           each group in send order */
};

/**
 * Build a named tree.
 *
 * @param t      Filled; untouched on failure.
 * @param name   "sequential", "binary", "fibonacci" or "tree:k=N".
 * @param order  [n] the members, distinct node ids < QN_NODES_MAX; order[0] is
 *               the root. Borrowed.
 * @param n      1 .. QN_NODES_MAX.
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
 * @return QN_OK; QN_EINVAL more than QN_NODES_MAX cores, nodes that are not
 *         distinct, or no tree.
 */
int qn_tree_place(struct qn_tree *t, const struct qn_shape *s,
                  const qn_node_t *node);

/** Name of the i-th static shape, NULL past the last; without "tree:k=N". */
const char *qn_tree_name_at(uint32_t i);

/** Check any bytes: QN_OK if t is a spanning tree of its members (one root,
 *  one parent each, no cycle, child lists and parents agree), else QN_EINVAL.
 *  O(n * depth). */
int qn_tree_check(const struct qn_tree *t);

/** Edges from the root to the deepest node of a valid tree. */
uint32_t qn_tree_depth(const struct qn_tree *t);

#endif
