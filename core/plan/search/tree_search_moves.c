/*
 * Most proposals are bad, and most bad ones are seen before anything is
 * touched: what hangs at the new place, plus the lags from there to the root,
 * already exceeds the limit (tree_search_fold.c). That bound ignores what the
 * move relieves on the same path, so it is no strict one; it costs a few good
 * moves and doubles the number that fit a budget.
 */
#include "core/base/assert.h"
#include "core/plan/search/tree_search_internal.h"

/* Of 64 proposals; the rest pull a core out. Measured on 15 machines: within
 * a percent, any similar mix is as good. */
#define REPARENT 32u
#define TRADE    14u
#define EXCHANGE 10u
#define ROTATE   1u

static bool is_below(const struct qn_tree_search *x, uint32_t u, uint32_t v)
{
    while (u != v && u != x->root) {
        u = x->cell[u].parent;
    }
    return u == v;
}

/* The edge to v counts for v's own work, where that is folded. */
static void settle_both(struct qn_tree_search *x, uint32_t v, uint32_t w)
{
    if (x->o.fold == QN_FOLD_RATE || x->o.fold == QN_FOLD_STREAM) {
        qn_tree_search_update_path(x, v);
        qn_tree_search_update_path(x, w);
    }
}

/* v, with its subtree, to u. */
static bool reparent(struct qn_tree_search *x, uint32_t v, uint32_t u,
                     uint32_t limit)
{
    uint32_t p = x->cell[v].parent;
    if (v == x->root || u == p || is_below(x, u, v)) {
        return false;
    }
    if (limit != UINT32_MAX &&
        qn_tree_search_lower_bound(x, v, x->cell[v].value, u, QN_NONE) >
            limit) {
        return false;
    }
    qn_tree_search_attach(x, v, u);
    settle_both(x, v, v);
    qn_tree_search_update_path(x, p);
    qn_tree_search_update_path(x, u);
    return true;
}

/* The subtrees of a and b change places. */
static bool swap_subtrees(struct qn_tree_search *x, uint32_t a, uint32_t b,
                          uint32_t limit)
{
    uint32_t pa = x->cell[a].parent, pb = x->cell[b].parent;
    if (pa == pb || is_below(x, a, b) || is_below(x, b, a)) {
        return false;
    }
    if (limit != UINT32_MAX &&
        (qn_tree_search_lower_bound(x, a, x->cell[a].value, pb, b) > limit ||
         qn_tree_search_lower_bound(x, b, x->cell[b].value, pa, a) > limit)) {
        return false;
    }
    qn_tree_search_attach(x, a, pb);
    qn_tree_search_attach(x, b, pa);
    settle_both(x, a, b);
    qn_tree_search_update_path(x, pa);
    qn_tree_search_update_path(x, pb);
    return true;
}

/* The children of a, except b, to b. */
static void hand_over(struct qn_tree_search *x, const uint16_t *list,
                      uint32_t count, uint32_t b)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] != b) {
            qn_tree_search_attach(x, list[i], b);
        }
    }
}

/* Their children's edges have changed too. */
static void settle_children(struct qn_tree_search *x, const uint16_t *list,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        settle_both(x, list[i], list[i]);
    }
}

/* Cores a and b change places, their children stay; b is not a's parent and
 * not the root. */
static void swap_cores(struct qn_tree_search *x, uint32_t a, uint32_t b)
{
    uint16_t la[QN_CORES_MAX], lb[QN_CORES_MAX];
    uint32_t pa = x->cell[a].parent, pb = x->cell[b].parent;
    uint32_t na = qn_tree_search_children(x, a, la);
    uint32_t nb = qn_tree_search_children(x, b, lb);
    if (a == x->root) {
        qn_tree_search_make_root(x, b);
    } else {
        qn_tree_search_attach(x, b, pa);
    }
    qn_tree_search_attach(x, a, pb == a ? b : pb);
    hand_over(x, la, na, b);
    hand_over(x, lb, nb, a);
    settle_children(x, la, na);
    settle_children(x, lb, nb);
    qn_tree_search_update_path(x, a);
    qn_tree_search_update_path(x, b);
    if (pa != a) {
        qn_tree_search_update_path(x, pa);
    }
    if (pb != a) {
        qn_tree_search_update_path(x, pb);
    }
}

