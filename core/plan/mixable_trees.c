/*
 * Ranks are positions in the order; rank 0 is the root. All that hangs below a
 * rank is later than it. So the first child of v that takes over a set A is its
 * earliest member, min A, and the recursion of optimum.c loses a choice:
 *
 *     B(v, {}) = 0
 *     B(v, M)  = min over non-empty A in M, with c = min A, of
 *                s(v,c) + max(r(v,c) + B(c, A - c), B(v, M - A))
 *
 * Sets are masks over the ranks 1 .. n-1; only those that are later than v
 * matter, for the root all.
 *
 * The order that is best for a given root may not be best for another. It is
 * fixed all the same, since mixing trees needs one order for all roots.
 */
#include "core/plan/mixable_trees.h"

#include <math.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/mixable_climb.h"

struct ranks {
    const struct qn_machine *costs;
    const qn_node_t *order;
    uint32_t n;
};

static double send_of(const struct ranks *r, uint32_t u, uint32_t v)
{
    return qn_send_cost(r->costs, r->order[u], r->order[v]);
}

static double receive_of(const struct ranks *r, uint32_t u, uint32_t v)
{
    return qn_receive_cost(r->costs, r->order[u], r->order[v]);
}

/* ---- exact --------------------------------------------------------------- */

#define SETS (1u << (QN_MIXABLE_TREE_EXACT - 1)) /* bit i: rank i + 1 */

struct table {
    struct ranks r;
    double best[QN_MIXABLE_TREE_EXACT][SETS];
};

/* What the first child of v should take over of `set`, and the cost. */
static uint32_t choose(const struct table *t, uint32_t v, uint32_t set,
                       double *cost)
{
    uint32_t best = 0;
    *cost = 1e300;
    for (uint32_t a = set; a != 0; a = (a - 1) & set) {
        uint32_t c = (uint32_t)__builtin_ctz(a) + 1;
        double below = receive_of(&t->r, v, c) + t->best[c][a & (a - 1)];
        double rest = t->best[v][set & ~a];
        double all = send_of(&t->r, v, c) + QN_MAX(below, rest);
        if (all < *cost) {
            *cost = all;
            best = a;
        }
    }
    return best;
}

static uint32_t all_but_root(uint32_t n)
{
    return (1u << n) / 2 - 1;
}

static void fill(struct table *t)
{
    for (uint32_t v = t->r.n; v-- > 0;) {
        uint32_t later = all_but_root(t->r.n) & ~((1u << v) - 1);
        t->best[v][0] = 0;
        for (uint32_t set = 1; set <= all_but_root(t->r.n); set++) {
            if ((set & ~later) == 0) {
                (void)choose(t, v, set, &t->best[v][set]);
            }
        }
    }
}

static void exact(const struct ranks *r, struct qn_edges *e)
{
    struct table t = {.r = *r};
    fill(&t);
    uint32_t set[QN_MIXABLE_TREE_EXACT] = {all_but_root(r->n)};
    for (uint32_t v = 0; v < r->n; v++) { /* parents come first */
        while (set[v] != 0) {
            double cost;
            uint32_t a = choose(&t, v, set[v], &cost);
            uint32_t c = (uint32_t)__builtin_ctz(a) + 1;
            qn_edges_add(e, v, c);
            set[c] = a & (a - 1);
            set[v] &= ~a;
        }
    }
}

/* ---- starts of a search -------------------------------------------------- */

static void greedy(const struct ranks *r, struct qn_edges *e)
{
    double ready[QN_NODES_MAX] = {0};
    uint64_t informed = 1;
    for (uint32_t left = r->n - 1; left > 0; left--) {
        uint32_t from = 0, to = 0;
        double first = 1e300;
        for (uint32_t u = 0; u < r->n; u++) {
            for (uint32_t v = u + 1; v < r->n && informed >> u & 1; v++) {
                double at = ready[u] + send_of(r, u, v) + receive_of(r, u, v);
                if ((informed >> v & 1) == 0 && at < first) {
                    first = at;
                    from = u;
                    to = v;
                }
            }
        }
        qn_edges_add(e, from, to);
        informed |= UINT64_C(1) << to;
        ready[from] += send_of(r, from, to);
        ready[to] = first;
    }
}

#define ARITY 4u

static void balanced(const struct ranks *r, struct qn_edges *e)
{
    for (uint32_t v = 1; v < r->n; v++) {
        qn_edges_add(e, (v - 1) / ARITY, v);
    }
}

/* ---- by costs ------------------------------------------------------------ */

static bool usable(const struct qn_machine *costs, const qn_node_t *order,
                   uint32_t n)
{
    for (uint32_t i = 0; i < n && n <= QN_NODES_MAX; i++) {
        if (order[i] >= costs->n) {
            return false;
        }
    }
    return n > 0 && n <= QN_NODES_MAX;
}

static int place(struct qn_tree *t, const struct ranks *r,
                 const struct qn_edges *e)
{
    struct qn_shape s;
    int err = qn_shape_from_edges(&s, e, 0);
    QN_ASSERT(err == QN_OK);
    return qn_tree_place(t, &s, r->order);
}

