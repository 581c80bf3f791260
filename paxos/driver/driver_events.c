/*
 * What the driver tells the flight recorder (paxos/driver/event.h), and what it
 * tells operators and peers of flow control. The machine knows nothing of it.
 *
 * Roles, children left behind and awaited members are states, not steps: they
 * are compared with what was noted last, where they may have changed. On the
 * path of a command that costs a few compares per step and none per command.
 *
 * A member that is given up is not behind for ever: it takes a snapshot, or
 * reads what the ring still keeps, and is awaited again.
 */
#include <inttypes.h>

#include "core/base/log.h"
#include "paxos/driver/driver_internal.h"

/** A pause that is noted: own commands wait, and nothing was applied for this
 *  long. */
#define PAUSE (10 * QN_MS)

void qn_driver_note(struct qn_driver *d, enum qn_event_kind kind,
                    qn_node_t node, qn_slot_t slot, uint64_t a)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = (uint8_t)kind,
                                      .node = (uint8_t)node,
                                      .epoch = d->roles.cfg.index,
                                      .slot = slot,
                                      .a = a};
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

void qn_driver_note_msg(struct qn_driver *d, enum qn_event_kind kind,
                        qn_node_t peer, const struct qn_msg *m)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = (uint8_t)kind,
                                      .node = (uint8_t)peer,
                                      .b = m->kind,
                                      .epoch = m->epoch,
                                      .slot = m->slot};
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

void qn_driver_note_vote(struct qn_driver *d, const struct qn_vote *v)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = QN_EVENT_VOTE,
                                      .node = v->bal.node,
                                      .epoch = v->index,
                                      .slot = v->bal.round};
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

void qn_driver_note_claim(struct qn_driver *d, bool claimed)
{
    QN_ASSERT(d->memory);
    if (claimed != d->noted.claimed) {
        d->noted.claimed = claimed;
        qn_driver_note(d, claimed ? QN_EVENT_CLAIM : QN_EVENT_RELEASE,
                       d->o.self, d->positions.applied, 0);
    }
}

bool qn_driver_claims(const struct qn_driver *d)
{
    return d->noted.claimed;
}

void qn_driver_note_copied(struct qn_driver *d, qn_epoch_t epoch)
{
    QN_ASSERT(d->memory);
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = QN_EVENT_COPIED,
                                      .epoch = epoch,
                                      .slot = d->positions.applied};
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

void qn_driver_note_epoch(struct qn_driver *d)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = QN_EVENT_EPOCH,
                                      .node = (uint8_t)d->roles.cfg.leader,
                                      .b = d->roles.cfg.acceptor,
                                      .epoch = d->roles.cfg.index,
                                      .slot = d->positions.applied,
                                      .a = d->roles.cfg.leader_inc};
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

/** One event of `kind` for each node of a mask. */
static void note_mask(struct qn_driver *d, enum qn_event_kind kind,
                      uint64_t mask)
{
    QN_ASSERT((mask & ~qn_driver_group(d)) == 0);
    for (; mask != 0; mask &= mask - 1) {
        qn_driver_note(d, kind, (qn_node_t)__builtin_ctzll(mask),
                       d->positions.applied, 0);
    }
}

void qn_driver_note_suspects(struct qn_driver *d, uint64_t before)
{
    note_mask(d, QN_EVENT_SUSPECT, d->suspected & ~before);
    note_mask(d, QN_EVENT_TRUST, before & ~d->suspected);
}

/* One line; but a ring that is left again and again says so only now and then:
 * of the changes in between a line tells the last one, when it is time. */
void qn_driver_ring_tell(struct qn_driver *d, bool ring)
{
    const struct qn_ring_choice *c = &d->ring_choice;
    struct qn_driver_noted *n = &d->noted;
    char why[QN_RING_TEXT_MAX];
    bool soon =
        n->ring_told != 0 && d->now - n->ring_told < QN_DRIVER_RING_TELL;
    if (ring == n->ring_line || (!ring && soon)) {
        return;
    }
    n->ring_line = ring;
    n->ring_told = ring ? n->ring_told : d->now;
    qn_log_to(&d->o.log, QN_LOG_INFO,
              "member %u: decided batches go along the %s now: %s "
              "(change %" PRIu64 ")",
              d->o.self, ring ? "ring" : "tree", qn_ring_choice_text(c, why),
              c->changes);
}

