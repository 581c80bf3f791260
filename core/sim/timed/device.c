/*
 * Devices: transfers that are no accesses to lines, and the waits for them.
 */
#include "core/sim/timed/timed_internal.h"

/* To where others may be in its way, and wait for its turn there. */
static void travel(struct qn_actor *a, struct qn_device_access *x)
{
    qn_ps_t way = qn_timed.prices->device_way != NULL
                      ? qn_timed.prices->device_way(qn_timed.prices, x)
                      : 0;
    if (way > 0) {
        a->out->device += way;
        a->out->clock = qn_timed_wait_until(a->out->clock + way);
        x->issued = a->out->clock;
    }
}

struct qn_price qn_timed_device(const struct qn_device_access *x)
{
    struct qn_actor *a = qn_timed_self();
    struct qn_timed_node *out = a->out;
    struct qn_device_access access = *x;
    qn_timed_take_turn(a);
    access.node = qn_sim.self;
    access.issued = out->clock;
    travel(a, &access);
    struct qn_price p = qn_timed.prices->device(qn_timed.prices, &access);
    qn_ps_t price = qn_timed_jittered(a, p.end - p.start);
    if (qn_timed_within(out->clock, a->far_from, a->far_until)) {
        price = qn_timed_times(price, a->far);
    }
    qn_timed_hash(out->clock);
    qn_timed_hash((uint64_t)qn_sim.self << 40 | (uint64_t)x->kind << 32 |
                  x->peer);
    out->waited += p.start - out->clock;
    out->device += price;
    p.visible += p.start + price - p.end;
    p.end = p.start + price;
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_DEVICE,
                                          .from = out->clock,
                                          .until = p.end,
                                          .peer = x->peer,
                                          .device = x->kind});
    out->clock = p.end;
    return p;
}

void qn_timed_turn(void)
{
    struct qn_actor *a = qn_timed_self();
    qn_timed_close_run(a);
    a->out->clock = qn_timed_wait_until(a->out->clock);
}

bool qn_timed_wait(qn_ps_t until)
{
    struct qn_actor *a = qn_timed_self();
    struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    qn_ps_t from = a->out->clock;
    qn_timed_close_run(a);
    n->state = QN_SIM_SLEEPS;
    n->word = NULL;
    n->fd = -1; /* no ring ends it */
    a->blocked = true;
    a->signalled = false;
    if (until != QN_PS_NEVER) {
        qn_time_queue_set(&qn_timed.queue, qn_sim.self, QN_MAX(until, from));
    }
    qn_timed_yield();
    a->blocked = false;
    a->out->clock = qn_timed.queue.time[qn_sim.self];
    a->out->blocked += a->out->clock - from;
    qn_timed_tell((struct qn_timed_event){.kind = QN_TIMED_BLOCKED,
                                          .from = from,
                                          .until = a->out->clock,
                                          .peer = QN_SIM_NO_NODE});
    return a->signalled;
}

void qn_timed_signal(uint32_t node, qn_ps_t at)
{
    struct qn_actor *a = &qn_timed.actor[node];
    if (!a->blocked && !a->paused) {
        return;
    }
    bool queued = qn_timed.queue.at[node] != QN_SIM_NO_NODE;
    qn_ps_t then =
        QN_MAX(at, QN_MAX(qn_timed_self()->out->clock, a->out->clock));
    if (!queued || then <= qn_timed.queue.time[node]) {
        a->signalled = true;
        a->changed = true;
        qn_time_queue_set(&qn_timed.queue, node, then);
    }
}

void qn_timed_expect(qn_ps_t at)
{
    qn_timed_self()->expected = at;
}