static bool exchange(struct qn_tree_search *x, uint32_t a, uint32_t b,
                     uint32_t limit)
{
    if (x->cell[a].parent == b || b == x->root) {
        uint32_t c = a;
        a = b;
        b = c;
    }
    if (a == x->root && !x->o.root_free) {
        return false;
    }
    if (x->cell[a].first == QN_NONE && x->cell[b].first == QN_NONE &&
        x->cell[a].parent == x->cell[b].parent) {
        return false;
    }
    if (limit != UINT32_MAX && (qn_tree_search_instead(x, a, b) > limit ||
                                qn_tree_search_instead(x, b, a) > limit)) {
        return false;
    }
    swap_cores(x, a, b);
    return true;
}

/* The root and one of its children change roles; subtrees stay. */
static bool rotate(struct qn_tree_search *x)
{
    uint16_t list[QN_CORES_MAX];
    uint32_t a = x->root, count = qn_tree_search_children(x, a, list);
    if (!x->o.root_free || count == 0) {
        return false;
    }
    uint32_t c = list[qn_anneal_below(&x->anneal, count)];
    qn_tree_search_make_root(x, c);
    qn_tree_search_attach(x, a, c);
    qn_tree_search_update_path(x, a);
    qn_tree_search_update_path(x, c);
    return true;
}

/* v goes to u alone; one of its children inherits its place. */
static bool pull_out(struct qn_tree_search *x, uint32_t v, uint32_t u,
                     uint32_t limit)
{
    uint16_t list[QN_CORES_MAX];
    uint32_t p = x->cell[v].parent, count = qn_tree_search_children(x, v, list);
    bool top = v == x->root;
    if (count == 0 || (top && !x->o.root_free)) {
        return false;
    }
    if (limit != UINT32_MAX &&
        qn_tree_search_lower_bound(x, v, 0, u, QN_NONE) > limit) {
        return false;
    }
    uint32_t heir = list[qn_anneal_below(&x->anneal, count)];
    if (top) {
        qn_tree_search_make_root(x, heir);
    } else {
        qn_tree_search_attach(x, heir, p);
    }
    hand_over(x, list, count, heir);
    qn_tree_search_attach(x, v, u);
    settle_children(x, list, count);
    qn_tree_search_update_path(x, v);
    qn_tree_search_update_path(x, u);
    qn_tree_search_update_path(x, heir);
    if (!top) {
        qn_tree_search_update_path(x, p);
    }
    return true;
}

/* A core that the cost hangs on: on the critical path, or served before one
 * that is. */
static uint32_t pick_critical(struct qn_tree_search *x)
{
    uint16_t path[QN_CORES_MAX];
    uint32_t n = 0;
    for (uint32_t v = x->root; v != QN_NONE; v = x->cell[v].critical) {
        path[n++] = (uint16_t)v;
    }
    if (n == 1) {
        return qn_anneal_below(&x->anneal, x->n);
    }
    QN_ASSERT(n > 1);
    uint32_t among = x->o.root_free ? n : n - 1;
    uint32_t v = path[n - 1 - qn_anneal_below(&x->anneal, among)];
    uint64_t r = qn_anneal_random(&x->anneal);
    for (; (r & 1) != 0 && x->cell[v].prev != QN_NONE; r >>= 1) {
        v = x->cell[v].prev;
    }
    return v;
}

bool qn_tree_search_propose(struct qn_tree_search *x, uint32_t limit)
{
    uint64_t r = qn_anneal_random(&x->anneal);
    uint32_t v =
        (r & 1) != 0 ? pick_critical(x) : qn_anneal_below(&x->anneal, x->n);
    uint32_t u = qn_anneal_below(&x->anneal, x->n);
    if ((r & 2) != 0) {
        u = x->near[v * x->near_count +
                    qn_anneal_below(&x->anneal, x->near_count)];
    }
    uint32_t kind = (uint32_t)(r >> 2) & 63;
    limit = qn_tree_search_bound(x, limit);
    if (u == v) {
        return false;
    }
    if (kind < REPARENT) {
        return reparent(x, v, u, limit);
    }
    if (kind < REPARENT + TRADE) {
        return swap_subtrees(x, v, u, limit);
    }
    if (kind < REPARENT + TRADE + EXCHANGE) {
        return exchange(x, v, u, limit);
    }
    return kind < REPARENT + TRADE + EXCHANGE + ROTATE
               ? rotate(x)
               : pull_out(x, v, u, limit);
}
