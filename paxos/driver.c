/*
 * The driver: bytes and time between the machine and the channels.
 *
 * Receiving. Direct lanes are read peer by peer, at most RECV_MAX messages
 * each, so that one peer cannot starve the others. A message that the machine
 * refuses for now (its queue is full) stays in the channel, or, if it was
 * joined from pieces, is parked; nothing behind it is read. LEARN arrives
 * through the context.
 *
 * Sending. Two queues per peer: bulk (REQUEST, ACCEPT, FILL: their order among
 * each other matters, and they may be long) and control, which goes first and
 * between two pieces. The usual short message finds both empty and is written
 * straight into its cell. Broadcasts have one queue for all children: a child
 * that has no room is waited for up to STALL, once; then it is left behind
 * until it has room again, and learns what it missed by FETCH.
 *
 * Order of effects. Outputs are executed in the machine's order, so at the
 * acceptor a LEARN is in every child's lane before the slot is applied here.
 * After applying, and before the caller can answer anything from the new
 * state, the read index is raised (PROTOCOL.md 6.2, publish before expose).
 */
#include "paxos/driver.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "core/group/group.h"
#include "paxos/onepaxos.h"
#include "paxos/sendq.h"

enum {
    RECV_MAX = 256,         /* messages of one peer in one turn */
    FRAMES_MAX = 4096,      /* frames of the tree in one turn */
    FILLS_MAX = 64,         /* slots sent to each laggard in one turn */
    TELL_BYTES_MAX = 60000, /* of qn_driver_tell */
};
#define BEAT_EVERY ((qn_time_t)2 * QN_MS) /* look at the peers' positions */
#define STALL      ((qn_time_t)2 * QN_MS) /* wait for a child, at most */

struct peer {
    struct qn_qp *qp;
    struct qn_sendq control, bulk;
    struct qn_joiner joiner;
    struct qn_msg parked; /* joined and refused, if is_parked */
    bool is_parked, corrupt;
    bool refused;          /* its next message, in the channel or parked, ... */
    uint64_t refused_step; /* ... when d->steps was this */
    qn_slot_t applied, learned; /* as it said last */
};

struct qn_driver {
    struct qn_driver_opts o;
    struct qn_onepaxos *machine;
    struct qn_context *context;
    struct qn_joiner learn_joiner;
    struct qn_sendq bcast;
    uint64_t children;       /* mask */
    uint64_t left_behind;    /* children that are not waited for */
    qn_time_t stalled_since; /* 0: the head of bcast does not wait */
    struct peer peer[QN_NODES_MAX];
    struct qn_qp *tree[QN_NODES_MAX];
    const struct qn_outbox_state *peer_state[QN_NODES_MAX];
    uint64_t touched;   /* peers whose queuepair must be flushed */
    uint64_t transfers; /* peers for which the machine has more */
    qn_time_t now;
    uint64_t wall_ms;
    qn_time_t machine_deadline;
    qn_time_t learn_at; /* the tree brought something last */
    qn_time_t beat_at;  /* next look at the peers' positions; or NEVER */
    qn_slot_t applied;  /* all of them */
    qn_slot_t exposed;  /* >= applied: at least a part of it is in the state */
    qn_node_t acceptor;
    bool again, did, hold_learns, need_snapshot;
    bool tree_waits; /* the tree has something to send and no room */
    uint64_t batches, commands;
    uint64_t steps; /* that changed something: what was refused may fit now */
    struct qn_step_out out; /* of the current step; large, so not on stack */
};

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

/* ---- sending ------------------------------------------------------------- */

