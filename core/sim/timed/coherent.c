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
 * | store, i and others have copies        | s(i, v), v the dearest; with    |
 * |                                        | `shared_store` a part of s + r  |
 * | store, i has none, j wrote last        | r(j, i) + s(i, v)               |
 * | read-modify-write                      | as the store, at least rmw      |
 * | streaming store                        | hit; it is in memory, and no    |
 * |                                        | cache has it, memory / 2 later  |
 * | another to the same line meanwhile     | hit; memory / 2 later, likewise |
 * | load or store after that               | memory instead of r(j, i)       |
 * | each further line of a copy            | `stream` of it                  |
 *
 * Copies are held by units: a node, or with `hyper_threads` all nodes of one
 * physical core, whose cache they share. Their accesses and computations are
 * issued one at a time. With `link`, a transfer between two sockets starts when
 * the link between them is free of earlier ones.
 *
 * With a store buffer a store costs a hit, once it has entered; what the table
 * says follows, behind the node's earlier stores. The line is in use from the
 * issue to that end. Loads of the node itself find it in the buffer.
 *
 * Streaming stores of a node to one line are one transfer (write combining),
 * which arrives memory / 2 after the last of them. It ends with a streaming
 * store of the core to another line; with any other access to the line but a
 * look at an old copy; and when it has arrived, for which fences and
 * read-modify-writes of the node wait. `streams` transfers of a core may be on
 * their way; one more waits.
 *
 * With a prefetcher a line that was asked for is brought when any node accesses
 * it next, as if at the time when it was asked for. A stream that is stored to
 * brings lines that no other has then, and none that others poll.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/sim/timed/coherent_internal.h"

struct line {
    uintptr_t base;
    uint32_t writer;   /* the last one; QN_SIM_NO_NODE: none yet, or memory */
    bool in_memory;    /* the last store went past the caches */
    uint32_t streamer; /* that was its node, and the line was not used since;
                          else QN_SIM_NO_NODE */
    uint32_t copies;   /* bits in holder */
    qn_ps_t busy;
    qn_ps_t changed;   /* by the last store, its end */
    qn_ps_t served;    /* the next reader that misses starts then */
    uint64_t holder[]; /* [2 * words] units with a copy; behind them those that
                          had one when the last store was issued */
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
    l->streamer = QN_SIM_NO_NODE;
}

