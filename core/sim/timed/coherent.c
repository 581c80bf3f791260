/*
 * What happens on a line, in the order of issue. An access starts when the line
 * is free of earlier ones (`busy`); loads do not occupy it, but another reader
 * that misses is served a share of r later. As every access to a line is priced
 * in the order in which the accesses were issued, the state at its start is
 * known at once, and one event is enough for it: no later access can start
 * before it.
 *
 * | access by i                            | price                           |
 * |----------------------------------------|---------------------------------|
 * | load, i has a copy                     | hit; also of a line to which a  |
 * |                                        | store is under way: the copy is |
 * |                                        | lost at its end                 |
 * | load, else                             | r(j, i), j wrote last; times    |
 * |                                        | `queued` if the change is older |
 * |                                        | than this look                  |
 * | load or store, never used by another   | hit                             |
 * | store, no other has a copy             | hit                             |
 * | store, i and others have copies        | s(i, v), v the dearest          |
 * | store, i has none, j wrote last        | r(j, i) + s(i, v)               |
 * | read-modify-write                      | as the store, at least rmw      |
 * | each further line of a copy            | `stream` of it                  |
 *
 * Copies are held by units: a node, or with `hyper_threads` all nodes of one
 * physical core, whose cache they share. Their accesses and computations are
 * issued one at a time. With `link`, a transfer between two sockets starts when
 * the link between them is free of earlier ones.
 */
#include "core/sim/timed/coherent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define GHZ_USUAL    2.0
#define SHARE_USUAL  0.125
#define HIT_CYCLES   4.0
#define RMW_CYCLES   20.0
#define FENCE_CYCLES 20.0
#define CLOCK_CYCLES 20.0
#define WAKE_NS      2000.0
#define SYSCALL_NS   200.0

struct line {
    uint32_t writer; /* the last one; QN_SIM_NO_NODE: none yet */
    uint32_t copies; /* bits in holder */
    qn_ps_t busy;
    qn_ps_t changed;   /* by the last store, its end */
    qn_ps_t served;    /* the next reader that misses starts then */
    uint64_t holder[]; /* [2 * words] units with a copy; behind them those that
                          had one when the last store was issued */
};

struct unit {
    uint32_t node; /* the first of its nodes, for prices */
    qn_ps_t free;  /* its issue */
};

struct coherent {
    struct qn_prices prices;
    uint32_t words; /* of a set of units */
    uint32_t units, sockets;
    bool shared;         /* a unit may have several nodes */
    uint32_t *unit_of;   /* [nodes] */
    uint32_t *socket_of; /* [nodes] 0 .. sockets - 1 */
    struct unit *unit;   /* [units] */
    qn_ps_t *link_free;  /* [sockets*sockets] lower number first */
    double link;
    qn_ps_t rmw;
    double queued, serve, stream;
    qn_ps_t *send;    /* [n*n] row: the sender */
    qn_ps_t *receive; /* [n*n] likewise */
};

static bool holds(const struct line *l, uint32_t unit)
{
    return (l->holder[unit / 64] >> (unit % 64) & 1) != 0;
}

static void hold(struct line *l, uint32_t unit)
{
    if (!holds(l, unit)) {
        l->holder[unit / 64] |= UINT64_C(1) << unit % 64;
        l->copies++;
    }
}

/* A store is under way, and the node keeps its copy until the store's end. */
static bool holds_still(const struct coherent *c, const struct line *l,
                        const struct qn_line_access *a)
{
    uint32_t unit = c->unit_of[a->node];
    return a->may_be_stale && a->issued < l->busy &&
           (l->holder[c->words + unit / 64] >> (unit % 64) & 1) != 0;
}

static qn_ps_t share(qn_ps_t price, double part)
{
    qn_ps_t ps = (qn_ps_t)llround((double)price * part);
    return ps > 0 ? ps : 1;
}

