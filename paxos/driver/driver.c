/*
 * The driver moves bytes and time between the machine and the channels. This
 * file is its turn; README.md says where the rest is.
 *
 * Order of effects. A step that learns an entry of the utility log changes the
 * roles first (tree, published epoch), for its outputs belong to the new ones.
 * Then the outputs are executed in the machine's order. So at the acceptor a
 * LEARN is in every child's lane before the slot is applied here, and a vote is
 * in the vote record before it is sent. The read index is raised after
 * applying, and before the caller can answer from the new state (PROTOCOL.md
 * 8.2, publish before reply).
 */
#include "paxos/driver/driver.h"

#include <stdlib.h>

#include "core/base/log.h"
#include "core/earlier.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/mutant.h"

enum {
    FRAMES_MAX = 4096, /* frames of the tree in one turn ... */
    FRAMES = 16,       /* ... and in one call, while there is work left */
    FILLS_MAX = 64,    /* slots sent to each laggard in one turn */
    ALLOW = 64,        /* commands of a step, before work is counted again */
};

/* ---- executing outputs --------------------------------------------------- */

void qn_driver_ask_snapshot(struct qn_driver *d, qn_slot_t slot)
{
    const struct qn_service *s = &d->o.service;
    if (!d->need_snapshot) {
        qn_driver_note(d, QN_EVENT_NEED_SNAPSHOT, d->o.self, slot, 0);
    }
    if (d->o.snapshots.needed != NULL) {
        d->o.snapshots.needed(d->o.snapshots.ctx, slot);
    } else if (s->need_snapshot != NULL) {
        s->need_snapshot(s->ctx, slot);
    } else if (!d->need_snapshot) {
        qn_log_to(&d->o.log, QN_LOG_ERROR,
                  "member %u: fell behind further than the log reaches",
                  d->o.self);
    }
    d->need_snapshot = true;
}

/* Messages of an election are recorded before they leave. */
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
        QN_DASSERT(o->to != d->o.self);
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
        qn_driver_apply(d, &o->apply);
        break;
    case QN_OUT_NEED_SNAPSHOT:
        qn_driver_ask_snapshot(d, o->apply.slot);
        break;
    }
}

