/*
 * UMP, the send side.
 *
 * A segment is free when the peer has acknowledged the run of cells that it
 * carried (`order` remembers which one carried which run). The sender keeps the
 * last acknowledgement it saw and looks again only at the end of a run, or when
 * there is no room: the ack line travels once per run. It goes on in the lowest
 * free segment (ump.h), so that what it writes is what it wrote a moment ago.
 *
 * A long message goes from the caller's bytes straight into the cells if all
 * of it fits. Otherwise it is staged, and as much as fits is pushed at once
 * and by every later call. Nothing can be sent behind a staged message, so
 * FIFO needs no further thought; and because a message is only taken when one
 * cell is free, FIRST is always out before anything waits.
 *
 * W, the wait for room. It must not happen that the sender sleeps for room
 * that is there:
 *
 *     sender   want = 1;  load ack   -> old, sleeps
 *     receiver ack = new; load want  -> 0, does not ring
 *
 * All four are seq_cst, so one of the two loads finds the other's store. Want
 * is declared in flush only, which every sleeper calls: a caller that polls
 * costs the receiver nothing. The ring itself then goes by the doorbell's own
 * handshake (core/wait/doorbell.h): the sleeper armed its doorbell before this
 * flush, so a receiver that saw want = 1 either sees it asleep, or published
 * its ack before the look that follows.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/ump/ump_internal.h"

static inline uint32_t run_of(const struct qn_ump *u, uint32_t sequence)
{
    return sequence >> u->seg_shift;
}

static inline uint8_t *segment_of(struct qn_ump *u, uint32_t sequence)
{
    return &u->order[run_of(u, sequence) % QN_UMP_SEGMENTS_MAX];
}

/* What is left of the current segment, and all free ones but one cell: a
 * segment is only completed when there is another to go on in. */
static inline uint32_t free_cells(const struct qn_ump *u)
{
    return u->cells - 1 - (u->tx_next - (u->tx_freed & ~u->seg_mask));
}

/* Load the peer's acknowledgement again. @return free cells. */
static uint32_t refresh(struct qn_ump *u)
{
    uint32_t used = u->tx_next - u->tx_freed;
    if (!qn_ump_accept(u)) {
        return free_cells(u);
    }
    /* seq_cst: K, acquire of the peer's release in qn_ump_ack, its reads are
     * over before we overwrite; and W, after the store of want. */
    uint64_t ack = qn_load(&u->rx->ack.read, QN_SEQ_CST);
    if (ack >> 32 != u->tx_tag) {
        if (ack != 0) {
            qn_ump_corrupt(u);
        }
        return free_cells(u); /* the peer has not read anything yet */
    }
    if ((uint32_t)ack - u->tx_freed > used) {
        qn_ump_corrupt(u);
        return 0;
    }
    while (run_of(u, u->tx_freed) != run_of(u, (uint32_t)ack)) {
        u->tx_free |= 1u << *segment_of(u, u->tx_freed);
        u->tx_freed = (u->tx_freed | u->seg_mask) + 1;
    }
    u->tx_freed = (uint32_t)ack;
    return free_cells(u);
}

/* At least one free cell? Looks at the peer only if it must. */
static inline bool have_room(struct qn_ump *u)
{
    if (free_cells(u) > 0) {
        return true;
    }
    u->starved = refresh(u) == 0;
    return !u->starved;
}

static inline struct qn_ump_cell *next_cell(struct qn_ump *u)
{
    return &u->tx_segment[u->tx_next & u->seg_mask];
}

/* Choose where to go on. The caller had a free cell, so there is one. */
static __attribute__((noinline)) uint32_t next_segment(struct qn_ump *u)
{
    (void)refresh(u); /* what is free only now is warm */
    QN_ASSERT(u->tx_free != 0);
    uint32_t first = u->tx_next >> QN_UMP_DRIFT_SHIFT;
    uint32_t after = u->tx_free & ~0u << (first % (u->cells >> u->seg_shift));
    uint32_t next = (uint32_t)__builtin_ctz(after != 0 ? after : u->tx_free);
    u->tx_free &= ~(1u << next);
    u->tx_turns++;
    return next;
}

