/*
 * The queuepair over message buffers, the send side.
 *
 * Cells are put into the own chunk, then `sent` is stored at the peer: once for
 * all cells of a message that fit. The write buffer keeps the order, since the
 * flag is in another line. `sent` and `ready` are in one line, so each tells
 * the other at no price.
 *
 * A long message that does not fit is staged, and as much as fits is pushed at
 * once and by every later call. Nothing can be sent behind it, so FIFO needs no
 * further thought; a message is only taken when one cell is free, so FIRST is
 * always out before anything waits.
 *
 * W, the wait for room: the sender stores `want` and then loads `ready`, the
 * receiver stores `ready` and then loads `want`, all of them drained and
 * invalidated, so seq_cst (chip.c). One of the two sees the other. Want is
 * stored in flush only, which every sleeper calls.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/mpb_internal.h"

static uint32_t free_cells(const struct qn_mpb_end *e)
{
    return e->cells - (e->tx_next - e->tx_freed);
}

/* Look at `ready` again. @return free cells. */
static uint32_t refresh(struct qn_mpb_end *e)
{
    uint32_t ready;
    if (e->status == QN_OK && qn_mpb_look(e, QN_MPB_READY, &ready)) { /* R */
        if (ready - e->tx_freed > e->tx_next - e->tx_freed) {
            qn_mpb_corrupt(e);
            return 0;
        }
        e->tx_freed = ready;
    }
    return free_cells(e);
}

static bool have_room(struct qn_mpb_end *e)
{
    if (free_cells(e) > 0) {
        return true;
    }
    e->starved = refresh(e) == 0;
    return !e->starved;
}

static void store_flag(struct qn_mpb_end *e, enum qn_mpb_flag flag,
                       uint32_t index)
{
    qn_mpb_store(e->chip, e->peer, e->flag_there, (uint32_t)flag,
                 (uint64_t)index << 32 | e->tag_there);
}

/* R, in the write buffer. */
static void store_ready(struct qn_mpb_end *e)
{
    if (e->rx_told != e->rx_next) {
        e->rx_told = e->rx_next;
        e->rx_untold = true;
        store_flag(e, QN_MPB_READY, e->rx_next);
    }
}

void qn_mpb_store_ready(struct qn_mpb_end *e)
{
    store_ready(e);
    if (!QN_MPB_MUTANT(READY_KEPT)) {
        qn_mpb_drain(e->chip);
    }
}

/* S: what was put is there. */
static void announce(struct qn_mpb_end *e)
{
    store_flag(e, QN_MPB_SENT, e->tx_next);
    store_ready(e);
    if (!QN_MPB_MUTANT(SENT_KEPT)) {
        qn_mpb_drain(e->chip);
    }
}

/* Put the next cell, to be announced. */
static void put(struct qn_mpb_end *e, enum qn_frame_kind kind,
                const uint8_t *data, uint32_t len, uint32_t total)
{
    struct qn_mpb_cell cell;
    uint32_t at = kind == QN_FRAME_FIRST ? (uint32_t)sizeof total : 0;
    memcpy(cell.payload, &total, sizeof total); /* FIRST: stays */
    if (len > 0) {
        memcpy(cell.payload + at, data, len);
    }
    cell.head = (uint64_t)e->tx_next << 32 | (uint64_t)kind << 8 | len;
    uint32_t slot = e->tx_next % e->cells;
    qn_mpb_put(e->chip, e->self, e->chunk_here + slot * QN_MPB_CELL_LINES,
               &cell, (uint32_t)sizeof cell.head + at + len);
    e->tx_next++;
}

/* Put as much of a long message as fits, from byte `from` on. @return the byte
 * it has come to. */
static uint32_t put_some(struct qn_mpb_end *e, const uint8_t *msg, uint32_t len,
                         uint32_t from, uint32_t room)
{
    uint32_t at = from;
    for (uint32_t i = 0; i < room && at < len; i++) {
        bool first = at == 0;
        uint32_t most = first ? QN_MPB_FIRST_BYTES : QN_MPB_CELL_BYTES;
        uint32_t n = QN_MIN(most, len - at);
        put(e,
            first           ? QN_FRAME_FIRST
            : at + n == len ? QN_FRAME_LAST
                            : QN_FRAME_MORE,
            msg + at, n, len);
        at += n;
    }
    if (at != from) {
        announce(e);
    }
    return at;
}

static void push(struct qn_mpb_end *e)
{
    uint32_t room = refresh(e);
    if (e->status != QN_OK) {
        return; /* refresh found damage; nothing is staged any more */
    }
    e->pushed = put_some(e, e->stage, e->staged, e->pushed, room);
    if (e->pushed == e->staged) {
        e->staged = 0;
    }
}

static void put_only(struct qn_mpb_end *e, const void *msg, uint32_t len)
{
    put(e, QN_FRAME_ONLY, msg, len, len);
    announce(e);
}

/* @return QN_OK: one cell is free and nothing stands before the next message or
 * frame. */
static int ready_to_send(struct qn_mpb_end *e)
{
    if (e->staged != 0) {
        push(e);
    }
    if (e->status != QN_OK) {
        return e->status;
    }
    if (e->staged != 0) {
        /* The next flush may push it and fill the chunk with it. */
        e->starved = true;
        return QN_EAGAIN;
    }
    if (!have_room(e)) {
        return e->status != QN_OK ? e->status : QN_EAGAIN;
    }
    return QN_OK;
}

