/*
 * Which node runs, and until when it waits.
 *
 * The running node goes on without a switch as long as it is the earliest; else
 * it enters the queue at its clock and the earliest node runs.
 *
 * A watch is a line and the version of it that the node has seen. The set is
 * kept between pauses that found nothing, so a poller that looks at its lanes
 * in turn comes to watch all of them.
 */
#include <stdlib.h>

#include "core/sim/timed/timed_internal.h"

#define HORIZON_MOST  (1000 * QN_PS_PER_NS)
#define HORIZON_TIMED (100 * QN_PS_PER_NS) /* of one that reads the clock */
#define LOOKS_FIRST   4u
#define SLICE         (50 * QN_PS_PER_NS) /* of work on a core that is shared */

qn_ps_t qn_timed_jittered(const struct qn_actor *a, qn_ps_t price)
{
    if (qn_timed.o->jitter <= 0) {
        return price;
    }
    uint64_t draw =
        qn_time_queue_mix(qn_timed.o->seed * UINT64_C(0xd6e8feb86659fd93) ^
                          (uint64_t)qn_sim.self << 40 ^ a->out->accesses);
    double unit = (double)(draw >> 11) * 0x1p-53;
    return (qn_ps_t)((double)price * (1 + qn_timed.o->jitter * unit));
}

/* ---- the next to run ---- */

void qn_timed_forget_watches(struct qn_actor *a)
{
    a->watches = 0;
    a->next = 0;
}

static void unlink_watches(struct qn_actor *a)
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

/* When a node that pauses sees what happens at `time`, which is not before the
 * pause: at its next look. */
static qn_ps_t next_look(const struct qn_actor *a, qn_ps_t time)
{
    if (a->look_every == 0 || time <= a->paused_at) {
        return time;
    }
    qn_ps_t turns = (time - a->paused_at + a->look_every - 1) / a->look_every;
    return a->paused_at + turns * a->look_every;
}

/* The line has another content from line->changed on. */
static void wake_watchers(struct qn_line *line)
{
    for (struct qn_line_watch *w = line->watchers; w != NULL; w = w->next) {
        struct qn_actor *a = &qn_timed.actor[w->node];
        qn_ps_t now = qn_timed.queue.time[w->node];
        qn_ps_t seen = next_look(a, line->changed);
        if (seen < now) {
            now = QN_MAX(seen, a->out->clock);
            qn_time_queue_set(&qn_timed.queue, w->node, now);
        }
        a->changed |= line->changed <= now;
    }
}

void qn_timed_close_run(struct qn_actor *a)
{
    struct qn_line *line = a->run;
    if (line != NULL) {
        a->run = NULL;
        wake_watchers(line);
    }
}

/* The node at the head of the queue is due. @return false: it has to wait. */
bool qn_timed_begins(uint32_t node, qn_ps_t time)
{
    struct qn_sim_node *n = &qn_sim.node[node];
    struct qn_actor *a = &qn_timed.actor[node];
    if (n->state == QN_SIM_SLEEPS) {
        n->state = QN_SIM_READY;
        n->timed_out = true;
    }
    if (qn_timed_within(time, a->stop_from, a->stop_until)) {
        qn_time_queue_set(&qn_timed.queue, node, a->stop_until);
        return false;
    }
    return true;
}

/* Run the earliest node; returns when this one is it. */
void qn_timed_yield(void)
{
    uint32_t next;
    do {
        next = qn_time_queue_pop(&qn_timed.queue);
        if (next == QN_SIM_NO_NODE) {
            qn_sim_end_run();
        }
        if (qn_timed.queue.time[next] > qn_timed.until) {
            qn_timed.out->cut_off = true;
            qn_sim_end_run();
        }
    } while (!qn_timed_begins(next, qn_timed.queue.time[next]));
    if (next != qn_sim.self) {
        qn_sim_switch(next);
    }
}

