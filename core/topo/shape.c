/*
 * Shapes are arrays of indices: one list of all children, grouped by parent in
 * index order. So a shape is copied by assignment, compared by content, and
 * walked without pointers. Moving an edge shifts a part of the list; at these
 * sizes that is a memmove of some hundred bytes.
 */
#include "core/topo/shape.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

void qn_edges_init(struct qn_edges *e, uint32_t n)
{
    QN_ASSERT(n >= 1 && n <= QN_CORES_MAX);
    e->n = n;
    e->count = 0;
}

void qn_edges_add(struct qn_edges *e, uint32_t parent, uint32_t child)
{
    QN_ASSERT(e->count < e->n - 1);
    QN_ASSERT(parent < e->n && child < e->n);
    e->parent[e->count] = (uint16_t)parent;
    e->child[e->count] = (uint16_t)child;
    e->count++;
}

static void set_first(struct qn_shape *s)
{
    uint32_t next = 0;
    for (uint32_t v = 0; v < s->n; v++) {
        s->first[v] = (uint16_t)next;
        next += s->count[v];
    }
}

/* Every core but the root is a child once; reachability is left to check. */
static bool count_edges(struct qn_shape *s, const struct qn_edges *e)
{
    bool seen[QN_CORES_MAX] = {false};
    seen[s->root] = true;
    for (uint32_t i = 0; i < e->count; i++) {
        if (seen[e->child[i]]) {
            return false;
        }
        seen[e->child[i]] = true;
        s->parent[e->child[i]] = e->parent[i];
        s->count[e->parent[i]]++;
    }
    return true;
}

int qn_shape_from_edges(struct qn_shape *s, const struct qn_edges *e,
                        uint32_t root)
{
    if (e->n == 0 || e->n > QN_CORES_MAX || root >= e->n ||
        e->count != e->n - 1) {
        return QN_EINVAL;
    }
    struct qn_shape t = {.n = e->n, .root = root};
    t.parent[root] = (uint16_t)root;
    if (!count_edges(&t, e)) {
        return QN_EINVAL;
    }
    set_first(&t);
    uint16_t at[QN_CORES_MAX];
    memcpy(at, t.first, sizeof at);
    for (uint32_t i = 0; i < e->count; i++) {
        t.child[at[e->parent[i]]++] = e->child[i];
    }
    if (qn_shape_check(&t) != QN_OK) {
        return QN_EINVAL;
    }
    *s = t;
    return QN_OK;
}

uint32_t qn_shape_order(const struct qn_shape *s, uint16_t *order)
{
    uint32_t n = 1;
    order[0] = (uint16_t)s->root;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = s->count[order[i]];
        if (count > s->n - n) {
            break; /* more edges than cores: no tree */
        }
        const uint16_t *child = qn_shape_children(s, order[i]);
        for (uint32_t k = 0; k < count; k++) { /* few: no call of memcpy */
            order[n++] = child[k];
        }
    }
    return n;
}

/* Lists lie in `child`, in index order without gaps, and agree with parent. */
static bool lists_agree(const struct qn_shape *s)
{
    uint32_t next = 0;
    for (uint32_t v = 0; v < s->n; v++) {
        if (s->first[v] != next || s->count[v] > s->n - 1 - next) {
            return false;
        }
        next += s->count[v];
        for (uint32_t i = 0; i < s->count[v]; i++) {
            uint32_t c = qn_shape_children(s, v)[i];
            if (c >= s->n || c == s->root || s->parent[c] != v) {
                return false;
            }
        }
    }
    return next == s->n - 1;
}

int qn_shape_check(const struct qn_shape *s)
{
    if (s->n == 0 || s->n > QN_CORES_MAX || s->root >= s->n ||
        s->parent[s->root] != s->root || !lists_agree(s)) {
        return QN_EINVAL;
    }
    /* n-1 edges; if they reach n different cores there is no cycle. */
    uint16_t order[QN_CORES_MAX];
    bool seen[QN_CORES_MAX] = {false};
    uint32_t n = qn_shape_order(s, order);
    for (uint32_t i = 0; i < n; i++) {
        if (seen[order[i]]) {
            return QN_EINVAL;
        }
        seen[order[i]] = true;
    }
    return n == s->n ? QN_OK : QN_EINVAL;
}

uint32_t qn_shape_depth(const struct qn_shape *s)
{
    uint16_t order[QN_CORES_MAX];
    uint32_t depth[QN_CORES_MAX] = {0}, deepest = 0;
    uint32_t n = qn_shape_order(s, order);
    for (uint32_t i = 1; i < n; i++) {
        depth[order[i]] = depth[s->parent[order[i]]] + 1;
        deepest = QN_MAX(deepest, depth[order[i]]);
    }
    return deepest;
}

void qn_shape_move(struct qn_shape *s, uint32_t v, uint32_t u)
{
    uint32_t p = s->parent[v], last = s->n - 1, at = s->first[p];
    QN_ASSERT(v < s->n && u < s->n && v != s->root && u != v);
    while (s->child[at] != v) {
        at++;
        QN_ASSERT(at < (uint32_t)s->first[p] + s->count[p]);
    }
    memmove(s->child + at, s->child + at + 1,
            (last - at - 1) * sizeof *s->child);
    s->count[p]--;
    set_first(s);
    at = (uint32_t)s->first[u] + s->count[u];
    memmove(s->child + at + 1, s->child + at,
            (last - at - 1) * sizeof *s->child);
    s->child[at] = (uint16_t)v;
    s->parent[v] = (uint16_t)u;
    s->count[u]++;
    set_first(s);
}

bool qn_shape_equal(const struct qn_shape *a, const struct qn_shape *b)
{
    return a->n == b->n && a->root == b->root &&
           memcmp(a->count, b->count, a->n * sizeof *a->count) == 0 &&
           memcmp(a->child, b->child, (a->n - 1) * sizeof *a->child) == 0;
}