/* Announce the next cell, whose payload is written. */
static inline void publish(struct qn_ump *u, enum qn_frame_kind kind,
                           uint32_t len)
{
    uint64_t header = (uint64_t)u->tx_next << 32 | (uint64_t)u->tx_tag << 16 |
                      (uint64_t)kind << 8 | len;
    struct qn_ump_cell *cell = next_cell(u);
    if ((++u->tx_next & u->seg_mask) == 0) {
        uint32_t next = next_segment(u);
        header |= next << QN_UMP_NEXT_SHIFT;
        *segment_of(u, u->tx_next) = (uint8_t)next;
        u->tx_segment = u->tx->cell + (next << u->seg_shift);
    }
    /* C, release: the payload is visible before the header that names it;
     * acquire in ump_recv.c. */
    qn_store(&cell->header, header, QN_RELEASE);
}

static inline void put(struct qn_ump *u, enum qn_frame_kind kind,
                       const uint8_t *data, uint32_t len)
{
    qn_copy_out_line(next_cell(u)->payload, data, len); /* announced by C */
    publish(u, kind, len);
}

static void put_first(struct qn_ump *u, const uint8_t *data, uint32_t len,
                      uint32_t total)
{
    uint8_t *payload = next_cell(u)->payload;
    qn_copy_out(payload, &total, sizeof total); /* announced by C */
    qn_copy_out_line(payload + sizeof total, data, len);
    publish(u, QN_FRAME_FIRST, len);
}

/* Full MORE cells, `count` of them, none the last of its segment: the inner
 * loop of every long message, with the sequence in a register. */
static const uint8_t *put_run(struct qn_ump *u, const uint8_t *data,
                              uint32_t count)
{
    const uint64_t rest = (uint64_t)u->tx_tag << 16 |
                          (uint64_t)QN_FRAME_MORE << 8 | QN_UMP_CELL_BYTES;
    struct qn_ump_cell *c = next_cell(u);
    const uint32_t end = u->tx_next + count;
    for (uint32_t seq = u->tx_next; seq != end; seq++, c++) {
        qn_copy_out(c->payload, data, QN_UMP_CELL_BYTES); /* announced by C */
        data += QN_UMP_CELL_BYTES;
        /* C, release: as in publish. */
        qn_store(&c->header, (uint64_t)seq << 32 | rest, QN_RELEASE);
    }
    u->tx_next = end;
    return data;
}

static void put_more(struct qn_ump *u, const uint8_t *data, uint32_t count)
{
    while (count > 0) {
        uint32_t run = u->seg_mask - (u->tx_next & u->seg_mask);
        run = QN_MIN(run, count);
        data = put_run(u, data, run);
        count -= run;
        if (count > 0) {
            put(u, QN_FRAME_MORE, data, QN_UMP_CELL_BYTES);
            data += QN_UMP_CELL_BYTES;
            count--;
        }
    }
}

/* Put as much of a long message into cells as fits into `room`, from byte
 * `from` on. @return the byte it has come to. */
static uint32_t put_some(struct qn_ump *u, const uint8_t *msg, uint32_t len,
                         uint32_t from, uint32_t room)
{
    QN_DASSERT(len > QN_UMP_CELL_BYTES);
    uint32_t at = from;
    if (at == 0 && room > 0) {
        put_first(u, msg, QN_UMP_FIRST_BYTES, len);
        at = QN_UMP_FIRST_BYTES;
        room--;
    }
    uint32_t before_last = (len - at - 1) / QN_UMP_CELL_BYTES;
    uint32_t more = QN_MIN(room, before_last);
    put_more(u, msg + at, more);
    at += more * QN_UMP_CELL_BYTES;
    if (room > more) {
        put(u, QN_FRAME_LAST, msg + at, len - at);
        at = len;
    }
    return at;
}

static void push(struct qn_ump *u)
{
    uint32_t room = refresh(u);
    if (u->status != QN_OK) {
        return; /* refresh found damage; nothing is staged any more */
    }
    u->pushed = put_some(u, u->stage, u->staged, u->pushed, room);
    if (u->pushed == u->staged) {
        u->staged = 0;
    }
}

