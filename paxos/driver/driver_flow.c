/*
 * What the leader's flow control does, told: to the other members by the word
 * `held` of the own outbox, to the operator by one line per change.
 *
 * And what this node itself holds for one to which it gives a snapshot.
 *
 * A member that is given up is not behind for ever: it takes a snapshot, or
 * reads what the ring still keeps, and is awaited again.
 */
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "paxos/driver/driver_internal.h"

#define MIB (UINT64_C(1) << 20)

static void given_tell(const struct qn_driver *d, qn_node_t n)
{
    const struct qn_flow_member *m = &qn_onepaxos_flow(d->machine)->member[n];
    if (m->behind) {
        qn_log(QN_LOG_WARN,
               "replica %u: waits no longer for replica %u, which applies less "
               "than 1/%u as fast as another and lacks %" PRIu64
               " MiB (%" PRIu64
               " slots): give it more processor time; it is waited for again "
               "after %" PRIu64 " s, when it has caught up",
               d->o.self, n, QN_FLOW_SLOW, m->at.bytes / MIB, m->slots,
               (uint64_t)(m->pause / QN_S));
        return;
    }
    qn_log(QN_LOG_WARN,
           "replica %u: waits no longer for replica %u, which lacks %" PRIu64
           " MiB (%" PRIu64 " slots) and has applied %" PRIu64
           " KiB in the last %" PRIu64
           " ms: it takes a snapshot when it goes on, unless the log still "
           "reaches back to it",
           d->o.self, n, m->at.bytes / MIB, m->slots, m->bytes / 1024,
           (uint64_t)((d->now - m->since) / QN_MS));
}

static void change_tell(const struct qn_driver *d, qn_node_t n, bool awaited)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    const struct qn_flow_member *m = &f->member[n];
    if (awaited) {
        qn_log(QN_LOG_INFO,
               "replica %u: waits for replica %u again, which lacks %" PRIu64
               " MiB",
               d->o.self, n, m->at.bytes / MIB);
    } else if (m->given) { /* and not ended */
        given_tell(d, n);
    }
}

static void held_tell(struct qn_driver *d, bool held)
{
    if (held == d->held) {
        return;
    }
    d->held = held;
    /* relaxed: it is a hint (qn_driver_held). */
    qn_store(&d->o.state->held, held ? (uint64_t)d->cfg.index + 1 : 0,
             QN_RELAXED);
    if (held) {
        qn_log(QN_LOG_WARN,
               "replica %u: writes wait: a replica does not go on, and "
               "min-replicas-to-write forbids to go on without it; continue or "
               "end it",
               d->o.self);
    } else {
        qn_log(QN_LOG_INFO, "replica %u: writes go on", d->o.self);
    }
}

bool qn_driver_flow_look(struct qn_driver *d)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    bool leads = qn_onepaxos_role(d->machine) == QN_ACTIVE;
    uint64_t awaited = leads ? qn_flow_awaited(f) : 0;
    uint64_t changed = leads && d->leads ? awaited ^ d->awaited : 0;
    for (; changed != 0; changed &= changed - 1) {
        qn_node_t n = (qn_node_t)__builtin_ctzll(changed);
        change_tell(d, n, (awaited & qn_driver_bit(n)) != 0);
    }
    d->leads = leads;
    d->awaited = awaited;
    held_tell(d, leads && f->held);
    return leads && f->shut_at != 0;
}

void qn_driver_limits(struct qn_driver *d, qn_time_t timeout,
                      uint32_t min_awaited)
{
    qn_onepaxos_limits(d->machine, timeout, min_awaited);
}

bool qn_driver_flow(const struct qn_driver *d, struct qn_driver_flow *out)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    *out = (struct qn_driver_flow){
        .awaited = qn_flow_awaited(f),
        .held = f->held,
        .shut = qn_flow_shut(f, d->now),
        .given_up = f->given,
        .holds_given_up = f->holds,
    };
    for (qn_node_t n = 0; n < d->o.nodes; n++) {
        out->shut_by[n] = qn_flow_shut_by(f, n, d->now);
        out->lag_bytes[n] = f->member[n].at.bytes;
        out->lag_slots[n] = f->member[n].slots;
        out->pace[n] = f->member[n].shown;
    }
    return qn_onepaxos_role(d->machine) == QN_ACTIVE;
}

