/*
 * The driver: bytes and time between the machine and the channels. This is its
 * turn; driver_internal.h says where the rest is.
 *
 * Order of effects. A step that learns an entry of the utility log changes the
 * roles first (tree, published epoch): what it puts out belongs to the new
 * ones. Then outputs are executed in the machine's order, so at the acceptor a
 * LEARN is in every child's lane before the slot is applied here, and a vote is
 * in the record before it is said. After applying, and before the caller can
 * answer anything from the new state, the read index is raised (PROTOCOL.md
 * 8.2, publish before expose).
 */
#include "paxos/driver/driver.h"

#include <stdlib.h>

#include "core/base/log.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/mutant.h"

enum {
    FRAMES_MAX = 4096, /* frames of the tree in one turn ... */
    FRAMES = 16,       /* ... so many at a time, while there is work left */
    FILLS_MAX = 64,    /* slots sent to each laggard in one turn */
    ALLOW = 64,        /* commands of a step, before work is counted again */
};

/* ---- executing outputs --------------------------------------------------- */

static void out_apply(struct qn_driver *d, const struct qn_apply *a)
{
    const struct qn_service *s = &d->o.service;
    struct qn_slice list = a->group.commands;
    struct qn_slice next[QN_AHEAD];
    struct qn_applied one = {
        .slot = a->slot,
        .stamp_ms = a->stamp_ms,
        .origin = a->group.origin,
        .origin_inc = a->group.inc,
        .seq = a->group.first,
        .mine = a->mine,
        .keep = a->blob->cap >= d->keep_from ? a->blob : NULL,
    };
    d->exposed = a->slot;
    uint32_t n;
    do {
        for (n = 0; n < QN_AHEAD && qn_commands_next(&list, &next[n]); n++) {
        }
        if (s->ahead != NULL && n > 1) {
            s->ahead(s->ctx, next, n);
        }
        for (uint32_t i = 0; i < n; i++, one.seq++) {
            one.bytes = next[i];
            d->left -= s->apply(s->ctx, &one);
        }
        d->commands += n;
    } while (n == QN_AHEAD);
    if (a->last) {
        d->applied = a->slot;
        d->batches++;
        s->applied(s->ctx, a->slot, a->stamp_ms);
    }
}

static void out_need_snapshot(struct qn_driver *d, qn_slot_t slot)
{
    const struct qn_service *s = &d->o.service;
    if (!d->need_snapshot) {
        qn_driver_note(d, QN_EVENT_NEED_SNAPSHOT, d->o.self, slot, 0);
    }
    if (s->need_snapshot != NULL) {
        s->need_snapshot(s->ctx, slot);
    } else if (!d->need_snapshot) {
        qn_log(QN_LOG_ERROR,
               "replica %u: fell behind further than the log reaches",
               d->o.self);
    }
    d->need_snapshot = true;
}

/* An election, or something like it: told before it is done. */
static void out_note(struct qn_driver *d, const struct qn_out *o)
{
    bool all = o->kind == QN_OUT_SEND_ALL;
    if ((all || o->kind == QN_OUT_SEND) && qn_driver_notable(&o->msg)) {
        qn_driver_note_msg(d, QN_EVENT_SENT, all ? QN_EVENT_ALL : o->to,
                           &o->msg);
    }
}

static void out_execute(struct qn_driver *d, const struct qn_out *o)
{
    out_note(d, o);
    switch (o->kind) {
    case QN_OUT_SEND:
        qn_driver_send(d, o->to, &o->msg);
        break;
    case QN_OUT_SEND_ALL:
        for (qn_node_t n = 0; n < d->o.nodes; n++) {
            if (n != d->o.self) {
                qn_driver_send(d, n, &o->msg);
            }
        }
        break;
    case QN_OUT_BCAST:
        qn_driver_bcast(d, &o->msg);
        break;
    case QN_OUT_PERSIST:
        qn_driver_persist(d, &o->vote);
        break;
    case QN_OUT_APPLY:
        out_apply(d, &o->apply);
        break;
    case QN_OUT_NEED_SNAPSHOT:
        out_need_snapshot(d, o->apply.slot);
        break;
    }
}

