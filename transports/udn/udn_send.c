/*
 * Queuepairs over words, the send side.
 *
 * A frame is sent as a whole or not at all. A message of one frame goes
 * directly to the peer's core. A longer one is staged, and as many frames as
 * window and core allow are pushed at once and by every later call. Nothing is
 * sent behind a staged message.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/udn/udn_end_internal.h"

/* One frame. @return QN_OK, QN_EAGAIN no room at the core, QN_EPEERDEAD. */
static int put(struct qn_udn_end *e, const struct qn_frame *f)
{
    struct qn_udn_link *l = e->link;
    const struct qn_words_target to = {e->peer, QN_UDN_QUEUE};
    uint64_t words[QN_UDN_FRAME_WORDS] = {0};
    const uint32_t n = qn_udn_frame_words(f->len);
    QN_DASSERT(f->len <= QN_UDN_FRAME_BYTES && qn_udn_credit(e) > 0);
    words[0] = qn_udn_head((uint32_t)f->kind, e->lane, f->len, f->total) |
               (uint64_t)l->released << 27 | (uint64_t)l->sent << 43;
    if (f->len > 0) {
        memcpy(words + 1, f->data, f->len);
    }
    int rc = qn_words_try_send(&e->port->device, to, words, n);
    if (rc == QN_OK) {
        l->sent++;
        l->told = l->released;
        e->traffic.sent += n;
        e->unrung = true;
    }
    e->deaf |= rc == QN_EPEERDEAD;
    return rc;
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
    e->staged = e->staged && !e->deaf;
    while (e->staged && qn_udn_status(e) == QN_OK && qn_udn_credit(e) > 0) {
        const struct qn_frame f = next_frame(e);
        int rc = put(e, &f);
        if (rc != QN_OK) {
            e->staged = rc == QN_EAGAIN;
            return;
        }
        e->pushed += f.len;
        e->staged = e->pushed < e->stage_len;
    }
}

static void stage(struct qn_udn_end *e, uint32_t len)
{
    e->staged = true;
    e->stage_len = len;
    e->pushed = 0;
    push(e);
}

/* Frames for which there is room, as far as can be seen. */
static uint32_t room(struct qn_udn_end *e)
{
    const struct qn_words_target to = {e->peer, QN_UDN_QUEUE};
    if (qn_udn_credit(e) == 0) {
        qn_udn_pump(e->port);
    }
    uint32_t core = qn_words_room(&e->port->device, to) / QN_UDN_FRAME_WORDS;
    return QN_MIN(qn_udn_credit(e), core);
}

/* @return QN_OK: one frame may be sent, and nothing stands before it. */
static int ready_to_send(struct qn_udn_end *e)
{
    if (e->staged) {
        push(e);
    }
    if (qn_udn_status(e) != QN_OK) {
        return e->status;
    }
    e->starved = !e->deaf && (e->staged || room(e) == 0);
    /* No room: this is where a sender learns from the device of an end. */
    e->deaf |= e->starved && qn_udn_peer_ended(e->port, e->peer);
    return e->deaf ? QN_EPEERDEAD : e->starved ? QN_EAGAIN : QN_OK;
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
        rc = put(e, &(struct qn_frame){.kind = QN_FRAME_ONLY,
                                       .data = msg,
                                       .len = (uint32_t)len,
                                       .total = (uint32_t)len});
        e->starved = rc == QN_EAGAIN;
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
        rc = put(e, &part);
        e->starved = rc == QN_EAGAIN;
    }
    if (rc == QN_OK) {
        e->frame_open = f->kind == QN_FRAME_FIRST || f->kind == QN_FRAME_MORE;
        e->frame_left = left;
    }
    return rc;
}

uint32_t qn_udn_room(struct qn_qp *qp)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    qn_udn_pump(e->port);
    return ready_to_send(e) == QN_OK ? room(e) : 0;
}

bool qn_udn_flush(struct qn_qp *qp)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    qn_udn_pump(e->port);
    if (qn_udn_status(e) != QN_OK) {
        return false;
    }
    const struct qn_udn_link *l = e->link;
    const bool owes = (uint16_t)(l->released - l->told) > 1;
    if (owes) {
        qn_udn_tell(e);
    }
    if (e->staged) {
        push(e);
    }
    if (e->staged || e->starved || (owes && l->told != l->released)) {
        /* Then look once more. */
        qn_words_want_room(&e->port->device, e->peer);
        if (owes) {
            qn_udn_tell(e);
        }
        (void)ready_to_send(e);
    }
    qn_udn_ring(e);
    return e->staged && !e->deaf;
}
