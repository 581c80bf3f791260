/*
 * The driver's receiving half.
 *
 * Direct lanes are read peer by peer, at most RECV_MAX messages or RECV_BYTES
 * each, so that one peer cannot starve the others, and no turn is long. An
 * ACCEPT for which there is no memory stays in the channel, and nothing behind
 * it is read.
 *
 * LEARN arrives through the context, over the lane of the parent or of a former
 * parent. A lost one shows in the peers' positions, which are looked at
 * QN_HEARTBEAT_INTERVAL after a turn that did something, and is fetched. One
 * that sleeps is reminded by the root (driver_positions.c).
 */
#include "core/base/assert.h"
#include "core/base/log.h"
#include "paxos/driver/driver_internal.h"

enum {
    RECV_MAX = 256,         /* messages of one peer in one turn ... */
    RECV_BYTES = 256 << 10, /* ... or bytes; one message may be longer */
    BYTES_OF_WORK = 4096,   /* received, as much work as a command */
};

/* ---- direct lanes -------------------------------------------------------- */

static void peer_corrupt(struct qn_driver *d, qn_node_t from)
{
    if (!d->peer[from].corrupt) {
        qn_log_to(&d->o.log, QN_LOG_ERROR,
                  "member %u: malformed message from member %u; its channel is "
                  "read no more",
                  d->o.self, from);
        qn_driver_note(d, QN_EVENT_CORRUPT, from, d->positions.applied, 0);
    }
    d->peer[from].corrupt = true;
}

/* The peer may know an epoch, or with a greeting entries, that are not known
 * here. The machine asks for them, and fetches what was decided. */
static void epoch_heard(struct qn_driver *d, qn_node_t from, qn_epoch_t epoch,
                        uint32_t ul_len)
{
    const struct qn_msg beat = {
        .kind = QN_MSG_BEAT, .epoch = epoch, .beat = {.ul_len = ul_len}};
    const struct qn_input in = {.kind = QN_IN_RECV,
                                .recv = {.from = from, .msg = &beat}};
    qn_driver_step(d, &in);
}

/* Kinds that the machine does not get as they are. */
#define NOT_GIVEN                                                              \
    (UINT64_C(1) << QN_MSG_LEARN | UINT64_C(1) << QN_MSG_BEAT |                \
     UINT64_C(1) << QN_MSG_STATE | UINT64_C(1) << QN_MSG_ORDER |               \
     UINT64_C(1) << QN_MSG_TAKEN)

static void take_aside(struct qn_driver *d, qn_node_t from,
                       const struct qn_msg *m)
{
    if (m->kind == QN_MSG_LEARN) {
        peer_corrupt(d, from); /* it comes down the tree, and is judged there */
        return;
    }
    if (m->kind == QN_MSG_ORDER || m->kind == QN_MSG_TAKEN) {
        qn_driver_note_msg(d, QN_EVENT_GOT, from, m);
        if (!qn_driver_order_take(d, from, m)) {
            peer_corrupt(d, from);
            return;
        }
    }
    if (m->kind == QN_MSG_STATE) {
        qn_driver_state_take(d, from, m);
    }
    bool greets = m->kind == QN_MSG_BEAT;
    epoch_heard(d, from, m->epoch,
                greets ? m->beat.ul_len
                       : 0); /* positions: driver_positions.c */
}

/* Give a whole message to the machine. False: it must come again later. */
static bool give(struct qn_driver *d, qn_node_t from, const struct qn_msg *m)
{
    if ((NOT_GIVEN >> m->kind & 1) != 0) {
        take_aside(d, from, m);
        return true;
    }
    if (d->hold_learns &&
        (m->kind == QN_MSG_FILL || m->kind == QN_MSG_ACCEPTED)) {
        return true;
    }
    if (qn_driver_notable(m)) {
        qn_driver_note_msg(d, QN_EVENT_GOT, from, m);
    }
    const struct qn_input in = {.kind = QN_IN_RECV,
                                .recv = {.from = from, .msg = m}};
    int err = qn_driver_step(d, &in);
    if (err == QN_ECORRUPT || err == QN_ENOSYS) {
        peer_corrupt(d, from);
    }
    d->peer[from].refused = err == QN_EAGAIN || err == QN_ENOMEM;
    d->peer[from].refused_step = d->steps;
    return !d->peer[from].refused;
}

/* More of the message will come: the machine need not ask for it. Fragments
 * that continue nothing (the first ones were lost) say no such thing. */
static void fragment_came(struct qn_driver *d, qn_node_t from,
                          const struct qn_joiner *j, const struct qn_msg *m)
{
    if (j->refbuf != NULL) {
        const struct qn_input in = {.kind = QN_IN_FRAGMENT,
                                    .fragment = {from, m->kind, m->slot}};
        qn_driver_step(d, &in);
    }
}

static void peer_message(struct qn_driver *d, qn_node_t from,
                         const uint8_t *bytes, size_t len)
{
    const struct qn_slice rest = {bytes + 1, len - 1};
    const struct qn_driver_snapshots *s = &d->o.snapshots;
    if (s->on_message != NULL && s->on_message(s->ctx, from, rest)) {
        return;
    }
    if (d->o.service.on_peer_message != NULL) {
        d->o.service.on_peer_message(d->o.service.ctx, from, rest);
    }
}

