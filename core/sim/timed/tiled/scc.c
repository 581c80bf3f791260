/*
 * One transaction is in flight per core, so an operation is complete before the
 * node's next one begins. What several cores share is a port per message
 * buffer, which a line occupies for `port`, and the interrupt controller.
 *
 * The controller serves its registers one at a time, but it holds some accesses
 * before they wait: a leaky bucket. An access waits for what is in the bucket
 * above `gic_holds`.
 *
 * `fair_ports`: a buffer's router serves its inputs (the four links and the
 * tile) in turn. An input with more cores behind it then has less for each. A
 * line occupies its input once for each input that is busy: shares of a server,
 * computed when the line is issued, not a queue per input.
 */
#include "core/sim/timed/tiled/scc.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/timed.h"

enum input { TILE, EAST, WEST, NORTH, SOUTH, INPUTS };

/* Memory controllers are at the corners of the mesh's first and third row; each
 * serves a quarter of the tiles. The interrupt controller is behind the link of
 * tile (3, 0). */
#define CONTROLLER_ROW 2u
#define GIC_X          3u
#define GIC_Y          0u

struct line {
    uint32_t owner; /* the node that used it first */
};

struct port {
    qn_ps_t free[INPUTS]; /* not fair: [TILE] is that of all */
};

struct scc {
    struct qn_prices prices;
    struct qn_grid grid;
    qn_ps_t price[QN_SCC_PARAMETERS];
    bool fair;
    qn_ps_t bucket;    /* what the interrupt controller holds */
    qn_ps_t gic_free;  /* all of its accesses so far are served */
    uint32_t *core;    /* [nodes] */
    struct port *port; /* [nodes] of the message buffers */
    uint64_t incoherent;
};

static struct scc *of(struct qn_prices *p)
{
    return (struct scc *)(void *)p; /* its first member */
}

/* ---- ordinary memory ---- */

static qn_ps_t to_memory(const struct scc *s, uint32_t node)
{
    uint32_t core = s->core[node];
    uint32_t half = s->grid.columns / 2;
    uint32_t x = qn_grid_x(&s->grid, core) < half ? 0 : s->grid.columns - 1;
    uint32_t y =
        qn_grid_y(&s->grid, core) < CONTROLLER_ROW ? 0 : CONTROLLER_ROW;
    return s->price[QN_SCC_HOP] * (qn_grid_hops_to(&s->grid, core, x, y) + 1);
}

static struct qn_price price_access(struct qn_prices *p, void *line,
                                    const struct qn_line_access *a)
{
    struct scc *s = of(p);
    struct line *l = line;
    struct qn_price price = {.start = a->issued,
                             .transfer = QN_TRANSFER_HIT,
                             .peer = QN_SIM_NO_NODE};
    qn_ps_t cost = s->price[QN_SCC_HIT];
    if (l->owner != a->node) {
        cost = s->price[QN_SCC_O_MEM_R] + 2 * to_memory(s, a->node);
        price.transfer = QN_TRANSFER_COLD;
        s->incoherent += l->owner != QN_SIM_NO_NODE;
    }
    if (l->owner == QN_SIM_NO_NODE) {
        l->owner = a->node;
    }
    price.end = a->issued + cost;
    price.visible = price.end;
    return price;
}

/* ---- devices ---- */

static enum input input_of(const struct qn_grid *g, uint32_t from, uint32_t to)
{
    uint32_t x = qn_grid_x(g, from);
    uint32_t y = qn_grid_y(g, from);
    if (y != qn_grid_y(g, to)) { /* x first, so it arrives along y */
        return y > qn_grid_y(g, to) ? NORTH : SOUTH;
    }
    return x == qn_grid_x(g, to) ? TILE : x > qn_grid_x(g, to) ? EAST : WEST;
}

/* When a line that has arrived has its turn at the buffer of `peer`. */
static qn_ps_t take_port(struct scc *s, uint32_t node, uint32_t peer,
                         qn_ps_t arrives)
{
    struct port *port = &s->port[peer];
    enum input in = TILE;
    uint32_t busy = 1;
    if (s->fair) {
        in = input_of(&s->grid, s->core[node], s->core[peer]);
        for (uint32_t i = 0; i < INPUTS; i++) {
            busy += i != in && port->free[i] > arrives;
        }
    }
    qn_ps_t turn = QN_MAX(arrives, port->free[in]);
    port->free[in] = turn + busy * s->price[QN_SCC_PORT];
    return turn;
}