/* The holder outside of node's unit that is dearest to tell. */
static uint32_t dearest(const struct coherent *c, const struct line *l,
                        uint32_t node)
{
    uint32_t best = QN_SIM_NO_NODE;
    const qn_ps_t *s = c->send + (size_t)node * c->prices.nodes;
    for (uint32_t w = 0; w < c->words; w++) {
        for (uint64_t m = l->holder[w]; m != 0; m &= m - 1) {
            uint32_t u = w * 64 + (uint32_t)__builtin_ctzll(m);
            uint32_t v = c->unit[u].node;
            if (u != c->unit_of[node] &&
                (best == QN_SIM_NO_NODE || s[v] > s[best])) {
                best = v;
            }
        }
    }
    return best;
}

/* r(j, i) for a line that j wrote last. */
static qn_ps_t fetch(const struct coherent *c, const struct line *l,
                     const struct qn_line_access *a)
{
    qn_ps_t r = c->receive[(size_t)l->writer * c->prices.nodes + a->node];
    return c->queued < 1 && l->changed <= a->issued ? share(r, c->queued) : r;
}

/* When the access is issued: its unit does one at a time. */
static qn_ps_t issue_access(struct coherent *c, const struct qn_line_access *a)
{
    if (!c->shared) {
        return a->issued;
    }
    struct unit *u = &c->unit[c->unit_of[a->node]];
    qn_ps_t at = QN_MAX(a->issued, u->free);
    u->free = at + c->prices.hit;
    return at;
}

/* When a transfer between two nodes has the link of their sockets. */
static qn_ps_t take_link(struct coherent *c, uint32_t a, uint32_t b, qn_ps_t at,
                         qn_ps_t price)
{
    uint32_t low = QN_MIN(c->socket_of[a], c->socket_of[b]);
    uint32_t high = QN_MAX(c->socket_of[a], c->socket_of[b]);
    if (c->link <= 0 || low == high) {
        return at;
    }
    qn_ps_t *is_free = &c->link_free[(size_t)low * c->sockets + high];
    at = QN_MAX(at, *is_free);
    *is_free = at + share(price, c->link);
    return at;
}

