/*
 * One operation on a ring needs no event queue. Every message goes from a
 * higher to a lower id, the companion aside, which comes last; so in that order
 * each node's messages are all known when its turn comes, and it takes them by
 * visibility.
 *
 * For the latency a move walks over the nodes that an exchange makes stale: the
 * two, the nodes that send to them, and after them those that receive at
 * another time. It keeps what it overwrites, for most moves are refused. For
 * the busiest core only those around the two ids have other work; adding and
 * taking off leave rounding errors of the last bits, so the result is added up
 * once more.
 *
 * Half of the exchanges bring a core next to one that it is near to; of the
 * others, for the busiest core, half are around that one.
 */
#include "core/plan/diamond_ring_map.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/search/anneal.h"

/* Default budgets at MOVES_CORES cores, some 50 ms; fewer get up to
 * MOVES_MORE times as many, each of which costs less. */
#define MOVES_LATENCY 14000u
#define MOVES_BUSY    80000u
#define MOVES_CORES   256u
#define MOVES_MORE    4u
#define HOT           0.05 /* temperatures, parts of the cost */
#define COLD          3e-5
#define STEPS         (1u << 24) /* of the first cost */
#define LANES         4u

struct link {
    uint16_t from, to; /* ids */
};

struct was {
    uint32_t link;
    double visible;
};

struct map {
    const struct qn_machine *m;
    const struct qn_diamond_ring *r;
    struct qn_diamond_ring_map_opts o;
    struct qn_anneal anneal;
    struct link *link; /* [messages] in sending order */
    uint32_t *in;      /* [messages] links by receiver, as `into` says */
    uint32_t *into;    /* [n+1] */
    bool *counts;      /* [messages] for the busiest core */
    double *visible;   /* [messages] */
    struct was *was;   /* [messages] what the last latency overwrote */
    uint32_t changed;  /* entries in was */
    bool *stale;       /* [n] ids whose sends are to be timed again */
    uint16_t *core;    /* [n] by id */
    uint16_t *id;      /* [n] by core */
    uint16_t *best;    /* [n] */
    double *busy;      /* [n + LANES] scratch, by core; 0 behind n */
};

static void find_links(struct map *x)
{
    const struct qn_diamond_ring *r = x->r;
    uint32_t n = r->o.n;
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t e = r->first[u]; e < r->first[u + 1]; e++) {
            x->link[e] = (struct link){(uint16_t)u, r->next[e]};
        }
    }
    for (uint32_t v = 0; v < n; v++) {
        x->into[v + 1] = x->into[v] + r->preds[v];
    }
    for (uint32_t v = 0, at = 0; v < n; v++) {
        for (uint32_t e = 0; r->preds[v] > 0 && e < r->messages; e++) {
            if (r->next[e] == v) {
                x->in[at++] = e;
            }
        }
    }
}

/* Of several links to a node, one carries the broadcast: that of the highest
 * sender, as which the root counts; and none back to the root does. */
static void find_counting(struct map *x)
{
    uint32_t n = x->r->o.n;
    memset(x->counts, !x->o.one_way, x->r->messages * sizeof *x->counts);
    for (uint32_t v = 1; x->o.one_way && v < n; v++) {
        uint32_t best = x->in[x->into[v]];
        for (uint32_t i = x->into[v]; i < x->into[v + 1]; i++) {
            uint32_t u = x->link[x->in[i]].from, w = x->link[best].from;
            best = w != 0 && (u == 0 || u > w) ? x->in[i] : best;
        }
        x->counts[best] = true;
    }
}

/* Ties as the event rules have them: lower core first. */
static bool sooner(const struct map *x, uint32_t a, uint32_t b)
{
    if (x->visible[a] != x->visible[b]) {
        return x->visible[a] < x->visible[b];
    }
    return x->core[x->link[a].from] < x->core[x->link[b].from];
}

