/*
 * What an access costs, and what it sees.
 *
 * One event per access. An access is priced at the moment it is issued, in the
 * global order of issue; its line then says until when it is in use, and a
 * later access cannot start before that. So the state of a line at the start of
 * an access is known when it is issued, and a store can be written to memory at
 * once: no other node can look at that line before the store's end, but one
 * that had a copy, which sees what the line held before (`keep`).
 *
 * A run of stores. Consecutive stores and copies of a node to one line are one
 * transfer: while the first is priced, the node's next access is not known yet,
 * but nothing else happens before it is: the code between two accesses takes no
 * time. So a store that continues the run is done at once, without a look at
 * the queue, and those that watch the line are woken at the end of the run,
 * when the node's next access is another one.
 */
#include <string.h>

#include "core/sim/timed/timed_internal.h"

#define SPINS          1000u /* looks without a pause */
#define OVERTAKEN_MOST 16u   /* else two siblings could keep a line for ever */

static bool is_store(enum qn_sim_kind kind)
{
    return kind == QN_SIM_STORE || kind == QN_SIM_COPY_OUT ||
           kind == QN_SIM_TOUCH_OUT;
}

static void count_access(struct qn_actor *a, const struct qn_price *p,
                         qn_ps_t price)
{
    struct qn_timed_node *out = a->out;
    switch (p->transfer) {
    case QN_TRANSFER_READ:
        out->reads++;
        out->read += price;
        break;
    case QN_TRANSFER_WRITE:
        out->writes++;
        out->write += price;
        break;
    case QN_TRANSFER_HIT:
    case QN_TRANSFER_COLD:
        out->hit += price;
        break;
    }
}

/* A store changes what the line holds, for other nodes from `visible` on. */
static void change(struct qn_line *line, qn_ps_t visible)
{
    line->version++;
    line->changed = visible;
}

/* What the line holds until the end of a store. The whole line lies in the page
 * of the bytes that are stored, but not in their object. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize_address))
#endif
static void
keep(struct qn_line *line)
{
    const volatile uint64_t *from =
        (const volatile uint64_t *)(line->base * QN_CACHELINE);
    uint64_t *to = (uint64_t *)(void *)line->before;
    for (uint32_t i = 0; i < QN_CACHELINE / sizeof *to; i++) {
        to[i] = from[i];
    }
}

/* The run of stores goes on: one more to the same line. */
static void continue_run(struct qn_actor *a, enum qn_sim_kind kind)
{
    a->out->accesses++;
    a->out->clock += qn_timed.prices->hit;
    a->out->hit += qn_timed.prices->hit;
    qn_timed.prices->extend(qn_timed.prices, a->run->state, a->out->clock);
    a->run->changed = qn_timed.prices->busy(a->run->state);
    qn_timed_hash((uint64_t)kind << 32 | a->run->number);
}

/* ---- order at a line in use ---- */

/* The node would be served first, whenever it came. */
static bool goes_first(const struct qn_line *line, uint32_t node)
{
    return qn_timed.actor[node].overtaken >= OVERTAKEN_MOST ||
           qn_timed.prices->overtakes(qn_timed.prices, line->state, node);
}

/* Two that wait for a line, or one that has just come. */
static bool is_before(const struct qn_line *line, uint32_t u, uint32_t v)
{
    bool first = goes_first(line, u);
    return first == goes_first(line, v)
               ? qn_timed.actor[u].ticket < qn_timed.actor[v].ticket
               : first;
}

/* Another node waits that is due and goes before this one. */
static bool has_to_let(const struct qn_line *line, qn_ps_t now)
{
    bool lets = false;
    for (uint32_t v = 0; v < qn_timed.prices->nodes && !lets; v++) {
        lets = v != qn_sim.self && qn_timed.actor[v].awaited == line &&
               qn_timed.queue.time[v] <= now && is_before(line, v, qn_sim.self);
    }
    return lets;
}

static void count_overtaken(const struct qn_line *line, uint64_t ticket)
{
    for (uint32_t v = 0; v < qn_timed.prices->nodes; v++) {
        struct qn_actor *b = &qn_timed.actor[v];
        b->overtaken += b->awaited == line && b->ticket < ticket;
    }
}

/* Wait until the line is free and no other goes first. The access is issued
 * then. A node that lets another go looks again right after that. */