int qn_driver_step(struct qn_driver *d, const struct qn_input *in)
{
    qn_onepaxos_allow(d->machine, d->left > 0 ? ALLOW : 0);
    int err = qn_onepaxos_step(d->machine, in, d->now, d->wall_ms, &d->out);
    d->more = d->out.held;
    if (err != QN_OK) {
        return err;
    }
    if (qn_utility_len(qn_onepaxos_utility(d->machine)) != d->ul_len) {
        qn_driver_roles(d);
    }
    enum qn_role role = qn_onepaxos_role(d->machine);
    if (role != d->noted.role) {
        qn_driver_note_role(d, role);
    }
    for (uint32_t i = 0; i < d->out.count; i++) {
        out_execute(d, &d->out.out[i]);
    }
    d->did |= d->out.count != 0;
    d->steps += d->out.count != 0;
    d->again |= d->out.again || (d->more && d->left > 0);
    d->transfers = d->out.transfers;
    d->machine_deadline = d->out.deadline;
    qn_step_out_release(&d->out);
    return QN_OK;
}

/* What anybody has exposed: who did says so in its own outbox. */
static qn_slot_t exposed_by_all(const struct qn_driver *d)
{
    qn_slot_t most = d->exposed;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct qn_position at;
        if (i != d->o.self && qn_driver_position((void *)d, i, &at)) {
            most = QN_MAX(most, at.applied);
        }
    }
    return most;
}

/* Publish before expose: a slot counts as exposed with its first command, for
 * a step may end in the middle of a slot, and reads may come then. Then tell
 * the peers. The index is looked at in each turn, not only after applying:
 * should it be below what this node has published, a wild store has lowered it,
 * and what was exposed anywhere is published again, before this node reads by
 * it. */
void qn_driver_publish(struct qn_driver *d)
{
    qn_slot_t index = qn_load(d->o.read_index, QN_SEQ_CST);
    if (index < d->exposed) {
        bool lowered = index < d->published;
        qn_fetch_max(d->o.read_index, lowered ? exposed_by_all(d) : d->exposed);
    } else if (index > d->applied && d->beat_at == QN_TIME_NEVER &&
               qn_driver_read_index(d) > d->applied) {
        d->beat_at = d->now + QN_BEAT_EVERY; /* its LEARN may be lost */
    }
    d->published = d->exposed;
    /* relaxed: only this thread writes its own lines. */
    if (qn_load(&d->o.state->applied, QN_RELAXED) != d->applied) {
        /* release -> acquire in qn_driver_beats_read of the peers: what is
         * applied here was published in the read index before. */
        qn_store(&d->o.state->applied, d->applied, QN_RELEASE);
    }
    /* relaxed: it tells a leader that this life goes on, nothing else. */
    qn_store(&d->o.state->read, d->received + qn_onepaxos_read(d->machine),
             QN_RELAXED);
    qn_driver_learned(d, qn_onepaxos_learned(d->machine));
}

/* ---- a turn -------------------------------------------------------------- */

/* What the last turn has left. */
static void held_apply(struct qn_driver *d)
{
    const struct qn_input go = {.kind = QN_IN_GO};
    while (d->more && d->left > 0) {
        qn_driver_step(d, &go);
    }
}

/* Another tree than the present one was heard of. */
static void announced_take(struct qn_driver *d)
{
    if (d->announced != 0) {
        qn_driver_tree(d, d->announced);
    }
}

/* Receive and apply; what there is no work left for stays in the channel. */
static void tree_receive(struct qn_driver *d)
{
    uint32_t frames = 0;
    uint32_t got = FRAMES;
    while (frames < FRAMES_MAX && got == FRAMES && d->left > 0) {
        got = qn_context_poll(d->context, FRAMES);
        frames += got;
        held_apply(d);
    }
    announced_take(d);
}

void qn_driver_tree_drain(struct qn_driver *d)
{
    uint32_t frames = 0;
    while (d->context != NULL && !d->hold_learns && frames < FRAMES_MAX &&
           qn_context_pending(d->context)) {
        frames += qn_context_poll(d->context, FRAMES) + 1;
    }
    announced_take(d);
}

bool qn_driver_turn(struct qn_driver *d, qn_time_t now, uint64_t wall_ms)
{
    d->now = now;
    d->wall_ms = wall_ms;
    d->did = false;
    d->left = QN_TURN_WORK;
    held_apply(d);
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (d->peer[i].qp != NULL) {
            qn_driver_receive(d, i);
        }
    }
    if (!d->hold_learns && d->o.nodes > 1) {
        if (d->context != NULL) {
            tree_receive(d);
        }
        if (now >= d->beat_at) {
            d->beat_at = QN_TIME_NEVER;
            qn_driver_beats_read(d);
        }
    }
    if (d->reach_slot != 0) {
        qn_driver_reach_look(d);
    }
    if (!QN_MUTANT(EXPOSE_EARLY)) { /* M12 */
        qn_driver_publish(d);
    }
    return d->did;
}