/* Write one piece into the channel. False: no room now. */
static bool piece_send(struct qn_driver *d, qn_node_t to,
                       const struct qn_msg *m)
{
    size_t head = qn_msg_head_size(m);
    void *buf = NULL;
    d->touched |= bit(to); /* without room too: flush asks the peer to ring */
    if (qn_qp_try_reserve(d->peer[to].qp, head + m->body.len, &buf) != QN_OK) {
        return false;
    }
    qn_msg_head(m, buf);
    if (m->body.len != 0) {
        memcpy((uint8_t *)buf + head, m->body.data, m->body.len);
    }
    qn_qp_commit(d->peer[to].qp, head + m->body.len);
    return true;
}

/* @return true if the queue is empty afterwards. */
static bool queue_send(struct qn_driver *d, qn_node_t to, struct qn_sendq *q)
{
    while (!qn_sendq_empty(q)) {
        struct qn_msg piece;
        qn_sendq_piece(q, &piece);
        if (!piece_send(d, to, &piece)) {
            return false;
        }
        qn_sendq_sent(q, &piece);
    }
    return true;
}

static void push(struct qn_sendq *q, const struct qn_msg *m)
{
    /* A message of the log that is neither sent nor kept would be a hole in a
     * FIFO channel, which the protocol does not know. */
    int err = qn_sendq_push(q, m);
    QN_ASSERT(err == QN_OK);
}

static bool is_bulk(const struct qn_msg *m)
{
    return m->kind == QN_MSG_REQUEST || m->kind == QN_MSG_ACCEPT ||
           m->kind == QN_MSG_LEARN || m->kind == QN_MSG_FILL;
}

static void out_send(struct qn_driver *d, qn_node_t to, const struct qn_msg *m)
{
    struct peer *p = &d->peer[to];
    struct qn_sendq *q = is_bulk(m) ? &p->bulk : &p->control;
    if (p->qp == NULL) {
        return; /* it has ended */
    }
    bool first = qn_sendq_empty(&p->control) && qn_sendq_empty(q);
    if (first && m->body.len + QN_HEAD_MAX <= QN_PIECE_MAX &&
        piece_send(d, to, m)) {
        return;
    }
    push(q, m);
}

/* Children that have no room for the next broadcast and are waited for. */
static uint64_t children_full(struct qn_driver *d)
{
    uint64_t full = 0;
    for (uint64_t m = d->children; m != 0; m &= m - 1) {
        qn_node_t c = (qn_node_t)__builtin_ctzll(m);
        if (d->tree[c] != NULL && qn_qp_room(d->tree[c]) == 0) {
            full |= bit(c);
        } else {
            d->left_behind &= ~bit(c);
        }
    }
    return full & ~d->left_behind;
}

static void bcast_piece(struct qn_driver *d, const struct qn_msg *m)
{
    uint8_t head[QN_HEAD_MAX];
    const struct qn_slice parts[] = {{head, qn_msg_head(m, head)}, m->body};
    uint64_t dropped = 0;
    int err = qn_context_bcast(d->context, parts, 2, &dropped);
    QN_ASSERT(err == QN_OK);
    d->left_behind |= dropped;
}

/* Send queued broadcasts as far as the children have room. */
static void bcast_send(struct qn_driver *d)
{
    while (!qn_sendq_empty(&d->bcast)) {
        uint64_t full = children_full(d);
        if (full != 0) {
            if (d->stalled_since == 0) {
                d->stalled_since = d->now;
            }
            if (d->now - d->stalled_since < STALL) {
                return;
            }
            d->left_behind |= full;
        }
        d->stalled_since = 0;
        struct qn_msg piece;
        qn_sendq_piece(&d->bcast, &piece);
        bcast_piece(d, &piece);
        qn_sendq_sent(&d->bcast, &piece);
    }
}

/* @return true while something waits for room. A child that is waited for may
 * have been sent nothing since its last flush, so the context would not flush
 * it; but only a flush asks it to ring. */
static bool tree_flush(struct qn_driver *d)
{
    bool waits = qn_context_flush(d->context);
    if (qn_sendq_empty(&d->bcast)) {
        return waits;
    }
    for (uint64_t m = d->children; m != 0; m &= m - 1) {
        struct qn_qp *qp = d->tree[__builtin_ctzll(m)];
        if (qp != NULL) {
            (void)qn_qp_flush(qp);
        }
    }
    return true;
}

