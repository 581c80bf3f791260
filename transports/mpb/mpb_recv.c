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
 * Frames follow the grammar ONLY | FIRST MORE* (LAST | ABORT), with lengths
 * that add up; anything else means that the peer's memory is damaged.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/mpb_internal.h"

/* A cell taken apart. */
struct part {
    const uint8_t *data; /* private */
    uint32_t kind;       /* enum qn_frame_kind if grammar() agrees */
    uint32_t len;
    uint32_t total; /* FIRST only */
};

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

static bool next_part(struct qn_mpb_end *e, struct part *p)
{
    if (!fetch(e)) {
        return false;
    }
    const struct qn_mpb_cell *c = &e->cell[e->rx_next % e->cells];
    *p = (struct part){.data = c->payload,
                       .kind = (uint32_t)c->head >> 8,
                       .len = (uint32_t)c->head & 0xff};
    if (c->head >> 32 != e->rx_next) {
        p->kind = UINT32_MAX; /* no kind */
    } else if (p->kind == QN_FRAME_FIRST) {
        memcpy(&p->total, c->payload, sizeof p->total);
        p->data += sizeof p->total;
    }
    return true;
}

/* May this cell follow what was read? The only judge of the peer's cells. */
static bool grammar(const struct qn_mpb_end *e, const struct part *p)
{
    bool inside = e->rx_state == QN_MPB_INSIDE;
    uint32_t left = e->rx_total - e->rx_got;
    switch (p->kind) {
    case QN_FRAME_ONLY:
        return !inside && p->len <= QN_MPB_CELL_BYTES;
    case QN_FRAME_FIRST:
        return !inside && p->len <= QN_MPB_FIRST_BYTES && p->len <= p->total &&
               p->total <= e->msg_max;
    case QN_FRAME_MORE:
        return inside && p->len <= QN_MPB_CELL_BYTES && p->len <= left;
    case QN_FRAME_LAST:
        return inside && p->len <= QN_MPB_CELL_BYTES && p->len == left;
    case QN_FRAME_ABORT:
        return inside && p->len == 0;
    default:
        return false;
    }
}

static void consume(struct qn_mpb_end *e)
{
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

/* The state after a cell that grammar() allowed. */
static void advance(struct qn_mpb_end *e, uint32_t kind, uint32_t len,
                    uint32_t total)
{
    if (kind == QN_FRAME_FIRST) {
        e->rx_state = QN_MPB_INSIDE;
        e->rx_total = total;
        e->rx_got = len;
    } else if (kind == QN_FRAME_MORE) {
        e->rx_got += len;
    } else {
        e->rx_state = QN_MPB_IDLE;
        e->rx_got = 0;
    }
}

/* Consume the cells of a long message. @return QN_OK: WHOLE, or *only is a
 * one-cell message; QN_EAGAIN: no more cells. */
static int assemble(struct qn_mpb_end *e, struct part *only)
{
    struct part p;
    while (next_part(e, &p)) {
        if (!grammar(e, &p)) {
            return qn_mpb_corrupt(e);
        }
        if (p.kind == QN_FRAME_ONLY) {
            *only = p;
            return QN_OK;
        }
        memcpy(e->whole + (p.kind == QN_FRAME_FIRST ? 0 : e->rx_got), p.data,
               p.len);
        advance(e, p.kind, p.len, p.total);
        consume(e);
        if (p.kind == QN_FRAME_LAST) {
            e->rx_state = QN_MPB_WHOLE;
            return QN_OK;
        }
    }
    return QN_EAGAIN;
}

int qn_mpb_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    struct part only = {0};
    QN_ASSERT(!e->rx_frames); /* the two views are not mixed in a message */
    if (e->rx_state != QN_MPB_WHOLE && assemble(e, &only) != QN_OK) {
        return nothing(e);
    }
    bool whole = e->rx_state == QN_MPB_WHOLE;
    *msg = whole ? e->whole : only.data;
    *len = whole ? e->rx_total : only.len;
    e->rx_held = true;
    return QN_OK;
}

void qn_mpb_release_msg(struct qn_qp *qp)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(e->rx_held);
    e->rx_held = false;
    if (e->rx_state == QN_MPB_WHOLE) {
        e->rx_state = QN_MPB_IDLE; /* its cells were consumed on the way */
        e->rx_got = 0;
    } else if (e->status != QN_ECORRUPT) {
        consume(e);
    }
}

int qn_mpb_peek_frame(struct qn_qp *qp, struct qn_frame *f)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    struct part p;
    QN_ASSERT(e->rx_state == QN_MPB_IDLE || e->rx_frames);
    if (!next_part(e, &p)) {
        return nothing(e);
    }
    if (!grammar(e, &p)) {
        return qn_mpb_corrupt(e);
    }
    uint32_t total = p.kind == QN_FRAME_ONLY    ? p.len
                     : p.kind == QN_FRAME_FIRST ? p.total
                                                : e->rx_total;
    *f = (struct qn_frame){.kind = (enum qn_frame_kind)p.kind,
                           .data = p.data,
                           .len = p.len,
                           .total = total};
    e->held = *f;
    e->rx_held = true;
    return QN_OK;
}

void qn_mpb_release_frame(struct qn_qp *qp)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(e->rx_held);
    e->rx_held = false;
    if (e->status == QN_ECORRUPT) {
        return;
    }
    advance(e, e->held.kind, e->held.len, e->held.total);
    e->rx_frames = e->rx_state == QN_MPB_INSIDE;
    consume(e);
}
