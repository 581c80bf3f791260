/*
 * Scheduling by time.
 *
 * One event per access. An access is priced at the moment it is issued, in the
 * global order of issue; its line then says until when it is in use, and a
 * later access cannot start before that. So the state of a line at the start of
 * an access is known when it is issued, and a store can be written to memory at
 * once: no other node can look at that line before the store's end.
 *
 * The running node goes on without a switch as long as it is the earliest; else
 * it enters the queue at its clock and the earliest node runs.
 *
 * A run of stores. Consecutive stores and copies of a node to one line are one
 * transfer: while the first is priced, the node's next access is not known yet,
 * but nothing else happens before it is: the code between two accesses takes no
 * time. So a store that continues the run is done at once, without a look at
 * the queue, and those that watch the line are woken at the end of the run,
 * when the node's next access is another one.
 *
 * A watch is a line and the version of it that the node has seen. The set is
 * kept between pauses that found nothing, so a poller that looks at its lanes
 * in turn comes to watch all of them.
 */
#include "core/sim/timed/timed.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/lines.h"
#include "core/sim/timed/time_queue.h"

#define ORIGIN_NS     QN_S /* no clock reads 0 */
#define UNTIL_NS      (3600 * QN_S)
#define WATCHES       512u /* of a node; the oldest are forgotten */
#define HORIZON_MOST  (1000 * QN_PS_PER_NS)
#define HORIZON_TIMED (100 * QN_PS_PER_NS) /* of one that reads the clock */
#define LOOKS_FIRST   4u
#define SPINS         1000u               /* looks without a pause */
#define SLICE         (50 * QN_PS_PER_NS) /* of work on a core that is shared */

struct qn_line_watch {
    struct qn_line *line;
    uint32_t node;
    uint32_t seen;                      /* version */
    struct qn_line_watch *next, **from; /* in line->watchers, while it pauses */
};

struct actor {
    struct qn_timed_node *out;
    struct qn_line *run; /* of a run of stores; NULL */
    qn_ps_t horizon;     /* of the next pause */
    qn_ps_t looks_until; /* announced; QN_PS_NEVER */
    qn_ps_t stop_from, stop_until;
    qn_ps_t kill_from;
    uint64_t kill_access; /* 0: none */
    double slow, far;     /* factors */
    qn_ps_t slow_from, slow_until, far_from, far_until;
    uint32_t looks;              /* since the last pause */
    uint32_t spins;              /* looks at nothing new, without a pause */
    bool changed;                /* a line changed while it paused */
    bool read_clock;             /* since the last pause */
    qn_ps_t expected;            /* its next pause ends then; 0: nothing */
    bool paused, blocked;        /* in a pause, in qn_timed_wait */
    bool signalled;              /* that is why it continues */
    uint32_t watches;            /* of watch */
    uint32_t next;               /* watch to be replaced when it is full */
    struct qn_line_watch *watch; /* [WATCHES] */
};

static struct timed_run {
    const struct qn_timed_opts *o;
    struct qn_timed_result *out;
    struct qn_prices *prices;
    struct qn_lines *lines;
    struct qn_time_queue queue;
    struct actor *actor;         /* [nodes] */
    const struct qn_line *stale; /* the load that is due sees its `before` */
    qn_ps_t until;
} timed;

static struct actor *self(void)
{
    return &timed.actor[qn_sim.self];
}

static void tell(struct qn_timed_event e)
{
    if (timed.o->event != NULL) {
        e.node = qn_sim.self;
        timed.o->event(
            timed.o->event_ctx != NULL ? timed.o->event_ctx : timed.o->ctx, &e);
    }
}

