/*
 * With B(v, M) as in subset_dp.c and E(v, M) the earliest time at which v can
 * be free and have M to inform while all the others still end in time, a
 * hand-over of A to c at (v, M) can be part of a tree within the limit only if
 *
 *     E(v, M) + s(v,c) + B(v, M - A)              <= limit   and
 *     E(v, M) + s(v,c) + r(v,c) + B(c, A - c)     <= limit
 *
 * and then E(v, M - A) and E(c, A - c) are no later than where it leads. E is
 * exact: what else has to end in time was checked on the way, each at the
 * earliest time it can begin. So E(v, {}) is the least idle time of v over all
 * trees that end in time. B is a pass over the list from the back, E and the
 * check one from the front; 2 to 3 ns per hand-over.
 *
 * Room: a list is kept only if it has lost over a quarter, so all that can lie
 * in the arena at a time is four times the first list, and one being made.
 */
#include "core/plan/exact/transfer_edges.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define LISTS 5u /* in the arena, each as long as the longest */

/* All that the root may hand over, and all that another core may, which is in
 * no set, as the root is: i sets of k cores, of them a part with a child in it.
 */
static size_t longest(uint32_t n)
{
    size_t root = n - 1, other = n > 2 ? n - 2 : 0;
    for (uint32_t i = 2; i < n; i++) {
        root *= 3;
        other *= i + 1 < n ? 3 : 1;
    }
    return root + other * (n - 1);
}

int qn_transfer_edge_init(struct qn_transfer_edges *x,
                          const struct qn_machine *m)
{
    QN_ASSERT(m->n >= 2 && m->n <= QN_TRANSFER_EDGES_MAX);
    size_t states = (size_t)m->n << m->n;
    *x = (struct qn_transfer_edges){.m = m};
    x->arena = calloc(LISTS * longest(m->n), sizeof *x->arena);
    x->left = calloc(states, sizeof *x->left);
    x->since = calloc(states, sizeof *x->since);
    x->choice = calloc(states, sizeof *x->choice);
    x->state = calloc(states, sizeof *x->state);
    return x->arena == NULL || x->left == NULL || x->since == NULL ||
                   x->choice == NULL || x->state == NULL
               ? QN_ENOMEM
               : QN_OK;
}

void qn_transfer_edge_fini(struct qn_transfer_edges *x)
{
    free(x->arena);
    free(x->left);
    free(x->since);
    free(x->choice);
    free(x->state);
    *x = (struct qn_transfer_edges){0};
}

/* ---- the first list ---- */

struct collector {
    struct qn_transfer_edges *x;
    const struct qn_subset_dp *s;
    double limit;
    struct qn_transfer_edge_list *list;
    uint32_t states;
};

static size_t at(const struct collector *k, uint32_t v, uint32_t set)
{
    return ((size_t)v << k->s->m->n) + set;
}

static void reach(struct collector *k, size_t state, double when)
{
    struct qn_transfer_edges *x = k->x;
    if (!(x->since[state] < QN_SUBSETS_NEVER)) {
        x->state[state] = (uint16_t)k->states++;
    }
    x->since[state] = QN_MIN(x->since[state], when);
}

/* v hands over a part of the set. */
static void collect_part(struct collector *k, uint32_t v, uint32_t set,
                         uint32_t part)
{
    const struct qn_machine *m = k->s->m;
    size_t from = at(k, v, set), rest = at(k, v, set & ~part);
    for (uint32_t left = part; left != 0; left &= left - 1) {
        uint32_t c = (uint32_t)__builtin_ctz(left);
        size_t child = at(k, c, part & ~(1U << c));
        double sent = k->x->since[from] + qn_send_cost(m, v, c);
        double told = sent + qn_receive_cost(m, v, c);
        if (sent + k->s->best[rest] <= k->limit &&
            told + k->s->best[child] <= k->limit) {
            reach(k, rest, sent);
            reach(k, child, told);
            k->list->at[k->list->count++] = (struct qn_transfer_edge){
                k->x->state[from], k->x->state[child], k->x->state[rest],
                (uint16_t)(v * m->n + c)};
        }
    }
}

static void collect_state(struct collector *k, uint32_t v, uint32_t set)
{
    double since = k->x->since[at(k, v, set)];
    if (!(since < QN_SUBSETS_NEVER)) {
        return;
    }
    for (uint32_t part = set; part != 0; part = (part - 1) & set) {
        if (since + k->s->alone[at(k, v, part)] <= k->limit &&
            since + k->s->best[at(k, v, set & ~part)] <= k->limit) {
            collect_part(k, v, set, part);
        }
    }
}

void qn_transfer_edge_collect(struct qn_transfer_edges *x,
                              const struct qn_subset_dp *s, uint32_t root,
                              double limit, struct qn_transfer_edge_list *list)
{
    uint32_t n = s->m->n, all = ((1U << n) - 1) & ~(1U << root);
    struct collector k = {x, s, limit, list, n};
    *list = (struct qn_transfer_edge_list){.at = x->arena};
    for (size_t i = 0; i < (size_t)n << n; i++) {
        x->since[i] = QN_SUBSETS_NEVER;
    }
    reach(&k, at(&k, root, all), 0);
    x->top = x->state[at(&k, root, all)];
    for (uint32_t v = 0; v < n; v++) { /* v alone is state v */
        x->state[at(&k, v, 0)] = (uint16_t)v;
        x->since[at(&k, v, 0)] = limit;
    }
    for (uint32_t set = all; set != 0; set = (set - 1) & all) {
        for (uint32_t v = 0; v < n; v++) {
            collect_state(&k, v, set);
        }
    }
    QN_ASSERT(list->count <= longest(n));
    list->room = list->at + list->count;
}

