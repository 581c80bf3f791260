/*
 * The driver's sending half.
 *
 * Two queues per peer: bulk (REQUEST, ACCEPT, FILL: their order among each
 * other matters, and they may be long) and control, which goes first and
 * between two pieces. The usual short message finds both empty and is written
 * straight into its cell.
 *
 * Broadcasts have one queue for all children: a child that has no room is
 * waited for up to QN_STALL, once; then it is left behind until it has room
 * again, and learns what it missed by FETCH, or from the ring. So it does what
 * the queue has no room for: that is bounded in bytes.
 *
 * Whoever waits for room flushes again: only a flush asks the peer to ring.
 */
#include <string.h>

#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"

enum {
    TELL_BYTES_MAX = 60000, /* of qn_driver_tell */
    /* That wait for children with room; the first message may be longer. The
     * memory acceptor sends no long ones. */
    BCAST_BYTES = 16 << 20,
    BCAST_BYTES_MEMORY = 1 << 20,
};

/* ---- to one peer --------------------------------------------------------- */

/* Write one piece into the channel. False: no room now. */
static bool piece_send(struct qn_driver *d, qn_node_t to,
                       const struct qn_msg *m)
{
    size_t head = qn_msg_head_size(m);
    void *buf = NULL;
    d->touched |=
        qn_driver_bit(to); /* without room too: flush asks the peer to ring */
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

/* Asked again while no answer comes, however long the peer stands still. Only
 * the newest counts: its epoch, ballot, hole or end of the log is the asker's
 * present one, and an answer to another is void, or no more than it gets. An
 * older one that has not left may be lost, as any of them where memory is
 * short; and the peer, when it goes on, does not answer them all. */
static bool is_question(const struct qn_msg *m)
{
    return m->kind == QN_MSG_PREPARE || m->kind == QN_MSG_SEAL ||
           m->kind == QN_MSG_FETCH || m->kind == QN_MSG_U_PREPARE ||
           m->kind == QN_MSG_U_ACCEPT || m->kind == QN_MSG_U_NEED;
}

void qn_driver_learned(struct qn_driver *d, qn_slot_t slot)
{
    qn_a64 *learned = &d->o.state->learned;
    /* relaxed: only this thread writes it. It is old if the leader asks again
     * for an older slot. */
    if (qn_load(learned, QN_RELAXED) < slot) {
        qn_store(learned, slot, QN_RELEASE); /* acquire: driver_bound.c */
    }
}

void qn_driver_send(struct qn_driver *d, qn_node_t to, const struct qn_msg *m)
{
    struct qn_driver_peer *p = &d->peer[to];
    if (m->kind == QN_MSG_ACCEPTED) {
        /* Before anybody can learn a slot, the acceptor says in its outbox that
         * it has accepted it: this is the first word of it that leaves. */
        qn_driver_learned(d, m->slot);
    }
    struct qn_sendq *q = is_bulk(m) ? &p->bulk : &p->control;
    if (p->qp == NULL) {
        return; /* it has ended */
    }
    bool first = qn_sendq_empty(&p->control) && qn_sendq_empty(q);
    if (first && m->body.len + QN_HEAD_MAX <= QN_PIECE_MAX &&
        piece_send(d, to, m)) {
        return;
    }
    if (is_question(m)) {
        qn_sendq_drop(q, m->kind);
    }
    push(q, m);
}

/* Send what is queued; to a peer with an empty queue and room, the next slot
 * of what it has asked for. @return true if there may be more of that. */
bool qn_driver_queues_send(struct qn_driver *d)
{
    uint64_t room = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp != NULL && queue_send(d, i, &p->control) &&
            queue_send(d, i, &p->bulk) &&
            (d->transfers & qn_driver_bit(i)) != 0) {
            d->touched |= qn_driver_bit(i);
            room |= qn_qp_room(p->qp) > 0 ? qn_driver_bit(i) : 0;
        }
    }
    if (room != 0) {
        const struct qn_input in = {.kind = QN_IN_ROOM, .room = {room}};
        qn_driver_step(d, &in);
    }
    return room != 0;
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
    d->touched |= qn_driver_bit(to);
    return QN_OK;
}

/* ---- to all -------------------------------------------------------------- */

/* Children that have no room for the next broadcast and are waited for. */
static uint64_t children_full(struct qn_driver *d)
{
    uint64_t full = 0;
    for (uint64_t m = d->children; m != 0; m &= m - 1) {
        qn_node_t c = (qn_node_t)__builtin_ctzll(m);
        if (d->tree[c] != NULL && qn_qp_room(d->tree[c]) == 0) {
            full |= qn_driver_bit(c);
        } else {
            d->left_behind &= ~qn_driver_bit(c);
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
void qn_driver_bcast_send(struct qn_driver *d)
{
    while (!qn_sendq_empty(&d->bcast)) {
        uint64_t full = children_full(d);
        if (full != 0) {
            if (d->stalled_since == 0) {
                d->stalled_since = d->now;
            }
            if (d->now - d->stalled_since < QN_STALL) {
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
bool qn_driver_tree_flush(struct qn_driver *d)
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

size_t qn_driver_bcast_max(const struct qn_driver *d)
{
    return d->memory ? BCAST_BYTES_MEMORY : BCAST_BYTES;
}

void qn_driver_bcast(struct qn_driver *d, const struct qn_msg *whole)
{
    struct qn_msg named = *whole; /* and its blob is the caller's */
    const struct qn_msg *m = &named;
    if (d->cfg.acceptor != d->o.self || d->children == 0) {
        return;
    }
    named.learn.alive = d->members;
    qn_driver_reach_begin(d, m->slot);
    if (qn_sendq_empty(&d->bcast) && children_full(d) == 0 &&
        m->body.len + QN_HEAD_MAX <= QN_PIECE_MAX) {
        bcast_piece(d, m);
        return;
    }
    if (!qn_sendq_empty(&d->bcast) &&
        d->bcast.bytes + m->body.len > qn_driver_bcast_max(d)) {
        d->bcast_dropped++; /* the children fetch it */
        return;
    }
    push(&d->bcast, m);
    qn_driver_bcast_send(d);
}

/* ---- waiting for room ---------------------------------------------------- */

/* Something waits for room, and now there is some: the peer may have made it,
 * and not rung, before this node declared that it sleeps. Flushing again asks
 * the peer to ring for what is still missing. */
bool qn_driver_room_came(struct qn_driver *d)
{
    bool came = false;
    for (uint64_t m = d->touched; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp != NULL && !qn_qp_flush(p->qp)) {
            bool queued =
                !qn_sendq_empty(&p->control) || !qn_sendq_empty(&p->bulk);
            queued |= (d->transfers & qn_driver_bit(i)) != 0;
            came |= queued && qn_qp_room(p->qp) > 0;
        }
    }
    if (d->tree_waits) {
        d->tree_waits = qn_driver_tree_flush(d);
        came |= !qn_sendq_empty(&d->bcast) && children_full(d) == 0;
    }
    return came;
}