static void hash(uint64_t x)
{
    timed.out->hash =
        qn_time_queue_mix(timed.out->hash ^ x) + UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- prices ---- */

static qn_ps_t times(qn_ps_t price, double factor)
{
    return factor == 1 ? price : (qn_ps_t)((double)price * factor);
}

static bool within(qn_ps_t now, qn_ps_t from, qn_ps_t until)
{
    return now >= from && now < until;
}

static qn_ps_t jittered(const struct actor *a, qn_ps_t price)
{
    if (timed.o->jitter <= 0) {
        return price;
    }
    uint64_t draw =
        qn_time_queue_mix(timed.o->seed * UINT64_C(0xd6e8feb86659fd93) ^
                          (uint64_t)qn_sim.self << 40 ^ a->out->accesses);
    double unit = (double)(draw >> 11) * 0x1p-53;
    return (qn_ps_t)((double)price * (1 + timed.o->jitter * unit));
}

/* ---- the next to run ---- */

static void forget_watches(struct actor *a)
{
    a->watches = 0;
    a->next = 0;
}

static void unlink_watches(struct actor *a)
{
    for (uint32_t i = 0; i < a->watches; i++) {
        struct qn_line_watch *w = &a->watch[i];
        if (w->from != NULL) {
            *w->from = w->next;
            if (w->next != NULL) {
                w->next->from = w->from;
            }
            w->from = NULL;
        }
    }
}

/* The line has another content from line->changed on. */
static void wake_watchers(struct qn_line *line)
{
    for (struct qn_line_watch *w = line->watchers; w != NULL; w = w->next) {
        struct actor *a = &timed.actor[w->node];
        qn_ps_t now = timed.queue.time[w->node];
        if (line->changed < now) {
            now = QN_MAX(line->changed, a->out->clock);
            qn_time_queue_set(&timed.queue, w->node, now);
        }
        a->changed |= line->changed <= now;
    }
}

static void close_run(struct actor *a)
{
    struct qn_line *line = a->run;
    if (line != NULL) {
        a->run = NULL;
        wake_watchers(line);
    }
}

/* The node at the head of the queue is due. @return false: it has to wait. */
static bool begins(uint32_t node, qn_ps_t time)
{
    struct qn_sim_node *n = &qn_sim.node[node];
    struct actor *a = &timed.actor[node];
    if (n->state == QN_SIM_SLEEPS) {
        n->state = QN_SIM_READY;
        n->timed_out = true;
    }
    if (within(time, a->stop_from, a->stop_until)) {
        qn_time_queue_set(&timed.queue, node, a->stop_until);
        return false;
    }
    return true;
}

/* Run the earliest node; returns when this one is it. */
static void leave(void)
{
    uint32_t next;
    do {
        next = qn_time_queue_pop(&timed.queue);
        if (next == QN_SIM_NO_NODE) {
            qn_sim_end_run();
        }
        if (timed.queue.time[next] > timed.until) {
            timed.out->cut_off = true;
            qn_sim_end_run();
        }
    } while (!begins(next, timed.queue.time[next]));
    if (next != qn_sim.self) {
        qn_sim_switch(next);
    }
}

static void account_stop(struct actor *a, qn_ps_t from, qn_ps_t until)
{
    tell((struct qn_timed_event){.kind = QN_TIMED_STOPPED,
                                 .from = from,
                                 .until = until,
                                 .peer = QN_SIM_NO_NODE});
    a->out->stopped += until - from;
}

/* Wait in the queue until `time`, or until a change comes earlier. @return
 * when: the node's clock from now on. */
static qn_ps_t wait_until(qn_ps_t time)
{
    struct actor *a = self();
    if (time < a->stop_from && time <= timed.until &&
        qn_time_queue_first(&timed.queue, qn_sim.self, time)) {
        return time;
    }
    qn_time_queue_set(&timed.queue, qn_sim.self, time);
    leave();
    qn_ps_t now = timed.queue.time[qn_sim.self];
    if (now == a->stop_until && within(time, a->stop_from, a->stop_until)) {
        account_stop(a, time, now);
    }
    return now;
}

/* Compute, in slices, so that nodes which share a core's issue have it in
 * turn. */
static void share_issue(struct actor *a, qn_ps_t ps)
{
    struct qn_prices *p = timed.prices;
    while (ps > 0) {
        qn_ps_t slice = QN_MIN(ps, SLICE);
        close_run(a);
        a->out->clock = wait_until(a->out->clock);
        qn_ps_t end = p->issue(p, qn_sim.self, a->out->clock, slice);
        a->out->waited += end - a->out->clock - slice;
        a->out->clock = end;
        ps -= slice;
    }
}

/* Time that no other node sees, but those on the same core. */
static void spend(qn_ps_t ps, qn_ps_t *account)
{
    struct actor *a = self();
    if (within(a->out->clock, a->slow_from, a->slow_until)) {
        ps = times(ps, a->slow);
    }
    *account += ps;
    if (timed.prices->issue != NULL) {
        share_issue(a, ps);
    } else {
        a->out->clock += ps;
    }
}

/* Outside of any node: what the caller does to memory then acts at once and
 * costs nothing. */
static void tell_ended(uint32_t node, bool killed)
{
    if (timed.o->ended != NULL) {
        qn_sim.self = QN_SIM_NO_NODE;
        timed.o->ended(timed.o->ctx, node, killed);
        qn_sim.self = node;
    }
}

static void die(void)
{
    uint32_t node = qn_sim.self;
    unlink_watches(self());
    qn_sim.node[node].state = QN_SIM_GONE;
    tell((struct qn_timed_event){.kind = QN_TIMED_KILLED,
                                 .from = self()->out->clock,
                                 .until = self()->out->clock,
                                 .peer = QN_SIM_NO_NODE});
    tell_ended(node, true);
    leave();
    abort(); /* it is in the queue no more */
}

/* In front of each access: it is this node's turn. */
static void take_turn(struct actor *a)
{
    close_run(a);
    a->out->clock = wait_until(a->out->clock);
    a->out->accesses++;
    if (a->out->accesses == a->kill_access || a->out->clock >= a->kill_from) {
        die();
    }
}

/* ---- watches ---- */

static void watch(struct actor *a, struct qn_line *line, uint32_t version)
{
    for (uint32_t i = 0; i < a->watches; i++) {
        if (a->watch[i].line == line) {
            a->spins = a->watch[i].seen == version ? a->spins + 1 : 0;
            a->watch[i].seen = version;
            return;
        }
    }
    a->spins = 0;
    struct qn_line_watch *w = &a->watch[a->next];
    a->next = (a->next + 1) % WATCHES;
    a->watches = QN_MAX(a->watches, a->next == 0 ? WATCHES : a->next);
    *w = (struct qn_line_watch){
        .line = line, .node = qn_sim.self, .seen = version};
}

/* When a line that the node has seen changes, as far as known. */
static qn_ps_t first_change(const struct actor *a)
{
    qn_ps_t first = QN_PS_NEVER;
    for (uint32_t i = 0; i < a->watches; i++) {
        const struct qn_line_watch *w = &a->watch[i];
        if (w->line->version != w->seen) {
            first = QN_MIN(first, w->line->changed);
        }
    }
    return first;
}

static void link_watches(struct actor *a)
{
    for (uint32_t i = 0; i < a->watches; i++) {
        struct qn_line_watch *w = &a->watch[i];
        w->next = w->line->watchers;
        w->from = &w->line->watchers;
        if (w->next != NULL) {
            w->next->from = &w->next;
        }
        w->line->watchers = w;
    }
}

/* Sleep until a watched line changes, at most until `limit`. */
static void pause_until(struct actor *a, qn_ps_t limit)
{
    qn_ps_t from = a->out->clock;
    qn_ps_t change = QN_MAX(first_change(a), from);
    if (a->expected > from) {
        change = QN_MIN(change, a->expected);
    }
    a->expected = 0;
    a->changed = change <= limit;
    link_watches(a);
    a->paused = true;
    a->out->clock = wait_until(QN_MIN(change, limit));
    a->paused = false;
    unlink_watches(a);
    a->out->paused += a->out->clock - from;
    tell((struct qn_timed_event){.kind = QN_TIMED_PAUSED,
                                 .from = from,
                                 .until = a->out->clock,
                                 .peer = QN_SIM_NO_NODE});
}

static void pause_node(void)
{
    struct actor *a = self();
    close_run(a);
    qn_ps_t most = a->read_clock ? HORIZON_TIMED : HORIZON_MOST;
    qn_ps_t first = LOOKS_FIRST * QN_MAX(a->looks, 1u) * timed.prices->hit;
    a->horizon = QN_MIN(a->horizon == 0 ? first : 2 * a->horizon, most);
    qn_ps_t limit = a->out->clock + QN_MAX(a->horizon, 1u);
    if (a->looks_until > a->out->clock) {
        limit = QN_MIN(limit, a->looks_until);
    }
    pause_until(a, limit);
    if (a->changed) {
        forget_watches(a);
        a->horizon = 0;
    }
    a->looks = 0;
    a->spins = 0;
    a->looks_until = 0;
    a->read_clock = false;
}

/* ---- accesses ---- */

static bool is_store(enum qn_sim_kind kind)
{
    return kind == QN_SIM_STORE || kind == QN_SIM_COPY_OUT ||
           kind == QN_SIM_TOUCH_OUT;
}

static void count_access(struct actor *a, const struct qn_price *p,
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
static void continue_run(struct actor *a, enum qn_sim_kind kind)
{
    a->out->accesses++;
    a->out->clock += timed.prices->hit;
    a->out->hit += timed.prices->hit;
    timed.prices->extend(a->run->state, a->out->clock);
    a->run->changed = a->out->clock;
    hash((uint64_t)kind << 32 | a->run->number);
}

static void access_line(struct actor *a, enum qn_sim_kind kind, uintptr_t base,
                        bool streamed, bool may_be_stale)
{
    struct qn_line *line = qn_lines_at(timed.lines, base);
    struct qn_timed_node *out = a->out;
    if (is_store(kind) && a->run == line && timed.prices->combines) {
        continue_run(a, kind);
        return;
    }
    take_turn(a);
    struct qn_price p = timed.prices->access(
        timed.prices, line->state,
        &(struct qn_line_access){.node = qn_sim.self,
                                 .kind = kind,
                                 .issued = out->clock,
                                 .streamed = streamed,
                                 .may_be_stale = may_be_stale});
    qn_ps_t price = jittered(a, p.end - p.start);
    if (p.transfer != QN_TRANSFER_HIT &&
        within(out->clock, a->far_from, a->far_until)) {
        price = times(price, a->far);
    }
    tell((struct qn_timed_event){.kind = QN_TIMED_ACCESS,
                                 .from = out->clock,
                                 .until = p.start + price,
                                 .peer = p.peer,
                                 .access = kind,
                                 .transfer = p.transfer,
                                 .line = line->number});
    hash(out->clock);
    hash((uint64_t)qn_sim.self << 40 | (uint64_t)kind << 32 | line->number);
    out->waited += p.start - out->clock;
    out->clock = p.start + price;
    count_access(a, &p, price);
    if (is_store(kind) || kind == QN_SIM_RMW) {
        p.visible += out->clock - p.end;
        if (out->clock != p.end) {
            timed.prices->extend(line->state, p.visible);
        }
        keep(line);
        change(line, p.visible);
        a->run = line;
        forget_watches(a);
        a->spins = 0;
    } else {
        a->looks++;
        watch(a, line, line->version - p.stale);
        timed.stale = p.stale ? line : NULL;
    }
}

static void fence_here(struct actor *a)
{
    struct qn_prices *p = timed.prices;
    qn_ps_t from = a->out->clock;
    close_run(a);
    a->out->clock = p->fence_end != NULL ? p->fence_end(p, qn_sim.self, from)
                                         : from + p->fence;
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

static void system_call(struct actor *a, qn_ps_t price)
{
    if (timed.prices->weak) {
        fence_here(a);
    }
    take_turn(a);
    spend(price, &a->out->library);
    forget_watches(a);
}

/* A node that looks for ever without a pause would be all that runs. */
static void pause_spinner(struct actor *a)
{
    if (a->spins >= SPINS) {
        a->out->spun = true;
        pause_node();
        a->spins = a->changed ? 0 : SPINS; /* nothing yet: pause again */
    }
}

static void point(const struct qn_sim_access *x)
{
    struct actor *a = self();
    bool waits = timed.prices->weak && releases(x); /* for its own stores */
    switch (x->kind) {
    case QN_SIM_FENCE:
        if (waits || x->order == memory_order_seq_cst) {
            fence_here(a);
        }
        return;
    case QN_SIM_PARK:
        system_call(a, timed.prices->park);
        return;
    case QN_SIM_WAKE:
        system_call(a, timed.prices->ring);
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
    timed.stale = NULL;
    for (uintptr_t base = first; base <= last; base++) {
        access_line(a, x->kind, base, base != first, may_be_stale);
    }
    if (x->kind == QN_SIM_RMW) {
        close_run(a); /* what follows is a transfer of its own */
    } else if (x->kind == QN_SIM_STORE && x->order == memory_order_seq_cst) {
        fence_here(a);
    }
}

/* ---- sleep, clock, library ---- */

/* A sleeper wakes at its deadline, or to be killed. */
static qn_ps_t sleeps_until(const struct actor *a, const struct qn_sim_node *n)
{
    qn_ps_t deadline = n->deadline == QN_TIME_NEVER ? QN_PS_NEVER
                       : n->deadline > ORIGIN_NS
                           ? (n->deadline - ORIGIN_NS) * QN_PS_PER_NS
                           : 0;
    return QN_MIN(deadline, a->kill_from);
}

static void leave_running(void)
{
    struct actor *a = self();
    struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    qn_ps_t from = a->out->clock;
    close_run(a);
    if (n->state == QN_SIM_FINISHED) {
        a->out->state = n->state;
        tell((struct qn_timed_event){.kind = QN_TIMED_ENDED,
                                     .from = from,
                                     .until = from,
                                     .peer = QN_SIM_NO_NODE});
        tell_ended(qn_sim.self, false);
    } else if (n->state == QN_SIM_SLEEPS && sleeps_until(a, n) != QN_PS_NEVER) {
        qn_time_queue_set(&timed.queue, qn_sim.self,
                          QN_MAX(sleeps_until(a, n), from));
    }
    leave();
    a->out->clock = timed.queue.time[qn_sim.self];
    if (a->out->clock >= a->kill_from) {
        die();
    }
    a->out->parked += a->out->clock - from;
    tell((struct qn_timed_event){.kind = QN_TIMED_PARKED,
                                 .from = from,
                                 .until = a->out->clock,
                                 .peer = QN_SIM_NO_NODE});
}

static void woken(uint32_t node)
{
    qn_ps_t at = self()->out->clock + timed.prices->wake;
    tell((struct qn_timed_event){.kind = QN_TIMED_RANG,
                                 .from = self()->out->clock,
                                 .until = at,
                                 .peer = node});
    qn_time_queue_set(&timed.queue, node,
                      QN_MAX(at, timed.actor[node].out->clock));
}

static qn_time_t now(void)
{
    struct actor *a = self();
    close_run(a);
    spend(timed.prices->clock, &a->out->library);
    a->read_clock = true;
    return ORIGIN_NS + a->out->clock / QN_PS_PER_NS;
}

static void work_ps(qn_ps_t ps)
{
    struct actor *a = self();
    qn_ps_t from = a->out->clock;
    close_run(a);
    spend(ps, &a->out->worked);
    tell((struct qn_timed_event){.kind = QN_TIMED_WORK,
                                 .from = from,
                                 .until = a->out->clock,
                                 .peer = QN_SIM_NO_NODE});
}

static void work(uint64_t ns)
{
    work_ps(ns * QN_PS_PER_NS);
}

static void mark(enum qn_mark m)
{
    struct actor *a = self();
    qn_ps_t from = a->out->clock;
    if (timed.prices->mark[m] > 0) {
        close_run(a);
        spend(timed.prices->mark[m], &a->out->library);
    }
    tell((struct qn_timed_event){.kind = QN_TIMED_MARK,
                                 .from = from,
                                 .until = a->out->clock,
                                 .peer = QN_SIM_NO_NODE,
                                 .mark = m});
}

static void looks_until(qn_time_t deadline)
{
    self()->looks_until =
        deadline > ORIGIN_NS ? (deadline - ORIGIN_NS) * QN_PS_PER_NS : 0;
}

static const struct qn_sim_scheduler scheduler = {
    .point = point,
    .leave = leave_running,
    .pause = pause_node,
    .woken = woken,
    .now = now,
    .work = work,
    .mark = mark,
    .looks_until = looks_until,
};

/* ---- devices ---- */

/* To where others may be in its way, and wait for its turn there. */
static void travel(struct actor *a, struct qn_device_access *x)
{
    qn_ps_t way = timed.prices->device_way != NULL
                      ? timed.prices->device_way(timed.prices, x)
                      : 0;
    if (way > 0) {
        a->out->device += way;
        a->out->clock = wait_until(a->out->clock + way);
        x->issued = a->out->clock;
    }
}

struct qn_price qn_timed_device(const struct qn_device_access *x)
{
    struct actor *a = self();
    struct qn_timed_node *out = a->out;
    struct qn_device_access access = *x;
    take_turn(a);
    access.node = qn_sim.self;
    access.issued = out->clock;
    travel(a, &access);
    struct qn_price p = timed.prices->device(timed.prices, &access);
    qn_ps_t price = jittered(a, p.end - p.start);
    if (within(out->clock, a->far_from, a->far_until)) {
        price = times(price, a->far);
    }
    hash(out->clock);
    hash((uint64_t)qn_sim.self << 40 | (uint64_t)x->kind << 32 | x->peer);
    out->waited += p.start - out->clock;
    out->device += price;
    p.visible += p.start + price - p.end;
    p.end = p.start + price;
    tell((struct qn_timed_event){.kind = QN_TIMED_DEVICE,
                                 .from = out->clock,
                                 .until = p.end,
                                 .peer = x->peer,
                                 .device = x->kind});
    out->clock = p.end;
    return p;
}

void qn_timed_turn(void)
{
    struct actor *a = self();
    close_run(a);
    a->out->clock = wait_until(a->out->clock);
}

bool qn_timed_wait(qn_ps_t until)
{
    struct actor *a = self();
    struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    qn_ps_t from = a->out->clock;
    close_run(a);
    n->state = QN_SIM_SLEEPS;
    n->word = NULL;
    n->fd = -1; /* no ring ends it */
    a->blocked = true;
    a->signalled = false;
    if (until != QN_PS_NEVER) {
        qn_time_queue_set(&timed.queue, qn_sim.self, QN_MAX(until, from));
    }
    leave();
    a->blocked = false;
    a->out->clock = timed.queue.time[qn_sim.self];
    a->out->blocked += a->out->clock - from;
    tell((struct qn_timed_event){.kind = QN_TIMED_BLOCKED,
                                 .from = from,
                                 .until = a->out->clock,
                                 .peer = QN_SIM_NO_NODE});
    return a->signalled;
}

void qn_timed_signal(uint32_t node, qn_ps_t at)
{
    struct actor *a = &timed.actor[node];
    if (!a->blocked && !a->paused) {
        return;
    }
    bool queued = timed.queue.at[node] != QN_SIM_NO_NODE;
    qn_ps_t then = QN_MAX(at, QN_MAX(self()->out->clock, a->out->clock));
    if (!queued || then <= timed.queue.time[node]) {
        a->signalled = true;
        a->changed = true;
        qn_time_queue_set(&timed.queue, node, then);
    }
}

void qn_timed_expect(qn_ps_t at)
{
    self()->expected = at;
}

void qn_timed_work(qn_ps_t ps)
{
    work_ps(ps);
}

/* ---- memory: at once, and every value counts ---- */

static void hash_bytes(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    for (; n > 0;) {
        uint64_t word = 0;
        size_t piece = QN_MIN(n, sizeof word);
        memcpy(&word, at, piece);
        hash(word);
        at += piece;
        n -= piece;
    }
}

/* Where the running node finds these bytes. */
static const void *seen_at(const volatile void *from)
{
    const struct qn_line *line = timed.stale;
    timed.stale = NULL;
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
}

static void store(volatile void *at, const void *bytes, size_t n,
                  memory_order order)
{
    qn_sim_direct.store(at, bytes, n, order);
    hash_bytes(bytes, n);
}

static struct qn_sim_memory memory(void)
{
    struct qn_sim_memory m = qn_sim_direct;
    m.load = load;
    m.copy_in = copy_in;
    m.store = store;
    m.latest = load;
    m.replace = store;
    return m;
}

/* ---- a run ---- */

static void apply_fault(const struct qn_sim_fault *f)
{
    struct actor *a = &timed.actor[f->node];
    qn_ps_t from = f->from_ns * QN_PS_PER_NS;
    qn_ps_t until = f->until_ns == 0 ? QN_PS_NEVER : f->until_ns * QN_PS_PER_NS;
    switch (f->kind) {
    case QN_SIM_FAULT_KILL:
        a->kill_access = f->access;
        a->kill_from = f->access == 0 ? from : QN_PS_NEVER;
        break;
    case QN_SIM_FAULT_STOP:
        a->stop_from = from;
        a->stop_until = until;
        break;
    case QN_SIM_FAULT_SLOW:
        a->slow = f->factor;
        a->slow_from = from;
        a->slow_until = until;
        break;
    case QN_SIM_FAULT_LINES:
        a->far = f->factor;
        a->far_from = from;
        a->far_until = until;
        break;
    }
}

static bool opts_good(const struct qn_timed_opts *o)
{
    bool good = o->nodes >= 1 && o->nodes <= QN_SIM_NODES_MAX &&
                o->prices != NULL && o->prices->nodes == o->nodes &&
                o->main != NULL && o->jitter >= 0 && o->jitter <= 10;
    for (uint32_t i = 0; i < o->faults && good; i++) {
        const struct qn_sim_fault *f = &o->fault[i];
        bool scales =
            f->kind == QN_SIM_FAULT_SLOW || f->kind == QN_SIM_FAULT_LINES;
        good = f->node < o->nodes && (!scales || f->factor >= 1) &&
               (f->until_ns == 0 || f->until_ns > f->from_ns);
    }
    return good;
}

static void run_node(uint32_t node)
{
    timed.o->main(timed.o->ctx, node);
}

static int make_actors(void)
{
    uint32_t n = timed.o->nodes;
    timed.actor = calloc(n, sizeof *timed.actor);
    timed.out->node = calloc(n, sizeof *timed.out->node);
    if (timed.actor == NULL || timed.out->node == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        timed.actor[i] = (struct actor){
            .out = &timed.out->node[i],
            .stop_from = QN_PS_NEVER,
            .kill_from = QN_PS_NEVER,
            .slow = 1,
            .far = 1,
            .slow_from = QN_PS_NEVER,
            .far_from = QN_PS_NEVER,
            .watch = calloc(WATCHES, sizeof(struct qn_line_watch)),
        };
        if (timed.actor[i].watch == NULL) {
            return QN_ENOMEM;
        }
    }
    return QN_OK;
}

static int prepare(const struct qn_timed_opts *o, struct qn_timed_result *out)
{
    static struct qn_sim_memory hashed;
    hashed = memory();
    memset(&timed, 0, sizeof timed);
    *out = (struct qn_timed_result){.nodes = o->nodes};
    timed.o = o;
    timed.out = out;
    timed.prices = o->prices;
    timed.until = (o->until_ns == 0 ? UNTIL_NS : o->until_ns) * QN_PS_PER_NS;
    int err = make_actors();
    if (err == QN_OK) {
        err = qn_lines_create(&timed.lines, o->prices);
    }
    if (err == QN_OK) {
        err = qn_time_queue_init(&timed.queue, o->nodes, o->seed);
    }
    if (err == QN_OK && o->prices->begin != NULL) {
        o->prices->begin(o->prices);
    }
    if (err == QN_OK) {
        err = qn_sim_reset(o->nodes, &scheduler, &hashed, run_node);
    }
    return err;
}

static void release(void)
{
    for (uint32_t i = 0; timed.actor != NULL && i < timed.o->nodes; i++) {
        free(timed.actor[i].watch);
    }
    free(timed.actor);
    qn_lines_destroy(timed.lines);
    qn_time_queue_fini(&timed.queue);
}

static void start(void)
{
    uint32_t first;
    for (uint32_t i = 0; i < timed.o->faults; i++) {
        apply_fault(&timed.o->fault[i]);
    }
    for (uint32_t i = 0; i < timed.o->nodes; i++) {
        qn_time_queue_set(&timed.queue, i, 0);
    }
    do {
        first = qn_time_queue_pop(&timed.queue);
    } while (!begins(first, timed.queue.time[first]));
    qn_sim_run(first);
}

static void finish(struct qn_timed_result *out)
{
    out->lines = qn_lines_count(timed.lines);
    for (uint32_t i = 0; i < out->nodes; i++) {
        out->node[i].state = qn_sim.node[i].state;
        out->accesses += out->node[i].accesses;
        out->clock = QN_MAX(out->clock, out->node[i].clock);
    }
}

int qn_timed_run(const struct qn_timed_opts *o, struct qn_timed_result *out)
{
    if (!opts_good(o)) {
        return QN_EINVAL;
    }
    int err = prepare(o, out);
    if (err == QN_OK) {
        start();
        finish(out);
    } else {
        qn_timed_result_free(out);
    }
    release();
    return err;
}

void qn_timed_result_free(struct qn_timed_result *r)
{
    free(r->node);
    *r = (struct qn_timed_result){0};
}

qn_ps_t qn_timed_clock(void)
{
    return self()->out->clock;
}

void qn_timed_sleep_until(qn_ps_t time)
{
    struct actor *a = self();
    close_run(a);
    if (time > a->out->clock) {
        a->out->paused += time - a->out->clock;
        a->out->clock = time;
    }
}

_Noreturn void qn_timed_fail(const char *what)
{
    timed.out->fault = what;
    qn_sim_end_run();
}

_Noreturn void qn_timed_stop(void)
{
    qn_sim_end_run();
}

qn_ps_t qn_timed_clock_of(uint32_t node)
{
    QN_ASSERT(node < timed.out->nodes);
    return timed.out->node[node].clock;
}