/* ---- holds --------------------------------------------------------------- */

/* A joiner has all of it: the leader, which reads the same positions, hears of
 * that before the hold is over. */
#define HOLD_REST (100 * QN_MS)

static void hold_say(struct qn_driver *d, qn_slot_t slot, uint32_t done)
{
    /* relaxed: only this thread writes both. */
    qn_store(&d->o.state->hold_done, done, QN_RELAXED);
    /* release -> acquire in hold_of (driver_bound.c). */
    qn_store(&d->o.state->hold_slot, slot, QN_RELEASE);
}

void qn_driver_hold(struct qn_driver *d, qn_node_t joiner, qn_slot_t position,
                    uint32_t done)
{
    QN_ASSERT(joiner < d->o.nodes && joiner != d->o.self);
    d->hold = (struct qn_driver_hold){.slot = position + 1,
                                      .joiner = joiner,
                                      .inc = d->peer[joiner].life.inc};
    hold_say(d, position + 1, done);
}

void qn_driver_release(struct qn_driver *d)
{
    if (d->hold.slot != 0) {
        hold_say(d, 0, 0);
    }
    d->hold = (struct qn_driver_hold){0};
}

void qn_driver_hold_look(struct qn_driver *d)
{
    struct qn_driver_hold *h = &d->hold;
    const struct qn_driver_peer *p = &d->peer[h->joiner];
    if (h->slot == 0) {
        return;
    }
    if (p->qp == NULL || p->life.inc != h->inc) {
        qn_driver_release(d);
    } else if (p->applied + 1 >= h->slot && h->over_at == 0) {
        h->over_at = d->now + HOLD_REST;
    } else if (h->over_at != 0 && d->now >= h->over_at) {
        qn_driver_release(d);
    }
}

bool qn_driver_held(const struct qn_driver *d)
{
    const struct qn_outbox_state *s =
        d->cfg.leader == d->o.self ? d->o.state : d->peer[d->cfg.leader].state;
    /* relaxed: nothing else is read by it. */
    return qn_driver_lives(d, d->cfg.leader) && s != NULL &&
           qn_load(&s->held, QN_RELAXED) == (uint64_t)d->cfg.index + 1;
}

uint64_t qn_driver_bytes_above(const struct qn_driver *d, qn_slot_t slot)
{
    return qn_onepaxos_bytes_above(d->machine, slot);
}

/* ---- what is kept -------------------------------------------------------- */

static struct qn_bytes_kept lanes_kept(const struct qn_driver *d)
{
    struct qn_bytes_kept l = {0, 0, 0};
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_driver_peer *p = &d->peer[i];
        l.now += p->control.bytes + p->bulk.bytes;
        l.most = QN_MAX(l.most, p->control.most + p->bulk.most);
    }
    return l;
}

static struct qn_bytes_kept arena_kept(const struct qn_arena *a)
{
    return a == NULL ? (struct qn_bytes_kept){0, 0, 0}
                     : (struct qn_bytes_kept){a->used, a->most, a->o.capacity};
}

void qn_driver_kept(const struct qn_driver *d, struct qn_driver_kept *out)
{
    struct qn_onepaxos_kept m = qn_onepaxos_kept(d->machine);
    const struct qn_ring *ring = &d->shared.own;
    uint64_t ring_bytes = d->memory ? ring->memory : 0;
    *out = (struct qn_driver_kept){
        .log = m.log,
        .requests = m.requests,
        .arena = arena_kept(d->o.arena),
        .ring = {ring_bytes, ring_bytes, d->memory ? ring->o.keep : 0},
        .bcast = {d->bcast.bytes, d->bcast.most, qn_driver_bcast_max(d)},
        .bcast_dropped = d->bcast_dropped,
        .lanes = lanes_kept(d),
    };
    /* What a lane waits with is this node's requests, or answers of one slot.
     */
    out->lanes.max = m.requests.max;
}
