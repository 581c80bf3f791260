/*
 * The queuepair over words: opening and closing an end, what arrives for all
 * ends of a node, and acknowledgements. udn_send.c and udn_recv.c are the rest.
 *
 * What belongs to a pair of incarnations and a lane, the window and the frames
 * that have arrived, is the port's (struct qn_udn_link), not the end's: frames
 * may come before their end is opened. up makes it anew.
 *
 * Sleeping. A sender waits for two things. Frames given back: the peer sends an
 * acknowledgement after half a window and at each flush, and rings. Room at the
 * peer's core, for frames that were accepted: each flush of any end says so for
 * all of them (qn_udn_want), and the peer rings when it takes words out; each
 * call of any end then sends them. A node that
 * looks for the last time before it sleeps flushes no more. So a peek that
 * finds nothing also tells what has come to half a window meanwhile, and a call
 * that finds no room also rings for what it could send of earlier frames.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/udn/udn_internal.h"
#include "transports/udn/udn_mutant.h"

static_assert(offsetof(struct qn_udn_end, qp) == 0, "qn_udn_end_of");

/* ---- what arrives ---- */

/* @return false: the peer broke the rules. */
static bool acknowledged(struct qn_udn_link *l, uint16_t acked)
{
    uint16_t more = (uint16_t)(acked - l->acked);
    if (more > (uint16_t)(l->sent - l->acked)) {
        return false;
    }
    l->acked = (uint16_t)(l->acked + more);
    return true;
}

static bool arrived(struct qn_udn_link *l, const uint64_t *words, uint32_t n)
{
    const uint64_t head = words[0];
    const uint32_t len = qn_udn_head_len(head);
    const uint16_t expected = (uint16_t)(l->released + l->in.count);
    if (!acknowledged(l, qn_udn_head_acked(head))) {
        return false;
    }
    if (qn_udn_head_kind(head) == QN_UDN_KIND_ACK) {
        return n == 1;
    }
    if (len > QN_UDN_FRAME_BYTES || n != qn_udn_frame_words(len) ||
        l->in.count == QN_UDN_WINDOW ||
        qn_udn_head_sequence(head) != expected) {
        return false;
    }
    memcpy(qn_udn_ring_push(&l->in)->word, words, n * sizeof *words);
    return true;
}

static void receive_all(struct qn_udn_port *p)
{
    uint64_t words[QN_WORDS_SHARED_MAX];
    uint32_t n;
    qn_node_t sender;
    while (qn_words_take_message(p->device, QN_UDN_QUEUE, words, &n, &sender)) {
        uint32_t lane = qn_udn_head_lane(words[0]);
        struct qn_udn_link *l = qn_udn_link_of(p, sender, lane % p->lanes);
        l->corrupt |= lane >= p->lanes || !arrived(l, words, n);
    }
}

/* ---- what waits ---- */

void qn_udn_drain(struct qn_udn_port *p, qn_node_t peer, uint32_t lane)
{
    struct qn_udn_link *l = qn_udn_link_of(p, peer, lane);
    const struct qn_words_target to = {peer, QN_UDN_QUEUE};
    int rc = QN_OK;
    while (l->out.count > 0 && rc == QN_OK) {
        uint64_t *words = l->out.frame[l->out.first].word;
        const uint32_t n = qn_udn_frame_words(qn_udn_head_len(words[0]));
        words[0] &= ~QN_UDN_HEAD_ACKED;
        words[0] |= (uint64_t)l->released << 27;
        rc = qn_words_try_send(p->device, to, words, n);
        if (rc == QN_OK) {
            qn_udn_ring_pop(&l->out);
            l->told = l->released;
            l->unrung = true;
        }
    }
    p->backlog |= rc == QN_EAGAIN;
    if (rc == QN_EPEERDEAD) {
        l->deaf = true;
        l->out.count = 0;
    }
}

static void ring_link(struct qn_udn_port *p, qn_node_t peer,
                      struct qn_udn_link *l)
{
    if (l->unrung) {
        l->unrung = l->unrung_told = false;
        (void)qn_words_ring(p->device, peer);
    }
}

/* The ends that these frames are of may not be called for long. */
static void drain_all(struct qn_udn_port *p, bool want)
{
    p->backlog = false;
    for (qn_node_t i = 0; i < p->nodes; i++) {
        for (uint32_t lane = 0; lane < p->lanes; lane++) {
            struct qn_udn_link *l = qn_udn_link_of(p, i, lane);
            if (l->out.count > 0) {
                if (want) {
                    qn_words_want_room(p->device, i);
                }
                qn_udn_drain(p, i, lane);
                ring_link(p, i, l);
            }
        }
    }
}

void qn_udn_want(struct qn_udn_port *p)
{
    if (p->backlog && !QN_UDN_MUTANT(NO_WANT)) {
        drain_all(p, true);
    }
}

void qn_udn_pump(struct qn_udn_port *p)
{
    receive_all(p);
    if (p->backlog) {
        drain_all(p, false);
    }
}

/* ---- states ---- */

void qn_udn_drop_out(struct qn_udn_end *e)
{
    if (qn_udn_own_link(e)) {
        e->link->out.count = 0;
    }
}

int qn_udn_corrupt(struct qn_udn_end *e)
{
    e->status = QN_ECORRUPT;
    e->rx_state = QN_UDN_IDLE;
    e->staged = false;
    e->starved = false;
    qn_udn_drop_out(e);
    return QN_ECORRUPT;
}

