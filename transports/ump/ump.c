/*
 * UMP: opening, accepting and closing an end. ump_send.c and ump_recv.c are
 * the hot paths; UMP.md tells the whole.
 *
 * Which memory an end may believe. A lane belongs to one incarnation of its
 * owner and, at a time, to one incarnation of the peer; `control` names both.
 * An end believes nothing it finds in the peer's lane (no cell, no
 * acknowledgement) until it has seen its own incarnation in `to` and the
 * expected one in `from`:
 *
 *   A1 <-> B5, B dies, B6 comes.   A's lane says to=5 until A opens it again;
 *   B6 reads nothing before that. A reads B6's own outbox, and there nothing
 *   before it says to=1.
 *
 * Opening again changes the generation. A stopped B5 that wakes and still looks
 * at A's lane expects cells of the old generation and finds none; what it
 * writes lands in its own outbox, which no node reads any more.
 *
 * `to` is written 0 first and last when a lane is opened: a reader that finds
 * its own incarnation there before and after it has loaded generation and
 * start has a consistent pair, because incarnations never come back.
 *
 * The generation alone would not do: it counts the openings of one outbox, and
 * two incarnations of A both begin with 1.
 */
#include "transports/ump/ump_internal.h"

#include <assert.h>

#include "core/base/assert.h"
#include "core/base/bits.h"

#define GENERATION_MAX 0xffffu /* 16 bits of the cell header; 0: never used */

static_assert(sizeof(struct qn_ump_control) == QN_CACHELINE, "one line");
static_assert(sizeof(struct qn_ump_ack) == QN_CACHELINE, "one line");
static_assert(sizeof(struct qn_ump_cell) == QN_CACHELINE, "one line");
static_assert(offsetof(struct qn_ump_lane, cell) == 2 * QN_CACHELINE, "layout");
static_assert(QN_UMP_FIRST_BYTES + sizeof(uint32_t) == QN_UMP_CELL_BYTES,
              "FIRST carries the total");
static_assert(QN_UMP_CELL_BYTES <= QN_INPLACE_MAX,
              "frames of core/qp.h; no msg_max is below a cell");
static_assert(offsetof(struct qn_ump, qp) == 0, "qn_ump_of");

int qn_ump_corrupt(struct qn_ump *u)
{
    u->status = QN_ECORRUPT;
    u->rx_tag = QN_UMP_TAG_NONE; /* the hot path finds no cell any more */
    u->rx_state = QN_UMP_IDLE;
    u->staged = 0;
    return QN_ECORRUPT;
}

bool qn_ump_accept(struct qn_ump *u)
{
    if (u->accepted || u->status == QN_ECORRUPT) {
        return u->accepted;
    }
    /* E: seq_cst throughout, see open_lane. Cold: once per incarnation. */
    const struct qn_ump_control *c = &u->rx->control;
    if (qn_load(&c->to, QN_SEQ_CST) != u->self_inc ||
        qn_load(&c->from, QN_SEQ_CST) != u->peer_inc) {
        return false;
    }
    uint32_t generation = qn_load(&c->generation, QN_SEQ_CST);
    uint32_t start = qn_load(&c->start, QN_SEQ_CST);
    if (qn_load(&c->to, QN_SEQ_CST) != u->self_inc) {
        return false; /* opened again for a successor of ours */
    }
    if (generation == 0 || generation > GENERATION_MAX) {
        qn_ump_corrupt(u);
        return false;
    }
    u->rx_tag = generation;
    u->rx_next = start;
    u->rx_segment = u->rx->cell;
    u->accepted = true;
    return true;
}

/* Retag the own lane. E: `to` is 0 while anything else changes. */
static uint32_t open_lane(struct qn_ump_lane *l, const struct qn_qp_opts *o,
                          uint32_t start)
{
    struct qn_ump_control *c = &l->control;
    qn_store(&c->to, 0, QN_SEQ_CST);
    /* relaxed: only this node writes its lane. */
    uint32_t last = qn_load(&c->generation, QN_RELAXED);
    uint32_t generation = last >= GENERATION_MAX ? 1 : last + 1;
    qn_store(&c->from, o->self_inc, QN_SEQ_CST);
    qn_store(&c->generation, generation, QN_SEQ_CST);
    qn_store(&c->start, start, QN_SEQ_CST);
    qn_store(&c->want, 0, QN_SEQ_CST);
    qn_store(&l->ack.read, 0, QN_SEQ_CST);
    /* The generation alone would do until it wraps. */
    for (uint32_t i = 0; i < o->cells; i++) {
        qn_store(&l->cell[i].header, 0, QN_RELAXED);
    }
    qn_store(&c->to, o->peer_inc, QN_SEQ_CST);
    return generation;
}