static void out_bcast(struct qn_driver *d, const struct qn_msg *m)
{
    /* release -> acquire in qn_driver_read_index: before anybody can learn the
     * slot, this acceptor says that it has accepted it. */
    qn_store(&d->o.state->learned, m->slot, QN_RELEASE);
    if (d->o.nodes == 1) {
        return;
    }
    if (qn_sendq_empty(&d->bcast) && children_full(d) == 0 &&
        m->body.len + QN_HEAD_MAX <= QN_PIECE_MAX) {
        bcast_piece(d, m);
        return;
    }
    push(&d->bcast, m);
    bcast_send(d);
}

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
            s->apply(s->ctx, &one);
        }
        d->commands += n;
    } while (n == QN_AHEAD);
    if (a->last) {
        d->applied = a->slot;
        d->batches++;
        s->applied(s->ctx, a->slot, a->stamp_ms);
    }
}

static void out_execute(struct qn_driver *d, const struct qn_out *o)
{
    switch (o->kind) {
    case QN_OUT_SEND:
        out_send(d, o->to, &o->msg);
        break;
    case QN_OUT_BCAST:
        out_bcast(d, &o->msg);
        break;
    case QN_OUT_APPLY:
        out_apply(d, &o->apply);
        break;
    case QN_OUT_NEED_SNAPSHOT:
        if (!d->need_snapshot) {
            qn_log(QN_LOG_ERROR,
                   "replica %u: fell behind further than the log reaches",
                   d->o.self);
        }
        d->need_snapshot = true;
        break;
    }
}

static int step(struct qn_driver *d, const struct qn_input *in)
{
    int err = qn_onepaxos_step(d->machine, in, d->now, d->wall_ms, &d->out);
    if (err != QN_OK) {
        return err;
    }
    for (uint32_t i = 0; i < d->out.count; i++) {
        out_execute(d, &d->out.out[i]);
    }
    d->did |= d->out.count != 0;
    d->steps += d->out.count != 0;
    d->again |= d->out.again;
    d->transfers = d->out.transfers;
    d->machine_deadline = d->out.deadline;
    qn_step_out_release(&d->out);
    return QN_OK;
}

/* Publish before expose: a slot counts as exposed with its first command, for
 * a step may end in the middle of a slot, and reads may come then. Then tell
 * the peers. The index is looked at in each turn, not only after applying:
 * should a wild store have lowered it, what was exposed here is published
 * again. */
static void publish(struct qn_driver *d)
{
    if (qn_load(d->o.read_index, QN_SEQ_CST) < d->exposed) {
        qn_fetch_max(d->o.read_index, d->exposed);
    }
    /* relaxed: only this thread writes its own lines. */
    if (qn_load(&d->o.state->applied, QN_RELAXED) != d->applied) {
        /* release -> acquire in beats_read of the peers: what is applied here
         * was published in the read index before. */
        qn_store(&d->o.state->applied, d->applied, QN_RELEASE);
    }
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    if (qn_load(&d->o.state->learned, QN_RELAXED) < st.learned_hi) {
        qn_store(&d->o.state->learned, st.learned_hi, QN_RELEASE);
    }
}

/* ---- receiving ----------------------------------------------------------- */

static void peer_corrupt(struct qn_driver *d, qn_node_t from)
{
    if (!d->peer[from].corrupt) {
        qn_log(QN_LOG_ERROR,
               "replica %u: malformed message from replica %u; its channel is "
               "read no more",
               d->o.self, from);
    }
    d->peer[from].corrupt = true;
}