static qn_ps_t device_way(struct qn_prices *p, const struct qn_device_access *a)
{
    const struct scc *s = of(p);
    const struct qn_grid *g = &s->grid;
    uint32_t core = s->core[a->node];
    switch (a->kind) {
    case QN_DEVICE_READ:
    case QN_DEVICE_WRITE:
        return s->price[QN_SCC_HOP] *
               (qn_grid_hops(g, core, s->core[a->peer]) + 1);
    case QN_DEVICE_INTERRUPT:
    case QN_DEVICE_INTERRUPT_REGISTER:
        return s->price[QN_SCC_HOP] *
               (qn_grid_hops_to(g, core, GIC_X, GIC_Y) + 1);
    default:
        return 0;
    }
}

/* A line of a message buffer. The writer waits for the acknowledgement, which
 * others do not. */
static struct qn_price price_line(struct scc *s,
                                  const struct qn_device_access *a)
{
    struct qn_price p = {.peer = a->peer, .transfer = QN_TRANSFER_READ};
    p.start = take_port(s, a->node, a->peer, a->issued);
    p.end = p.start + s->price[QN_SCC_O_MPB] + device_way(&s->prices, a);
    p.visible = p.end;
    if (a->kind == QN_DEVICE_WRITE) {
        p.transfer = QN_TRANSFER_WRITE;
        p.visible = p.start + s->price[QN_SCC_O_MPB];
    }
    return p;
}

/* An access to a register of the interrupt controller. A request is seen by its
 * cores as an interrupt; each then reads and clears its cause. Point to point
 * is all three. */
static struct qn_price price_register(struct scc *s,
                                      const struct qn_device_access *a)
{
    qn_ps_t held = s->gic_free > a->issued ? s->gic_free - a->issued : 0;
    struct qn_price p = {.start = a->issued, .peer = QN_SIM_NO_NODE};
    s->gic_free = a->issued + held + s->price[QN_SCC_GIC_SERVE];
    p.start += held > s->bucket ? held - s->bucket : 0;
    p.end = p.start + s->price[QN_SCC_GIC_ACCESS] + device_way(&s->prices, a);
    p.visible = p.end;
    if (a->kind == QN_DEVICE_INTERRUPT) {
        p.visible = p.start + s->price[QN_SCC_GIC_TOTAL] -
                    2 * s->price[QN_SCC_GIC_ACCESS];
    }
    return p;
}