static void stage_pushed(struct qn_ump *u, uint32_t len)
{
    u->staged = len;
    u->pushed = 0;
    push(u);
}

/* Nothing stands before the next message. */
static inline bool clear_to_send(const struct qn_ump *u)
{
    return (u->status | (int)u->staged | (int)u->frame_open) == 0;
}

/* What every send begins with if it is not plain sailing. @return QN_OK: one
 * cell is free and nothing stands before the next message or frame. */
static int ready_to_send(struct qn_ump *u)
{
    if (u->staged != 0) {
        push(u);
    }
    if (u->status != QN_OK) {
        return u->status;
    }
    if (u->staged != 0) {
        /* The next flush may push it and fill the ring with it. */
        u->starved = true;
        return QN_EAGAIN;
    }
    if (!have_room(u)) {
        return u->status != QN_OK ? u->status : QN_EAGAIN;
    }
    return QN_OK;
}

static __attribute__((noinline)) int ready_for_message(struct qn_ump *u,
                                                       size_t len)
{
    if (len > u->msg_max) {
        return QN_EMSGSIZE;
    }
    return u->frame_open ? QN_EAGAIN : ready_to_send(u);
}

int qn_ump_try_reserve(struct qn_qp *qp, size_t len, void **buf)
{
    struct qn_ump *u = qn_ump_of(qp);
    if (len > u->msg_max || !clear_to_send(u) || free_cells(u) == 0) {
        int rc = ready_for_message(u, len);
        if (rc != QN_OK) {
            return rc;
        }
    }
    u->reserved = (uint32_t)len;
    *buf = len <= QN_UMP_CELL_BYTES ? next_cell(u)->payload : u->stage;
    return QN_OK;
}

void qn_ump_commit(struct qn_qp *qp, size_t len)
{
    struct qn_ump *u = qn_ump_of(qp);
    QN_ASSERT(len <= u->reserved);
    if (u->reserved <= QN_UMP_CELL_BYTES) {
        qn_touch_out(next_cell(u)->payload, len); /* announced by C */
        publish(u, QN_FRAME_ONLY, (uint32_t)len);
    } else if (len <= QN_UMP_CELL_BYTES) {
        put(u, QN_FRAME_ONLY, u->stage, (uint32_t)len);
    } else {
        stage_pushed(u, (uint32_t)len);
    }
    u->reserved = 0;
}

static int send_long(struct qn_ump *u, const void *msg, uint32_t len)
{
    uint32_t cells = 1 + (len - QN_UMP_FIRST_BYTES + QN_UMP_CELL_BYTES - 1) /
                             QN_UMP_CELL_BYTES;
    if (cells <= free_cells(u) || cells <= refresh(u)) {
        put_some(u, msg, len, 0, cells);
        return QN_OK;
    }
    if (u->status != QN_OK) {
        return u->status;
    }
    memcpy(u->stage, msg, len);
    stage_pushed(u, len);
    return QN_OK;
}

static __attribute__((noinline)) int send_slowly(struct qn_ump *u,
                                                 const void *msg, size_t len)
{
    int rc = ready_for_message(u, len);
    if (rc != QN_OK) {
        return rc;
    }
    if (len > QN_UMP_CELL_BYTES) {
        return send_long(u, msg, (uint32_t)len);
    }
    put(u, QN_FRAME_ONLY, msg, (uint32_t)len);
    return QN_OK;
}

/* The fast path is kept free of calls: each store to the stack takes a place in
 * the store buffer, where cells wait for their lines. No msg_max is below a
 * cell, so that it need not be looked at. */
int qn_ump_try_send(struct qn_qp *qp, const void *msg, size_t len)
{
    struct qn_ump *u = qn_ump_of(qp);
    if (len > QN_UMP_CELL_BYTES || !clear_to_send(u) || free_cells(u) == 0) {
        return send_slowly(u, msg, len);
    }
    put(u, QN_FRAME_ONLY, msg, (uint32_t)len);
    return QN_OK;
}

