/*
 * Queuepairs over words, the send side.
 *
 * A frame is sent as a whole or not at all. It is accepted if the window of its
 * lane allows it, and goes to the peer's core at once if there is room; else it
 * waits in private memory, in the ring `out` of its lane. So what others have
 * sent to that core delays a lane, and does not fill it. A message of more than
 * a frame is staged as a whole, and as many frames as the window allows are
 * accepted at once and by every later call. Nothing is sent behind a staged
 * message.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/udn/udn_internal.h"
#include "transports/udn/udn_mutant.h"

/* The device says that the peer has ended. */
static void give_up(struct qn_udn_end *e)
{
    e->link->deaf = true;
    e->staged = false;
    e->starved = false;
    qn_udn_drop_out(e);
}

/* Accept one frame, for which the window has a place. */
static void put(struct qn_udn_end *e, const struct qn_frame *f)
{
    struct qn_udn_link *l = e->link;
    QN_DASSERT(f->len <= QN_UDN_FRAME_BYTES && qn_udn_credit(e) > 0);
    struct qn_udn_frame *frame = qn_udn_ring_push(&l->out);
    memset(frame, 0, sizeof *frame);
    frame->word[0] = qn_udn_head((uint32_t)f->kind, e->lane, f->len, f->total) |
                     (uint64_t)l->sent++ << 43;
    if (f->len > 0) {
        memcpy(frame->word + 1, f->data, f->len);
    }
    e->traffic.sent += qn_udn_frame_words(f->len);
    qn_udn_drain(e->port, e->peer, e->lane);
}

/* The next frame of the staged message. */
static struct qn_frame next_frame(const struct qn_udn_end *e)
{
    const uint32_t left = e->stage_len - e->pushed;
    const bool last = left <= QN_UDN_FRAME_BYTES;
    struct qn_frame f = {.data = e->stage + e->pushed,
                         .len = last ? left : QN_UDN_FRAME_BYTES,
                         .total = e->stage_len};
    f.kind = e->pushed == 0 ? (last ? QN_FRAME_ONLY : QN_FRAME_FIRST)
                            : (last ? QN_FRAME_LAST : QN_FRAME_MORE);
    return f;
}

static void push(struct qn_udn_end *e)
{
    if (qn_udn_credit(e) == 0) {
        qn_udn_pump(e->port);
    }
    while (e->staged && qn_udn_status(e) == QN_OK && !e->link->deaf &&
           qn_udn_credit(e) > 0) {
        const struct qn_frame f = next_frame(e);
        e->pushed += f.len;
        e->staged = e->pushed < e->stage_len;
        put(e, &f);
    }
}

static void stage(struct qn_udn_end *e, uint32_t len)
{
    e->staged = true;
    e->stage_len = len;
    e->pushed = 0;
    push(e);
}

/* @return QN_OK: one frame may be sent, and nothing stands before it. */
static int ready_to_send(struct qn_udn_end *e)
{
    if (qn_udn_status(e) == QN_OK) {
        qn_udn_drain(e->port, e->peer, e->lane);
        push(e);
    }
    if (qn_udn_status(e) != QN_OK) {
        return e->status;
    }
    e->staged = e->staged && !e->link->deaf;
    e->starved = !e->link->deaf && (e->staged || qn_udn_credit(e) == 0);
    if (e->starved && qn_words_ended(e->port->device, e->peer)) {
        give_up(e);
    }
    if (e->starved) {
        qn_udn_ring(e); /* this may be the last look before a sleep */
    }
    return e->link->deaf ? QN_EPEERDEAD : e->starved ? QN_EAGAIN : QN_OK;
}

static int ready_for_message(struct qn_udn_end *e, size_t len)
{
    if (len > e->msg_max) {
        return QN_EMSGSIZE;
    }
    return e->frame_open ? QN_EAGAIN : ready_to_send(e);
}

int qn_udn_try_reserve(struct qn_qp *qp, size_t len, void **buf)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    int rc = ready_for_message(e, len);
    if (rc == QN_OK) {
        e->reserved = (uint32_t)len;
        *buf = e->stage;
    }
    return rc;
}

void qn_udn_commit(struct qn_qp *qp, size_t len)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    QN_ASSERT(len <= e->reserved);
    QN_ASSERT(!e->staged);
    stage(e, (uint32_t)len);
    e->reserved = 0;
}

int qn_udn_try_send(struct qn_qp *qp, const void *msg, size_t len)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    int rc = ready_for_message(e, len);
    if (rc == QN_OK && len > QN_UDN_FRAME_BYTES) {
        memcpy(e->stage, msg, len);
        stage(e, (uint32_t)len);
    } else if (rc == QN_OK) {
        put(e, &(struct qn_frame){.kind = QN_FRAME_ONLY,
                                  .data = msg,
                                  .len = (uint32_t)len,
                                  .total = (uint32_t)len});
    }
    return rc;
}

/* Does the frame continue what was sent? Fills what is missing after it. */
static bool frame_fits(const struct qn_udn_end *e, const struct qn_frame *f,
                       uint32_t *left)
{
    bool begins = f->kind == QN_FRAME_ONLY || f->kind == QN_FRAME_FIRST;
    if (begins == e->frame_open || f->len > QN_UDN_FRAME_BYTES) {
        return false;
    }
    *left = e->frame_left - f->len; /* MORE, LAST: checked below */
    switch (f->kind) {
    case QN_FRAME_ONLY:
        return true;
    case QN_FRAME_FIRST:
        *left = f->total - f->len;
        return f->len <= f->total && f->total <= e->msg_max;
    case QN_FRAME_MORE:
        return f->len <= e->frame_left;
    case QN_FRAME_LAST:
        return f->len == e->frame_left;
    case QN_FRAME_ABORT:
        return f->len == 0;
    }
    return false;
}

int qn_udn_try_send_frame(struct qn_qp *qp, const struct qn_frame *f)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    uint32_t left = 0;
    if (!frame_fits(e, f, &left)) {
        return QN_EINVAL;
    }
    int rc = ready_to_send(e);
    if (rc == QN_OK) {
        struct qn_frame part = *f;
        part.total = f->kind == QN_FRAME_FIRST ? f->total : f->len;
        put(e, &part);
        e->frame_open = f->kind == QN_FRAME_FIRST || f->kind == QN_FRAME_MORE;
        e->frame_left = left;
    }
    return rc;
}

uint32_t qn_udn_room(struct qn_qp *qp)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    qn_udn_pump(e->port);
    return ready_to_send(e) == QN_OK ? qn_udn_credit(e) : 0;
}

/* Everything that waits for room at the peer's core. */
static void send_rest(struct qn_udn_end *e, bool owes)
{
    if (owes) {
        qn_udn_tell(e);
    }
    (void)ready_to_send(e);
}

bool qn_udn_flush(struct qn_qp *qp)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    const struct qn_udn_link *l = e->link;
    qn_udn_pump(e->port);
    if (qn_udn_status(e) != QN_OK) {
        return false;
    }
    const bool owes =
        (uint16_t)(l->released - l->told) > 1 && !QN_UDN_MUTANT(MUTE);
    send_rest(e, owes);
    if (e->starved || (owes && l->told != l->released)) {
        qn_words_want_room(e->port->device, e->peer);
        send_rest(e, owes); /* look once more */
    }
    qn_udn_want(e->port);
    qn_udn_ring(e);
    return e->status == QN_OK && (e->staged || l->out.count > 0);
}
