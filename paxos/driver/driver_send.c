/*
 * The driver's sending half.
 *
 * Two queues per peer: bulk (REQUEST, ACCEPT, FILL: their order among each
 * other matters, and they may be long) and control, which goes first and
 * between two fragments. The usual short message finds both empty and is
 * written straight into its cell.
 *
 * Broadcasts have one queue for all children, which is bounded in bytes. What
 * it has no room for is dropped, and a child without room is left behind after
 * a while (dissemination.h). In both cases the child learns the slot by FETCH,
 * or from the ring.
 *
 * A node that waits for room flushes again: only a flush asks the peer to ring
 * when there is room.
 */
#include <string.h>

#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/mutant.h"

enum {
    PEER_MESSAGE_MAX = 60000, /* bytes of qn_driver_send_peer_message */
    /* Bytes of LEARNs that wait for children; the first LEARN may be longer.
     * With the memory acceptor no long ones are sent. */
    BCAST_BYTES = 16 << 20,
    BCAST_BYTES_MEMORY = 1 << 20,
};

/* ---- to one peer --------------------------------------------------------- */

/* Write one fragment into the channel. False: no room now. */
static bool fragment_send(struct qn_driver *d, qn_node_t to,
                          const struct qn_msg *m)
{
    size_t head = qn_msg_head_size(m);
    QN_DASSERT(to < d->o.nodes);
    QN_DASSERT(to != d->o.self);
    QN_DASSERT(head + m->body.len <= QN_FRAGMENT_MAX);
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
        struct qn_msg fragment;
        qn_sendq_fragment(q, &fragment);
        if (!fragment_send(d, to, &fragment)) {
            return false;
        }
        qn_sendq_sent(q, &fragment);
    }
    return true;
}

/* A message of the log that is neither sent nor kept would be a hole in a FIFO
 * channel, which the protocol does not know. So what is kept for others gives
 * way; and then nothing more is sent: to the others this is a node that has
 * ended here. */
static void push(struct qn_driver *d, struct qn_sendq *q,
                 const struct qn_msg *m)
{
    int err = qn_sendq_push(q, m);
    while (err != QN_OK && qn_driver_give_back(d)) {
        err = qn_sendq_push(q, m);
    }
    if (err != QN_OK) {
        QN_ASSERT(d->o.alloc != &qn_alloc_malloc); /* else the process ends */
        d->failed = QN_ENOMEM;
    }
}

static bool is_bulk(const struct qn_msg *m)
{
    return m->kind == QN_MSG_REQUEST || m->kind == QN_MSG_ACCEPT ||
           m->kind == QN_MSG_LEARN || m->kind == QN_MSG_FILL;
}

/* A question is asked again while no answer comes, however long the peer is
 * stalled. So is an order, and TAKEN, which answers it, comes again. Only the
 * newest one counts: its epoch, ballot, hole or end of the log is the present
 * one, and an answer to an older one is void, or gives no more. So an older one
 * that has not left yet may be dropped, as any message where memory is short;
 * and a peer that resumes need not answer them all. */
static bool is_question(const struct qn_msg *m)
{
    return m->kind == QN_MSG_PREPARE || m->kind == QN_MSG_SEAL ||
           m->kind == QN_MSG_FETCH || m->kind == QN_MSG_U_PREPARE ||
           m->kind == QN_MSG_U_ACCEPT || m->kind == QN_MSG_U_NEED ||
           m->kind == QN_MSG_ORDER || m->kind == QN_MSG_TAKEN;
}

void qn_driver_learned(struct qn_driver *d, qn_slot_t slot)
{
    qn_a64 *learned = &d->o.state->learned;
    /* relaxed: only this thread writes it. The slot may be an old one: the
     * leader may ask again for it. */
    if (qn_load(learned, QN_RELAXED) < slot) {
        qn_store(learned, slot, QN_RELEASE); /* acquire: driver_positions.c */
    }
}

void qn_driver_send(struct qn_driver *d, qn_node_t to, const struct qn_msg *m)
{
    struct qn_driver_peer *p = &d->peer[to];
    QN_DASSERT(to < QN_NODES_MAX);
    QN_DASSERT(to != d->o.self);
    if (m->kind == QN_MSG_ACCEPTED) {
        /* Before any node can learn a slot, the acceptor says in its outbox
         * that it has accepted it: this message is the first to leave. */
        qn_driver_learned(d, m->slot);
    }
    struct qn_sendq *q = is_bulk(m) ? &p->bulk : &p->control;
    if (p->qp == NULL || d->failed != QN_OK) {
        return; /* it has ended, or this node has */
    }
    bool first = qn_sendq_empty(&p->control) && qn_sendq_empty(q);
    if (first && m->body.len + QN_HEAD_MAX <= QN_FRAGMENT_MAX &&
        fragment_send(d, to, m)) {
        return;
    }
    if (is_question(m)) {
        qn_sendq_drop(q, m->kind);
    }
    push(d, q, m);
}

bool qn_driver_queues_send(struct qn_driver *d)
{
    uint64_t room = 0;
    for (uint64_t m = qn_driver_peers(d); m != 0; m &= m - 1) {
        const qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        struct qn_driver_peer *p = &d->peer[i];
        if (queue_send(d, i, &p->control) && queue_send(d, i, &p->bulk) &&
            (d->transfers & qn_driver_bit(i)) != 0) {
            d->touched |= qn_driver_bit(i);
            room |= qn_qp_room(p->qp) > 0 ? qn_driver_bit(i) : 0;
        }
    }
    if (room != 0) {
        QN_DASSERT((room & ~d->transfers) == 0);
        const struct qn_input in = {.kind = QN_IN_ROOM, .room = {room}};
        qn_driver_step(d, &in);
    }
    return room != 0;
}