static bool opts_good(const struct qn_qp_opts *o)
{
    return o->tx != NULL && o->rx != NULL &&
           (uintptr_t)o->tx % QN_CACHELINE == 0 &&
           (uintptr_t)o->rx % QN_CACHELINE == 0 && qn_is_pow2(o->cells) &&
           o->cells >= QN_UMP_CELLS_MIN && o->cells <= QN_UMP_CELLS_MAX &&
           o->self < QN_MEMBERS_MAX && o->peer < QN_MEMBERS_MAX &&
           (o->msg_max == 0 ||
            (o->msg_max >= QN_INPLACE_MAX && o->msg_max <= QN_MSG_MAX)) &&
           o->self_inc != 0 && o->peer_inc != 0;
}

static void down(struct qn_qp *qp)
{
    struct qn_ump *u = qn_ump_of(qp);
    if (u->status == QN_OK) {
        u->status = QN_EPEERDEAD;
        u->staged = 0;
        u->starved = false;
    }
}

static void close_end(struct qn_qp *qp)
{
    /* The lane stays as it is: what was sent can still be received. */
    qn_alloc_free_lines(qp->alloc, qn_ump_of(qp));
}

/* A lane begins with a whole segment. */
static struct qn_qp_traffic traffic(const struct qn_qp *qp)
{
    const struct qn_ump *u = (const struct qn_ump *)(const void *)qp;
    return (struct qn_qp_traffic){
        .sent = (u->tx_turns << u->seg_shift) + (u->tx_next & u->seg_mask),
        .received = (u->rx_turns << u->seg_shift) + (u->rx_next & u->seg_mask)};
}

static const struct qn_qp_ops ops = {
    .unit = "cells",
    .try_reserve = qn_ump_try_reserve,
    .commit = qn_ump_commit,
    .peek = qn_ump_peek,
    .release = qn_ump_release,
    .peek_frame = qn_ump_peek_frame,
    .release_frame = qn_ump_release_frame,
    .try_send_frame = qn_ump_try_send_frame,
    .flush = qn_ump_flush,
    .room = qn_ump_room,
    .down = down,
    .close = close_end,
    .traffic = traffic,
    .try_send = qn_ump_try_send,
};

/* Segments: of QN_UMP_SEGMENT_CELLS if that makes 8 to QN_UMP_SEGMENTS_MAX. The
 * first run of cells, whatever its number, goes into segment 0. */
static void divide(struct qn_ump *u)
{
    uint32_t cells = QN_MIN(u->cells / 8, QN_UMP_SEGMENT_CELLS);
    cells = QN_MAX(cells, u->cells / QN_UMP_SEGMENTS_MAX);
    u->seg_mask = cells - 1;
    u->seg_shift = (uint32_t)__builtin_ctz(cells);
    u->tx_free = (uint32_t)((UINT64_C(1) << u->cells / cells) - 1) & ~1u;
}

int qn_ump_open_at(struct qn_qp **out, const struct qn_qp_opts *o,
                   uint32_t start)
{
    if (!opts_good(o)) {
        return QN_EINVAL;
    }
    /* A line of its own: two ends in one process belong to two threads. */
    size_t bytes = qn_align_up(sizeof(struct qn_ump), QN_CACHELINE);
    uint32_t msg_max = o->msg_max != 0 ? o->msg_max : QN_MSG_MAX;
    size_t buffer = qn_align_up(msg_max, QN_CACHELINE);
    const struct qn_alloc *a = qn_alloc_or_malloc(o->alloc);
    struct qn_ump *u = qn_alloc_lines(a, bytes + 2 * buffer);
    if (u == NULL) {
        return QN_ENOMEM;
    }
    u->qp = (struct qn_qp){.ops = &ops, .doorbell = o->doorbell, .alloc = a};
    u->tx = o->tx;
    u->rx = o->rx;
    u->cells = o->cells;
    u->msg_max = msg_max;
    divide(u);
    u->tx_segment = u->tx->cell;
    u->tx_next = u->tx_freed = u->tx_flushed = start;
    u->rx_segment = u->rx->cell; /* looked at before it is accepted */
    u->rx_tag = QN_UMP_TAG_NONE;
    u->ringer = o->ringer;
    u->self_inc = o->self_inc;
    u->peer_inc = o->peer_inc;
    u->stage = (uint8_t *)u + bytes;
    u->whole = u->stage + buffer;
    u->tx_tag = open_lane(u->tx, o, start);
    *out = &u->qp;
    return QN_OK;
}

static int open_end(struct qn_qp **out, const struct qn_qp_opts *o)
{
    return qn_ump_open_at(out, o, 0);
}

static size_t lane_bytes(uint32_t cells)
{
    return sizeof(struct qn_ump_lane) + cells * sizeof(struct qn_ump_cell);
}

const struct qn_transport qn_ump = {
    .name = "ump",
    .ops = &ops,
    .memory = QN_TRANSPORT_ISOLATED,
    .frame_max = QN_UMP_CELL_BYTES,
    .lane_bytes = lane_bytes,
    .open = open_end,
};
