/*
 * Trees from edge lists.
 *
 * Shapes are known by their ranks (static_trees.c): rank 0 is the root, the
 * others are the members in the order given. `arrange` maps ranks to nodes and
 * groups the edges by parent, keeping the order: a counting sort. So no builder
 * can produce lists that disagree with `parent`.
 *
 * The result is an array of structs of indices, not a linked tree: it is
 * copied by assignment, sent, and compared with memcmp.
 *
 * qn_tree_check trusts nothing: a tree may have come from a file or a peer.
 */
#include "core/topo/tree.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/static_trees.h"
#include <stdbool.h>

static bool distinct_nodes(const qn_node_t *order, uint32_t n)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (order[i] >= QN_NODES_MAX || (seen >> order[i] & 1) != 0) {
            return false;
        }
        seen |= UINT64_C(1) << order[i];
    }
    return true;
}

/* Ranks to nodes, edges to child lists; the lists follow rank order. */
static void arrange(struct qn_tree *t, const struct qn_edges *e,
                    const qn_node_t *order)
{
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        t->parent[i] = QN_NODES_MAX;
    }
    t->n = e->n;
    t->root = order[0];
    t->parent[t->root] = t->root;
    for (uint32_t i = 0; i < e->count; i++) {
        t->child_count[order[e->parent[i]]]++;
        t->parent[order[e->child[i]]] = order[e->parent[i]];
    }
    uint32_t at[QN_NODES_MAX];
    uint32_t next = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        t->child_at[order[i]] = next;
        at[i] = next;
        next += t->child_count[order[i]];
    }
    for (uint32_t i = 0; i < e->count; i++) {
        t->child[at[e->parent[i]]++] = order[e->child[i]];
    }
}

int qn_tree_build(struct qn_tree *t, const char *name, const qn_node_t *order,
                  uint32_t n)
{
    struct qn_edges e;
    int err = qn_static_ranks(&e, name, n);
    if (err != QN_OK) {
        return err;
    }
    if (n > QN_NODES_MAX || !distinct_nodes(order, n)) {
        return QN_EINVAL;
    }
    *t = (struct qn_tree){0};
    arrange(t, &e, order);
    QN_DASSERT(qn_tree_check(t) == QN_OK);
    return QN_OK;
}

int qn_tree_place(struct qn_tree *t, const struct qn_shape *s,
                  const qn_node_t *node)
{
    if (s->n > QN_NODES_MAX || qn_shape_check(s) != QN_OK ||
        !distinct_nodes(node, s->n)) {
        return QN_EINVAL;
    }
    /* Ranks from the root down, so that the root is the first of them. */
    uint16_t core[QN_CORES_MAX];
    qn_node_t order[QN_NODES_MAX];
    struct qn_edges e;
    qn_edges_init(&e, qn_shape_order(s, core));
    uint32_t next = 1;
    for (uint32_t i = 0; i < e.n; i++) {
        order[i] = node[core[i]];
        for (uint32_t k = 0; k < s->count[core[i]]; k++) {
            qn_edges_add(&e, i, next++);
        }
    }
    *t = (struct qn_tree){0};
    arrange(t, &e, order);
    QN_DASSERT(qn_tree_check(t) == QN_OK);
    return QN_OK;
}

const char *qn_tree_name_at(uint32_t i)
{
    return i < QN_STATIC_TREES_PLAIN ? qn_static_name_at(i) : NULL;
}

/* The child list of v lies inside `child`, names v as the parent, and names no
 * node that another list has named. */
static bool check_list(const struct qn_tree *t, qn_node_t v, uint64_t *seen)
{
    uint32_t count = t->child_count[v];
    if (count > t->n - 1 || t->child_at[v] > t->n - 1 - count) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        qn_node_t c = t->child[t->child_at[v] + i];
        if (c >= QN_NODES_MAX || c == t->root || t->parent[c] != v ||
            (*seen >> c & 1) != 0) {
            return false;
        }
        *seen |= UINT64_C(1) << c;
    }
    return true;
}

/* Edges from v up to the root; QN_NODES_MAX if the root is never reached. */
static uint32_t climb(const struct qn_tree *t, qn_node_t v)
{
    uint32_t steps = 0;
    while (v < QN_NODES_MAX && v != t->root && steps < QN_NODES_MAX) {
        v = t->parent[v];
        steps++;
    }
    return v == t->root ? steps : QN_NODES_MAX;
}

int qn_tree_check(const struct qn_tree *t)
{
    if (t->n == 0 || t->n > QN_NODES_MAX || t->root >= QN_NODES_MAX ||
        t->parent[t->root] != t->root) {
        return QN_EINVAL;
    }
    uint64_t seen = UINT64_C(1) << t->root;
    uint32_t members = 0;
    for (qn_node_t v = 0; v < QN_NODES_MAX; v++) {
        if (t->parent[v] == QN_NODES_MAX) {
            if (t->child_count[v] != 0) {
                return QN_EINVAL;
            }
            continue;
        }
        members++;
        if (climb(t, v) == QN_NODES_MAX || !check_list(t, v, &seen)) {
            return QN_EINVAL;
        }
    }
    /* Each member but the root was named by exactly one list. */
    return members == t->n && (uint32_t)__builtin_popcountll(seen) == t->n
               ? QN_OK
               : QN_EINVAL;
}

uint32_t qn_tree_depth(const struct qn_tree *t)
{
    uint32_t depth = 0;
    for (qn_node_t v = 0; v < QN_NODES_MAX; v++) {
        if (t->parent[v] != QN_NODES_MAX) {
            depth = QN_MAX(depth, climb(t, v));
        }
    }
    return depth;
}
