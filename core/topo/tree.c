/*
 * Trees from edge lists.
 *
 * A builder knows ranks only: rank 0 is the root, the others are the members
 * in the order given. It emits the n-1 edges parent -> child, each parent's in
 * its send order; edges of different parents may be mixed, so that a builder
 * that simulates events (who sends when) emits them as they happen. `arrange`
 * then maps ranks to nodes and groups the edges by parent, keeping the order:
 * a counting sort. So a new shape is one function and one row of the table,
 * and no builder can produce lists that disagree with `parent`.
 *
 * The result is an array of structs of indices, not a linked tree: it is
 * copied by assignment, sent, and compared with memcmp.
 *
 * qn_tree_check trusts nothing: a tree may have come from a file or a peer.
 */
#include "core/topo/tree.h"

#include <stdbool.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

struct edges {
    uint32_t n; /* ranks */
    uint32_t count;
    uint32_t parent[QN_NODES_MAX];
    uint32_t child[QN_NODES_MAX];
};

static void emit(struct edges *e, uint32_t parent, uint32_t child)
{
    QN_ASSERT(e->count < e->n - 1);
    QN_ASSERT(parent < e->n && child < e->n);
    e->parent[e->count] = parent;
    e->child[e->count] = child;
    e->count++;
}

/* The root sends to everybody, in the order given. */
static void build_sequential(struct edges *e)
{
    for (uint32_t i = 1; i < e->n; i++) {
        emit(e, 0, i);
    }
}

/* Heap order: rank i sends to 2i+1, then to 2i+2. */
static void build_binary(struct edges *e)
{
    for (uint32_t i = 1; i < e->n; i++) {
        emit(e, (i - 1) / 2, i);
    }
}

static const struct builder {
    const char *name;
    void (*build)(struct edges *e);
} builders[] = {
    {"sequential", build_sequential},
    {"binary", build_binary},
};

static const struct builder *find(const char *name)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(builders); i++) {
        if (strcmp(builders[i].name, name) == 0) {
            return &builders[i];
        }
    }
    return NULL;
}

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
static void arrange(struct qn_tree *t, const struct edges *e,
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
    const struct builder *b = find(name);
    if (b == NULL) {
        return QN_ENOENT;
    }
    if (n == 0 || n > QN_NODES_MAX || !distinct_nodes(order, n)) {
        return QN_EINVAL;
    }
    struct edges e = {.n = n};
    b->build(&e);
    QN_ASSERT(e.count == n - 1);
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
    struct edges e = {.n = qn_shape_order(s, core)};
    uint32_t next = 1;
    for (uint32_t i = 0; i < e.n; i++) {
        order[i] = node[core[i]];
        for (uint32_t k = 0; k < s->count[core[i]]; k++) {
            emit(&e, i, next++);
        }
    }
    *t = (struct qn_tree){0};
    arrange(t, &e, order);
    QN_DASSERT(qn_tree_check(t) == QN_OK);
    return QN_OK;
}

const char *qn_tree_name_at(uint32_t i)
{
    return i < QN_ARRAY_COUNT(builders) ? builders[i].name : NULL;
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