/* Until when node v, free at t, has taken all its messages. */
static double take_all(struct map *x, uint32_t v, double t)
{
    uint32_t *in = x->in + x->into[v], count = x->into[v + 1] - x->into[v];
    for (uint32_t i = 1; i < count; i++) {
        uint32_t e = in[i], k = i;
        for (; k > 0 && sooner(x, e, in[k - 1]); k--) {
            in[k] = in[k - 1];
        }
        in[k] = e;
    }
    for (uint32_t i = 0; i < count; i++) {
        double seen = x->visible[in[i]];
        double r =
            qn_receive_cost(x->m, x->core[x->link[in[i]].from], x->core[v]);
        t = seen < t ? t + x->o.q * r : seen + r;
    }
    return t;
}

/* Node v, free at t, sends; those that hear at another time are stale. */
static void send_all(struct map *x, uint32_t v, double t)
{
    for (uint32_t e = x->r->first[v]; e < x->r->first[v + 1]; e++) {
        t += qn_send_cost(x->m, x->core[v], x->core[x->link[e].to]);
        if (x->visible[e] != t) {
            x->was[x->changed++] = (struct was){e, x->visible[e]};
            x->visible[e] = t;
            x->stale[x->link[e].to] = true;
        }
    }
}

static void pass_on(struct map *x, uint32_t v)
{
    if (x->stale[v]) {
        x->stale[v] = false;
        send_all(x, v, take_all(x, v, 0));
    }
}

/* The root is the first to send and the last to take. */
static double latency(struct map *x)
{
    uint32_t n = x->r->o.n, last = n - (x->r->o.companion ? 1 : 0);
    x->changed = 0;
    if (x->stale[0]) {
        send_all(x, 0, 0);
    }
    for (uint32_t v = last; v-- > 1;) {
        pass_on(x, v);
    }
    if (x->r->o.companion) {
        pass_on(x, n - 1);
    }
    x->stale[0] = false;
    uint32_t sent = x->r->first[1];
    return take_all(x, 0, sent > 0 ? x->visible[sent - 1] : 0);
}

static double whole_latency(struct map *x)
{
    memset(x->stale, true, x->r->o.n * sizeof *x->stale);
    return latency(x);
}

/* Id v has another core: so much for what it and its senders send, and for
 * how long those that it sends to take to receive. */
static void outdate(struct map *x, uint32_t v)
{
    x->stale[v] = true;
    for (uint32_t e = x->r->first[v]; e < x->r->first[v + 1]; e++) {
        x->stale[x->link[e].to] = true;
    }
    for (uint32_t i = x->into[v]; i < x->into[v + 1]; i++) {
        x->stale[x->link[x->in[i]].from] = true;
    }
}

static void count_link(struct map *x, uint32_t e, double sign)
{
    uint32_t u = x->core[x->link[e].from], v = x->core[x->link[e].to];
    if (!x->counts[e]) {
        return;
    }
    x->busy[u] += sign * qn_send_cost(x->m, u, v);
    x->busy[v] += sign * qn_receive_cost(x->m, u, v);
}

/* All links of id a but those with b (QN_CORES_MAX: all). */
static void count_around(struct map *x, uint32_t a, uint32_t b, double sign)
{
    for (uint32_t e = x->r->first[a]; e < x->r->first[a + 1]; e++) {
        if (x->link[e].to != b) {
            count_link(x, e, sign);
        }
    }
    for (uint32_t i = x->into[a]; i < x->into[a + 1]; i++) {
        if (x->link[x->in[i]].from != b) {
            count_link(x, x->in[i], sign);
        }
    }
}

/* Lanes, because each comparison waits for the one before it. */
static double most_busy(const struct map *x)
{
    double most[LANES] = {0};
    for (uint32_t v = 0; v < x->r->o.n; v += LANES) {
        for (uint32_t i = 0; i < LANES; i++) {
            most[i] = QN_MAX(most[i], x->busy[v + i]);
        }
    }
    return QN_MAX(QN_MAX(most[0], most[1]), QN_MAX(most[2], most[3]));
}

static double busiest(struct map *x)
{
    memset(x->busy, 0, x->r->o.n * sizeof *x->busy);
    for (uint32_t e = 0; e < x->r->messages; e++) {
        count_link(x, e, 1);
    }
    return most_busy(x);
}

static double cost_of(struct map *x)
{
    return x->o.busy ? busiest(x) : whole_latency(x);
}

