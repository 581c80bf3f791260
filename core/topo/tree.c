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

#include <assert.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/node_set.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/static_trees.h"

static_assert(QN_MEMBERS_MAX <= QN_CORES_MAX, "edges of shapes name members");
static_assert(QN_NO_MEMBER >= QN_MEMBERS_MAX && QN_NO_MEMBER <= UINT16_MAX,
              "no member's number, and it fits");

#define SET_WORDS QN_NODE_SET_WORDS(QN_MEMBERS_MAX)

static bool distinct_nodes(const qn_node_t *order, uint32_t n)
{
    uint64_t word[SET_WORDS];
    struct qn_node_set seen = qn_node_set_over(word, QN_MEMBERS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (order[i] >= QN_MEMBERS_MAX || qn_node_set_has(&seen, order[i])) {
            return false;
        }
        qn_node_set_add(&seen, order[i]);
    }
    return true;
}

/* Ranks to nodes, edges to child lists; the lists follow rank order. */
static void arrange(struct qn_tree *t, const struct qn_edges *e,
                    const qn_node_t *order)
{
    for (uint32_t i = 0; i < QN_MEMBERS_MAX; i++) {
        t->parent[i] = QN_NO_MEMBER;
    }
    t->n = e->n;
    t->root = order[0];
    t->parent[t->root] = (uint16_t)t->root;
    for (uint32_t i = 0; i < e->count; i++) {
        t->child_count[order[e->parent[i]]]++;
        t->parent[order[e->child[i]]] = (uint16_t)order[e->parent[i]];
    }
    uint16_t at[QN_MEMBERS_MAX];
    uint16_t next = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        t->child_at[order[i]] = next;
        at[i] = next;
        next = (uint16_t)(next + t->child_count[order[i]]);
    }
    for (uint32_t i = 0; i < e->count; i++) {
        t->child[at[e->parent[i]]++] = (uint16_t)order[e->child[i]];
    }
}

int qn_tree_build(struct qn_tree *t, const char *name, const qn_node_t *order,
                  uint32_t n)
{
    struct qn_edges e;
    uint32_t ring = qn_diamond_ring_arity(name);
    int err = ring > 0 ? qn_diamond_ring_edges(&e, ring, n)
                       : qn_static_ranks(&e, name, n);
    if (err != QN_OK) {
        return err;
    }
    if (n > QN_MEMBERS_MAX || !distinct_nodes(order, n)) {
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
    if (s->n > QN_MEMBERS_MAX || qn_shape_check(s) != QN_OK ||
        !distinct_nodes(node, s->n)) {
        return QN_EINVAL;
    }
    /* Ranks from the root down, so that the root is the first of them. */
    uint16_t core[QN_CORES_MAX];
    qn_node_t order[QN_MEMBERS_MAX];
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
static bool check_list(const struct qn_tree *t, qn_node_t v,
                       struct qn_node_set *seen)
{
    uint32_t count = t->child_count[v];
    if (count > t->n - 1 || t->child_at[v] > t->n - 1 - count) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        qn_node_t c = t->child[t->child_at[v] + i];
        if (c >= QN_MEMBERS_MAX || c == t->root || t->parent[c] != v ||
            qn_node_set_has(seen, c)) {
            return false;
        }
        qn_node_set_add(seen, c);
    }
    return true;
}

/* Every list is sound: each node is in one list at most, and there are as many
 * members as the tree says. */
static bool check_lists(const struct qn_tree *t)
{
    uint64_t word[SET_WORDS];
    struct qn_node_set seen = qn_node_set_over(word, QN_MEMBERS_MAX);
    uint32_t members = 0;
    for (qn_node_t v = 0; v < QN_MEMBERS_MAX; v++) {
        if (t->parent[v] == QN_NO_MEMBER) {
            if (t->child_count[v] != 0) {
                return false;
            }
            continue;
        }
        members++;
        if (!check_list(t, v, &seen)) {
            return false;
        }
    }
    return members == t->n;
}

/* Nodes that the root reaches. The lists are sound: no node comes twice. */
static uint32_t reached(const struct qn_tree *t)
{
    uint16_t queue[QN_MEMBERS_MAX];
    uint32_t count = 0;
    queue[count++] = (uint16_t)t->root;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < t->child_count[queue[i]]; k++) {
            queue[count++] = t->child[t->child_at[queue[i]] + k];
        }
    }
    return count;
}

int qn_tree_check(const struct qn_tree *t)
{
    if (t->n == 0 || t->n > QN_MEMBERS_MAX || t->root >= QN_MEMBERS_MAX ||
        t->parent[t->root] != t->root || !check_lists(t)) {
        return QN_EINVAL;
    }
    /* All members are reached: no cycle beside the tree. */
    return reached(t) == t->n ? QN_OK : QN_EINVAL;
}

uint32_t qn_tree_bound(const struct qn_tree *t)
{
    uint32_t bound = QN_MEMBERS_MAX;
    while (bound > 0 && t->parent[bound - 1] == QN_NO_MEMBER) {
        bound--;
    }
    return bound;
}

uint32_t qn_tree_depth(const struct qn_tree *t)
{
    uint32_t depth = 0;
    for (qn_node_t v = 0; v < QN_MEMBERS_MAX; v++) {
        uint32_t steps = 0;
        for (qn_node_t u = v; qn_tree_has(t, u) && u != t->root;
             u = t->parent[u]) {
            steps++;
        }
        depth = QN_MAX(depth, steps);
    }
    return depth;
}