static void await_line(struct qn_actor *a, const struct qn_line *line,
                       struct qn_line_access *x)
{
    const struct qn_prices *p = qn_timed.prices;
    if (p->awaits == NULL ||
        (p->busy(line->state) > x->issued && !p->awaits(p, line->state, x))) {
        return;
    }
    a->ticket = ++qn_timed.tickets;
    a->overtaken = 0;
    a->awaited = line;
    while (p->awaits(p, line->state, x) || has_to_let(line, x->issued)) {
        qn_ps_t then = QN_MAX(p->busy(line->state), x->issued + 1);
        x->issued = qn_timed_wait_until(then);
        a->out->clock += x->issued - then; /* it was stopped so long */
    }
    a->awaited = NULL;
    count_overtaken(line, a->ticket);
}

/* A node that only lets time pass between two pauses does not look. */
static bool is_polled(const struct qn_line *line)
{
    const struct qn_line_watch *w = line->watchers;
    while (w != NULL && !qn_timed.actor[w->node].polls) {
        w = w->next;
    }
    return w != NULL;
}

static void access_line(struct qn_actor *a, const struct qn_sim_access *x,
                        uintptr_t base, bool streamed, bool may_be_stale)
{
    const enum qn_sim_kind kind = x->kind;
    struct qn_line *line = qn_lines_at(qn_timed.lines, base);
    struct qn_timed_node *out = a->out;
    if (line == NULL) {
        qn_timed_fail("more lines than the table may hold");
    }
    if (is_store(kind) && !x->streaming && a->run == line &&
        qn_timed.prices->combines) {
        continue_run(a, kind);
        return;
    }
    qn_timed_take_turn(a);
    struct qn_line_access access = {.node = qn_sim.self,
                                    .kind = kind,
                                    .issued = out->clock,
                                    .streamed = streamed,
                                    .past_cache = x->streaming,
                                    .may_be_stale = may_be_stale,
                                    .polled = is_polled(line),
                                    .polls = kind == QN_SIM_LOAD && a->polls};
    await_line(a, line, &access);
    struct qn_price p =
        qn_timed.prices->access(qn_timed.prices, line->state, &access);
    qn_ps_t price = qn_timed_jittered(a, p.end - p.start);
    if (p.transfer != QN_TRANSFER_HIT &&
        qn_timed_within(out->clock, a->far_from, a->far_until)) {
        price = qn_timed_times(price, a->far);
    }
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_ACCESS,
                                          .from = out->clock,
                                          .until = p.start + price,
                                          .peer = p.peer,
                                          .access = kind,
                                          .transfer = p.transfer,
                                          .line = line->number});
    qn_timed_hash(out->clock);
    qn_timed_hash((uint64_t)qn_sim.self << 40 | (uint64_t)kind << 32 |
                  line->number);
    out->waited += p.start - out->clock;
    out->clock = p.start + price;
    count_access(a, &p, price);
    if (is_store(kind) || kind == QN_SIM_RMW) {
        p.visible += out->clock - p.end;
        if (out->clock != p.end) {
            qn_timed.prices->extend(qn_timed.prices, line->state, p.visible);
        }
        if (p.goes_on) {
            line->changed = p.visible;
        } else {
            keep(line);
            change(line, p.visible);
        }
        a->run = line;
        qn_timed_forget_watches(a);
        a->spins = 0;
    } else {
        a->looks++;
        qn_timed_watch(a, line, line->version - p.stale);
        qn_timed.stale = p.stale ? line : NULL;
    }
}

static void fence_here(struct qn_actor *a)
{
    struct qn_prices *p = qn_timed.prices;
    qn_ps_t from = a->out->clock;
    qn_timed_close_run(a);
    a->out->clock = p->fence_end != NULL ? p->fence_end(p, qn_sim.self, from)
                                         : from + p->fence;
    a->out->fenced += a->out->clock - from;
}

static void drain_here(struct qn_actor *a)
{
    struct qn_prices *p = qn_timed.prices;
    qn_ps_t from = a->out->clock;
    qn_timed_close_run(a);
    a->out->clock = p->drained(p, qn_sim.self, from);
    a->out->fenced += a->out->clock - from;
}

