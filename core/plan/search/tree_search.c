/*
 * Annealing: a limit is drawn, then a move; what costs more than the limit is
 * taken back. Of the best tree only the parents are remembered; orders follow.
 *
 * Steps: 2n edges of twice the scale fit 31 bits, so no sum of a path can
 * overflow; at 256 cores a step is 5e-7 of the scale.
 */
#include "core/plan/search/tree_search.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/search/tree_search_internal.h"

static uint32_t steps(const struct qn_tree_search *x, double cycles)
{
    double d = cycles * x->unit + 0.5, most = 2 * x->o.scale * x->unit;
    return (uint32_t)(d < most ? d : most);
}

static void fill_edges(struct qn_tree_search *x, const struct qn_machine *m)
{
    uint32_t n = x->n;
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t v = 0; v < n; v++) {
            struct qn_edge *e = &x->edge[(size_t)u * n + v];
            struct qn_edge *b = &x->edge[(size_t)v * n + u];
            e->send = b->back_send = steps(x, qn_send_cost(m, u, v));
            e->receive = b->back_receive = steps(x, qn_receive_cost(m, u, v));
        }
    }
    for (size_t i = 0; x->o.reversed && i < (size_t)n * n; i++) {
        struct qn_edge e = x->edge[i];
        x->edge[i] = (struct qn_edge){.send = e.back_receive,
                                      .receive = e.back_send,
                                      .back_send = e.receive,
                                      .back_receive = e.send};
    }
}

/* The senders that reach v at least cost. The scan begins anywhere, so that
 * of many equal ones not all cores have the same. */
static void fill_near(struct qn_tree_search *x, uint32_t v)
{
    uint16_t *near = x->near + (size_t)v * x->near_count;
    uint32_t cost[QN_NEAR_MAX] = {0}, have = 0;
    uint32_t from = qn_anneal_below(&x->anneal, x->n);
    for (uint32_t i = 0; i < x->n; i++) {
        uint32_t u = from + i < x->n ? from + i : from + i - x->n;
        const struct qn_edge *e = &x->edge[(size_t)v * x->n + u];
        uint32_t w = e->back_send + e->back_receive; /* u to v */
        if (u == v || (have == x->near_count && w >= cost[have - 1])) {
            continue;
        }
        uint32_t at = have < x->near_count ? have++ : have - 1;
        for (; at > 0 && cost[at - 1] > w; at--) {
            cost[at] = cost[at - 1];
            near[at] = near[at - 1];
        }
        cost[at] = w;
        near[at] = (uint16_t)u;
    }
}

static bool allocate(struct qn_tree_search *x)
{
    size_t n = x->n;
    x->log = calloc(x->log_max, sizeof *x->log);
    x->start = calloc(n, sizeof *x->start);
    x->near = calloc(n * QN_NEAR_MAX, sizeof *x->near);
    x->edge = calloc(n * n, sizeof *x->edge);
    return x->log != NULL && x->start != NULL && x->near != NULL &&
           x->edge != NULL;
}

int qn_tree_search_create(struct qn_tree_search **out,
                          const struct qn_machine *m,
                          const struct qn_tree_search_opts *o)
{
    struct qn_tree_search *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return QN_ENOMEM;
    }
    x->o = *o;
    x->n = m->n;
    x->anneal.random = o->seed;
    x->unit = (double)(1U << 29) / m->n / o->scale;
    x->q = (uint32_t)(o->q * 1024 + 0.5);
    x->cap = o->cap > 0 ? steps(x, o->cap) : 0;
    x->near_count = QN_MIN(QN_NEAR_MAX, m->n - 1);
    x->log_max = 16 * m->n + 64; /* a move relinks each core at most a few
                                    times and folds some paths */
    if (!allocate(x)) {
        qn_tree_search_destroy(x);
        return QN_ENOMEM;
    }
    if (o->start != NULL) {
        qn_tree_search_ready(x, o->start);
    }
    fill_edges(x, m);
    for (uint32_t v = 0; v < m->n && m->n > 1; v++) {
        fill_near(x, v);
    }
    *out = x;
    return QN_OK;
}

void qn_tree_search_destroy(struct qn_tree_search *x)
{
    if (x != NULL) {
        free(x->log);
        free(x->start);
        free(x->near);
        free(x->edge);
        free(x);
    }
}

void qn_tree_search_ready(struct qn_tree_search *x, const double *start)
{
    for (uint32_t v = 0; v < x->n; v++) {
        x->start[v] = steps(x, start[v]);
    }
}

double qn_tree_search_cost(const struct qn_tree_search *x)
{
    return qn_tree_search_total(x) / x->unit;
}

static void remember(struct qn_tree_search *x)
{
    for (uint32_t v = 0; v < x->n; v++) {
        x->best_parent[v] = x->cell[v].parent;
    }
    x->best_root = x->root;
}

/* Moves that the last one counts for besides itself: where a core has hundreds
 * of children and changes places, each child is sorted in again. */
static uint64_t tired(struct qn_tree_search *x)
{
    uint64_t more = (x->passed - x->paid) / QN_PASSED_PER_MOVE;
    x->paid = x->passed;
    for (uint64_t i = 0; i < more; i++) {
        qn_anneal_tick(&x->anneal);
    }
    return more;
}

void qn_tree_search_run(struct qn_tree_search *x, uint64_t moves, double from,
                        double to)
{
    uint32_t now = qn_tree_search_total(x), best = now;
    remember(x);
    qn_anneal_begin(&x->anneal, moves, from * now, to * now);
    for (uint64_t i = 0; i < moves && x->n > 2; i++) {
        i += tired(x);
        uint32_t limit = now + qn_anneal_slack(&x->anneal);
        x->logged = 0;
        if (!qn_tree_search_propose(x, limit)) {
            continue;
        }
        uint32_t then = qn_tree_search_total(x);
        if (then > limit || (x->cap > 0 && !qn_tree_search_within_cap(x))) {
            qn_tree_search_undo(x);
            continue;
        }
        now = then;
        if (now < best) {
            best = now;
            remember(x);
        }
    }
    if (!x->o.stay) {
        qn_tree_search_set(x, x->best_parent, x->best_root);
    }
}