static struct qn_price load(struct coherent *c, struct line *l,
                            const struct qn_line_access *a)
{
    qn_ps_t issued = issue_access(c, a);
    struct qn_price p = {.start = QN_MAX(issued, l->busy),
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    qn_ps_t price = c->prices.hit;
    uint32_t unit = c->unit_of[a->node];
    if (holds_still(c, l, a)) {
        p.start = issued;
        p.end = issued + price;
        p.visible = p.end;
        p.stale = true;
        return p;
    }
    if (!holds(l, unit) && l->writer == QN_SIM_NO_NODE) {
        p.transfer = QN_TRANSFER_COLD;
    } else if (!holds(l, unit)) {
        p.transfer = QN_TRANSFER_READ;
        p.peer = l->writer;
        price = fetch(c, l, a);
        p.start =
            take_link(c, l->writer, a->node, QN_MAX(p.start, l->served), price);
        l->served = p.start + share(price, c->serve);
    }
    p.end = p.start + (a->streamed ? share(price, c->stream) : price);
    p.visible = p.end;
    hold(l, unit);
    return p;
}

static struct qn_price store(struct coherent *c, struct line *l,
                             const struct qn_line_access *a)
{
    qn_ps_t issued = issue_access(c, a);
    struct qn_price p = {.start = QN_MAX(issued, l->busy),
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    uint32_t unit = c->unit_of[a->node];
    bool mine = holds(l, unit);
    qn_ps_t price = 0;
    if (!mine && l->writer != QN_SIM_NO_NODE && c->unit_of[l->writer] != unit) {
        p.transfer = QN_TRANSFER_WRITE;
        p.peer = l->writer;
        p.start = QN_MAX(p.start, l->served);
        price += fetch(c, l, a);
    }
    if (l->copies > (mine ? 1u : 0u)) {
        p.transfer = QN_TRANSFER_WRITE;
        p.peer = dearest(c, l, a->node);
        price += c->send[(size_t)a->node * c->prices.nodes + p.peer];
    }
    if (p.peer != QN_SIM_NO_NODE) {
        p.start = take_link(c, p.peer, a->node, p.start, price);
    }
    price = QN_MAX(price, a->kind == QN_SIM_RMW ? c->rmw : c->prices.hit);
    p.end = p.start + (a->streamed ? share(price, c->stream) : price);
    memcpy(l->holder + c->words, l->holder, c->words * sizeof l->holder[0]);
    p.visible = p.end;
    memset(l->holder, 0, c->words * sizeof l->holder[0]);
    l->copies = 0;
    hold(l, unit);
    l->writer = a->node;
    l->busy = p.end;
    l->changed = p.end;
    l->served = p.end;
    return p;
}

static struct qn_price price_access(struct qn_prices *p, void *line,
                                    const struct qn_line_access *a)
{
    struct coherent *c = (struct coherent *)(void *)p; /* its first member */
    switch (a->kind) {
    case QN_SIM_STORE:
    case QN_SIM_COPY_OUT:
    case QN_SIM_TOUCH_OUT:
    case QN_SIM_RMW:
        return store(c, line, a);
    default:
        return load(c, line, a);
    }
}

static void init_line(struct qn_prices *p, void *line, uintptr_t base)
{
    struct line *l = line;
    (void)base;
    memset(l, 0, p->line_bytes);
    l->writer = QN_SIM_NO_NODE;
}

static qn_ps_t busy(const void *line)
{
    return ((const struct line *)line)->busy;
}

static void extend(void *line, qn_ps_t end)
{
    struct line *l = line;
    QN_DASSERT(end >= l->busy);
    l->busy = end;
    l->changed = end;
    l->served = end;
}

/* Computing; only of units with several nodes. */
static qn_ps_t issue(struct qn_prices *p, uint32_t node, qn_ps_t now,
                     qn_ps_t ps)
{
    struct coherent *c = (struct coherent *)(void *)p;
    struct unit *u = &c->unit[c->unit_of[node]];
    u->free = QN_MAX(now, u->free) + ps;
    return u->free;
}

static void begin(struct qn_prices *p)
{
    struct coherent *c = (struct coherent *)(void *)p;
    memset(c->link_free, 0,
           (size_t)c->sockets * c->sockets * sizeof *c->link_free);
    for (uint32_t u = 0; u < c->units; u++) {
        c->unit[u].free = 0;
    }
}

static void destroy(struct qn_prices *p)
{
    struct coherent *c = (struct coherent *)(void *)p;
    free(c->unit_of);
    free(c->socket_of);
    free(c->unit);
    free(c->link_free);
    free(c->send);
    free(c->receive);
    free(c);
}

/* ---- from a machine file ---- */

static qn_ps_t to_ps(double cycles, double ghz)
{
    double ps = cycles * 1000.0 / ghz;
    return ps < 1 ? 1 : (qn_ps_t)llround(ps);
}

static double or_else(double given, double usual)
{
    return given > 0 ? given : usual;
}

static bool opts_good(const struct qn_machine *m, const uint32_t *core,
                      uint32_t nodes, const struct qn_coherent_opts *o)
{
    bool good = nodes >= 1 && nodes <= QN_SIM_NODES_MAX && nodes <= m->n &&
                qn_machine_has_costs(m) && o->queued <= 1 && o->serve <= 1 &&
                o->stream <= 1 && o->link >= 0 && o->link <= 1;
    for (uint32_t i = 0; i < nodes && good; i++) {
        good = core[i] < m->n;
        for (uint32_t j = 0; j < i && good; j++) {
            good = core[i] != core[j];
        }
    }
    return good;
}

/* @return the cheapest s, in cycles. */
static double fill_costs(struct coherent *c, const struct qn_machine *m,
                         const uint32_t *core, double ghz)
{
    uint32_t n = c->prices.nodes;
    double least = INFINITY;
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t v = 0; v < n; v++) {
            double s = qn_send_cost(m, core[u], core[v]);
            double r = qn_receive_cost(m, core[u], core[v]);
            c->send[(size_t)u * n + v] = to_ps(s, ghz);
            c->receive[(size_t)u * n + v] = to_ps(r, ghz);
            least = u != v ? QN_MIN(least, s) : least;
        }
    }
    return least;
}

