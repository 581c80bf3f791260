/*
 * Queuepairs over words, the receive side.
 *
 * Frames lie in private memory of this node when they are looked at. A message
 * of one frame is shown there; a longer one is consumed frame by frame into
 * `whole`, and given back on the way, so that 64 KiB pass through a window. The
 * frame view shows the frames. Both follow the same grammar, ONLY | FIRST MORE*
 * (LAST | ABORT), with lengths that add up.
 */
#include <string.h>

#include "core/base/assert.h"
#include "transports/udn/udn_internal.h"

/* The next frame, or NULL. */
static const struct qn_udn_frame *next_frame(struct qn_udn_end *e)
{
    const struct qn_udn_ring *in = &e->link->in;
    if (in->count == 0) {
        qn_udn_pump(e->port);
    }
    return qn_udn_own_link(e) && in->count > 0 ? &in->frame[in->first] : NULL;
}

static struct qn_frame open_frame(const struct qn_udn_end *e,
                                  const struct qn_udn_frame *c)
{
    const uint64_t head = c->word[0];
    struct qn_frame f = {.kind = (enum qn_frame_kind)qn_udn_head_kind(head),
                         .data = &c->word[1],
                         .len = qn_udn_head_len(head),
                         .total = qn_udn_head_total(head)};
    if (f.kind != QN_FRAME_FIRST) {
        f.total = f.kind == QN_FRAME_ONLY ? f.len : e->rx_total;
    }
    return f;
}

/* May this frame follow what was read? The only judge of the peer's frames. */
static bool grammar(const struct qn_udn_end *e, const struct qn_frame *f)
{
    bool inside = e->rx_state == QN_UDN_INSIDE;
    uint32_t left = e->rx_total - e->rx_got;
    switch (f->kind) {
    case QN_FRAME_ONLY:
        return !inside;
    case QN_FRAME_FIRST:
        return !inside && f->len <= f->total && f->total <= e->msg_max;
    case QN_FRAME_MORE:
        return inside && f->len <= left;
    case QN_FRAME_LAST:
        return inside && f->len == left;
    case QN_FRAME_ABORT:
        return inside && f->len == 0;
    default:
        return false;
    }
}

/* Give the next frame back. */
static void consume(struct qn_udn_end *e)
{
    struct qn_udn_link *l = e->link;
    if (!qn_udn_own_link(e)) {
        return;
    }
    uint64_t head = l->in.frame[l->in.first].word[0];
    e->traffic.received += qn_udn_frame_words(qn_udn_head_len(head));
    qn_udn_ring_pop(&l->in);
    l->released++;
    if ((uint16_t)(l->released - l->told) >= QN_UDN_WINDOW / 2) {
        qn_udn_tell(e);
    }
}

/* The state after a frame that grammar() allowed. */
static void advance(struct qn_udn_end *e, const struct qn_frame *f)
{
    if (f->kind == QN_FRAME_FIRST) {
        e->rx_state = QN_UDN_INSIDE;
        e->rx_total = f->total;
        e->rx_got = f->len;
    } else if (f->kind == QN_FRAME_MORE) {
        e->rx_got += f->len;
    } else {
        e->rx_state = QN_UDN_IDLE;
        e->rx_got = 0;
    }
}

/* The answer when there is nothing. After a death something may still come: a
 * living sender may hold up the queue. */
static int nothing(struct qn_udn_end *e)
{
    qn_udn_tell_at_rest(e);
    if (e->status == QN_EPEERDEAD &&
        qn_words_held_up(e->port->device, QN_UDN_QUEUE)) {
        return QN_EAGAIN;
    }
    return e->status != QN_OK ? e->status : QN_EAGAIN;
}

/* Consume the frames of a long message. @return QN_OK: READY, or `*only` is a
 * message of one frame; QN_EAGAIN: no more frames; QN_ECORRUPT. */
static int assemble(struct qn_udn_end *e, struct qn_frame *only)
{
    const struct qn_udn_frame *c;
    while ((c = next_frame(e)) != NULL) {
        const struct qn_frame f = open_frame(e, c);
        if (!grammar(e, &f)) {
            return qn_udn_corrupt(e);
        }
        if (f.kind == QN_FRAME_ONLY) {
            *only = f;
            return QN_OK;
        }
        memcpy(e->whole + (f.kind == QN_FRAME_FIRST ? 0 : e->rx_got), f.data,
               f.len);
        advance(e, &f);
        consume(e);
        if (f.kind == QN_FRAME_LAST) {
            e->rx_state = QN_UDN_READY;
            return QN_OK;
        }
    }
    return QN_EAGAIN;
}

int qn_udn_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    struct qn_frame only = {0};
    QN_ASSERT(!e->rx_frames); /* the two views are not mixed in a message */
    if (qn_udn_status(e) == QN_ECORRUPT) {
        return QN_ECORRUPT;
    }
    if (e->rx_state != QN_UDN_READY) {
        int rc = assemble(e, &only);
        if (rc != QN_OK) {
            return rc == QN_EAGAIN && qn_udn_status(e) != QN_ECORRUPT
                       ? nothing(e)
                       : QN_ECORRUPT;
        }
    }
    bool ready = e->rx_state == QN_UDN_READY;
    *msg = ready ? e->whole : only.data;
    *len = ready ? e->rx_total : only.len;
    e->rx_held = true;
    return QN_OK;
}

void qn_udn_release(struct qn_qp *qp)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    QN_ASSERT(e->rx_held);
    e->rx_held = false;
    if (e->rx_state == QN_UDN_READY) {
        e->rx_state = QN_UDN_IDLE; /* its frames were consumed on the way */
        e->rx_got = 0;
    } else if (e->status != QN_ECORRUPT) {
        consume(e);
    }
}

int qn_udn_peek_frame(struct qn_qp *qp, struct qn_frame *f)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    QN_ASSERT(e->rx_state == QN_UDN_IDLE || e->rx_frames);
    const struct qn_udn_frame *c =
        qn_udn_status(e) == QN_ECORRUPT ? NULL : next_frame(e);
    if (qn_udn_status(e) == QN_ECORRUPT) {
        return QN_ECORRUPT;
    }
    if (c == NULL) {
        return nothing(e);
    }
    struct qn_frame found = open_frame(e, c);
    if (!grammar(e, &found)) {
        return qn_udn_corrupt(e);
    }
    *f = found;
    e->rx_held = true;
    return QN_OK;
}

void qn_udn_release_frame(struct qn_qp *qp)
{
    struct qn_udn_end *e = qn_udn_end_of(qp);
    QN_ASSERT(e->rx_held);
    e->rx_held = false;
    if (e->status == QN_ECORRUPT) {
        return;
    }
    const struct qn_frame f =
        open_frame(e, &e->link->in.frame[e->link->in.first]);
    advance(e, &f);
    e->rx_frames = e->rx_state == QN_UDN_INSIDE;
    consume(e);
}