static void exchange(struct map *x, uint32_t a, uint32_t b)
{
    uint16_t c = x->core[a];
    x->core[a] = x->core[b];
    x->core[b] = c;
    x->id[x->core[a]] = (uint16_t)a;
    x->id[x->core[b]] = (uint16_t)b;
}

static void exchange_work(struct map *x, uint32_t a, uint32_t b)
{
    count_around(x, a, QN_CORES_MAX, -1);
    count_around(x, b, a, -1);
    exchange(x, a, b);
    count_around(x, a, QN_CORES_MAX, 1);
    count_around(x, b, a, 1);
}

/* Exchange, and what the map costs then. */
static double try(struct map *x, uint32_t a, uint32_t b)
{
    if (x->o.busy) {
        exchange_work(x, a, b);
        return most_busy(x);
    }
    exchange(x, a, b);
    outdate(x, a);
    outdate(x, b);
    return latency(x);
}

static void undo(struct map *x, uint32_t a, uint32_t b)
{
    if (x->o.busy) {
        exchange_work(x, a, b);
        return;
    }
    exchange(x, a, b);
    for (uint32_t i = 0; i < x->changed; i++) {
        x->visible[x->was[i].link] = x->was[i].visible;
    }
}

/* Of a few cores, the one that is reached from u at least cost. */
static uint32_t near_core(struct map *x, uint32_t u)
{
    uint32_t best = qn_anneal_below(&x->anneal, x->m->n);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t v = qn_anneal_below(&x->anneal, x->m->n);
        if (v != u && (best == u || qn_receive_cost(x->m, u, v) <
                                        qn_receive_cost(x->m, u, best))) {
            best = v;
        }
    }
    return best;
}

/* The id of the busiest core, or of one that it has a link with. */
static uint32_t busy_id(struct map *x)
{
    uint32_t busy = 0;
    for (uint32_t v = 1; v < x->m->n; v++) {
        busy = x->busy[v] > x->busy[busy] ? v : busy;
    }
    uint32_t a = x->id[busy], links = x->into[a + 1] - x->into[a];
    if ((qn_anneal_random(&x->anneal) & 1) != 0 && links > 0) {
        uint32_t i = x->into[a] + qn_anneal_below(&x->anneal, links);
        return x->link[x->in[i]].from;
    }
    return a;
}

/* Two ids whose cores to exchange; the root keeps its core unless free. */
static bool draw(struct map *x, uint32_t *a, uint32_t *b)
{
    uint32_t n = x->r->o.n;
    *a = qn_anneal_below(&x->anneal, n);
    *b = qn_anneal_below(&x->anneal, n);
    uint64_t kind = qn_anneal_random(&x->anneal);
    if (x->o.busy && (kind & 3) == 0) {
        *a = busy_id(x);
    } else if ((kind & 1) != 0) {
        const struct link *l =
            &x->link[qn_anneal_below(&x->anneal, x->r->messages)];
        *a = l->to;
        *b = x->id[near_core(x, x->core[l->from])];
    }
    bool root = *a == 0 || *b == 0;
    return *a != *b && (!root || x->o.root == QN_ROOT_FREE);
}

/* Leaves the best map in x->best; its cost. */
static double search(struct map *x, uint64_t moves)
{
    double now = cost_of(x), least = now, unit = now / STEPS;
    qn_anneal_begin(&x->anneal, moves, HOT * STEPS, COLD * STEPS);
    for (uint64_t i = 0; i < moves && x->r->o.n > 1; i++) {
        uint32_t a, b;
        double limit = now + unit * qn_anneal_slack(&x->anneal);
        if (!draw(x, &a, &b)) {
            continue;
        }
        double then = try(x, a, b);
        if (then > limit) {
            undo(x, a, b);
            continue;
        }
        now = then;
        if (now < least) {
            least = now;
            memcpy(x->best, x->core, x->r->o.n * sizeof *x->best);
        }
    }
    return least;
}

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b, void *arg)
{
    const struct qn_machine *m = arg;
    uint16_t u = *(const uint16_t *)a, v = *(const uint16_t *)b;
    const struct qn_machine_core *x = &m->core[u], *y = &m->core[v];
    int d = compare(x->socket, y->socket);
    d = d != 0 ? d : compare(x->node, y->node);
    d = d != 0 ? d : compare(x->cache, y->cache);
    d = d != 0 ? d : compare(x->phys, y->phys);
    return d != 0 ? d : compare(u, v);
}