static int ready_for_message(struct qn_mpb_end *e, size_t len)
{
    if (len > e->msg_max) {
        return QN_EMSGSIZE;
    }
    return e->frame_open ? QN_EAGAIN : ready_to_send(e);
}

int qn_mpb_try_reserve(struct qn_qp *qp, size_t len, void **buf)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    int rc = ready_for_message(e, len);
    if (rc == QN_OK) {
        e->reserved = (uint32_t)len;
        *buf = e->stage;
    }
    return rc;
}

void qn_mpb_commit(struct qn_qp *qp, size_t len)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(len <= e->reserved);
    e->reserved = 0;
    if (len <= QN_MPB_CELL_BYTES) {
        put_only(e, e->stage, (uint32_t)len);
        return;
    }
    e->staged = (uint32_t)len;
    e->pushed = 0;
    push(e);
}

int qn_mpb_try_send(struct qn_qp *qp, const void *msg, size_t len)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    int rc = ready_for_message(e, len);
    if (rc != QN_OK) {
        return rc;
    }
    if (len <= QN_MPB_CELL_BYTES) {
        put_only(e, msg, (uint32_t)len);
        return QN_OK;
    }
    memcpy(e->stage, msg, len);
    e->staged = (uint32_t)len;
    e->pushed = 0;
    push(e);
    return QN_OK;
}

/* Does the frame continue what was sent? Fills what is missing after it. */
static bool frame_fits(const struct qn_mpb_end *e, const struct qn_frame *f,
                       uint32_t *left)
{
    bool begins = f->kind == QN_FRAME_ONLY || f->kind == QN_FRAME_FIRST;
    if (begins == e->frame_open) {
        return false;
    }
    *left = e->frame_left - f->len; /* MORE, LAST: checked below */
    switch (f->kind) {
    case QN_FRAME_ONLY:
        return f->len <= QN_MPB_CELL_BYTES;
    case QN_FRAME_FIRST:
        *left = f->total - f->len;
        return f->len <= QN_MPB_FIRST_BYTES && f->len <= f->total &&
               f->total <= e->msg_max;
    case QN_FRAME_MORE:
        return f->len <= QN_MPB_CELL_BYTES && f->len <= e->frame_left;
    case QN_FRAME_LAST:
        return f->len <= QN_MPB_CELL_BYTES && f->len == e->frame_left;
    case QN_FRAME_ABORT:
        return f->len == 0;
    }
    return false;
}

int qn_mpb_try_send_frame(struct qn_qp *qp, const struct qn_frame *f)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    uint32_t left = 0;
    if (!frame_fits(e, f, &left)) {
        return QN_EINVAL;
    }
    int rc = ready_to_send(e);
    if (rc != QN_OK) {
        return rc;
    }
    put(e, f->kind, f->data, f->len, f->total);
    announce(e);
    e->frame_open = f->kind == QN_FRAME_FIRST || f->kind == QN_FRAME_MORE;
    e->frame_left = left;
    return QN_OK;
}

uint32_t qn_mpb_room(struct qn_qp *qp)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    if (e->staged != 0) {
        push(e);
    }
    e->starved |= e->staged != 0;
    if (e->status != QN_OK || e->staged != 0 || !have_room(e)) {
        return 0;
    }
    return free_cells(e);
}

/* Store what was read. @return true if the peer waits for it. */
static bool flush_ready(struct qn_mpb_end *e)
{
    if (e->rx_told != e->rx_next) {
        qn_mpb_store_ready(e);
    }
    if (!e->rx_untold) {
        return false;
    }
    e->rx_untold = false;
    if (!QN_MPB_MUTANT(WANT_STALE)) {
        qn_mpb_invalidate(e->chip); /* W, behind the store of ready */
    }
    return qn_mpb_load(e->chip, e->self, e->flag_here, QN_MPB_WANT) != 0;
}

static void ring_peer(struct qn_mpb_end *e)
{
    if (e->ringer != NULL && e->status == QN_OK) {
        qn_doorbell_ring(e->ringer);
    }
}

void qn_mpb_tell(struct qn_mpb_end *e)
{
    if (flush_ready(e)) {
        ring_peer(e);
    }
}

static void store_want(struct qn_mpb_end *e, bool want)
{
    e->wanted = want;
    qn_mpb_store(e->chip, e->peer, e->flag_there, QN_MPB_WANT, want);
    if (!QN_MPB_MUTANT(WANT_KEPT)) {
        qn_mpb_drain(e->chip);
    }
}

/* W: say that room is wanted, then look for it once more. */
static void declare_want(struct qn_mpb_end *e)
{
    if (!e->wanted) {
        store_want(e, true);
    }
    if (e->staged != 0) {
        push(e);
    }
    e->starved = e->starved && refresh(e) == 0;
}

bool qn_mpb_flush(struct qn_qp *qp)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    if (e->status == QN_ECORRUPT) {
        return false;
    }
    bool ring = flush_ready(e);
    if (e->staged != 0 || e->starved) {
        declare_want(e);
    }
    if (e->wanted && e->staged == 0 && !e->starved) {
        store_want(e, false);
    }
    if (e->tx_next != e->tx_flushed) {
        e->tx_flushed = e->tx_next;
        ring = true;
    }
    if (ring) {
        ring_peer(e);
    }
    return e->staged != 0;
}
