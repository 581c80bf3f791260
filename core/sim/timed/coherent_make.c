/*
 * Makes the price list of a coherent machine from its file. Every price becomes
 * picoseconds here, and none becomes 0.
 */
#include <math.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/coherent_internal.h"

#define GHZ_USUAL    2.0
#define SHARE_USUAL  0.125
#define HIT_CYCLES   4.0
#define RMW_CYCLES   20.0
#define FENCE_CYCLES 20.0
#define CLOCK_CYCLES 20.0
#define WAKE_NS      2000.0
#define SYSCALL_NS   200.0

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
                o->stream <= 1 && o->link >= 0 && o->link <= 1 &&
                o->prefetch >= 0 && o->prefetch <= 1 &&
                (o->watched == 0 || o->watched >= 1) && o->queued >= 0 &&
                o->prefetch_ahead <= QN_PREFETCH_AHEAD &&
                o->streams <= QN_COHERENT_STREAMS && o->shared_store >= 0 &&
                o->shared_store_cycles >= 0 && o->memory_cycles >= 0 &&
                o->store_buffer <= QN_STORE_BUFFER_MAX;
    for (uint32_t i = 0; i < nodes && good; i++) {
        good = core[i] < m->n;
        for (uint32_t j = 0; j < i && good; j++) {
            good = core[i] != core[j];
        }
    }
    return good;
}

/* @return the cheapest s, in cycles. */
static double fill_costs(struct qn_coherent *c, const struct qn_machine *m,
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
static void fill_places(struct qn_coherent *c, const struct qn_machine *m,
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

static int make_places(struct qn_coherent *c, const struct qn_machine *m,
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

static void fill_prices(struct qn_coherent *c, const struct qn_coherent_opts *o,
                        double ghz, double least_send)
{
    struct qn_prices *p = &c->prices;
    double hit = or_else(o->hit_cycles, QN_MIN(HIT_CYCLES, least_send / 2));
    p->hit = o->bare ? 1 : to_ps(hit, ghz);
    p->fence = o->bare ? 1 : to_ps(or_else(o->fence_cycles, FENCE_CYCLES), ghz);
    p->clock = o->bare ? 1 : to_ps(or_else(o->clock_cycles, CLOCK_CYCLES), ghz);
    qn_ps_t dearest = 1;
    for (size_t i = 0; i < (size_t)p->nodes * p->nodes; i++) {
        dearest = QN_MAX(dearest, c->receive[i]);
    }
    c->memory = o->memory_cycles > 0 ? to_ps(o->memory_cycles, ghz) : dearest;
    c->watched = or_else(o->watched, 1);
    c->streams = o->streams > 0 ? o->streams : QN_COHERENT_STREAMS;
    c->rmw = o->bare ? 1 : to_ps(or_else(o->rmw_cycles, RMW_CYCLES), ghz);
    p->park = to_ps(or_else(o->syscall_ns, SYSCALL_NS), 1);
    p->ring = p->park;
    p->wake = to_ps(or_else(o->wake_ns, WAKE_NS), 1);
    for (uint32_t i = 0; i < QN_MARKS; i++) {
        p->mark[i] = o->mark_cycles[i] > 0 ? to_ps(o->mark_cycles[i], ghz) : 0;
    }
    p->polls = o->poll;
    c->link = o->link;
    c->prefetch = o->prefetch;
    c->prefetch_ahead = QN_MAX(o->prefetch_ahead, 1u);
    c->shared_store = o->shared_store;
    c->shared_store_least = to_ps(o->shared_store_cycles, ghz);
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
    struct qn_coherent *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    c->prices.nodes = nodes;
    size_t pairs = (size_t)nodes * nodes;
    c->send = calloc(pairs, sizeof *c->send);
    c->receive = calloc(pairs, sizeof *c->receive);
    if (c->send == NULL || c->receive == NULL ||
        make_places(c, m, core, o->hyper_threads) != QN_OK ||
        qn_store_buffer_init(&c->buffer, nodes, o->store_buffer) != QN_OK ||
        (o->bulk && qn_bulk_create(&c->bulk, m, core, nodes) != QN_OK)) {
        qn_coherent_destroy(&c->prices);
        return QN_ENOMEM;
    }
    c->words = (c->units + 63) / 64;
    qn_coherent_functions(c);
    double ghz = or_else(o->clock_ghz, or_else(m->facts.clock_ghz, GHZ_USUAL));
    fill_prices(c, o, ghz, fill_costs(c, m, core, ghz));
    *out = &c->prices;
    return QN_OK;
}
