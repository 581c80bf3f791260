/*
 * The queuepair over message buffers: opening and closing an end, and the flags
 * that both sides look at. mpb_send.c and mpb_recv.c are the rest.
 *
 * What an incarnation finds in flags is of its predecessor, or of one of the
 * peer's, until the peer has stored flags with the tag of this pair. Nothing
 * need be cleared for that. But a peer may still be reading the chunk, because
 * it was not told yet that the predecessor is dead: so open takes `sent` back,
 * by storing one with its own tag, before it writes a cell (L). It leaves the
 * write buffer before the first cell does, since that is in another line.
 */
#include <assert.h>

#include "core/base/bits.h"
#include "transports/mpb/mpb_internal.h"

static_assert(sizeof(struct qn_mpb_cell) ==
                  QN_MPB_CELL_LINES * QN_MPB_LINE_BYTES,
              "lines of a cell");
static_assert(QN_MPB_FIRST_BYTES + sizeof(uint32_t) == QN_MPB_CELL_BYTES,
              "FIRST carries the total");
static_assert(QN_MPB_CELL_BYTES <= QN_INPLACE_MAX, "frames of core/qp.h");
static_assert(offsetof(struct qn_mpb_end, qp) == 0, "qn_mpb_end_of");

int qn_mpb_corrupt(struct qn_mpb_end *e)
{
    e->status = QN_ECORRUPT;
    e->rx_whole = false;
    e->rx_next = e->rx_sure;
    e->staged = 0;
    return QN_ECORRUPT;
}

bool qn_mpb_look(struct qn_mpb_end *e, enum qn_mpb_flag flag, uint32_t *index)
{
    bool stale = flag == QN_MPB_SENT ? QN_MPB_MUTANT(SENT_STALE)
                                     : QN_MPB_MUTANT(READY_STALE);
    if (!stale) {
        qn_mpb_invalidate(e->chip);
    }
    uint64_t word = qn_mpb_load(e->chip, e->self, e->flag_here, (uint32_t)flag);
    *index = (uint32_t)(word >> 32);
    return (uint32_t)word == e->tag_here;
}

static void down(struct qn_qp *qp)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    if (e->status == QN_OK) {
        e->status = QN_EPEERDEAD;
        e->staged = 0;
        e->starved = false;
    }
}

static void close_end(struct qn_qp *qp)
{
    /* What was sent can still be received. */
    qn_alloc_free(qp->alloc, qn_mpb_end_of(qp));
}

static struct qn_qp_traffic traffic(const struct qn_qp *qp)
{
    return ((const struct qn_mpb_end *)(const void *)qp)->traffic;
}

static const struct qn_qp_ops ops = {
    .unit = "lines",
    .try_reserve = qn_mpb_try_reserve,
    .commit = qn_mpb_commit,
    .peek = qn_mpb_peek,
    .release = qn_mpb_release_msg,
    .peek_frame = qn_mpb_peek_frame,
    .release_frame = qn_mpb_release_frame,
    .try_send_frame = qn_mpb_try_send_frame,
    .flush = qn_mpb_flush,
    .room = qn_mpb_room,
    .down = down,
    .close = close_end,
    .traffic = traffic,
    .try_send = qn_mpb_try_send,
};

static bool opts_good(const struct qn_qp_opts *o)
{
    if (o->device == NULL || o->device->type != &qn_mpb_device) {
        return false;
    }
    const struct qn_mpb *m = qn_mpb_of(o->device);
    return o->tx == NULL && o->rx == NULL && o->self == m->self &&
           o->peer < m->nodes && o->peer != o->self &&
           (uint32_t)o->lane < m->lanes &&
           (o->msg_max == 0 ||
            (o->msg_max >= QN_INPLACE_MAX && o->msg_max <= QN_MSG_MAX)) &&
           o->self_inc != 0 && o->peer_inc != 0;
}

static uint32_t tag_of(uint64_t writer, uint64_t reader)
{
    return qn_mpb_low(writer) << 16 | qn_mpb_low(reader);
}

static void take_place(struct qn_mpb_end *e, const struct qn_qp_opts *o)
{
    struct qn_mpb_layout l;
    (void)qn_mpb_layout(&l, e->chip->nodes, e->chip->lanes); /* attach did */
    e->cells = l.cells;
    e->self = o->self;
    e->peer = o->peer;
    e->flag_here = qn_mpb_flag_line(&l, o->self, o->peer, o->lane);
    e->flag_there = qn_mpb_flag_line(&l, o->peer, o->self, o->lane);
    e->chunk_here = qn_mpb_chunk_line(&l, o->self, o->peer, o->lane);
    e->chunk_there = qn_mpb_chunk_line(&l, o->peer, o->self, o->lane);
    e->tag_here = tag_of(o->peer_inc, o->self_inc);
    e->tag_there = tag_of(o->self_inc, o->peer_inc);
}

int qn_mpb_open_at(struct qn_qp **out, const struct qn_qp_opts *o,
                   uint32_t start)
{
    if (!opts_good(o)) {
        return QN_EINVAL;
    }
    uint32_t msg_max = o->msg_max != 0 ? o->msg_max : QN_MSG_MAX;
    const struct qn_alloc *a = qn_alloc_or_malloc(o->alloc);
    struct qn_mpb_end *e = qn_alloc_zeroed(a, sizeof *e + 2 * (size_t)msg_max);
    if (e == NULL) {
        return QN_ENOMEM;
    }
    e->qp = (struct qn_qp){.ops = &ops, .doorbell = o->doorbell, .alloc = a};
    e->chip = qn_mpb_of(o->device);
    take_place(e, o);
    e->limits = (struct qn_frame_limits){
        .first = QN_MPB_FIRST_BYTES, .any = QN_MPB_CELL_BYTES, .msg = msg_max};
    e->ringer = o->ringer;
    e->tx_next = e->tx_freed = e->tx_flushed = start;
    e->rx_next = e->rx_sure = e->rx_told = start;
    e->stage = (uint8_t *)(e + 1);
    e->whole = e->stage + msg_max;
    if (!QN_MPB_MUTANT(SENT_LEFT)) {
        uint64_t none = (uint64_t)start << 32 | e->tag_there;
        qn_mpb_store(e->chip, e->peer, e->flag_there, QN_MPB_SENT, none);
        qn_mpb_store(e->chip, e->peer, e->flag_there, QN_MPB_READY, none);
        qn_mpb_store(e->chip, e->peer, e->flag_there, QN_MPB_WANT, 0);
    }
    *out = &e->qp;
    return QN_OK;
}

static int open_end(struct qn_qp **out, const struct qn_qp_opts *o)
{
    return qn_mpb_open_at(out, o, 0);
}

static size_t lane_bytes(uint32_t cells)
{
    (void)cells;
    return 0;
}

const struct qn_transport qn_mpb = {
    .name = "mpb",
    .ops = &ops,
    .memory = QN_TRANSPORT_DEVICE,
    .frame_max = QN_MPB_CELL_BYTES,
    .device = &qn_mpb_device,
    .lane_bytes = lane_bytes,
    .open = open_end,
};
