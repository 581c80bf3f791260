/*
 * Each line has a home core: its second level cache always has the line's
 * content, and knows which first level caches have copies. Loads without a copy
 * and atomic operations go to the home and back; a store is written through to
 * it and the node continues at once.
 *
 * A line's `busy` is the time at which its home has performed the last store
 * that was issued to it and the copies of others are gone: half of what passes
 * until the writer has the acknowledgement. Loads of other nodes start then,
 * but a node with a copy sees the old content until it loses it; the writer's
 * own do not wait, they see its store on the way.
 *
 * An atomic operation meets the home after half of the trip and waits there for
 * the line and for the home, which performs one at a time. Its result is kept
 * in no first level cache.
 *
 * A fence ends when the acknowledgements of all earlier stores are there. A
 * load in front of it overlaps with it: the load blocks the node, but the core
 * has issued the fence behind it.
 *
 * Homes are hashed from the order in which lines were first touched, not from
 * their addresses: these differ between two runs of one program.
 */
#include "core/sim/timed/tiled/tilegx.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/time_queue.h"

struct line {
    uint32_t home;   /* a core */
    uint32_t writer; /* the last one, a node */
    bool touched;
    qn_ps_t busy;
    uint64_t holder[]; /* [2 * words] nodes with a copy; behind them those that
                          had one when the last store was issued */
};

struct own { /* of a node */
    uint32_t core;
    qn_ps_t acked; /* all of its stores until now */
    qn_ps_t load_issued, load_end;
};

struct range {
    uintptr_t first, last; /* address / QN_CACHELINE */
    uint32_t core;
};

struct tilegx {
    struct qn_prices prices;
    struct qn_grid grid;
    uint32_t words; /* of a set of nodes */
    qn_ps_t price[QN_TILEGX_PARAMETERS];
    struct own *own; /* [nodes] */
    qn_ps_t *served; /* [cores] atomic operations at this home end then */
    uint32_t lines;  /* touched in this run */
    struct range *range;
    uint32_t ranges;
};

static struct tilegx *of(struct qn_prices *p)
{
    return (struct tilegx *)(void *)p; /* its first member */
}

static qn_ps_t hops(const struct tilegx *t, uint32_t a, uint32_t b)
{
    return t->price[QN_TILEGX_HOP] * qn_grid_hops(&t->grid, a, b);
}

/* From a node to the home and back, with the content. */
static qn_ps_t trip(const struct tilegx *t, const struct line *l, uint32_t node)
{
    uint32_t core = t->own[node].core;
    return core == l->home
               ? t->price[QN_TILEGX_L2]
               : t->price[QN_TILEGX_LOOK] + t->price[QN_TILEGX_HOME] +
                     2 * hops(t, core, l->home);
}

static bool holds(const struct line *l, uint32_t node)
{
    return (l->holder[node / 64] >> (node % 64) & 1) != 0;
}

static void hold(struct line *l, uint32_t node)
{
    l->holder[node / 64] |= UINT64_C(1) << node % 64;
}

/* The holder of a copy farthest from the home, but for `node`. */
static uint32_t farthest(const struct tilegx *t, const struct line *l,
                         uint32_t node)
{
    uint32_t best = QN_SIM_NO_NODE;
    qn_ps_t most = 0;
    for (uint32_t w = 0; w < t->words; w++) {
        for (uint64_t m = l->holder[w]; m != 0; m &= m - 1) {
            uint32_t v = w * 64 + (uint32_t)__builtin_ctzll(m);
            qn_ps_t far = hops(t, l->home, t->own[v].core);
            if (v != node && (best == QN_SIM_NO_NODE || far > most)) {
                best = v;
                most = far;
            }
        }
    }
    return best;
}

/* A store of another node is on its way, and the node keeps its copy until
 * then. Of two of them the first took it away: it waits for both. */
static bool holds_still(const struct tilegx *t, const struct line *l,
                        const struct qn_line_access *a)
{
    return a->may_be_stale && l->writer != a->node && a->issued < l->busy &&
           (l->holder[t->words + a->node / 64] >> (a->node % 64) & 1) != 0;
}

/* What it adds to an acknowledgement that copies of others have to go. They
 * are gone. */
static qn_ps_t drop_copies(const struct tilegx *t, struct line *l,
                           uint32_t node, struct qn_price *p)
{
    bool mine = holds(l, node);
    uint32_t far = farthest(t, l, node);
    memcpy(l->holder + t->words, l->holder, t->words * sizeof l->holder[0]);
    memset(l->holder, 0, t->words * sizeof l->holder[0]);
    if (mine) {
        hold(l, node);
    }
    if (far == QN_SIM_NO_NODE) {
        return 0;
    }
    p->transfer = QN_TRANSFER_WRITE;
    p->peer = far;
    return t->price[QN_TILEGX_DROP] + 2 * hops(t, l->home, t->own[far].core);
}