static void account_stop(struct qn_actor *a, qn_ps_t from, qn_ps_t until)
{
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_STOPPED,
                                          .from = from,
                                          .until = until,
                                          .peer = QN_SIM_NO_NODE});
    a->out->stopped += until - from;
}

/* Wait in the queue until `time`, or until a change comes earlier. @return
 * when: the node's clock from now on. */
qn_ps_t qn_timed_wait_until(qn_ps_t time)
{
    struct qn_actor *a = qn_timed_self();
    if (time < a->stop_from && time <= qn_timed.until &&
        qn_time_queue_first(&qn_timed.queue, qn_sim.self, time)) {
        return time;
    }
    qn_time_queue_set(&qn_timed.queue, qn_sim.self, time);
    qn_timed_yield();
    qn_ps_t now = qn_timed.queue.time[qn_sim.self];
    if (now == a->stop_until &&
        qn_timed_within(time, a->stop_from, a->stop_until)) {
        account_stop(a, time, now);
    }
    return now;
}

/* Compute, in slices, so that nodes which share a core's issue have it in
 * turn. */
static void share_issue(struct qn_actor *a, qn_ps_t ps)
{
    struct qn_prices *p = qn_timed.prices;
    while (ps > 0) {
        qn_ps_t slice = QN_MIN(ps, SLICE);
        qn_timed_close_run(a);
        a->out->clock = qn_timed_wait_until(a->out->clock);
        qn_ps_t end = p->issue(p, qn_sim.self, a->out->clock, slice);
        a->out->waited += end - a->out->clock - slice;
        a->out->clock = end;
        ps -= slice;
    }
}

/* Time that no other node sees, but those on the same core. */
void qn_timed_spend(qn_ps_t ps, qn_ps_t *account)
{
    struct qn_actor *a = qn_timed_self();
    if (qn_timed_within(a->out->clock, a->slow_from, a->slow_until)) {
        ps = qn_timed_times(ps, a->slow);
    }
    *account += ps;
    if (qn_timed.prices->issue != NULL) {
        share_issue(a, ps);
    } else {
        a->out->clock += ps;
    }
}

/* Outside of any node: what the caller does to memory then acts at once and
 * costs nothing. */
static void tell_ended(uint32_t node, bool killed)
{
    if (qn_timed.o->ended != NULL) {
        qn_sim.self = QN_SIM_NO_NODE;
        qn_timed.o->ended(qn_timed.o->ctx, node, killed);
        qn_sim.self = node;
    }
}

static void die(void)
{
    uint32_t node = qn_sim.self;
    unlink_watches(qn_timed_self());
    qn_sim.node[node].state = QN_SIM_GONE;
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_KILLED,
                                          .from = qn_timed_self()->out->clock,
                                          .until = qn_timed_self()->out->clock,
                                          .peer = QN_SIM_NO_NODE});
    tell_ended(node, true);
    qn_timed_yield();
    abort(); /* it is in the queue no more */
}

/* In front of each access: it is this node's turn. */
void qn_timed_take_turn(struct qn_actor *a)
{
    qn_timed_close_run(a);
    a->out->clock = qn_timed_wait_until(a->out->clock);
    a->out->accesses++;
    if (a->out->accesses == a->kill_access || a->out->clock >= a->kill_from) {
        die();
    }
}

/* ---- watches ---- */

void qn_timed_watch(struct qn_actor *a, struct qn_line *line, uint32_t version)
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
    a->next = (a->next + 1) % QN_TIMED_WATCHES;
    a->watches = QN_MAX(a->watches, a->next == 0 ? QN_TIMED_WATCHES : a->next);
    *w = (struct qn_line_watch){
        .line = line, .node = qn_sim.self, .seen = version};
}

/* When a line that the node has seen changes, as far as known. */
static qn_ps_t first_change(const struct qn_actor *a)
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

