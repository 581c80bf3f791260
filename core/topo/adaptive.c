/*
 * The base algorithm keeps one event per informed core: when it is idle next.
 * The least by (time, core) is found by a scan, which is as cheap as the scan
 * for its candidates that follows, so all is O(n^2) without a heap.
 *
 * Candidates only become fewer, so a core without any never gets one again and
 * drops out for good.
 *
 * Reordering: T(v), the cost of v's subtree, needs the final order of all
 * orders below v; a walk from the leaves up has them. Children are few or
 * nearly sorted, so they are sorted by insertion, which is stable.
 */
#include "core/topo/adaptive.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/predict.h"

#define NONE QN_CORES_MAX

uint32_t qn_adaptive_root(const struct qn_machine *m)
{
    uint32_t best = 0;
    double least = 0;
    for (uint32_t u = 0; u < m->n; u++) {
        double sum = 0;
        for (uint32_t v = 0; v < m->n; v++) {
            sum += qn_send_cost(m, u, v);
        }
        if (u == 0 || sum < least) {
            best = u;
            least = sum;
        }
    }
    return best;
}

struct base {
    const struct qn_machine *m;
    uint16_t group[QN_CORES_MAX]; /* by core: the first core of its group */
    bool active[QN_CORES_MAX];    /* by that core: some member is reserved */
    bool reserved[QN_CORES_MAX];  /* has the message, or it is on its way */
    bool waiting[QN_CORES_MAX];   /* has an event */
    double idle[QN_CORES_MAX];    /* its time */
};

static void find_groups(struct base *b, enum qn_level level)
{
    for (uint32_t v = 0; v < b->m->n; v++) {
        uint32_t u = 0, group = qn_machine_group(b->m, level, v);
        while (qn_machine_group(b->m, level, u) != group) {
            u++;
        }
        b->group[v] = (uint16_t)u;
    }
}

static uint32_t next_event(const struct base *b)
{
    uint32_t x = NONE;
    for (uint32_t v = 0; v < b->m->n; v++) {
        if (b->waiting[v] && (x == NONE || b->idle[v] < b->idle[x])) {
            x = v;
        }
    }
    return x;
}

/* The dearest candidate of i; NONE if there is none. */
static uint32_t dearest(const struct base *b, uint32_t i)
{
    uint32_t x = NONE;
    double most = 0;
    for (uint32_t v = 0; v < b->m->n; v++) {
        if (b->reserved[v] ||
            (b->group[v] != b->group[i] && b->active[b->group[v]])) {
            continue;
        }
        double w = qn_send_cost(b->m, i, v) + qn_receive_cost(b->m, i, v);
        if (x == NONE || w > most) {
            x = v;
            most = w;
        }
    }
    return x;
}

/* The member of x's group that i sends to at least cost. */
static uint32_t cheapest_of_group(const struct base *b, uint32_t i, uint32_t x)
{
    uint32_t y = NONE;
    for (uint32_t v = 0; v < b->m->n; v++) {
        if (!b->reserved[v] && b->group[v] == b->group[x] &&
            (y == NONE ||
             qn_send_cost(b->m, i, v) < qn_send_cost(b->m, i, y))) {
            y = v;
        }
    }
    return y;
}

/* i is idle: it serves one core, or drops out. */
static void serve(struct base *b, uint32_t i, struct qn_edges *e, double *clock)
{
    uint32_t x = dearest(b, i);
    if (x == NONE) {
        b->waiting[i] = false;
        return;
    }
    if (b->group[x] != b->group[i]) {
        x = cheapest_of_group(b, i, x);
        b->active[b->group[x]] = true;
    }
    b->reserved[x] = b->waiting[x] = true;
    qn_edges_add(e, i, x);
    b->idle[i] += qn_send_cost(b->m, i, x);
    b->idle[x] = b->idle[i] + qn_receive_cost(b->m, i, x);
    if (clock != NULL) {
        clock[x] = b->idle[x];
    }
}

int qn_adaptive_base(struct qn_shape *s, const struct qn_machine *m,
                     uint32_t root, enum qn_level level, double *clock)
{
    if (root >= m->n || level >= QN_LEVELS) {
        return QN_EINVAL;
    }
    struct base b = {.m = m};
    struct qn_edges e;
    qn_edges_init(&e, m->n);
    find_groups(&b, level);
    b.reserved[root] = b.waiting[root] = true;
    b.active[b.group[root]] = true;
    if (clock != NULL) {
        clock[root] = 0;
    }
    for (uint32_t i = root; i != NONE; i = next_event(&b)) {
        serve(&b, i, &e, clock);
    }
    return qn_shape_from_edges(s, &e, root);
}

static void sort_children(struct qn_shape *s, uint32_t v, const double *key)
{
    uint16_t *child = s->child + s->first[v];
    for (uint32_t i = 1; i < s->count[v]; i++) {
        uint16_t c = child[i];
        uint32_t k = i;
        for (; k > 0 && key[child[k - 1]] < key[c]; k--) {
            child[k] = child[k - 1];
        }
        child[k] = c;
    }
}