/* Does the frame continue what was sent? Fills what is missing after it. */
static bool frame_fits(const struct qn_ump *u, const struct qn_frame *f,
                       uint32_t *left)
{
    bool begins = f->kind == QN_FRAME_ONLY || f->kind == QN_FRAME_FIRST;
    if (begins == u->frame_open) {
        return false;
    }
    *left = u->frame_left - f->len; /* MORE, LAST: checked below */
    switch (f->kind) {
    case QN_FRAME_ONLY:
        return f->len <= QN_UMP_CELL_BYTES;
    case QN_FRAME_FIRST:
        *left = f->total - f->len;
        return f->len <= QN_UMP_FIRST_BYTES && f->len <= f->total &&
               f->total <= u->msg_max;
    case QN_FRAME_MORE:
        return f->len <= QN_UMP_CELL_BYTES && f->len <= u->frame_left;
    case QN_FRAME_LAST:
        return f->len <= QN_UMP_CELL_BYTES && f->len == u->frame_left;
    case QN_FRAME_ABORT:
        return f->len == 0;
    }
    return false;
}

int qn_ump_try_send_frame(struct qn_qp *qp, const struct qn_frame *f)
{
    struct qn_ump *u = qn_ump_of(qp);
    uint32_t left = 0;
    if (!frame_fits(u, f, &left)) {
        return QN_EINVAL;
    }
    int rc = ready_to_send(u);
    if (rc != QN_OK) {
        return rc;
    }
    if (f->kind == QN_FRAME_FIRST) {
        put_first(u, f->data, f->len, f->total);
    } else {
        put(u, f->kind, f->data, f->len);
    }
    u->frame_open = f->kind == QN_FRAME_FIRST || f->kind == QN_FRAME_MORE;
    u->frame_left = left;
    return QN_OK;
}

uint32_t qn_ump_room(struct qn_qp *qp)
{
    struct qn_ump *u = qn_ump_of(qp);
    if (u->staged != 0) {
        push(u);
    }
    u->starved |= u->staged != 0;
    if (u->status != QN_OK || u->staged != 0 || !have_room(u)) {
        return 0;
    }
    return free_cells(u);
}

/* Publish acknowledgements. @return true if the peer waits for them. */
static bool flush_acks(struct qn_ump *u)
{
    if (!u->rx_untold) {
        return false;
    }
    u->rx_untold = false;
    /* W: store ack, load want; the sender stores want, loads ack. Also K. */
    qn_store(&u->tx->ack.read, u->rx_tag << 32 | u->rx_next, QN_SEQ_CST);
    return qn_load(&u->rx->control.want, QN_SEQ_CST) != 0;
}

static void ring_peer(struct qn_ump *u)
{
    if (u->ringer != NULL && u->status == QN_OK) {
        qn_doorbell_ring(u->ringer);
    }
}

void qn_ump_tell(struct qn_ump *u)
{
    if (flush_acks(u)) {
        ring_peer(u);
    }
}

/* W: say that room is wanted, then look for it once more. */
static void declare_want(struct qn_ump *u)
{
    if (!u->wanted) {
        u->wanted = true;
        qn_store(&u->tx->control.want, 1, QN_SEQ_CST);
    }
    if (u->staged != 0) {
        push(u);
    }
    /* Behind a staged message there is no room, whatever is free: the next
     * flush may fill the lane with it. */
    u->starved = u->starved && (u->staged != 0 || refresh(u) == 0);
}

bool qn_ump_flush(struct qn_qp *qp)
{
    struct qn_ump *u = qn_ump_of(qp);
    if (u->status == QN_ECORRUPT) {
        return false;
    }
    bool ring = flush_acks(u);
    if (u->staged != 0 || u->starved) {
        declare_want(u);
    }
    if (u->wanted && u->staged == 0 && !u->starved) {
        /* relaxed: seen late, it costs the peer one ring for nothing. */
        qn_store(&u->tx->control.want, 0, QN_RELAXED);
        u->wanted = false;
    }
    if (u->tx_next != u->tx_flushed) {
        u->tx_flushed = u->tx_next;
        ring = true;
    }
    if (ring) {
        ring_peer(u);
    }
    return u->staged != 0;
}