static void link_watches(struct qn_actor *a)
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
static void pause_until(struct qn_actor *a, qn_ps_t limit)
{
    qn_ps_t from = a->out->clock;
    a->paused_at = from;
    a->look_every = qn_timed.prices->polls ? QN_MAX(from - a->resumed, 1u) : 0;
    qn_ps_t first = first_change(a);
    qn_ps_t change =
        first == QN_PS_NEVER ? first : next_look(a, QN_MAX(first, from));
    if (a->expected > from) {
        change = QN_MIN(change, a->expected);
    }
    a->expected = 0;
    a->changed = change <= limit;
    link_watches(a);
    a->paused = true;
    a->out->clock = qn_timed_wait_until(QN_MIN(change, limit));
    a->paused = false;
    unlink_watches(a);
    a->resumed = a->out->clock;
    a->out->paused += a->out->clock - from;
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_PAUSED,
                                          .from = from,
                                          .until = a->out->clock,
                                          .peer = QN_SIM_NO_NODE});
}

void qn_timed_pause(void)
{
    struct qn_actor *a = qn_timed_self();
    qn_timed_close_run(a);
    qn_ps_t most = a->read_clock ? HORIZON_TIMED : HORIZON_MOST;
    qn_ps_t first = LOOKS_FIRST * QN_MAX(a->looks, 1u) * qn_timed.prices->hit;
    /* By read-modify-writes only: no line that ends its pause. */
    const bool blind = a->watches == 0 && !a->read_clock;
    a->horizon =
        QN_MIN(a->horizon == 0 || blind ? first : 2 * a->horizon, most);
    qn_ps_t limit = a->out->clock + QN_MAX(a->horizon, 1u);
    if (a->looks_until > a->out->clock) {
        limit = QN_MIN(limit, a->looks_until);
    }
    a->polls = a->looks > 0;
    pause_until(a, limit);
    if (a->changed) {
        qn_timed_forget_watches(a);
        a->horizon = 0;
    }
    a->looks = 0;
    a->spins = 0;
    a->looks_until = 0;
    a->read_clock = false;
}

/* A sleeper wakes at its deadline, or to be killed. */
static qn_ps_t sleeps_until(const struct qn_actor *a,
                            const struct qn_sim_node *n)
{
    qn_ps_t deadline = n->deadline == QN_TIME_NEVER ? QN_PS_NEVER
                       : n->deadline > QN_TIMED_ORIGIN_NS
                           ? (n->deadline - QN_TIMED_ORIGIN_NS) * QN_PS_PER_NS
                           : 0;
    return QN_MIN(deadline, a->kill_from);
}

void qn_timed_leave(void)
{
    struct qn_actor *a = qn_timed_self();
    struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    qn_ps_t from = a->out->clock;
    qn_timed_close_run(a);
    if (n->state == QN_SIM_FINISHED) {
        a->out->state = n->state;
        qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_ENDED,
                                              .from = from,
                                              .until = from,
                                              .peer = QN_SIM_NO_NODE});
        tell_ended(qn_sim.self, false);
    } else if (n->state == QN_SIM_SLEEPS && sleeps_until(a, n) != QN_PS_NEVER) {
        qn_time_queue_set(&qn_timed.queue, qn_sim.self,
                          QN_MAX(sleeps_until(a, n), from));
    }
    qn_timed_yield();
    a->out->clock = qn_timed.queue.time[qn_sim.self];
    if (a->out->clock >= a->kill_from) {
        die();
    }
    a->out->parked += a->out->clock - from;
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_PARKED,
                                          .from = from,
                                          .until = a->out->clock,
                                          .peer = QN_SIM_NO_NODE});
}

void qn_timed_woken(uint32_t node)
{
    qn_ps_t at = qn_timed_self()->out->clock + qn_timed.prices->wake;
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_RANG,
                                          .from = qn_timed_self()->out->clock,
                                          .until = at,
                                          .peer = node});
    qn_time_queue_set(&qn_timed.queue, node,
                      QN_MAX(at, qn_timed.actor[node].out->clock));
}
