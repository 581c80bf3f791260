/*
 * The queuepair over message buffers, the receive side.
 *
 * `fetch` gets all cells that are there into private memory, where they stay
 * until they were handed out: peek shows a one-cell message in them, and a
 * longer one is assembled in `whole`. They count after a second look at `sent`
 * (L), which at the same time finds what has come meanwhile.
 *
 * An eighth of the chunk, or one cell, may be read and not told: then `ready`
 * is stored without waiting for a flush. A node that looks for the last time
 * before it sleeps does not flush any more, so peek itself tells the sender
 * then that there is room.
 *
 * A cell that may not follow the one before (core/frames.h) means that the
 * peer's memory is damaged.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/mpb_internal.h"

static void get_cell(struct qn_mpb_end *e, uint32_t index)
{
    uint32_t slot = index % e->cells;
    uint32_t line = e->chunk_there + slot * QN_MPB_CELL_LINES;
    qn_mpb_get(e->chip, &e->cell[slot], e->peer, line, sizeof e->cell[slot]);
}

/* Is there a cell to hand out? Ends at the latest when all of the private ones
 * are full. */
static bool fetch(struct qn_mpb_end *e)
{
    uint32_t got = e->rx_sure;
    uint32_t sent;
    if (e->rx_next != e->rx_sure) {
        return true;
    }
    while (e->status != QN_ECORRUPT && qn_mpb_look(e, QN_MPB_SENT, &sent)) {
        e->rx_sure = got; /* L: the incarnations are the same still */
        if (sent - e->rx_next > e->cells || sent - got > e->cells) {
            qn_mpb_corrupt(e);
            return false;
        }
        if (sent == got) {
            break;
        }
        for (; got != sent; got++) {
            get_cell(e, got); /* S: found by the look */
        }
        if (QN_MPB_MUTANT(NO_SECOND_LOOK)) {
            e->rx_sure = got;
            break;
        }
    }
    return e->rx_next != e->rx_sure;
}

/* The next cell as a frame, which may follow what was read. @return QN_OK,
 * QN_EAGAIN, QN_ECORRUPT. */
static int next_frame(struct qn_mpb_end *e, struct qn_frame *f)
{
    if (!fetch(e)) {
        return QN_EAGAIN;
    }
    const struct qn_mpb_cell *c = &e->cell[e->rx_next % e->cells];
    *f = (struct qn_frame){.kind = (enum qn_frame_kind)((uint32_t)c->head >> 8),
                           .data = c->payload,
                           .len = (uint32_t)c->head & 0xff,
                           .total = e->rx.total};
    if (f->kind == QN_FRAME_FIRST) {
        memcpy(&f->total, c->payload, sizeof f->total);
        f->data = c->payload + sizeof f->total;
    } else if (f->kind == QN_FRAME_ONLY) {
        f->total = f->len;
    }
    return c->head >> 32 == e->rx_next && qn_course_fits(&e->rx, f, &e->limits)
               ? QN_OK
               : qn_mpb_corrupt(e);
}

static void consume(struct qn_mpb_end *e, const struct qn_frame *f)
{
    qn_course_advance(&e->rx, f);
    e->traffic.received += qn_mpb_frame_lines(f);
    e->rx_next++;
    if (e->rx_next - e->rx_told >= QN_MAX(e->cells / 8, 1u)) {
        qn_mpb_store_ready(e);
    }
}

/* The answer when there is nothing. */
static int nothing(struct qn_mpb_end *e)
{
    if (e->rx_untold) {
        qn_mpb_tell(e);
    }
    return e->status != QN_OK ? e->status : QN_EAGAIN;
}

/* Consume the cells of a long message. @return QN_OK: it is whole, or *only is
 * a one-cell message; QN_EAGAIN: no more cells; QN_ECORRUPT. */
static int assemble(struct qn_mpb_end *e, struct qn_frame *only)
{
    struct qn_frame f = {0};
    int rc;
    while ((rc = next_frame(e, &f)) == QN_OK && f.kind != QN_FRAME_ONLY) {
        memcpy(e->whole + (f.kind == QN_FRAME_FIRST ? 0 : e->rx.done), f.data,
               f.len);
        consume(e, &f);
        if (f.kind == QN_FRAME_LAST) {
            e->rx_whole = true;
            return QN_OK;
        }
    }
    *only = f;
    return rc;
}

int qn_mpb_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(!e->rx_frames); /* the two views are not mixed in a message */
    if (!e->rx_whole && assemble(e, &e->held) != QN_OK) {
        return nothing(e);
    }
    *msg = e->rx_whole ? e->whole : e->held.data;
    *len = e->rx_whole ? e->rx.total : e->held.len;
    e->rx_held = true;
    return QN_OK;
}

void qn_mpb_release_msg(struct qn_qp *qp)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(e->rx_held);
    e->rx_held = false;
    if (e->rx_whole) {
        e->rx_whole = false; /* its cells were consumed on the way */
    } else if (e->status != QN_ECORRUPT) {
        consume(e, &e->held);
    }
}

int qn_mpb_peek_frame(struct qn_qp *qp, struct qn_frame *f)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(!e->rx.inside || e->rx_frames);
    if (next_frame(e, &e->held) != QN_OK) {
        return nothing(e);
    }
    *f = e->held;
    e->rx_held = true;
    return QN_OK;
}

void qn_mpb_release_frame(struct qn_qp *qp)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(e->rx_held);
    e->rx_held = false;
    if (e->status != QN_ECORRUPT) {
        consume(e, &e->held);
        e->rx_frames = e->rx.inside;
    }
}
