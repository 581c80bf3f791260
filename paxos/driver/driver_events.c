/*
 * What the driver tells the flight recorder (paxos/driver/event.h), from what
 * goes into the machine and comes out of it. The machine knows nothing of it.
 *
 * Roles and children left behind are states, not steps: they are compared with
 * what was noted last, where they may have changed. On the path of a command
 * that costs a few compares per step and none per command.
 */
#include "paxos/driver/driver_internal.h"

/** Own commands wait, and nothing was applied for so long: that is noted. */
#define PAUSE (10 * QN_MS)

void qn_driver_note(struct qn_driver *d, enum qn_event_kind kind,
                    qn_node_t node, qn_slot_t slot, uint64_t a)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = (uint8_t)kind,
                                      .node = (uint8_t)node,
                                      .epoch = d->cfg.index,
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
    if (claimed != d->noted.claimed) {
        d->noted.claimed = claimed;
        qn_driver_note(d, claimed ? QN_EVENT_CLAIM : QN_EVENT_RELEASE,
                       d->o.self, d->applied, 0);
    }
}

void qn_driver_note_copied(struct qn_driver *d, qn_epoch_t epoch)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = QN_EVENT_COPIED,
                                      .epoch = epoch,
                                      .slot = d->applied};
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

void qn_driver_note_epoch(struct qn_driver *d)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = QN_EVENT_EPOCH,
                                      .node = (uint8_t)d->cfg.leader,
                                      .b = d->cfg.acceptor,
                                      .epoch = d->cfg.index,
                                      .slot = d->applied,
                                      .a = d->cfg.leader_inc};
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

/** One event of `kind` for each node of a mask. */
static void note_mask(struct qn_driver *d, enum qn_event_kind kind,
                      uint64_t mask)
{
    for (; mask != 0; mask &= mask - 1) {
        qn_driver_note(d, kind, (qn_node_t)__builtin_ctzll(mask), d->applied,
                       0);
    }
}

void qn_driver_note_suspects(struct qn_driver *d, uint64_t before)
{
    note_mask(d, QN_EVENT_SUSPECT, d->suspected & ~before);
    note_mask(d, QN_EVENT_TRUST, before & ~d->suspected);
}

void qn_driver_note_role(struct qn_driver *d, enum qn_role role)
{
    const struct qn_flight_event e = {.time = d->now,
                                      .kind = QN_EVENT_ROLE,
                                      .b = (uint16_t)role,
                                      .epoch = d->cfg.index,
                                      .slot = d->applied};
    d->noted.role = role;
    if (d->o.events != NULL) {
        qn_events_note(d->o.events, &e);
    }
}

/** Nothing was applied although something waits: noted when it is over. */
static void note_pause(struct qn_driver *d)
{
    struct qn_driver_noted *n = &d->noted;
    if (d->applied == n->applied && n->since != 0) {
        return; /* it goes on, or nothing has waited for long */
    }
    if (d->applied != n->applied && n->since != 0 &&
        d->now - n->since >= PAUSE) {
        qn_driver_note(d, QN_EVENT_PAUSE, 0, d->applied,
                       (d->now - n->since) / QN_US);
    }
    n->applied = d->applied;
    n->since = qn_onepaxos_unapplied(d->machine) != 0 ? d->now : 0;
}

void qn_driver_note_turn(struct qn_driver *d)
{
    uint64_t behind = d->left_behind;
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