/* Number the nodes' sockets and units in the order of their first node. */
static void fill_places(struct coherent *c, const struct qn_machine *m,
                        const uint32_t *core, bool hyper_threads)
{
    for (uint32_t i = 0; i < c->prices.nodes; i++) {
        const struct qn_machine_core *own = &m->core[core[i]];
        c->socket_of[i] = c->sockets;
        c->unit_of[i] = c->units;
        for (uint32_t j = 0; j < i; j++) {
            const struct qn_machine_core *other = &m->core[core[j]];
            if (other->socket == own->socket) {
                c->socket_of[i] = c->socket_of[j];
            }
            if (hyper_threads && other->phys == own->phys) {
                c->unit_of[i] = c->unit_of[j];
            }
        }
        c->sockets += c->socket_of[i] == c->sockets;
        if (c->unit_of[i] == c->units) {
            c->unit[c->units++].node = i;
        }
    }
    c->shared = c->units < c->prices.nodes;
}

static int make_places(struct coherent *c, const struct qn_machine *m,
                       const uint32_t *core, bool hyper_threads)
{
    uint32_t n = c->prices.nodes;
    c->unit_of = calloc(n, sizeof *c->unit_of);
    c->socket_of = calloc(n, sizeof *c->socket_of);
    c->unit = calloc(n, sizeof *c->unit);
    if (c->unit_of == NULL || c->socket_of == NULL || c->unit == NULL) {
        return QN_ENOMEM;
    }
    fill_places(c, m, core, hyper_threads);
    c->link_free =
        calloc((size_t)c->sockets * c->sockets, sizeof *c->link_free);
    return c->link_free != NULL ? QN_OK : QN_ENOMEM;
}

static void fill_prices(struct coherent *c, const struct qn_coherent_opts *o,
                        double ghz, double least_send)
{
    struct qn_prices *p = &c->prices;
    double hit = or_else(o->hit_cycles, QN_MIN(HIT_CYCLES, least_send / 2));
    p->hit = o->bare ? 1 : to_ps(hit, ghz);
    p->fence = o->bare ? 1 : to_ps(or_else(o->fence_cycles, FENCE_CYCLES), ghz);
    p->clock = o->bare ? 1 : to_ps(or_else(o->clock_cycles, CLOCK_CYCLES), ghz);
    c->rmw = o->bare ? 1 : to_ps(or_else(o->rmw_cycles, RMW_CYCLES), ghz);
    p->park = to_ps(or_else(o->syscall_ns, SYSCALL_NS), 1);
    p->ring = p->park;
    p->wake = to_ps(or_else(o->wake_ns, WAKE_NS), 1);
    for (uint32_t i = 0; i < QN_MARKS; i++) {
        p->mark[i] = o->mark_cycles[i] > 0 ? to_ps(o->mark_cycles[i], ghz) : 0;
    }
    c->link = o->link;
    c->queued = or_else(o->queued, 1);
    c->serve = or_else(o->serve, SHARE_USUAL);
    c->stream = or_else(o->stream, SHARE_USUAL);
}

int qn_coherent_create(struct qn_prices **out, const struct qn_machine *m,
                       const uint32_t *core, uint32_t nodes,
                       const struct qn_coherent_opts *o)
{
    if (!opts_good(m, core, nodes, o)) {
        return QN_EINVAL;
    }
    struct coherent *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    c->prices = (struct qn_prices){
        .nodes = nodes,
        .combines = true,
        .begin = begin,
        .line_init = init_line,
        .access = price_access,
        .busy = busy,
        .extend = extend,
        .destroy = destroy,
    };
    size_t pairs = (size_t)nodes * nodes;
    c->send = calloc(pairs, sizeof *c->send);
    c->receive = calloc(pairs, sizeof *c->receive);
    if (c->send == NULL || c->receive == NULL ||
        make_places(c, m, core, o->hyper_threads) != QN_OK) {
        destroy(&c->prices);
        return QN_ENOMEM;
    }
    c->words = (c->units + 63) / 64;
    c->prices.line_bytes =
        sizeof(struct line) + 2 * c->words * sizeof(uint64_t);
    c->prices.issue = c->shared ? issue : NULL;
    double ghz = or_else(o->clock_ghz, or_else(m->facts.clock_ghz, GHZ_USUAL));
    fill_prices(c, o, ghz, fill_costs(c, m, core, ghz));
    *out = &c->prices;
    return QN_OK;
}