static bool releases(const struct qn_sim_access *x)
{
    return (x->kind == QN_SIM_STORE || x->kind == QN_SIM_RMW ||
            x->kind == QN_SIM_FENCE) &&
           (x->order == memory_order_release ||
            x->order == memory_order_acq_rel ||
            x->order == memory_order_seq_cst);
}

static void system_call(struct qn_actor *a, qn_ps_t price)
{
    if (qn_timed.prices->weak) {
        fence_here(a);
    } else if (qn_timed.prices->drained != NULL) {
        drain_here(a);
    }
    qn_timed_take_turn(a);
    qn_timed_spend(price, &a->out->library);
    qn_timed_forget_watches(a);
}

/* A node that looks for ever without a pause would be all that runs. */
static void pause_spinner(struct qn_actor *a)
{
    if (a->spins >= SPINS) {
        a->out->spun = true;
        qn_timed_pause();
        a->spins = a->changed ? 0 : SPINS; /* nothing yet: pause again */
    }
}

void qn_timed_point(const struct qn_sim_access *x)
{
    struct qn_actor *a = qn_timed_self();
    bool waits = qn_timed.prices->weak && releases(x); /* for its own stores */
    if (a->in_queue) {
        return; /* queue.c charges all of it at once */
    }
    switch (x->kind) {
    case QN_SIM_FENCE:
        if (waits || x->order == memory_order_seq_cst) {
            fence_here(a);
        }
        return;
    case QN_SIM_PARK:
        system_call(a, qn_timed.prices->park);
        return;
    case QN_SIM_WAKE:
        system_call(a, qn_timed.prices->ring);
        return;
    default:
        break;
    }
    pause_spinner(a);
    if (waits) {
        fence_here(a);
    }
    uintptr_t first = (uintptr_t)x->at / QN_CACHELINE;
    uintptr_t last = ((uintptr_t)x->at + x->bytes - 1) / QN_CACHELINE;
    bool may_be_stale =
        first == last && (x->kind == QN_SIM_LOAD || x->kind == QN_SIM_COPY_IN);
    qn_timed.stale = NULL;
    for (uintptr_t base = first; base <= last; base++) {
        access_line(a, x, base, base != first, may_be_stale);
    }
    if (x->kind == QN_SIM_RMW || x->streaming) {
        qn_timed_close_run(a); /* what follows is a transfer of its own */
    } else if (x->kind == QN_SIM_STORE && x->order == memory_order_seq_cst) {
        fence_here(a);
    }
}

/* ---- memory: at once, and every value counts ---- */

static void hash_bytes(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    for (; n > 0;) {
        uint64_t word = 0;
        size_t piece = QN_MIN(n, sizeof word);
        memcpy(&word, at, piece);
        qn_timed_hash(word);
        at += piece;
        n -= piece;
    }
}

/* Where the running node finds these bytes. */
static const void *seen_at(const volatile void *from)
{
    const struct qn_line *line = qn_timed.stale;
    qn_timed.stale = NULL;
    return line == NULL ? (const void *)from
                        : line->before + (uintptr_t)from % QN_CACHELINE;
}

static void load(void *to, const volatile void *from, size_t n,
                 memory_order order)
{
    qn_sim_direct.load(to, seen_at(from), n, order);
    hash_bytes(to, n);
}

static void copy_in(void *to, const void *from, size_t n)
{
    qn_sim_direct.copy_in(to, seen_at(from), n);
    hash_bytes(to, n);
}

static void copy_out(void *at, const void *bytes, size_t n)
{
    qn_sim_direct.copy_out(at, bytes, n);
    hash_bytes(bytes, n);
}

static void store(volatile void *at, const void *bytes, size_t n,
                  memory_order order)
{
    qn_sim_direct.store(at, bytes, n, order);
    hash_bytes(bytes, n);
}

static void stream(volatile void *at, const void *bytes, size_t n)
{
    store(at, bytes, n, memory_order_relaxed);
}

struct qn_sim_memory qn_timed_memory(void)
{
    struct qn_sim_memory m = qn_sim_direct;
    m.load = load;
    m.copy_in = copy_in;
    m.copy_checked = copy_in;
    m.copy_out = copy_out;
    m.store = store;
    m.stream = stream;
    m.latest = load;
    m.replace = store;
    return m;
}