int qn_driver_step(struct qn_driver *d, const struct qn_input *in)
{
    /* Outputs of a step are executed before the next one begins: neither the
     * service nor a channel may call back into a step. */
    QN_ASSERT(d->out.count == 0);
    qn_onepaxos_set_apply_budget(d->machine, d->left > 0 ? ALLOW : 0);
    int err = qn_onepaxos_step(d->machine, in, d->now, d->wall_ms, &d->out);
    d->more = d->out.apply_pending;
    if (err != QN_OK) {
        QN_ASSERT(d->out.count == 0);
        return err;
    }
    QN_DASSERT(d->out.count <= QN_OUTS_MAX);
    if (in->kind != QN_IN_TICK || d->out.count != 0) {
        qn_mark(QN_MARK_STEP); /* an empty tick is a part of the turn */
    }
    if (qn_utility_len(qn_onepaxos_utility(d->machine)) != d->roles.ul_len) {
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
    QN_DASSERT((d->out.transfers & qn_driver_bit(d->o.self)) == 0);
    d->transfers = d->out.transfers;
    d->machine_deadline = d->out.deadline;
    qn_step_out_release(&d->out);
    QN_DASSERT(d->out.count == 0);
    QN_DASSERT(d->positions.applied <= qn_onepaxos_learned(d->machine));
    return QN_OK;
}

/* The highest slot that is visible anywhere: each node says in its own outbox
 * what it has applied. */
static qn_slot_t visible_to_all(const struct qn_driver *d)
{
    qn_slot_t most = d->positions.visible_slot;
    for (uint64_t m = qn_driver_peers(d); m != 0; m &= m - 1) {
        struct qn_position at;
        if (qn_driver_position((void *)d, (qn_node_t)__builtin_ctzll(m), &at)) {
            most = QN_MAX(most, at.applied);
        }
    }
    return most;
}

/* A reader would wait for this index. @return it, or what it is cut to. */
static qn_slot_t index_ahead(struct qn_driver *d, qn_slot_t index)
{
    qn_slot_t bound = qn_driver_bound(d);
    index = QN_MIN(index, bound);
    if (index > d->positions.applied) { /* its LEARN may be lost */
        qn_positions_look_once(&d->positions, d->now + QN_HEARTBEAT_INTERVAL);
    }
    return index;
}

/* Publish before reply. A slot counts as visible from its first command on, for
 * a step may end inside a slot, and reads may come then. */
static void index_raise(struct qn_driver *d)
{
    struct qn_positions *p = &d->positions;
    qn_slot_t index = qn_load(d->o.read_index, QN_SEQ_CST);
    switch (qn_positions_index_check(p, index)) {
    case QN_INDEX_APPLIED:
        break;
    case QN_INDEX_LOW:
        qn_fetch_max(d->o.read_index, p->visible_slot);
        break;
    case QN_INDEX_LOWERED:
        qn_fetch_max(d->o.read_index, visible_to_all(d));
        break;
    case QN_INDEX_AHEAD:
        if (p->heartbeat_at == QN_TIME_NEVER) { /* else a look is planned */
            (void)index_ahead(d, index);
        }
        break;
    }
    qn_positions_published(p, d->now);
}

/* The index is looked at after applying, and now and then: if it is below what
 * this node has published, a stray write has lowered it. Then what is visible
 * anywhere is published again. Not in each turn: a slot that is published moves
 * the line to each node that looks, and one that waits there in the row of the
 * others finds its LEARN late. */
void qn_driver_publish(struct qn_driver *d)
{
    if (qn_positions_index_due(&d->positions, d->now)) {
        index_raise(d);
    }
    /* relaxed: only this thread writes its own lines. */
    if (qn_load(&d->o.state->applied, QN_RELAXED) != d->positions.applied) {
        QN_ASSERT(qn_load(&d->o.state->applied, QN_RELAXED) <
                  d->positions.applied);
        /* release -> acquire in qn_driver_positions_read of the peers: what is
         * applied here was published in the read index before. */
        qn_store(&d->o.state->applied, d->positions.applied, QN_RELEASE);
    }
    uint64_t read = d->received + qn_onepaxos_read(d->machine);
    if (qn_load(&d->o.state->read, QN_RELAXED) != read) {
        /* relaxed: it tells a leader that this incarnation makes progress. */
        qn_store(&d->o.state->read, read, QN_RELAXED);
    }
    qn_driver_learned(d, qn_onepaxos_learned(d->machine));
}

/* ---- a turn -------------------------------------------------------------- */

/* Apply what the last turn has left. */
static void held_apply(struct qn_driver *d)
{
    const struct qn_input go = {.kind = QN_IN_GO};
    while (d->more && d->left > 0) {
        qn_driver_step(d, &go);
    }
}

/* A tree with other members was announced during a delivery. */
static void announced_take(struct qn_driver *d)
{
    if (d->dissemination.announced.members != 0) {
        qn_driver_tree_announced(d);
    }
}

/* Receive and apply. When no work is left, the rest stays in the channel. */
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

int qn_driver_failed(const struct qn_driver *d)
{
    return d->failed;
}

bool qn_driver_give_back(struct qn_driver *d)
{
    const bool forgot = qn_onepaxos_forget(d->machine);
    return qn_mempool_trim(&d->pool) || forgot; /* the log is in it, too */
}

bool qn_driver_turn(struct qn_driver *d, qn_time_t now, uint64_t wall_ms)
{
    if (d->failed != QN_OK) {
        return false;
    }
    qn_mark(QN_MARK_TURN);
    qn_driver_time(d, now);
    d->wall_ms = wall_ms;
    d->did = false;
    d->left = QN_TURN_WORK;
    QN_ASSERT(!d->dissemination.delivering);
    if (qn_driver_apply_waits(d)) {
        qn_driver_apply_again(d);
    }
    held_apply(d);
    for (uint64_t m = qn_driver_peers(d); m != 0; m &= m - 1) {
        const qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        if (qn_driver_lives(d, i)) { /* one may end in a turn */
            qn_driver_receive(d, i);
        }
    }
    if (!d->hold_learns && d->o.nodes > 1) {
        if (d->context != NULL) {
            tree_receive(d);
        }
        if (qn_positions_look_due(&d->positions, d->now)) {
            qn_driver_positions_read(d);
        }
    }
    if (d->dissemination.latency_probe_slot != 0) {
        qn_driver_latency_probe_look(d);
    }
    qn_driver_ring_look(d);
    if (!QN_MUTANT(EXPOSE_EARLY)) { /* M12 */
        qn_driver_publish(d);
    }
    return d->did;
}

/* Flush what was touched. Queuepairs with something left are flushed again when
 * there is room. */
static void touched_flush(struct qn_driver *d)
{
    uint64_t waits = 0;
    QN_ASSERT((d->touched & qn_driver_bit(d->o.self)) == 0);
    for (uint64_t m = d->touched; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp != NULL &&
            (qn_qp_flush(p->qp) || (d->transfers & qn_driver_bit(i)) != 0 ||
             !qn_sendq_empty(&p->control) || !qn_sendq_empty(&p->bulk))) {
            waits |= qn_driver_bit(i);
        }
    }
    QN_ASSERT((waits & ~d->touched) == 0);
    d->touched = waits;
}