static void lost(struct qn_udn_end *e)
{
    if (e->status == QN_OK) {
        e->status = QN_EPEERDEAD;
        e->staged = false;
        e->starved = false;
        qn_udn_drop_out(e);
    }
}

int qn_udn_status(struct qn_udn_end *e)
{
    if (!qn_udn_own_link(e)) {
        lost(e);
    } else if ((e->link->corrupt || qn_words_corrupt(e->port->device)) &&
               e->status != QN_ECORRUPT) {
        (void)qn_udn_corrupt(e);
    }
    return e->status;
}

static void down(struct qn_qp *qp)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    (void)qn_udn_status(e);
    lost(e);
}

/* ---- acknowledgements ---- */

uint32_t qn_udn_credit(const struct qn_udn_end *e)
{
    return QN_UDN_WINDOW - (uint16_t)(e->link->sent - e->link->acked);
}

void qn_udn_tell(struct qn_udn_end *e)
{
    struct qn_udn_link *l = e->link;
    if (l->told == l->released || qn_udn_status(e) != QN_OK || l->deaf) {
        return;
    }
    const uint64_t head = qn_udn_head(QN_UDN_KIND_ACK, e->lane, 0, 0) |
                          (uint64_t)l->released << 27;
    const struct qn_words_target to = {e->peer, QN_UDN_QUEUE};
    if (qn_words_try_send(e->port->device, to, &head, 1) == QN_OK) {
        l->told = l->released;
        l->unrung = l->unrung_told = true;
    }
}

void qn_udn_tell_at_rest(struct qn_udn_end *e)
{
    const struct qn_udn_link *l = e->link;
    if ((uint16_t)(l->released - l->told) >= QN_UDN_WINDOW / 2) {
        qn_words_want_room(e->port->device, e->peer);
        qn_udn_tell(e);
    }
    if (l->unrung_told && !QN_UDN_MUTANT(NO_REST)) {
        qn_udn_ring(e);
    }
}

void qn_udn_ring(struct qn_udn_end *e)
{
    if (e->status == QN_OK) {
        ring_link(e->port, e->peer, e->link);
    }
}

/* ---- ends ---- */

static void close_end(struct qn_qp *qp)
{
    /* What was sent can still be received. */
    qn_alloc_free_lines(qp->alloc, qn_udn_end_of(qp));
}

static struct qn_qp_traffic traffic(const struct qn_qp *qp)
{
    return ((const struct qn_udn_end *)(const void *)qp)->traffic;
}

static const struct qn_qp_ops ops = {
    .unit = "words",
    .try_reserve = qn_udn_try_reserve,
    .commit = qn_udn_commit,
    .peek = qn_udn_peek,
    .release = qn_udn_release,
    .peek_frame = qn_udn_peek_frame,
    .release_frame = qn_udn_release_frame,
    .try_send_frame = qn_udn_try_send_frame,
    .flush = qn_udn_flush,
    .room = qn_udn_room,
    .down = down,
    .close = close_end,
    .traffic = traffic,
    .try_send = qn_udn_try_send,
};

static bool opts_good(const struct qn_qp_opts *o)
{
    if (o->device == NULL || o->device->type != &qn_udn_device) {
        return false;
    }
    const struct qn_udn_port *p = qn_udn_port_of(o->device);
    return o->self == o->device->self && o->peer < p->nodes &&
           o->peer != o->self && (uint32_t)o->lane < p->lanes &&
           (o->msg_max == 0 ||
            (o->msg_max >= QN_INPLACE_MAX && o->msg_max <= QN_MSG_MAX)) &&
           o->self_inc == p->inc[o->self] && o->peer_inc != 0;
}

static int open_end(struct qn_qp **out, const struct qn_qp_opts *o)
{
    if (!opts_good(o)) {
        return QN_EINVAL;
    }
    size_t bytes = qn_align_up(sizeof(struct qn_udn_end), QN_CACHELINE);
    uint32_t msg_max = o->msg_max != 0 ? o->msg_max : QN_MSG_MAX;
    size_t buffer = qn_align_up(msg_max, QN_CACHELINE);
    const struct qn_alloc *a = qn_alloc_or_malloc(o->alloc);
    struct qn_udn_end *e = qn_alloc_lines(a, bytes + 2 * buffer);
    if (e == NULL) {
        return QN_ENOMEM;
    }
    e->qp = (struct qn_qp){.ops = &ops, .doorbell = o->doorbell, .alloc = a};
    e->port = qn_udn_port_of(o->device);
    e->peer = o->peer;
    e->peer_inc = o->peer_inc;
    e->lane = (uint32_t)o->lane;
    e->link = qn_udn_link_of(e->port, e->peer, e->lane);
    e->msg_max = msg_max;
    e->stage = (uint8_t *)e + bytes;
    e->whole = e->stage + buffer;
    qn_device_up(o->device, o->peer, o->peer_inc); /* nothing if it was told */
    *out = &e->qp;
    return QN_OK;
}

static size_t lane_bytes(uint32_t cells)
{
    (void)cells;
    return 0;
}

const struct qn_transport qn_udn = {
    .name = "udn",
    .ops = &ops,
    .memory = QN_TRANSPORT_DEVICE,
    .frame_max = QN_UDN_FRAME_BYTES,
    .device = &qn_udn_device,
    .lane_bytes = lane_bytes,
    .open = open_end,
};