/* For timelines: whose content the home has. */
static uint32_t last_writer(const struct line *l, uint32_t node)
{
    return l->writer != node ? l->writer : QN_SIM_NO_NODE;
}

static struct qn_price load(struct tilegx *t, struct line *l,
                            const struct qn_line_access *a)
{
    struct own *own = &t->own[a->node];
    struct qn_price p = {.start = a->issued,
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    qn_ps_t price = t->price[QN_TILEGX_L1];
    p.stale = holds_still(t, l, a);
    if (l->writer != a->node && !p.stale) {
        p.start = QN_MAX(a->issued, l->busy);
    }
    if (!holds(l, a->node) && !p.stale) {
        price = trip(t, l, a->node);
        if (!l->touched) {
            p.transfer = QN_TRANSFER_COLD;
            price += t->price[QN_TILEGX_MEMORY];
        } else if (own->core != l->home) {
            p.transfer = QN_TRANSFER_READ;
            p.peer = last_writer(l, a->node);
        }
        hold(l, a->node);
    }
    p.end = p.start + price;
    p.visible = p.end;
    own->load_issued = a->issued;
    own->load_end = p.end;
    return p;
}

static struct qn_price store(struct tilegx *t, struct line *l,
                             const struct qn_line_access *a)
{
    struct own *own = &t->own[a->node];
    struct qn_price p = {.start = a->issued,
                         .end = a->issued + t->price[QN_TILEGX_STORE],
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    qn_ps_t ack = t->price[QN_TILEGX_L2];
    if (own->core != l->home) {
        ack = t->price[QN_TILEGX_ACK] + 2 * hops(t, own->core, l->home);
    }
    ack += drop_copies(t, l, a->node, &p);
    p.visible = QN_MAX(l->busy, a->issued + ack / 2);
    l->busy = p.visible;
    own->acked = QN_MAX(own->acked, p.visible + (ack - ack / 2));
    return p;
}

static struct qn_price atomic(struct tilegx *t, struct line *l,
                              const struct qn_line_access *a)
{
    struct qn_price p = {.transfer = QN_TRANSFER_READ,
                         .peer = last_writer(l, a->node)};
    qn_ps_t way = trip(t, l, a->node);
    qn_ps_t *served = &t->served[l->home];
    if (t->own[a->node].core == l->home) {
        p.transfer = QN_TRANSFER_HIT;
        p.peer = QN_SIM_NO_NODE;
    }
    qn_ps_t arrives = a->issued + way / 2;
    qn_ps_t begins = QN_MAX(arrives, QN_MAX(*served, l->busy));
    *served = begins + t->price[QN_TILEGX_ATOMIC];
    qn_ps_t drop = drop_copies(t, l, a->node, &p);
    memset(l->holder, 0, t->words * sizeof l->holder[0]);
    p.start = a->issued + (begins - arrives);
    p.visible = *served + drop / 2;
    p.end = *served + drop + (way - way / 2);
    l->busy = p.visible;
    return p;
}

static struct qn_price price_access(struct qn_prices *p, void *line,
                                    const struct qn_line_access *a)
{
    struct tilegx *t = of(p);
    struct line *l = line;
    struct qn_price price;
    switch (a->kind) {
    case QN_SIM_STORE:
    case QN_SIM_COPY_OUT:
    case QN_SIM_TOUCH_OUT:
        price = store(t, l, a);
        l->writer = a->node;
        break;
    case QN_SIM_RMW:
        price = atomic(t, l, a);
        l->writer = a->node;
        break;
    default:
        price = load(t, l, a);
        break;
    }
    l->touched = true;
    return price;
}

static qn_ps_t fence_end(struct qn_prices *p, uint32_t node, qn_ps_t now)
{
    const struct own *own = &of(p)->own[node];
    bool overlaps = own->load_end == now;
    qn_ps_t least = (overlaps ? own->load_issued : now) + p->fence;
    return QN_MAX(now + 1, QN_MAX(least, own->acked));
}

static struct qn_price device(struct qn_prices *p,
                              const struct qn_device_access *a)
{
    const struct tilegx *t = of(p);
    qn_ps_t words = a->words * t->price[QN_TILEGX_UDN_WORD];
    struct qn_price price = {
        .start = a->issued, .transfer = QN_TRANSFER_HIT, .peer = a->peer};
    QN_DASSERT(a->kind == QN_DEVICE_SEND || a->kind == QN_DEVICE_RECEIVE);
    price.end = a->issued + t->price[QN_TILEGX_UDN_CALL] + words;
    price.visible = price.end;
    if (a->kind == QN_DEVICE_SEND) {
        price.visible = a->issued + words + t->price[QN_TILEGX_UDN_WIRE] +
                        hops(t, t->own[a->node].core, t->own[a->peer].core);
    }
    return price;
}

/* ---- the list ---- */

static uint32_t home_of(struct tilegx *t, uintptr_t base)
{
    for (uint32_t i = t->ranges; i-- > 0;) {
        if (base >= t->range[i].first && base <= t->range[i].last) {
            return t->range[i].core;
        }
    }
    return (uint32_t)(qn_time_queue_mix(t->lines + UINT64_C(1)) %
                      qn_grid_cores(&t->grid));
}

static void init_line(struct qn_prices *p, void *line, uintptr_t base)
{
    struct tilegx *t = of(p);
    struct line *l = line;
    memset(l, 0, p->line_bytes);
    l->home = home_of(t, base);
    l->writer = QN_SIM_NO_NODE;
    t->lines++;
}

static void begin(struct qn_prices *p)
{
    struct tilegx *t = of(p);
    memset(t->served, 0, qn_grid_cores(&t->grid) * sizeof *t->served);
    for (uint32_t i = 0; i < p->nodes; i++) {
        t->own[i] = (struct own){.core = t->own[i].core};
    }
    t->lines = 0;
}

static qn_ps_t busy(const void *line)
{
    return ((const struct line *)line)->busy;
}

static void extend(struct qn_prices *p, void *line, qn_ps_t end)
{
    (void)p;
    struct line *l = line;
    l->busy = QN_MAX(l->busy, end);
}

static void destroy(struct qn_prices *p)
{
    struct tilegx *t = of(p);
    free(t->own);
    free(t->served);
    free(t->range);
    free(t);
}

static void fill(struct tilegx *t, const struct qn_tiled *m, uint32_t nodes)
{
    for (uint32_t i = 0; i < QN_TILEGX_PARAMETERS; i++) {
        t->price[i] = i == QN_TILEGX_UDN_ROOM ? 0 : qn_tiled_ps(m, i);
    }
    t->grid = m->grid;
    t->words = (nodes + 63) / 64;
    t->prices = (struct qn_prices){
        .nodes = nodes,
        .weak = true,
        .fence = t->price[QN_TILEGX_FENCE],
        .hit = t->price[QN_TILEGX_L1],
        .queue_look = QN_MAX(t->price[QN_TILEGX_UDN_CALL], 1u),
        .clock = t->price[QN_TILEGX_CLOCK],
        .park = t->price[QN_TILEGX_SYSCALL],
        .ring = t->price[QN_TILEGX_SYSCALL],
        .wake = t->price[QN_TILEGX_WAKE],
        .line_bytes = sizeof(struct line) + 2 * t->words * sizeof(uint64_t),
        .begin = begin,
        .line_init = init_line,
        .access = price_access,
        .busy = busy,
        .extend = extend,
        .fence_end = fence_end,
        .device = device,
        .destroy = destroy,
    };
}

int qn_tilegx_create(struct qn_prices **out, const struct qn_tiled *m,
                     const uint32_t *core, uint32_t nodes)
{
    uint32_t cores = qn_grid_cores(&m->grid);
    QN_ASSERT(m->kind == QN_TILED_TILEGX);
    struct tilegx *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return QN_ENOMEM;
    }
    fill(t, m, nodes);
    t->own = calloc(nodes, sizeof *t->own);
    t->served = calloc(cores, sizeof *t->served);
    if (t->own == NULL || t->served == NULL) {
        destroy(&t->prices);
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        t->own[i].core = core[i];
    }
    *out = &t->prices;
    return QN_OK;
}

int qn_tilegx_home(struct qn_prices *p, const void *at, size_t bytes,
                   uint32_t core)
{
    struct tilegx *t = of(p);
    if (core >= qn_grid_cores(&t->grid) || bytes == 0) {
        return QN_EINVAL;
    }
    struct range *r = realloc(t->range, (t->ranges + 1) * sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    t->range = r;
    uintptr_t first = (uintptr_t)at;
    r[t->ranges++] = (struct range){(first + QN_CACHELINE - 1) / QN_CACHELINE,
                                    (first + bytes - 1) / QN_CACHELINE, core};
    return QN_OK;
}