/* When to look at the peers' positions next. @param shut  The gate. */
static void look_plan(struct qn_driver *d, bool shut)
{
    struct qn_positions *p = &d->positions;
    /* The gate is shut; or a leader that hands over looks for a peer to stage
     * to, which may have installed a snapshot and says so in its outbox only;
     * or a peer may have missed a LEARN. */
    bool waits_for_others =
        shut || qn_onepaxos_role(d->machine) == QN_HANDING_OVER;
    if (d->halt.verdict.kind != QN_VERDICT_NONE) {
        qn_positions_look_by(p, d->now + QN_VERDICT_LOOK);
    }
    bool looks = d->did || waits_for_others || qn_driver_may_remind(d);
    if (looks && d->o.nodes > 1) {
        qn_positions_look_once(p, d->now + QN_HEARTBEAT_INTERVAL);
    }
    if (p->hold.slot != 0) { /* it ends though nothing happens here */
        qn_positions_look_by(p, d->now + QN_HOLD_LOOK);
    }
}

bool qn_driver_flush(struct qn_driver *d, qn_time_t now)
{
    const struct qn_input tick = {.kind = QN_IN_TICK};
    if (d->failed != QN_OK) {
        return false;
    }
    qn_driver_time(d, now);
    if (d->now >= d->order.ask_at) {
        qn_driver_order_look(d);
    }
    if (d->now >= d->order.shut_until) { /* the change was given up */
        d->order.shut_until = QN_TIME_NEVER;
    }
    do {
        d->again = false;
        qn_driver_step(d, &tick);
    } while (d->again);
    QN_ASSERT(!d->more || d->left <= 0);
    for (uint32_t i = 0; i < FILLS_MAX && qn_driver_queues_send(d); i++) {
    }
    qn_driver_bcast_send(d);
    /* A follower that the flush wakes sees that writes go on. */
    const bool shut = qn_driver_flow_look(d);
    qn_driver_publish(d);
    touched_flush(d);
    if (d->context != NULL) {
        d->tree_waits = qn_driver_tree_flush(d);
    }
    qn_driver_note_turn(d);
    qn_driver_halt_look(d);
    look_plan(d, shut);
    if (d->told != NULL) {
        qn_driver_state_say(d);
        touched_flush(d);
    }
    return d->touched != 0 || d->tree_waits;
}