/* Give a whole message to the machine. False: it must come again later. */
static bool give(struct qn_driver *d, qn_node_t from, const struct qn_msg *m)
{
    if (d->hold_learns && m->kind == QN_MSG_FILL) {
        return true;
    }
    const struct qn_input in = {.kind = QN_IN_RECV,
                                .recv = {.from = from, .msg = m}};
    int err = step(d, &in);
    if (err == QN_ECORRUPT || err == QN_ENOSYS) {
        peer_corrupt(d, from);
    }
    d->peer[from].refused = err == QN_EAGAIN || err == QN_ENOMEM;
    d->peer[from].refused_step = d->steps;
    return !d->peer[from].refused;
}

static void told(struct qn_driver *d, qn_node_t from, const uint8_t *bytes,
                 size_t len)
{
    if (d->o.service.told != NULL) {
        d->o.service.told(d->o.service.ctx, from,
                          (struct qn_slice){bytes + 1, len - 1});
    }
}

/* One message of a direct lane. False: leave it there. */
static bool take(struct qn_driver *d, qn_node_t from, const void *bytes,
                 size_t len)
{
    struct peer *p = &d->peer[from];
    if (len > 0 && *(const uint8_t *)bytes == QN_MSG_ASK) {
        told(d, from, bytes, len);
        return true;
    }
    struct qn_msg m;
    int err = qn_msg_decode(&m, bytes, len);
    if (err == QN_OK) {
        err = qn_joiner_take(&p->joiner, &qn_alloc_malloc, &m);
    }
    if (err == QN_ENOMEM) {
        return false;
    }
    if (err == QN_ECORRUPT) {
        peer_corrupt(d, from);
    }
    if (err != QN_OK || give(d, from, &m)) {
        return true;
    }
    if (m.blob == NULL) {
        return false;
    }
    p->parked = m; /* the joiner holds its bytes */
    p->is_parked = true;
    return true;
}

static void peer_receive(struct qn_driver *d, qn_node_t from)
{
    struct peer *p = &d->peer[from];
    const void *bytes = NULL;
    size_t len = 0;
    if (p->is_parked) {
        if (!give(d, from, &p->parked)) {
            return;
        }
        p->is_parked = false;
    }
    for (uint32_t i = 0; i < RECV_MAX && !p->corrupt && !p->is_parked; i++) {
        if (qn_qp_peek(p->qp, &bytes, &len) != QN_OK) {
            return;
        }
        if (!take(d, from, bytes, len)) {
            return;
        }
        qn_qp_release(p->qp);
        d->touched |= bit(from);
        d->did = true;
    }
}

/* A LEARN (or a piece of one) came down the tree. */
static void on_deliver(void *ctx, const void *bytes, size_t len)
{
    struct qn_driver *d = ctx;
    struct qn_msg m;
    d->did = true;
    d->learn_at = d->now;
    if (qn_msg_decode(&m, bytes, len) != QN_OK || m.kind != QN_MSG_LEARN ||
        qn_joiner_take(&d->learn_joiner, &qn_alloc_malloc, &m) != QN_OK) {
        return; /* more pieces to come, or lost: it will be fetched */
    }
    const struct qn_input in = {.kind = QN_IN_RECV,
                                .recv = {.from = d->acceptor, .msg = &m}};
    step(d, &in);
}

/* What the acceptor has accepted, as it says itself. */
static qn_slot_t accepted(const struct qn_driver *d)
{
    const struct qn_outbox_state *s =
        d->acceptor == d->o.self ? d->o.state : d->peer_state[d->acceptor];
    /* acquire <- release in out_bcast. */
    return qn_load(&s->learned, QN_ACQUIRE);
}

/* A peer's positions are what it wrote, perhaps in its last agony: they count
 * only if they are possible. */