/* Each start ends in a local optimum of its own: where cores have no hierarchy,
 * in others than the greedy one's. */
static int searched(struct qn_tree *t, const struct ranks *r)
{
    void (*const start[])(const struct ranks *, struct qn_edges *) = {greedy,
                                                                      balanced};
    double fastest = INFINITY;
    int err = QN_OK;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(start) && err == QN_OK; i++) {
        struct qn_tree found;
        struct qn_edges e;
        qn_edges_init(&e, r->n);
        start[i](r, &e);
        (void)qn_mixable_climb(&e, r->costs, r->order, QN_MIXABLE_CLIMB_MOVES);
        err = place(&found, r, &e);
        double takes =
            err == QN_OK ? qn_mixable_tree_latency(&found, r->costs) : INFINITY;
        if (takes < fastest) {
            fastest = takes;
            *t = found;
        }
    }
    return err;
}

int qn_mixable_tree_build(struct qn_tree *t, const struct qn_machine *costs,
                          const qn_node_t *order, uint32_t n)
{
    if (!usable(costs, order, n)) {
        return QN_EINVAL;
    }
    struct ranks r = {costs, order, n};
    struct qn_edges e;
    if (n > QN_MIXABLE_TREE_EXACT) {
        return searched(t, &r);
    }
    qn_edges_init(&e, n);
    exact(&r, &e);
    return place(t, &r, &e);
}

/* ---- a given tree -------------------------------------------------------- */

#define NO_RANK QN_NODES_MAX /* of a node that is no member */

struct given {
    const struct qn_tree *plan;
    qn_node_t root;
    uint32_t rank[QN_NODES_MAX]; /* by node, or NO_RANK */
};

static bool ascends(const struct qn_tree *plan)
{
    for (qn_node_t v = 0; v < QN_NODES_MAX; v++) {
        if (qn_tree_has(plan, v) && v != plan->root && plan->parent[v] >= v) {
            return false;
        }
    }
    return qn_tree_check(plan) == QN_OK && qn_tree_bound(plan) <= QN_NODES_MAX;
}

/* Rank u serves the children of v, or the members that are left below v. The
 * depth is that of the plan. */
static void serve(const struct given *g, struct qn_edges *e, uint32_t u,
                  qn_node_t v)
{
    const struct qn_tree *plan = g->plan;
    for (uint32_t k = 0; k < plan->child_count[v]; k++) {
        qn_node_t c = plan->child[plan->child_at[v] + k];
        if (g->rank[c] == NO_RANK) {
            serve(g, e, u, c);
        } else if (c != g->root) {
            qn_edges_add(e, u, g->rank[c]);
        }
    }
}

static bool rank_members(struct given *g, const qn_node_t *order, uint32_t n)
{
    for (qn_node_t v = 0; v < QN_NODES_MAX; v++) {
        g->rank[v] = NO_RANK;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (order[i] >= QN_NODES_MAX || g->rank[order[i]] != NO_RANK ||
            !qn_tree_has(g->plan, order[i])) {
            return false;
        }
        g->rank[order[i]] = i;
    }
    g->root = order[0];
    return true;
}

int qn_mixable_tree_from(struct qn_tree *t, const struct qn_tree *plan,
                         const qn_node_t *order, uint32_t n)
{
    struct given g = {.plan = plan};
    if (n == 0 || n > plan->n || !ascends(plan) ||
        !rank_members(&g, order, n)) {
        return QN_EINVAL;
    }
    struct qn_edges e;
    struct qn_shape s;
    qn_edges_init(&e, n);
    if (g.root != plan->root && g.rank[plan->root] == NO_RANK) {
        serve(&g, &e, 0, plan->root);
    } else if (g.root != plan->root) {
        qn_edges_add(&e, 0, g.rank[plan->root]);
    }
    for (uint32_t i = 0; i < n; i++) {
        serve(&g, &e, i, order[i]);
    }
    int err = qn_shape_from_edges(&s, &e, 0);
    QN_ASSERT(err == QN_OK);
    return qn_tree_place(t, &s, order);
}

/* ---- all ----------------------------------------------------------------- */

double qn_mixable_tree_latency(const struct qn_tree *t,
                               const struct qn_machine *costs)
{
    double at[QN_NODES_MAX] = {0}, last = 0;
    QN_ASSERT(qn_tree_bound(t) <= QN_NODES_MAX);
    qn_node_t todo[QN_NODES_MAX] = {t->root};
    uint32_t count = 1;
    for (uint32_t i = 0; i < count; i++) {
        qn_node_t v = todo[i];
        double sent = at[v];
        for (uint32_t k = 0; k < t->child_count[v]; k++) {
            qn_node_t c = t->child[t->child_at[v] + k];
            sent += qn_send_cost(costs, v, c);
            at[c] = sent + qn_receive_cost(costs, v, c);
            last = QN_MAX(last, at[c]);
            todo[count++] = c;
        }
    }
    return last;
}
