#ifndef QN_TOPO_SHAPE_H
#define QN_TOPO_SHAPE_H

/**
 * Ordered trees over the cores of a machine.
 *
 * A shape spans the indices 0 .. n-1 of a machine (core/machine): a root, one
 * parent each, and each core's children in send order. It is what trees are
 * planned, predicted, written and drawn as. A group's broadcast runs a `struct
 * qn_tree` (tree.h): the same over nodes; qn_tree_place turns one into the
 * other. For a subset of the cores, restrict the machine.
 *
 * Builders emit edges (parent, child), each parent's in send order, mixed as
 * they like; qn_shape_from_edges groups them.
 *
 * Plain data, copied by assignment, no allocation, any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"

struct qn_shape {
    uint32_t n;                    /* cores, 1 .. QN_CORES_MAX */
    uint32_t root;                 /* index */
    uint16_t parent[QN_CORES_MAX]; /* [n]; parent[root] == root */
    uint16_t count[QN_CORES_MAX];  /* [n] children of each core */
    uint16_t first[QN_CORES_MAX];  /* [n] a core's first child in `child` */
    uint16_t child[QN_CORES_MAX];  /* [n-1] grouped by parent, in send order */
};

struct qn_edges {
    uint32_t n;     /* cores */
    uint32_t count; /* edges so far */
    uint16_t parent[QN_CORES_MAX];
    uint16_t child[QN_CORES_MAX];
};

/** The children of v, [s->count[v]] in send order. */
static inline const uint16_t *qn_shape_children(const struct qn_shape *s,
                                                uint32_t v)
{
    return s->child + s->first[v];
}

/** Begin a list of edges over n cores. */
void qn_edges_init(struct qn_edges *e, uint32_t n);

/** Append an edge; at most n-1, both ends below n (asserted). */
void qn_edges_add(struct qn_edges *e, uint32_t parent, uint32_t child);

/** Group edges by parent. @return QN_OK, or QN_EINVAL if they are no spanning
 *  tree with this root; then `s` is untouched. O(n). */
int qn_shape_from_edges(struct qn_shape *s, const struct qn_edges *e,
                        uint32_t root);

/** Cores from the root downwards, parents before children, children in send
 *  order. @param order [n] filled. @return how many were reached: n for a
 *  tree. O(n). */
uint32_t qn_shape_order(const struct qn_shape *s, uint16_t *order);

/** QN_OK if any bytes are a spanning tree, else QN_EINVAL. O(n). */
int qn_shape_check(const struct qn_shape *s);

/** Edges from the root to the deepest core. O(n). */
uint32_t qn_shape_depth(const struct qn_shape *s);

/** Make v, with its subtree, the last child of u. u must not lie in v's
 *  subtree and v not be the root (asserted only in part). O(n). */
void qn_shape_move(struct qn_shape *s, uint32_t v, uint32_t u);

bool qn_shape_equal(const struct qn_shape *a, const struct qn_shape *b);

#endif