static void beats_read(struct qn_driver *d)
{
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_outbox_state *s = d->peer_state[i];
        if (i == d->o.self || s == NULL || d->peer[i].qp == NULL) {
            continue;
        }
        struct qn_input in = {.kind = QN_IN_BEAT};
        in.beat.peer = i;
        /* acquire <- release in publish of the peer. */
        in.beat.applied = qn_load(&s->applied, QN_ACQUIRE);
        in.beat.learned = qn_load(&s->learned, QN_ACQUIRE);
        if (in.beat.applied >= d->peer[i].applied &&
            in.beat.learned >= d->peer[i].learned &&
            in.beat.applied <= in.beat.learned &&
            in.beat.learned <= accepted(d)) {
            d->peer[i].applied = in.beat.applied;
            d->peer[i].learned = in.beat.learned;
            step(d, &in);
        }
    }
}

/* Pieces of a long LEARN keep coming. The acceptor already says that it has
 * accepted the slot; taken as a gap that would be fetched a second time. */
static bool learn_is_coming(const struct qn_driver *d)
{
    return d->learn_joiner.blob != NULL && !d->learn_joiner.whole &&
           d->now - d->learn_at < 2 * BEAT_EVERY;
}

/* ---- public -------------------------------------------------------------- */

bool qn_driver_turn(struct qn_driver *d, qn_time_t now, uint64_t wall_ms)
{
    d->now = now;
    d->wall_ms = wall_ms;
    d->did = false;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (d->peer[i].qp != NULL) {
            peer_receive(d, i);
        }
    }
    if (!d->hold_learns && d->o.nodes > 1) {
        qn_context_poll(d->context, FRAMES_MAX);
        if (now >= d->beat_at && learn_is_coming(d)) {
            d->beat_at = now + BEAT_EVERY;
        } else if (now >= d->beat_at) {
            d->beat_at = QN_TIME_NEVER;
            beats_read(d);
        }
    }
    publish(d);
    return d->did;
}

/* Send what is queued; to a peer with an empty queue and room, the next slot
 * of what it has asked for. @return true if there may be more of that. */
static bool queues_send(struct qn_driver *d)
{
    uint64_t room = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct peer *p = &d->peer[i];
        if (p->qp != NULL && queue_send(d, i, &p->control) &&
            queue_send(d, i, &p->bulk) && (d->transfers & bit(i)) != 0) {
            d->touched |= bit(i);
            room |= qn_qp_room(p->qp) > 0 ? bit(i) : 0;
        }
    }
    if (room != 0) {
        const struct qn_input in = {.kind = QN_IN_ROOM, .room = {room}};
        step(d, &in);
    }
    return room != 0;
}

bool qn_driver_flush(struct qn_driver *d, qn_time_t now)
{
    d->now = now;
    const struct qn_input tick = {.kind = QN_IN_TICK};
    do {
        d->again = false;
        step(d, &tick);
    } while (d->again);
    for (uint32_t i = 0; i < FILLS_MAX && queues_send(d); i++) {
    }
    bcast_send(d);
    publish(d);
    uint64_t waits = 0; /* they are flushed again when there is room */
    for (uint64_t m = d->touched; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        struct peer *p = &d->peer[i];
        if (p->qp != NULL &&
            (qn_qp_flush(p->qp) || (d->transfers & bit(i)) != 0 ||
             !qn_sendq_empty(&p->control) || !qn_sendq_empty(&p->bulk))) {
            waits |= bit(i);
        }
    }
    d->touched = waits;
    if (d->o.nodes > 1) {
        d->tree_waits = tree_flush(d);
    }
    if (d->did && d->beat_at == QN_TIME_NEVER && d->o.nodes > 1) {
        d->beat_at = now + BEAT_EVERY;
    }
    return waits != 0 || d->tree_waits;
}

/* Something waits for room, and now there is some: the peer may have made it,
 * and not rung, before this node declared that it sleeps. Flushing again asks
 * the peer to ring for what is still missing. */