bool qn_driver_pending(struct qn_driver *d)
{
    const void *bytes = NULL;
    size_t len = 0;
    if (d->more || d->failed != QN_OK) {
        return d->failed == QN_OK;
    }
    for (uint64_t m = qn_driver_peers(d); m != 0; m &= m - 1) {
        struct qn_driver_peer *p = &d->peer[__builtin_ctzll(m)];
        if (p->corrupt) {
            continue;
        }
        /* What was refused may be taken once the machine has moved, perhaps
         * later in the same turn. Until then it is refused again. */
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
    if (d->failed != QN_OK) {
        return QN_TIME_NEVER;
    }
    qn_time_t at = QN_MIN(d->machine_deadline, d->positions.heartbeat_at);
    at = QN_MIN(at, QN_MIN(d->order.ask_at, d->order.shut_until));
    at = qn_time_earlier(at, qn_dissemination_deadline(&d->dissemination));
    at = qn_time_earlier(at, qn_driver_apply_deadline(d));
    return qn_time_earlier(at, qn_ring_choice_deadline(&d->ring_choice));
}

/* ---- public -------------------------------------------------------------- */

int qn_driver_submit(struct qn_driver *d, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq)
{
    const struct qn_input in = {.kind = QN_IN_SUBMIT,
                                .submit = {.parts = parts, .count = count}};
    qn_slot_t before = d->positions.visible_slot;
    if (d->failed != QN_OK) {
        return d->failed;
    }
    if (d->order.shut_until != QN_TIME_NEVER && !qn_driver_removed(d)) {
        return QN_EAGAIN;
    }
    int err = qn_driver_step(d, &in);
    if (err == QN_OK) {
        *seq = d->out.seq;
        QN_DASSERT(*seq != 0);
    }
    if (d->positions.visible_slot != before) {
        qn_driver_publish(d); /* a node that catches up has applied something */
    }
    return err;
}

bool qn_driver_room(const struct qn_driver *d)
{
    return d->order.shut_until == QN_TIME_NEVER && qn_onepaxos_room(d->machine);
}

qn_slot_t qn_driver_read_index(struct qn_driver *d)
{
    /* seq_cst: partner is the fetch_max of the replica that publishes. */
    qn_slot_t index = qn_load(d->o.read_index, QN_SEQ_CST);
    switch (qn_positions_index_check(&d->positions, index)) {
    case QN_INDEX_LOW:
    case QN_INDEX_LOWERED:
        return visible_to_all(d); /* qn_driver_publish raises it again */
    case QN_INDEX_APPLIED:
        return index;
    case QN_INDEX_AHEAD:
        break;
    }
    return index_ahead(d, index);
}

struct qn_read_view qn_driver_read_view(struct qn_driver *d)
{
    if (d->told != NULL) {
        return qn_driver_state_view(d);
    }
    return (struct qn_read_view){.index = qn_driver_read_index(d),
                                 .reached = d->positions.applied};
}

bool qn_driver_by_message(const struct qn_driver *d)
{
    return d->told != NULL;
}

qn_slot_t qn_driver_applied(const struct qn_driver *d)
{
    return d->positions.applied;
}

bool qn_driver_overwrite_register(struct qn_driver *d, uint64_t epoch,
                                  uint64_t hi)
{
    struct qn_accept_register w;
    if (!qn_driver_claims(d)) {
        return false;
    }
    do {
        w = qn_memory_acceptor_load(&d->shared);
    } while (!qn_cas_pair(d->shared.accept_register, w.epoch, w.hi, epoch, hi));
    return true;
}

void qn_driver_hold_learns(struct qn_driver *d, bool hold)
{
    d->hold_learns = hold;
    qn_positions_look_by(&d->positions, 0);
}