/* Time that only the core sees, or its way to memory. */
static struct qn_price price_own(const struct scc *s,
                                 const struct qn_device_access *a)
{
    static const uint8_t parameter[QN_DEVICE_KINDS] = {
        [QN_DEVICE_PUT] = QN_SCC_O_PUT_MPB,
        [QN_DEVICE_PUT_MEMORY] = QN_SCC_O_PUT_MEM,
        [QN_DEVICE_GET] = QN_SCC_O_GET_MPB,
        [QN_DEVICE_GET_MEMORY] = QN_SCC_O_GET_MEM,
        [QN_DEVICE_READ_MEMORY] = QN_SCC_O_MEM_R,
        [QN_DEVICE_WRITE_MEMORY] = QN_SCC_O_MEM_W,
    };
    bool memory =
        a->kind == QN_DEVICE_READ_MEMORY || a->kind == QN_DEVICE_WRITE_MEMORY;
    struct qn_price p = {.start = a->issued,
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    p.end = a->issued + s->price[parameter[a->kind]] +
            (memory ? 2 * to_memory(s, a->node) : 0);
    p.visible = p.end;
    return p;
}

static struct qn_price device(struct qn_prices *p,
                              const struct qn_device_access *a)
{
    struct scc *s = of(p);
    switch (a->kind) {
    case QN_DEVICE_READ:
    case QN_DEVICE_WRITE:
        return price_line(s, a);
    case QN_DEVICE_INTERRUPT:
    case QN_DEVICE_INTERRUPT_REGISTER:
        return price_register(s, a);
    default:
        QN_DASSERT(a->kind < QN_DEVICE_READ ||
                   a->kind == QN_DEVICE_READ_MEMORY ||
                   a->kind == QN_DEVICE_WRITE_MEMORY);
        return price_own(s, a);
    }
}

/* ---- put and get ---- */

static struct qn_price operate(enum qn_device_kind kind, uint32_t peer)
{
    return qn_timed_device(
        &(struct qn_device_access){.kind = kind, .peer = peer});
}

static void move(const struct qn_scc_copy *c, enum qn_device_kind read,
                 uint32_t from, enum qn_device_kind write, uint32_t to)
{
    QN_ASSERT(c->lines >= 1);
    for (uint32_t i = 0; i < c->lines; i++) {
        bool near = read == QN_DEVICE_READ_MEMORY && c->cached != NULL &&
                    c->cached(c->ctx, i);
        struct qn_price p = {0};
        if (!near) {
            p = operate(read, from);
        }
        if (c->taken != NULL && !near) {
            c->taken(c->ctx, i, &p);
        }
        p = operate(write, to);
        if (c->placed != NULL) {
            c->placed(c->ctx, i, &p);
        }
    }
}

void qn_scc_put(const struct qn_scc_copy *c)
{
    (void)operate(c->memory ? QN_DEVICE_PUT_MEMORY : QN_DEVICE_PUT,
                  qn_sim.self);
    move(c, c->memory ? QN_DEVICE_READ_MEMORY : QN_DEVICE_READ, qn_sim.self,
         QN_DEVICE_WRITE, c->peer);
}

void qn_scc_get(const struct qn_scc_copy *c)
{
    (void)operate(c->memory ? QN_DEVICE_GET_MEMORY : QN_DEVICE_GET,
                  qn_sim.self);
    move(c, QN_DEVICE_READ, c->peer,
         c->memory ? QN_DEVICE_WRITE_MEMORY : QN_DEVICE_WRITE, qn_sim.self);
}

struct qn_price qn_scc_flag_read(uint32_t peer)
{
    (void)operate(QN_DEVICE_GET, qn_sim.self);
    return operate(QN_DEVICE_READ, peer);
}

struct qn_price qn_scc_flag_write(uint32_t peer)
{
    (void)operate(QN_DEVICE_PUT, qn_sim.self);
    (void)operate(QN_DEVICE_READ, qn_sim.self);
    return operate(QN_DEVICE_WRITE, peer);
}

/* ---- the list ---- */

static void init_line(struct qn_prices *p, void *line, uintptr_t base)
{
    struct line *l = line;
    (void)p;
    (void)base;
    l->owner = QN_SIM_NO_NODE;
}

static void begin(struct qn_prices *p)
{
    struct scc *s = of(p);
    memset(s->port, 0, p->nodes * sizeof *s->port);
    s->gic_free = 0;
    s->incoherent = 0;
}

/* Lines of private memory have no users that could meet. */
static qn_ps_t busy(const void *line)
{
    (void)line;
    return 0;
}

static void extend(struct qn_prices *p, void *line, qn_ps_t end)
{
    (void)p;
    (void)line;
    (void)end;
}

static void destroy(struct qn_prices *p)
{
    struct scc *s = of(p);
    free(s->core);
    free(s->port);
    free(s);
}

static void fill(struct scc *s, const struct qn_tiled *m, uint32_t nodes)
{
    for (uint32_t i = 0; i < QN_SCC_PARAMETERS; i++) {
        bool time = i != QN_SCC_FAIR && i != QN_SCC_GIC_HOLDS;
        s->price[i] = time ? qn_tiled_ps(m, i) : 0;
    }
    s->grid = m->grid;
    s->fair = qn_tiled_value(m, QN_SCC_FAIR) > 0;
    s->bucket = (qn_ps_t)(qn_tiled_value(m, QN_SCC_GIC_HOLDS) *
                          (double)s->price[QN_SCC_GIC_SERVE]);
    s->prices = (struct qn_prices){
        .nodes = nodes,
        .combines = true,
        .fence = s->price[QN_SCC_HIT],
        .hit = s->price[QN_SCC_HIT],
        .clock = s->price[QN_SCC_HIT],
        .park = s->price[QN_SCC_SYSCALL],
        .ring = s->price[QN_SCC_SYSCALL],
        .wake = s->price[QN_SCC_GIC_TOTAL],
        .line_bytes = sizeof(struct line),
        .begin = begin,
        .line_init = init_line,
        .access = price_access,
        .busy = busy,
        .extend = extend,
        .device_way = device_way,
        .device = device,
        .destroy = destroy,
    };
}

int qn_scc_create(struct qn_prices **out, const struct qn_tiled *m,
                  const uint32_t *core, uint32_t nodes)
{
    QN_ASSERT(m->kind == QN_TILED_SCC);
    if (qn_tiled_ps(m, QN_SCC_GIC_TOTAL) <=
        2 * qn_tiled_ps(m, QN_SCC_GIC_ACCESS)) {
        return QN_EINVAL; /* point to point has two accesses in it */
    }
    struct scc *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return QN_ENOMEM;
    }
    fill(s, m, nodes);
    s->core = calloc(nodes, sizeof *s->core);
    s->port = calloc(nodes, sizeof *s->port);
    if (s->core == NULL || s->port == NULL) {
        destroy(&s->prices);
        return QN_ENOMEM;
    }
    memcpy(s->core, core, nodes * sizeof *core);
    *out = &s->prices;
    return QN_OK;
}

uint64_t qn_scc_incoherent(const struct qn_prices *p)
{
    return ((const struct scc *)(const void *)p)->incoherent;
}