static bool room_came(struct qn_driver *d)
{
    bool came = false;
    for (uint64_t m = d->touched; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        struct peer *p = &d->peer[i];
        if (p->qp != NULL && !qn_qp_flush(p->qp)) {
            bool queued =
                !qn_sendq_empty(&p->control) || !qn_sendq_empty(&p->bulk);
            queued |= (d->transfers & bit(i)) != 0;
            came |= queued && qn_qp_room(p->qp) > 0;
        }
    }
    if (d->tree_waits) {
        d->tree_waits = tree_flush(d);
        came |= !qn_sendq_empty(&d->bcast) && children_full(d) == 0;
    }
    return came;
}

bool qn_driver_pending(struct qn_driver *d)
{
    const void *bytes = NULL;
    size_t len = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct peer *p = &d->peer[i];
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
    if (d->o.nodes > 1 && !d->hold_learns && qn_context_pending(d->context)) {
        return true;
    }
    return (d->touched != 0 || d->tree_waits) && room_came(d);
}

qn_time_t qn_driver_deadline(const struct qn_driver *d)
{
    qn_time_t at = QN_MIN(d->machine_deadline, d->beat_at);
    if (d->stalled_since != 0) {
        at = QN_MIN(at, d->stalled_since + STALL);
    }
    return at;
}

int qn_driver_submit(struct qn_driver *d, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq)
{
    const struct qn_input in = {.kind = QN_IN_SUBMIT,
                                .submit = {.parts = parts, .count = count}};
    qn_slot_t before = d->exposed;
    int err = step(d, &in);
    if (err == QN_OK) {
        *seq = d->out.seq;
    }
    if (d->exposed != before) {
        publish(d); /* a node that catches up has applied something */
    }
    return err;
}

bool qn_driver_room(const struct qn_driver *d)
{
    return qn_onepaxos_room(d->machine);
}

int qn_driver_tell(struct qn_driver *d, qn_node_t to, struct qn_slice bytes)
{
    QN_ASSERT(to < d->o.nodes && to != d->o.self);
    void *buf = NULL;
    if (bytes.len > TELL_BYTES_MAX) {
        return QN_EMSGSIZE;
    }
    if (d->peer[to].qp == NULL) {
        return QN_EAGAIN;
    }
    int err = qn_qp_try_reserve(d->peer[to].qp, bytes.len + 1, &buf);
    if (err != QN_OK) {
        return QN_EAGAIN;
    }
    *(uint8_t *)buf = QN_MSG_ASK;
    memcpy((uint8_t *)buf + 1, bytes.data, bytes.len);
    qn_qp_commit(d->peer[to].qp, bytes.len + 1);
    d->touched |= bit(to);
    return QN_OK;
}

qn_slot_t qn_driver_read_index(const struct qn_driver *d)
{
    /* seq_cst: partner is the fetch_max of the replica that publishes. A true
     * index p was stored after slot p was learned, hence after the acceptor
     * said that it had accepted p: the bound never cuts a true index. */
    qn_slot_t index = qn_load(d->o.read_index, QN_SEQ_CST);
    qn_slot_t bound = accepted(d);
    return QN_MIN(index, bound);
}

qn_slot_t qn_driver_applied(const struct qn_driver *d)
{
    return d->applied;
}

void qn_driver_status(const struct qn_driver *d, struct qn_driver_status *out)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    *out = (struct qn_driver_status){
        .epoch = st.epoch,
        .leader = st.leader,
        .acceptor = st.acceptor,
        .applied = d->applied,
        .learned = st.learned_hi,
        .decided_hi = st.decided_hi,
        .batches = d->batches,
        .commands = d->commands,
        .unapplied = st.unapplied,
        .fetches = st.fetches,
        .log_bytes = st.log_bytes,
    };
}

void qn_driver_hold_learns(struct qn_driver *d, bool hold)
{
    d->hold_learns = hold;
    d->beat_at = 0;
}