void qn_driver_note_ring(struct qn_driver *d, uint32_t arity)
{
    const struct qn_ring_choice *c = &d->ring_choice;
    const struct qn_flight_event e = {
        .time = d->now,
        .kind = QN_EVENT_RING,
        .node = c->members != 0 ? (uint8_t)__builtin_ctzll(c->members)
                                : QN_EVENT_ALL,
        .b = (uint16_t)arity,
        .epoch = d->roles.cfg.index,
        .slot = d->positions.applied};
    qn_driver_ring_tell(d, arity != 0);
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

void qn_driver_note_role(struct qn_driver *d, enum qn_role role)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = QN_EVENT_ROLE,
                                      .b = (uint16_t)role,
                                      .epoch = d->roles.cfg.index,
                                      .slot = d->positions.applied};
    QN_ASSERT(role != d->noted.role);
    d->noted.role = role;
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

/** A pause is noted when it is over. */
static void note_pause(struct qn_driver *d)
{
    struct qn_driver_noted *n = &d->noted;
    if (d->positions.applied == n->applied && n->since != 0) {
        return; /* nothing was applied since: the pause lasts */
    }
    if (d->positions.applied != n->applied && n->since != 0 &&
        d->now - n->since >= PAUSE) {
        qn_driver_note(d, QN_EVENT_PAUSE, 0, d->positions.applied,
                       (d->now - n->since) / QN_US);
    }
    QN_DASSERT(d->positions.applied >= n->applied);
    QN_DASSERT(d->now >= n->since);
    n->applied = d->positions.applied;
    n->since = qn_onepaxos_unapplied(d->machine) != 0 ? d->now : 0;
}

void qn_driver_note_turn(struct qn_driver *d)
{
    uint64_t behind = d->dissemination.left_behind;
    if (d->o.events == NULL) {
        return;
    }
    if (behind != d->noted.left_behind) {
        note_mask(d, QN_EVENT_BEHIND, behind & ~d->noted.left_behind);
        note_mask(d, QN_EVENT_BACK, d->noted.left_behind & ~behind);
        d->noted.left_behind = behind;
    }
    note_pause(d);
}

/* ---- what operators and peers are told of flow control ------------------ */

#define MIB (UINT64_C(1) << 20)

/* One line: a member is given up, and why. */
static void given_tell(const struct qn_driver *d, qn_node_t n)
{
    const struct qn_flow_member *m = &qn_onepaxos_flow(d->machine)->member[n];
    if (m->behind) {
        qn_log_to(
            &d->o.log, QN_LOG_WARN,
            "member %u: waits no longer for member %u, which applies less "
            "than 1/%u as fast as another and lacks %" PRIu64 " MiB (%" PRIu64
            " slots): give it more processor time; it is waited for again "
            "after %" PRIu64 " s, when it has caught up",
            d->o.self, n, QN_FLOW_SLOW, m->at.bytes / MIB, m->slots,
            (uint64_t)(m->pause / QN_S));
        return;
    }
    qn_log_to(&d->o.log, QN_LOG_WARN,
              "member %u: waits no longer for member %u, which lacks %" PRIu64
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
        qn_log_to(&d->o.log, QN_LOG_INFO,
                  "member %u: waits for member %u again, which lacks %" PRIu64
                  " MiB",
                  d->o.self, n, m->at.bytes / MIB);
    } else if (m->given) { /* else it has ended */
        given_tell(d, n);
    }
}

static void held_tell(struct qn_driver *d, bool held)
{
    if (held == d->noted.held) {
        return;
    }
    d->noted.held = held;
    /* relaxed: it is a hint (qn_driver_held). */
    qn_store(&d->o.state->held, held ? (uint64_t)d->roles.cfg.index + 1 : 0,
             QN_RELAXED);
    if (held) {
        qn_log_to(
            &d->o.log, QN_LOG_WARN,
            "member %u: writes wait for a member that makes no progress, "
            "since too few others are left to go on without it; resume or "
            "end it",
            d->o.self);
    } else {
        qn_log_to(&d->o.log, QN_LOG_INFO, "member %u: writes go on", d->o.self);
    }
}

bool qn_driver_flow_look(struct qn_driver *d)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    bool leads = qn_onepaxos_role(d->machine) == QN_ACTIVE;
    uint64_t awaited = leads ? qn_flow_awaited(f) : 0;
    uint64_t changed = leads && d->noted.leads ? awaited ^ d->noted.awaited : 0;
    for (; changed != 0; changed &= changed - 1) {
        qn_node_t n = (qn_node_t)__builtin_ctzll(changed);
        change_tell(d, n, (awaited & qn_driver_bit(n)) != 0);
    }
    QN_ASSERT((awaited & ~qn_driver_group(d)) == 0);
    d->noted.leads = leads;
    d->noted.awaited = awaited;
    held_tell(d, leads && f->held);
    return leads && f->shut_at != 0;
}