/* Bottom up, whatever comes of it. */
static void reorder(struct qn_shape *s, const struct qn_machine *m,
                    enum qn_key key)
{
    uint16_t order[QN_CORES_MAX];
    double cost[QN_CORES_MAX], by[QN_CORES_MAX];
    uint32_t n = qn_shape_order(s, order);
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = order[i], p = s->parent[v];
        sort_children(s, v, by);
        double sent = 0, t = 0;
        for (uint32_t k = 0; k < s->count[v]; k++) {
            uint32_t c = qn_shape_children(s, v)[k];
            sent += qn_send_cost(m, v, c);
            t = QN_MAX(t, sent + qn_receive_cost(m, v, c) + cost[c]);
        }
        cost[v] = t;
        by[v] =
            key == QN_KEY_OPTIMAL && v != p ? qn_receive_cost(m, p, v) + t : t;
    }
}

bool qn_adaptive_reorder(struct qn_shape *s, const struct qn_machine *m,
                         enum qn_key key)
{
    uint16_t old[QN_CORES_MAX];
    double before = qn_predict_broadcast(m, s, NULL, NULL);
    memcpy(old, s->child, s->n * sizeof *old);
    reorder(s, m, key);
    if (qn_predict_broadcast(m, s, NULL, NULL) > before) {
        memcpy(s->child, old, s->n * sizeof *old);
        return false;
    }
    return true;
}

/* What shuffling must make smaller: the latency, then how many attain it. */
struct slowness {
    double latency;
    uint32_t attained; /* cores */
    uint32_t last;     /* the first of them */
};

static struct slowness slowness(const struct qn_machine *m,
                                const struct qn_shape *s, double *idle)
{
    double at[QN_CORES_MAX];
    struct slowness w = {.latency = qn_predict_broadcast(m, s, at, idle)};
    for (uint32_t v = s->n; v-- > 0;) {
        if (!(at[v] < w.latency)) {
            w.attained++;
            w.last = v;
        }
    }
    return w;
}

/* Reordered as qn_adaptive_reorder does; what came of it is known at once. */
static struct slowness reordered(const struct qn_machine *m, struct qn_shape *s,
                                 enum qn_key key, double *idle)
{
    uint16_t old[QN_CORES_MAX];
    double before[QN_CORES_MAX];
    struct slowness was = slowness(m, s, before);
    memcpy(old, s->child, s->n * sizeof *old);
    reorder(s, m, key);
    struct slowness is = slowness(m, s, idle);
    if (is.latency > was.latency) {
        memcpy(s->child, old, s->n * sizeof *old);
        memcpy(idle, before, s->n * sizeof *idle);
        return was;
    }
    return is;
}

/* The core that could inform `last` first, other than its parent; *when it
 * would be. */
static uint32_t helper(const struct qn_machine *m, const struct qn_shape *s,
                       const double *idle, uint32_t last, double *when)
{
    uint32_t best = NONE;
    for (uint32_t u = 0; u < s->n; u++) {
        if (u == last || u == s->parent[last]) {
            continue;
        }
        double t =
            idle[u] + qn_send_cost(m, u, last) + qn_receive_cost(m, u, last);
        if (best == NONE || t < *when) {
            best = u;
            *when = t;
        }
    }
    return best;
}

uint32_t qn_adaptive_shuffle(struct qn_shape *s, const struct qn_machine *m,
                             enum qn_key key)
{
    double idle[QN_CORES_MAX];
    struct slowness w = reordered(m, s, key, idle);
    for (uint32_t moves = 0; moves < 4 * s->n; moves++) {
        double when = 0;
        uint32_t u = s->n < 3 ? NONE : helper(m, s, idle, w.last, &when);
        if (u == NONE || when >= w.latency) {
            return moves;
        }
        struct qn_shape t = *s;
        qn_shape_move(&t, w.last, u);
        struct slowness x = reordered(m, &t, key, idle);
        if (x.latency > w.latency ||
            (!(x.latency < w.latency) && x.attained >= w.attained)) {
            return moves;
        }
        *s = t;
        w = x;
    }
    return 4 * s->n;
}

int qn_adaptive_build(struct qn_shape *s, const struct qn_machine *m,
                      uint32_t root, enum qn_level level)
{
    struct qn_shape a;
    int err = qn_adaptive_base(&a, m, root, level, NULL);
    if (err != QN_OK) {
        return err;
    }
    struct qn_shape b = a;
    (void)qn_adaptive_shuffle(&a, m, QN_KEY_PUBLISHED);
    (void)qn_adaptive_shuffle(&b, m, QN_KEY_OPTIMAL);
    bool second = qn_predict_broadcast(m, &b, NULL, NULL) <
                  qn_predict_broadcast(m, &a, NULL, NULL);
    *s = second ? b : a;
    return QN_OK;
}