void qn_driver_down(struct qn_driver *d, qn_node_t peer, qn_time_t now)
{
    struct peer *p = &d->peer[peer];
    if (peer >= d->o.nodes || p->qp == NULL) {
        return;
    }
    d->now = now;
    const struct qn_input in = {.kind = QN_IN_DOWN, .down = {peer}};
    step(d, &in);
    p->qp = NULL; /* the caller closes it */
    qn_sendq_free(&p->control);
    qn_sendq_free(&p->bulk);
    qn_joiner_reset(&p->joiner);
    p->is_parked = false;
    if (d->o.nodes > 1) {
        qn_context_down(d->context, peer);
    }
    d->children &= ~bit(peer);
    d->touched &= ~bit(peer);
}

/* ---- life ---------------------------------------------------------------- */

/* The acceptor is the root and the leader its first child: then the leader's
 * reply costs no depth. */
static int context_make(struct qn_driver *d, struct qn_tree *tree)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    qn_node_t order[QN_NODES_MAX];
    uint32_t n = 0;
    order[n++] = st.acceptor;
    order[n++] = st.leader;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (i != st.acceptor && i != st.leader) {
            order[n++] = i;
        }
    }
    int err = qn_tree_build(tree, d->o.topology, order, n);
    if (err != QN_OK) {
        return err;
    }
    const struct qn_context_opts o = {.self = d->o.self,
                                      .tree = tree,
                                      .qp = d->tree,
                                      .deliver = on_deliver,
                                      .ctx = d};
    if (tree->root == d->o.self) {
        for (uint32_t i = 0; i < tree->child_count[d->o.self]; i++) {
            d->children |= bit(tree->child[tree->child_at[d->o.self] + i]);
        }
    }
    return qn_context_create(&d->context, &o);
}

static int machine_make(struct qn_driver *d)
{
    const struct qn_onepaxos_opts o = {
        .self = d->o.self,
        .nodes = d->o.nodes,
        .incarnation = d->o.incarnation,
        .parent = d->o.self,
        .alloc = &qn_alloc_malloc,
        .params = qn_params_default(d->o.own_cores),
    };
    size_t bytes = qn_onepaxos_size(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    void *mem = calloc(1, bytes);
    if (mem == NULL) {
        return QN_ENOMEM;
    }
    d->machine = qn_onepaxos_init(mem, &o);
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    d->acceptor = st.acceptor;
    return QN_OK;
}

int qn_driver_create(struct qn_driver **out, const struct qn_driver_opts *o)
{
    if (o->nodes == 0 || o->nodes > QN_NODES_MAX || o->self >= o->nodes) {
        return QN_EINVAL;
    }
    struct qn_driver *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return QN_ENOMEM;
    }
    d->o = *o;
    d->now = o->now;
    d->machine_deadline = QN_TIME_NEVER;
    d->beat_at = QN_TIME_NEVER;
    for (qn_node_t i = 0; i < o->nodes && o->nodes > 1; i++) {
        if (i != o->self) {
            d->peer[i].qp = o->direct[i];
            d->tree[i] = o->tree[i];
            d->peer_state[i] = o->peer_state[i];
        }
    }
    int err = machine_make(d);
    struct qn_tree *tree = calloc(1, sizeof *tree);
    if (err == QN_OK && tree == NULL) {
        err = QN_ENOMEM;
    }
    if (err == QN_OK && o->nodes > 1) {
        err = context_make(d, tree);
    }
    free(tree);
    if (err != QN_OK) {
        qn_driver_destroy(d);
        return err;
    }
    *out = d;
    return QN_OK;
}

void qn_driver_destroy(struct qn_driver *d)
{
    if (d == NULL) {
        return;
    }
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        qn_sendq_free(&d->peer[i].control);
        qn_sendq_free(&d->peer[i].bulk);
        qn_joiner_reset(&d->peer[i].joiner);
    }
    qn_sendq_free(&d->bcast);
    qn_joiner_reset(&d->learn_joiner);
    qn_context_destroy(d->context);
    if (d->machine != NULL) {
        qn_onepaxos_fini(d->machine);
        free(d->machine);
    }
    free(d);
}