bool qn_driver_flush(struct qn_driver *d, qn_time_t now)
{
    d->now = now;
    const struct qn_input tick = {.kind = QN_IN_TICK};
    do {
        d->again = false;
        qn_driver_step(d, &tick);
    } while (d->again);
    for (uint32_t i = 0; i < FILLS_MAX && qn_driver_queues_send(d); i++) {
    }
    qn_driver_bcast_send(d);
    qn_driver_publish(d);
    uint64_t waits = 0; /* they are flushed again when there is room */
    for (uint64_t m = d->touched; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp != NULL &&
            (qn_qp_flush(p->qp) || (d->transfers & qn_driver_bit(i)) != 0 ||
             !qn_sendq_empty(&p->control) || !qn_sendq_empty(&p->bulk))) {
            waits |= qn_driver_bit(i);
        }
    }
    d->touched = waits;
    if (d->context != NULL) {
        d->tree_waits = qn_driver_tree_flush(d);
    }
    qn_driver_note_turn(d);
    qn_driver_stop_look(d);
    /* The gate is shut; or a frozen leader looks for one to stage to, who may
     * have brought a snapshot and says so in its outbox only. */
    bool waits_for_others =
        qn_driver_flow_look(d) || qn_onepaxos_role(d->machine) == QN_FROZEN;
    bool look = d->did || waits_for_others;
    if (d->verdict.kind != QN_VERDICT_NONE) {
        d->beat_at = QN_MIN(d->beat_at, now + QN_VERDICT_LOOK);
    }
    if (look && d->beat_at == QN_TIME_NEVER && d->o.nodes > 1) {
        d->beat_at = now + QN_BEAT_EVERY;
    }
    if (d->hold.slot != 0) { /* it is let go though nothing happens here */
        d->beat_at = QN_MIN(d->beat_at, now + QN_HOLD_LOOK);
    }
    return waits != 0 || d->tree_waits;
}

bool qn_driver_pending(struct qn_driver *d)
{
    const void *bytes = NULL;
    size_t len = 0;
    if (d->more) {
        return true;
    }
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp == NULL || p->corrupt) {
            continue;
        }
        /* What was refused may be taken once the machine has moved, perhaps
         * later in the same turn; until then, asking again is no use. */
        if (p->refused ? p->refused_step != d->steps
                       : qn_qp_peek(p->qp, &bytes, &len) == QN_OK) {
            return true;
        }
    }
    if (d->context != NULL && !d->hold_learns &&
        qn_context_pending(d->context)) {
        return true;
    }
    return (d->touched != 0 || d->tree_waits) && qn_driver_room_came(d);
}

qn_time_t qn_driver_deadline(const struct qn_driver *d)
{
    qn_time_t at = QN_MIN(d->machine_deadline, d->beat_at);
    if (d->stalled_since != 0) {
        at = QN_MIN(at, d->stalled_since + QN_STALL);
    }
    return at;
}

/* ---- public -------------------------------------------------------------- */

int qn_driver_submit(struct qn_driver *d, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq)
{
    const struct qn_input in = {.kind = QN_IN_SUBMIT,
                                .submit = {.parts = parts, .count = count}};
    qn_slot_t before = d->exposed;
    int err = qn_driver_step(d, &in);
    if (err == QN_OK) {
        *seq = d->out.seq;
    }
    if (d->exposed != before) {
        qn_driver_publish(d); /* a node that catches up has applied something */
    }
    return err;
}

bool qn_driver_room(const struct qn_driver *d)
{
    return qn_onepaxos_room(d->machine);
}

qn_slot_t qn_driver_read_index(const struct qn_driver *d)
{
    /* seq_cst: partner is the fetch_max of the replica that publishes. */
    qn_slot_t index = qn_load(d->o.read_index, QN_SEQ_CST);
    if (index < d->exposed) {
        return exposed_by_all(d); /* a wild store: qn_driver_publish mends it */
    }
    if (index <= d->applied) {
        return index; /* nobody waits for it, true or not */
    }
    qn_slot_t bound = qn_driver_bound(d);
    return QN_MIN(index, bound);
}

qn_slot_t qn_driver_applied(const struct qn_driver *d)
{
    return d->applied;
}

void qn_driver_hold_learns(struct qn_driver *d, bool hold)
{
    d->hold_learns = hold;
    d->beat_at = 0;
}