static void set_ids(struct map *x)
{
    for (uint32_t i = 0; i < x->r->o.n; i++) {
        x->id[x->core[i]] = (uint16_t)i;
    }
}

/* The root's core comes to the front. */
static void set_root(struct map *x)
{
    set_ids(x);
    if (x->o.root != QN_ROOT_FREE) {
        exchange(x, 0, x->id[x->o.root]);
    }
}

/* The better one of two maps to begin with. */
static void begin(struct map *x)
{
    uint32_t n = x->r->o.n;
    memcpy(x->core, x->r->core, n * sizeof *x->core);
    set_root(x);
    memcpy(x->best, x->core, n * sizeof *x->best);
    double given = cost_of(x);
    qsort_r(x->core, n, sizeof *x->core, by_place, (void *)(uintptr_t)x->m);
    set_root(x);
    if (cost_of(x) < given) {
        memcpy(x->best, x->core, n * sizeof *x->best);
    } else {
        memcpy(x->core, x->best, n * sizeof *x->core);
        set_ids(x);
    }
}

static bool allocate(struct map *x)
{
    size_t n = x->r->o.n, links = QN_MAX(x->r->messages, 1u);
    x->link = calloc(links, sizeof *x->link);
    x->in = calloc(links, sizeof *x->in);
    x->into = calloc(n + 1, sizeof *x->into);
    x->counts = calloc(links, sizeof *x->counts);
    x->visible = calloc(links, sizeof *x->visible);
    x->was = calloc(links, sizeof *x->was);
    x->stale = calloc(n, sizeof *x->stale);
    x->core = calloc(n, sizeof *x->core);
    x->id = calloc(n, sizeof *x->id);
    x->best = calloc(n, sizeof *x->best);
    x->busy = calloc(n + LANES, sizeof *x->busy);
    return x->link != NULL && x->in != NULL && x->into != NULL &&
           x->counts != NULL && x->visible != NULL && x->was != NULL &&
           x->stale != NULL && x->core != NULL && x->id != NULL &&
           x->best != NULL && x->busy != NULL;
}

static void release(struct map *x)
{
    free(x->link);
    free(x->in);
    free(x->into);
    free(x->counts);
    free(x->visible);
    free(x->was);
    free(x->stale);
    free(x->core);
    free(x->id);
    free(x->best);
    free(x->busy);
}

int qn_diamond_ring_map(struct qn_diamond_ring *r, const struct qn_machine *m,
                        const struct qn_diamond_ring_map_opts *o, double *cost)
{
    if (r->o.n != m->n || (o->root >= m->n && o->root != QN_ROOT_FREE) ||
        !(o->q >= 0 && o->q <= 1) || (o->one_way && !o->busy)) {
        return QN_EINVAL;
    }
    struct map x = {.m = m, .r = r, .o = *o, .anneal.random = o->seed};
    bool ok = allocate(&x);
    if (ok) {
        uint64_t moves = o->busy ? MOVES_BUSY : MOVES_LATENCY;
        moves *= QN_MAX(QN_MIN(MOVES_CORES / m->n, MOVES_MORE), 1u);
        find_links(&x);
        find_counting(&x);
        begin(&x);
        double least = search(&x, o->moves > 0 ? o->moves : moves);
        memcpy(r->core, x.best, r->o.n * sizeof *r->core);
        memcpy(x.core, x.best, r->o.n * sizeof *x.core);
        double whole = cost_of(&x);
        QN_ASSERT(o->busy || whole == least);
        if (cost != NULL) {
            *cost = whole;
        }
    }
    release(&x);
    return ok ? QN_OK : QN_ENOMEM;
}

double qn_diamond_ring_latency(const struct qn_machine *m,
                               const struct qn_diamond_ring *r, double q)
{
    struct map x = {.m = m, .r = r, .o = {.q = q}};
    double t = -1;
    QN_ASSERT(r->o.n == m->n);
    if (allocate(&x)) {
        find_links(&x);
        memcpy(x.core, r->core, r->o.n * sizeof *x.core);
        t = whole_latency(&x);
    }
    release(&x);
    return t;
}
