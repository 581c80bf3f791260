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

/* Not once the peer has ended: its line may be its successor's. */
static void store_word(struct qn_mpb_end *e, enum qn_mpb_flag flag,
                       uint64_t value)
{
    if (e->status != QN_EPEERDEAD) {
        qn_mpb_store(e->chip, e->peer, e->flag_there, (uint32_t)flag, value);
    }
}

static void store_flag(struct qn_mpb_end *e, enum qn_mpb_flag flag,
                       uint32_t index)
{
    store_word(e, flag, (uint64_t)index << 32 | e->tag_there);
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
static void put(struct qn_mpb_end *e, const struct qn_frame *f)
{
    struct qn_mpb_cell cell;
    uint32_t at = f->kind == QN_FRAME_FIRST ? (uint32_t)sizeof f->total : 0;
    memcpy(cell.payload, &f->total, sizeof f->total); /* FIRST: stays */
    if (f->len > 0) {
        memcpy(cell.payload + at, f->data, f->len);
    }
    cell.head = (uint64_t)e->tx_next << 32 | (uint64_t)f->kind << 8 | f->len;
    uint32_t slot = e->tx_next % e->cells;
    qn_mpb_put(e->chip, e->self, e->chunk_here + slot * QN_MPB_CELL_LINES,
               &cell, (uint32_t)sizeof cell.head + at + f->len);
    e->tx_next++;
    e->traffic.sent += qn_mpb_frame_lines(f);
}

/* Put as much of a message as fits, from byte `from` on; at least one frame.
 * @return the byte it has come to. */
static uint32_t put_some(struct qn_mpb_end *e, const void *msg, uint32_t len,
                         uint32_t from, uint32_t room)
{
    uint32_t at = from;
    for (uint32_t i = 0; i < room && (at < len || i == 0); i++) {
        struct qn_frame f = qn_frame_cut(msg, len, at, &e->limits);
        put(e, &f);
        at += f.len;
    }
    if (room > 0) {
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
    if (len > e->limits.msg) {
        return QN_EMSGSIZE;
    }
    return e->tx_frames.inside ? QN_EAGAIN : ready_to_send(e);
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

/* One cell is free. What does not fit waits in `stage`. */
static void send_msg(struct qn_mpb_end *e, const void *msg, uint32_t len)
{
    uint32_t at = put_some(e, msg, len, 0, free_cells(e));
    if (at < len) {
        if (msg != e->stage) {
            memcpy(e->stage, msg, len);
        }
        e->staged = len;
        e->pushed = at;
        push(e);
    }
}

void qn_mpb_commit(struct qn_qp *qp, size_t len)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    QN_ASSERT(len <= e->reserved);
    e->reserved = 0;
    send_msg(e, e->stage, (uint32_t)len);
}

int qn_mpb_try_send(struct qn_qp *qp, const void *msg, size_t len)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    int rc = ready_for_message(e, len);
    if (rc == QN_OK) {
        send_msg(e, msg, (uint32_t)len);
    }
    return rc;
}

int qn_mpb_try_send_frame(struct qn_qp *qp, const struct qn_frame *f)
{
    struct qn_mpb_end *e = qn_mpb_end_of(qp);
    if (!qn_course_fits(&e->tx_frames, f, &e->limits)) {
        return QN_EINVAL;
    }
    int rc = ready_to_send(e);
    if (rc == QN_OK) {
        put(e, f);
        announce(e);
        qn_course_advance(&e->tx_frames, f);
    }
    return rc;
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
    store_word(e, QN_MPB_WANT, want);
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
    /* Behind a staged message there is no room, whatever is free: the next
     * flush may fill the lane with it. */
    e->starved = e->starved && (e->staged != 0 || refresh(e) == 0);
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