/* One message of a direct lane, peeked. False: leave it there. */
static bool take(struct qn_driver *d, qn_node_t from, const void *peeked,
                 size_t len)
{
    struct qn_driver_peer *p = &d->peer[from];
    uint8_t own[QN_INPLACE_MAX];
    const void *bytes = qn_qp_steady(peeked, len, own);
    if (len > 0 && *(const uint8_t *)bytes == QN_MSG_ASK) {
        peer_message(d, from, bytes, len);
        return true;
    }
    struct qn_msg m;
    int err = qn_msg_decode(&m, bytes, len);
    if (err == QN_OK) {
        err = qn_joiner_take(&p->joiner, &d->pool.alloc, &m);
    }
    if (err == QN_ENOMEM) {
        return false;
    }
    if (err == QN_ECORRUPT) {
        peer_corrupt(d, from);
    }
    if (err == QN_EAGAIN) {
        fragment_came(d, from, &p->joiner, &m);
    }
    if (err != QN_OK || give(d, from, &m)) {
        return true;
    }
    QN_ASSERT(m.refbuf ==
              NULL); /* an ACCEPT: what was joined needs no memory */
    return false;
}

bool qn_driver_receive(struct qn_driver *d, qn_node_t from)
{
    struct qn_driver_peer *p = &d->peer[from];
    QN_ASSERT(from < d->o.nodes);
    QN_ASSERT(from != d->o.self);
    const void *bytes = NULL;
    size_t len = 0;
    size_t got = 0;
    for (uint32_t i = 0; i < RECV_MAX && got < RECV_BYTES && !p->corrupt; i++) {
        if (qn_qp_peek(p->qp, &bytes, &len) != QN_OK ||
            !take(d, from, bytes, len)) {
            return false;
        }
        QN_ASSERT(p->qp != NULL); /* what was received ends no peer */
        got += len;
        d->received += len;
        qn_qp_release(p->qp);
        d->touched |= qn_driver_bit(from);
        d->did = true;
    }
    return !p->corrupt;
}

/* ---- the tree ------------------------------------------------------------ */

/* Each peer sends the fragments of a message in order; fragments of two peers
 * are not joined. */
static void joiner_of(struct qn_driver *d, qn_node_t from)
{
    if (d->learn_from != from) {
        qn_joiner_reset(&d->learn_joiner);
        QN_DASSERT(d->learn_joiner.refbuf == NULL);
        d->learn_from = from;
    }
}

/* The root of this node's epoch says which tree it is. A LEARN of a lower slot
 * than one that has said it may come late, from a member that was stalled: what
 * it says was so before. Of a long one the last fragment counts, for all of it
 * comes the same way. */
static void shape_heard(struct qn_driver *d, const struct qn_msg *m)
{
    bool mine = m->epoch == d->roles.cfg.index && qn_msg_ends(m);
    if (mine && d->roles.cfg.acceptor != d->o.self &&
        m->slot >= d->shape_slot) {
        d->shape_slot = m->slot;
        qn_dissemination_hear(
            &d->dissemination,
            (struct qn_dissemination_shape){m->learn.alive, m->learn.tree});
    }
}

static bool may_tell(const struct qn_driver *d, qn_node_t from,
                     const struct qn_msg *m)
{
    const struct qn_ul_entry *e =
        qn_utility_entry(qn_onepaxos_utility(d->machine), m->epoch);
    bool root = e != NULL && e->acceptor == from &&
                e->acceptor_inc == d->peer[from].incarnation.inc;
    return qn_dissemination_may_tell(&d->dissemination, from, root);
}

static void learn(struct qn_driver *d, qn_node_t from, struct qn_msg *m)
{
    shape_heard(d, m);
    joiner_of(d, from);
    int err = qn_joiner_take(&d->learn_joiner, &d->pool.alloc, m);
    if (err == QN_EAGAIN) {
        fragment_came(d, from, &d->learn_joiner, m);
    }
    if (err != QN_OK) {
        return; /* more to come, or lost */
    }
    const struct qn_input in = {.kind = QN_IN_RECV,
                                .recv = {.from = from, .msg = m}};
    qn_driver_step(d, &in);
}

/* A LEARN (or a fragment of one) came down the tree. */
void qn_driver_deliver(void *ctx, const void *bytes, size_t len)
{
    struct qn_driver *d = ctx;
    struct qn_msg m;
    d->did = true;
    d->received += len;
    /* A LEARN behind a gap is work too, though nothing of it is applied: the
     * gap is closed at the end of the turn. */
    d->left -= 1 + (int64_t)(len / BYTES_OF_WORK);
    if (qn_msg_decode(&m, bytes, len) != QN_OK || m.kind != QN_MSG_LEARN) {
        return; /* lost: it will be fetched */
    }
    qn_node_t from = qn_context_sender(d->context);
    QN_DASSERT(from < d->o.nodes);
    QN_DASSERT(from != d->o.self);
    qn_dissemination_deliver_begin(&d->dissemination);
    if (may_tell(d, from, &m)) {
        learn(d, from, &m);
    } else {
        epoch_heard(d, from, m.epoch, 0);
    }
    qn_dissemination_deliver_end(&d->dissemination);
}