/* A store is under way, and the node keeps its copy until the store's end. */
static bool holds_still(const struct qn_coherent *c, const struct line *l,
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
static uint32_t dearest(const struct qn_coherent *c, const struct line *l,
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
static qn_ps_t fetch(const struct qn_coherent *c, const struct line *l,
                     const struct qn_line_access *a)
{
    if (l->in_memory) {
        return c->memory;
    }
    qn_ps_t r = c->receive[(size_t)l->writer * c->prices.nodes + a->node];
    return c->queued < 1 && l->changed <= a->issued ? share(r, c->queued) : r;
}

/* When the access is issued: its unit does one at a time. */
static qn_ps_t issue_access(struct qn_coherent *c,
                            const struct qn_line_access *a)
{
    if (!c->shared) {
        return a->issued;
    }
    struct qn_coherent_unit *u = &c->unit[c->unit_of[a->node]];
    qn_ps_t at = QN_MAX(a->issued, u->free);
    u->free = at + c->prices.hit;
    return at;
}

/* When a transfer between two nodes has the link of their sockets. */
static qn_ps_t take_link(struct qn_coherent *c, uint32_t a, uint32_t b,
                         qn_ps_t at, qn_ps_t price)
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

/* ---- the prefetcher ---- */

/* To write: the unit has the only copy. */
static void take_copies(struct qn_coherent *c, struct line *l, uint32_t unit)
{
    memset(l->holder, 0, c->words * sizeof l->holder[0]);
    l->copies = 0;
    l->writer = c->unit[unit].node;
}

/* Units that have asked for this line have got a copy. One that wants to write
 * it gets none if others poll it: they take it back. */
static void bring(struct qn_coherent *c, struct line *l,
                  const struct qn_line_access *a)
{
    for (uint32_t u = 0; u < c->units; u++) {
        struct qn_prefetch *f = &c->unit[u].ahead;
        struct qn_prefetch_line *p =
            qn_prefetch_find(f, l->base, QN_PREFETCH_ASKED);
        if (p == NULL) {
            continue;
        }
        bool polled = a->polled || (a->polls && c->unit_of[a->node] != u);
        if (l->writer == QN_SIM_NO_NODE || holds(l, u) ||
            (f->writes && polled)) {
            qn_prefetch_drop(f, p);
            continue;
        }
        p->state = QN_PREFETCH_IS;
        p->at = QN_MAX(p->at, l->busy);
        p->whole =
            c->receive[(size_t)l->writer * c->prices.nodes + c->unit[u].node];
        if (f->writes) {
            take_copies(c, l, u);
        }
        hold(l, u);
    }
}

/* A load of a copy that was brought: what is left of its transfer. Else 0. */
static qn_ps_t rest_of(struct qn_coherent *c, const struct line *l,
                       const struct qn_line_access *a, qn_ps_t at)
{
    struct qn_prefetch *f = &c->unit[c->unit_of[a->node]].ahead;
    struct qn_prefetch_line *p = qn_prefetch_find(f, l->base, QN_PREFETCH_IS);
    if (p == NULL) {
        return 0;
    }
    qn_prefetch_drop(f, p);
    qn_ps_t gone = at > p->at ? QN_MIN(at - p->at, p->whole) : 0;
    qn_ps_t hidden = (qn_ps_t)llround((double)gone * c->prefetch);
    return l->in_memory ? 0 : QN_MAX(p->whole - hidden, c->prices.hit);
}

/* ---- accesses ---- */

/* The node's own store to this line is still in its buffer. */
static bool is_buffered(const struct qn_coherent *c, const struct line *l,
                        const struct qn_line_access *a)
{
    return c->buffer.entries > 0 && l->writer == a->node && a->issued < l->busy;
}

static struct qn_price load(struct qn_coherent *c, struct line *l,
                            const struct qn_line_access *a)
{
    qn_ps_t issued = issue_access(c, a);
    struct qn_price p = {.start = QN_MAX(issued, l->busy),
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    qn_ps_t price = c->prices.hit;
    uint32_t unit = c->unit_of[a->node];
    bool own = is_buffered(c, l, a);
    if (own || holds_still(c, l, a)) {
        p.start = issued;
        p.end = issued + price;
        p.visible = p.end;
        p.stale = !own;
        return p;
    }
    qn_ps_t rest = holds(l, unit) ? rest_of(c, l, a, p.start) : 0;
    if (rest > 0) {
        p.transfer = QN_TRANSFER_READ;
        p.peer = l->writer;
        price = rest;
    } else if (!holds(l, unit) && l->writer == QN_SIM_NO_NODE &&
               !l->in_memory) {
        p.transfer = QN_TRANSFER_COLD;
    } else if (!holds(l, unit)) {
        p.transfer = QN_TRANSFER_READ;
        p.peer = l->writer;
        price = fetch(c, l, a);
        p.start = QN_MAX(p.start, l->served);
        if (!l->in_memory) {
            p.start = take_link(c, l->writer, a->node, p.start, price);
        }
        l->served = p.start + share(price, c->serve);
    }
    if (c->prefetch > 0 && p.transfer == QN_TRANSFER_READ) {
        qn_prefetch_miss(&c->unit[unit].ahead, c->prefetch_ahead, l->base,
                         p.start);
    }
    p.end = p.start + (a->streamed ? share(price, c->stream) : price);
    p.visible = p.end;
    hold(l, unit);
    return p;
}

/* A store is visible then: until then those that have copies see the old
 * content, and the line is in use. */
static void drop_copies(struct qn_coherent *c, struct line *l, qn_ps_t visible)
{
    for (uint32_t u = 0; c->prefetch > 0 && u < c->units; u++) {
        struct qn_prefetch *f = &c->unit[u].ahead;
        struct qn_prefetch_line *p =
            qn_prefetch_find(f, l->base, QN_PREFETCH_IS);
        if (p != NULL) {
            qn_prefetch_drop(f, p);
        }
    }
    memcpy(l->holder + c->words, l->holder, c->words * sizeof l->holder[0]);
    memset(l->holder, 0, c->words * sizeof l->holder[0]);
    l->copies = 0;
    l->busy = visible;
    l->changed = visible;
    l->served = visible;
}

/* The node continues when its store has entered; its transfer was `p`. */
static struct qn_price buffered(struct qn_coherent *c,
                                const struct qn_line_access *a,
                                struct qn_price p, qn_ps_t entered)
{
    qn_store_buffer_put(&c->buffer, a->node, p.visible);
    p.start = entered;
    p.end = entered + c->prices.hit;
    return p;
}

/* What it costs that others lose their copies, and the line before that. A line
 * that one cache has is handed over; one that several have is another matter
 * where `shared_store` says so. */
static qn_ps_t take_away(const struct qn_coherent *c, const struct line *l,
                         uint32_t node, uint32_t dearest_one, qn_ps_t fetched)
{
    size_t to = (size_t)node * c->prices.nodes + dearest_one;
    if (c->shared_store <= 0 || l->copies < 2) {
        return fetched + c->send[to];
    }
    return QN_MAX(share(c->send[to] + c->receive[to], c->shared_store),
                  c->shared_store_least);
}

static struct qn_price store(struct qn_coherent *c, struct line *l,
                             const struct qn_line_access *a)
{
    bool buffers = c->buffer.entries > 0 && a->kind != QN_SIM_RMW;
    qn_ps_t issued = issue_access(c, a);
    qn_ps_t entered =
        buffers ? qn_store_buffer_enter(&c->buffer, a->node, issued) : issued;
    issued = qn_store_buffer_drained(&c->buffer, a->node, entered);
    if (a->kind == QN_SIM_RMW) {
        issued = QN_MAX(issued, c->unit[c->unit_of[a->node]].past);
    }
    struct qn_price p = {.start = QN_MAX(issued, l->busy),
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    uint32_t unit = c->unit_of[a->node];
    bool mine = holds(l, unit);
    qn_ps_t price = 0;
    if (!mine && l->in_memory) {
        p.transfer = QN_TRANSFER_WRITE;
        p.start = QN_MAX(p.start, l->served);
        price += fetch(c, l, a);
    } else if (!mine && l->writer != QN_SIM_NO_NODE &&
               c->unit_of[l->writer] != unit) {
        p.transfer = QN_TRANSFER_WRITE;
        p.peer = l->writer;
        p.start = QN_MAX(p.start, l->served);
        price += fetch(c, l, a);
    }
    if (l->copies > (mine ? 1u : 0u)) {
        p.transfer = QN_TRANSFER_WRITE;
        p.peer = dearest(c, l, a->node);
        price = take_away(c, l, a->node, p.peer, price);
    }
    if (p.peer != QN_SIM_NO_NODE) {
        p.start = take_link(c, p.peer, a->node, p.start, price);
    }
    price = QN_MAX(price, a->kind == QN_SIM_RMW ? c->rmw : c->prices.hit);
    p.end = p.start + (a->streamed ? share(price, c->stream) : price);
    p.visible = p.end;
    drop_copies(c, l, p.visible);
    hold(l, unit);
    l->writer = a->node;
    l->in_memory = false;
    qn_prefetch_stored(&c->unit[unit].ahead, l->base);
    return buffers ? buffered(c, a, p, entered) : p;
}

/* The unit's newest transfer to memory ends then. */
static void set_flight(struct qn_coherent_unit *u, qn_ps_t end)
{
    u->flight[u->newest] = end;
    u->past = QN_MAX(u->past, end);
}

/* A transfer to memory begins. @return when there is room for it. */
static qn_ps_t begin_flight(struct qn_coherent *c, const struct line *l,
                            uint32_t unit, bool polled, qn_ps_t issued)
{
    struct qn_coherent_unit *u = &c->unit[unit];
    u->way = share(c->memory, polled ? c->watched / 2 : 0.5);
    u->open = l->base;
    for (uint32_t i = 0; i < c->streams; i++) {
        u->newest = u->flight[i] < u->flight[u->newest] ? i : u->newest;
    }
    return QN_MAX(issued, u->flight[u->newest]);
}

/* The line is on its way to memory, in no cache. Its node's own loads wait for
 * that: no old content for them. */
static void leave_caches(struct qn_coherent *c, struct line *l, uint32_t node,
                         qn_ps_t visible)
{
    uint32_t unit = c->unit_of[node];
    drop_copies(c, l, visible);
    l->holder[c->words + unit / 64] &= ~(UINT64_C(1) << unit % 64);
    l->writer = QN_SIM_NO_NODE;
    l->in_memory = true;
    l->streamer = node;
}

/* The node goes on at once; the line goes to memory when it is free. */
static struct qn_price store_past_cache(struct qn_coherent *c, struct line *l,
                                        const struct qn_line_access *a)
{
    uint32_t unit = c->unit_of[a->node];
    struct qn_coherent_unit *u = &c->unit[unit];
    struct qn_price p = {.start = issue_access(c, a),
                         .transfer = QN_TRANSFER_HIT,
                         .peer = QN_SIM_NO_NODE};
    p.goes_on =
        l->streamer == a->node && u->open == l->base && p.start < l->busy;
    if (p.goes_on) {
        p.visible = QN_MAX(l->busy, p.start + u->way);
    } else {
        p.start = begin_flight(c, l, unit, a->polled, p.start);
        p.visible = QN_MAX(p.start, l->busy) + u->way;
    }
    p.end = p.start + c->prices.hit;
    p.visible = QN_MAX(p.visible, p.end);
    if (p.goes_on) {
        l->busy = l->changed = l->served = p.visible;
    } else {
        leave_caches(c, l, a->node, p.visible);
    }
    set_flight(u, p.visible);
    return p;
}

static struct qn_price price_access(struct qn_prices *p, void *line,
                                    const struct qn_line_access *a)
{
    struct qn_coherent *c =
        (struct qn_coherent *)(void *)p; /* its first member */
    if (c->prefetch > 0) {
        bring(c, line, a);
    }
    switch (a->kind) {
    case QN_SIM_STORE:
    case QN_SIM_COPY_OUT:
    case QN_SIM_TOUCH_OUT:
    case QN_SIM_RMW:
        return a->past_cache ? store_past_cache(c, line, a) : store(c, line, a);
    default:
        return load(c, line, a);
    }
}

static void init_line(struct qn_prices *p, void *line, uintptr_t base)
{
    struct line *l = line;
    memset(l, 0, p->line_bytes);
    l->base = base;
    l->writer = QN_SIM_NO_NODE;
    l->streamer = QN_SIM_NO_NODE;
}

static qn_ps_t busy(const void *line)
{
    return ((const struct line *)line)->busy;
}

/* A store in the buffer is the newest one there, and may end later anyway. */
static void extend(struct qn_prices *p, void *line, qn_ps_t end)
{
    struct qn_coherent *c = (struct qn_coherent *)(void *)p;
    struct line *l = line;
    if (c->buffer.entries > 0 && !l->in_memory) {
        end = QN_MAX(end, l->busy);
        if (c->buffer.drained[l->writer] == l->busy) {
            qn_store_buffer_extend(&c->buffer, l->writer, end);
        }
    }
    if (l->streamer != QN_SIM_NO_NODE) {
        set_flight(&c->unit[c->unit_of[l->streamer]], end);
    }
    QN_DASSERT(end >= l->busy);
    l->busy = end;
    l->changed = end;
    l->served = end;
}

/* Computing; only of units with several nodes. */
static qn_ps_t issue(struct qn_prices *p, uint32_t node, qn_ps_t now,
                     qn_ps_t ps)
{
    struct qn_coherent *c = (struct qn_coherent *)(void *)p;
    struct qn_coherent_unit *u = &c->unit[c->unit_of[node]];
    u->free = QN_MAX(now, u->free) + ps;
    return u->free;
}

static qn_ps_t drained(struct qn_prices *p, uint32_t node, qn_ps_t now)
{
    const struct qn_coherent *c = (const struct qn_coherent *)(const void *)p;
    return qn_store_buffer_drained(&c->buffer, node, now);
}

static qn_ps_t fence_end(struct qn_prices *p, uint32_t node, qn_ps_t now)
{
    const struct qn_coherent *c = (const struct qn_coherent *)(const void *)p;
    qn_ps_t past = c->unit[c->unit_of[node]].past;
    return QN_MAX(drained(p, node, now), past) + p->fence;
}

static void begin(struct qn_prices *p)
{
    struct qn_coherent *c = (struct qn_coherent *)(void *)p;
    qn_store_buffer_clear(&c->buffer, p->nodes);
    if (c->bulk != NULL) {
        qn_bulk_reset(c->bulk);
    }
    memset(c->link_free, 0,
           (size_t)c->sockets * c->sockets * sizeof *c->link_free);
    for (uint32_t u = 0; u < c->units; u++) {
        uint32_t node = c->unit[u].node;
        c->unit[u] = (struct qn_coherent_unit){.node = node};
    }
}

void qn_coherent_destroy(struct qn_prices *p)
{
    struct qn_coherent *c = (struct qn_coherent *)(void *)p;
    free(c->unit_of);
    free(c->socket_of);
    free(c->unit);
    free(c->link_free);
    qn_store_buffer_fini(&c->buffer);
    qn_bulk_destroy(c->bulk);
    free(c->send);
    free(c->receive);
    free(c);
}

static bool awaits(const struct qn_prices *p, const void *line,
                   const struct qn_line_access *a)
{
    const struct qn_coherent *c = (const struct qn_coherent *)(const void *)p;
    const struct line *l = line;
    if (l->busy <= a->issued || a->past_cache) {
        return false;
    }
    switch (a->kind) {
    case QN_SIM_RMW:
        return true;
    case QN_SIM_STORE:
    case QN_SIM_COPY_OUT:
    case QN_SIM_TOUCH_OUT:
        return c->buffer.entries == 0; /* else its node goes on */
    default:
        return !is_buffered(c, l, a) && !holds_still(c, l, a);
    }
}

/* It is a thread of the core that has the line, and asks its own cache. */
static bool overtakes(const struct qn_prices *p, const void *line,
                      uint32_t node)
{
    const struct qn_coherent *c = (const struct qn_coherent *)(const void *)p;
    const struct line *l = line;
    return l->writer != QN_SIM_NO_NODE &&
           c->unit_of[l->writer] == c->unit_of[node];
}

static qn_ps_t bulk(struct qn_prices *p, const struct qn_bulk_request *copy,
                    qn_ps_t now)
{
    struct qn_coherent *c = (struct qn_coherent *)(void *)p;
    return qn_bulk_piece(c->bulk, copy, now);
}

void qn_coherent_functions(struct qn_coherent *c)
{
    bool buffers = c->buffer.entries > 0;
    struct qn_prices *p = &c->prices;
    p->combines = true;
    p->begin = begin;
    p->line_init = init_line;
    p->access = price_access;
    p->busy = busy;
    p->extend = extend;
    p->issue = c->shared ? issue : NULL;
    p->awaits = c->shared ? awaits : NULL;
    p->overtakes = overtakes;
    p->drained = buffers ? drained : NULL;
    p->fence_end = fence_end;
    p->bulk = c->bulk != NULL ? bulk : NULL;
    p->destroy = qn_coherent_destroy;
    p->line_bytes = sizeof(struct line) + 2 * c->words * sizeof(uint64_t);
}
