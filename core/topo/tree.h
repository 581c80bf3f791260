#ifndef QN_TOPO_TREE_H
#define QN_TOPO_TREE_H

/**
 * Topologies: broadcast trees over the nodes 0..n-1 of a group.
 *
 * A tree is its root, each node's parent and each node's children in send
 * order. Builders for the static shapes of the specification (core/topo
 * README): sequential and binary now; the others join the table by one row.
 * "Binary" on ranks: rank i has children 2i+1 and 2i+2, where rank 0 is the
 * root and the other ranks are the members in the order given.
 *
 * Pure: no allocation, any thread.
 */

#include "core/node.h"

struct qn_tree {
    uint32_t n; /* nodes, 1 .. QN_NODES_MAX */
    qn_node_t root;
    qn_node_t parent[QN_NODES_MAX]; /* parent[root] == root; absent nodes:
                                       QN_NODES_MAX */
    uint32_t child_count[QN_NODES_MAX];
    uint32_t child_at[QN_NODES_MAX]; /* first child's index in `child` */
    qn_node_t child[QN_NODES_MAX];   /* all children, grouped by parent, in
                                        send order */
};

/** Build a named tree over `members` (order[0] is the root; [n] distinct node
 *  ids < QN_NODES_MAX). QN_ENOENT unknown name, QN_EINVAL bad members. */
int qn_tree_build(struct qn_tree *t, const char *name, const qn_node_t *order,
                  uint32_t n);

/** Name of the i-th builder, NULL past the last. */
const char *qn_tree_name_at(uint32_t i);

/** QN_OK if t is a spanning tree of its members: one root, one parent each, no
 *  cycle, child lists and parents agree. Else QN_EINVAL. */
int qn_tree_check(const struct qn_tree *t);

/** Edges from the root to the deepest node. */
uint32_t qn_tree_depth(const struct qn_tree *t);

#endif