/* ---- and all that follow ---- */

/* States are split in two until only single cores are left. */
static void follow(const struct qn_transfer_edges *x,
                   const struct qn_transfer_edge_list *list, double *idle,
                   struct qn_edges *edges)
{
    uint16_t state[QN_TRANSFER_EDGES_MAX];
    double when[QN_TRANSFER_EDGES_MAX];
    uint32_t n = x->m->n, open = 1;
    state[0] = x->top;
    when[0] = 0;
    while (open > 0) {
        uint16_t now = state[--open];
        double t = when[open];
        if (now < n) {
            idle[now] = t;
            continue;
        }
        const struct qn_transfer_edge *h = &list->at[x->choice[now]];
        t += x->m->send[h->edge];
        state[open] = h->rest;
        when[open++] = t;
        state[open] = h->child;
        when[open++] = t + x->m->receive[h->edge];
        if (edges != NULL) {
            qn_edges_add(edges, h->edge / n, h->edge % n);
        }
    }
}

void qn_transfer_edge_tree(const struct qn_transfer_edges *x,
                           const struct qn_transfer_edge_list *list,
                           uint32_t root, struct qn_shape *s)
{
    double idle[QN_TRANSFER_EDGES_MAX];
    struct qn_edges e;
    qn_edges_init(&e, x->m->n);
    follow(x, list, idle, &e);
    int err = qn_shape_from_edges(s, &e, root);
    QN_ASSERT(err == QN_OK);
}

double qn_transfer_edge_price(struct qn_transfer_edges *x,
                              const struct qn_transfer_edge_list *list,
                              const double *tail, double *idle)
{
    const double *send = x->m->send, *receive = x->m->receive;
    double *left = x->left;
    for (uint32_t v = 0; v < x->m->n; v++) {
        left[v] = tail[v];
        x->since[v] = QN_SUBSETS_NEVER;
    }
    left[x->top] = QN_SUBSETS_NEVER;
    for (size_t i = list->count; i > 0;) {
        uint16_t from = list->at[i - 1].from;
        double best = QN_SUBSETS_NEVER;
        uint32_t choice = 0;
        for (; i > 0 && list->at[i - 1].from == from; i--) {
            const struct qn_transfer_edge *h = &list->at[i - 1];
            double below = receive[h->edge] + left[h->child];
            double cost = send[h->edge] + QN_MAX(below, left[h->rest]);
            choice = cost < best ? (uint32_t)(i - 1) : choice;
            best = QN_MIN(best, cost);
        }
        left[from] = best;
        x->since[from] = QN_SUBSETS_NEVER; /* for the next trim */
        x->choice[from] = choice;
    }
    if (left[x->top] < QN_SUBSETS_NEVER) {
        follow(x, list, idle, NULL);
    }
    return left[x->top];
}

struct trimmer {
    struct qn_transfer_edges *x;
    const struct qn_transfer_edge *at, *end; /* still to be looked at */
    struct qn_transfer_edge *kept;           /* behind the kept ones */
    double limit;
};

/* Keep what is in time of one state's hand-overs, and say when that leads
 * where. Which ones is hard to guess, so nothing branches on it. */
static void trim_state(struct trimmer *t)
{
    static const double when[2] = {QN_SUBSETS_NEVER, 0};
    const double *send = t->x->m->send, *receive = t->x->m->receive;
    const double *left = t->x->left;
    const struct qn_transfer_edge *h = t->at;
    struct qn_transfer_edge *kept = t->kept;
    uint16_t from = h->from;
    double *since = t->x->since, now = since[from], limit = t->limit;
    for (; h < t->end && h->from == from; h++) {
        double sent = now + send[h->edge];
        double told = sent + receive[h->edge];
        bool keep =
            (sent + left[h->rest] <= limit) & (told + left[h->child] <= limit);
        since[h->rest] = QN_MIN(since[h->rest], sent + when[keep]);
        since[h->child] = QN_MIN(since[h->child], told + when[keep]);
        *kept = *h;
        kept += keep;
    }
    t->at = h;
    t->kept = kept;
}

void qn_transfer_edge_trim(struct qn_transfer_edges *x,
                           struct qn_transfer_edge_list *list, double limit,
                           double *idle)
{
    struct trimmer t = {x, list->at, list->at + list->count, list->room, limit};
    x->since[x->top] = 0;
    while (t.at < t.end) {
        uint16_t from = t.at->from;
        const struct qn_transfer_edge *before = t.kept;
        if (x->since[from] + x->left[from] <= limit) {
            trim_state(&t);
        }
        for (; t.at < t.end && t.at->from == from; t.at++) {
        }
        if (t.kept == before) { /* maybe rounded otherwise on the way to it */
            x->left[from] = QN_SUBSETS_NEVER;
        }
    }
    for (uint32_t v = 0; v < x->m->n; v++) {
        idle[v] = x->since[v];
    }
    size_t kept = (size_t)(t.kept - list->room);
    if (kept < list->count - list->count / 4) {
        list->at = list->room;
        list->count = kept;
        list->room += kept;
    }
}