int qn_driver_send_peer_message(struct qn_driver *d, qn_node_t to,
                                struct qn_slice bytes)
{
    QN_ASSERT(to < d->o.nodes);
    QN_ASSERT(to != d->o.self);
    void *buf = NULL;
    if (bytes.len > PEER_MESSAGE_MAX) {
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
    for (uint64_t m = d->dissemination.children; m != 0; m &= m - 1) {
        qn_node_t c = (qn_node_t)__builtin_ctzll(m);
        if (d->tree[c] != NULL && qn_qp_room(d->tree[c]) == 0) {
            full |= qn_driver_bit(c);
        }
    }
    return qn_dissemination_room(&d->dissemination, full);
}

/* A LEARN, or a fragment of one; it says which tree it is. */
static void bcast_fragment(struct qn_driver *d, struct qn_msg *m)
{
    m->learn.alive = d->dissemination.shape.members;
    m->learn.tree = QN_MUTANT(RING_UNSAID) ? 0 : (uint8_t)d->ring_said;
    uint8_t head[QN_HEAD_MAX];
    const struct qn_slice parts[] = {{head, qn_msg_head(m, head)}, m->body};
    uint64_t mask;
    struct qn_node_set dropped = qn_node_set_over(&mask, QN_NODES_MAX);
    int err = qn_context_bcast(d->context, parts, 2, &dropped);
    QN_ASSERT(err == QN_OK);
    qn_dissemination_drop(&d->dissemination, mask);
}

/* A LEARN has left whole: from now on a member may be late with it, and what it
 * has said of the tree is made so. */
static void bcast_left(struct qn_driver *d, qn_slot_t slot)
{
    qn_ring_choice_sent(&d->ring_choice, slot, d->now);
    qn_driver_ring_was_said(d);
}

/* Send queued broadcasts as far as the children have room. */
void qn_driver_bcast_send(struct qn_driver *d)
{
    while (!qn_sendq_empty(&d->bcast)) {
        struct qn_msg fragment;
        if (qn_dissemination_wait(&d->dissemination, children_full(d),
                                  d->now)) {
            return;
        }
        if (!qn_sendq_begun(&d->bcast)) {
            qn_driver_ring_say(d);
        }
        qn_sendq_fragment(&d->bcast, &fragment);
        bcast_fragment(d, &fragment);
        qn_sendq_sent(&d->bcast, &fragment);
        if (!qn_sendq_begun(&d->bcast)) {
            bcast_left(d, fragment.slot);
        }
    }
}

/* @return true while something waits for room. Nothing may have been sent since
 * the last flush to a child that is waited for, so the context would not flush
 * its lane; but only a flush asks the child to ring. */
bool qn_driver_tree_flush(struct qn_driver *d)
{
    bool waits = qn_context_flush(d->context);
    if (qn_sendq_empty(&d->bcast)) {
        return waits;
    }
    for (uint64_t m = d->dissemination.children; m != 0; m &= m - 1) {
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
    struct qn_msg named = *whole; /* and its refbuf is the caller's */
    struct qn_msg *m = &named;
    if (d->roles.cfg.acceptor != d->o.self || d->dissemination.children == 0 ||
        d->failed != QN_OK) {
        return;
    }
    QN_ASSERT(d->dissemination.tree.root == d->o.self);
    qn_dissemination_probe_begin(&d->dissemination, m->slot, d->now);
    if (qn_sendq_empty(&d->bcast) && children_full(d) == 0 &&
        m->body.len + QN_HEAD_MAX <= QN_FRAGMENT_MAX) {
        qn_driver_ring_say(d);
        bcast_fragment(d, m);
        bcast_left(d, m->slot);
        return;
    }
    if (!qn_sendq_empty(&d->bcast) &&
        d->bcast.bytes + m->body.len > qn_driver_bcast_max(d)) {
        d->bcast_dropped++; /* the children fetch it */
        return;
    }
    if (qn_sendq_push(&d->bcast, m) != QN_OK) {
        d->bcast_dropped++;
        return;
    }
    QN_ASSERT(qn_sendq_count(&d->bcast) == 1 ||
              d->bcast.bytes <= qn_driver_bcast_max(d));
    qn_driver_bcast_send(d);
}

/* Has the broadcast that is timed arrived everywhere? */
void qn_driver_latency_probe_look(struct qn_driver *d)
{
    const struct qn_dissemination *t = &d->dissemination;
    bool arrived = true;
    for (uint64_t m = t->shape.members & ~qn_driver_bit(d->o.self);
         m != 0 && arrived; m &= m - 1) {
        const struct qn_driver_peer *p = &d->peer[__builtin_ctzll(m)];
        /* relaxed: nothing else is read by it. */
        arrived = p->state != NULL && qn_load(&p->state->learned, QN_RELAXED) >=
                                          t->latency_probe_slot;
    }
    qn_dissemination_probe_look(&d->dissemination, arrived, d->now);
}

/* ---- waiting for room ---------------------------------------------------- */

/* Something waits for room; is there some now? The peer may have made room, and
 * not rung, before this node declared that it sleeps. Flushing again asks the
 * peer to ring for what is still missing. */
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
