/*
 * UMP, the receive side.
 *
 * The next cell is there when its header carries the expected sequence and
 * generation: one acquire load of the line that also holds the payload. The
 * first branch of peek is the whole cost of a one-cell message.
 *
 * Longer messages are consumed cell by cell into `whole`, and acknowledged on
 * the way, so that 64 KiB pass through a ring of 1 KiB; they are shown when
 * LAST has come. The frame view shows the cells themselves. Both follow the
 * same grammar, ONLY | FIRST MORE* (LAST | ABORT), with lengths that add up;
 * anything else means that the peer's memory is damaged.
 *
 * A look is not always only a look: peek may consume the cells of a message
 * that goes on, and make room for which the sender sleeps. A node that looks
 * for the last time before it sleeps does not flush any more, so peek itself
 * tells the sender then (qn_ump_tell): at most once per run, and only
 * in messages that do not fit.
 *
 * A run of cells is acknowledged when its last one was read (K): one line
 * transfer per segment. Less would free nothing, so nothing is held back, and a
 * sender whose cells were all read has 7/8 of its lane.
 */
#include <string.h>

#include "core/base/assert.h"
#include "transports/ump/ump_internal.h"

/* A header taken apart; loaded once, so that checks hold. */
struct cell {
    const uint8_t *data; /* shared; in the lane */
    uint32_t kind;       /* enum qn_frame_kind if grammar() agrees */
    uint32_t len;
    uint32_t total; /* FIRST only */
};

static inline const struct qn_ump_cell *next_cell(const struct qn_ump *u)
{
    return &u->rx_segment[u->rx_next & u->seg_mask];
}

static inline uint64_t load_header(const struct qn_ump *u)
{
    /* C, acquire: pairs with the release in publish (ump_send.c); the payload
     * belongs to this header. */
    return qn_load(&next_cell(u)->header, QN_ACQUIRE);
}

static inline bool expected(const struct qn_ump *u, uint64_t header)
{
    return header >> 16 == ((uint64_t)u->rx_next << 16 | u->rx_tag);
}

static inline struct cell open_cell(const struct qn_ump *u, uint64_t header)
{
    struct cell c = {.data = next_cell(u)->payload,
                     .kind = (uint32_t)header >> 8 & QN_UMP_KIND_MASK,
                     .len = (uint32_t)header & 0xff};
    if (c.kind == QN_FRAME_FIRST) {
        qn_copy_in(&c.total, c.data, sizeof c.total); /* found by C */
        c.data += sizeof c.total;
    }
    return c;
}

/* May this cell follow what was read? The only judge of the peer's cells. */
static bool grammar(const struct qn_ump *u, const struct cell *c)
{
    bool inside = u->rx_state == QN_UMP_INSIDE;
    uint32_t left = u->rx_total - u->rx_got;
    switch (c->kind) {
    case QN_FRAME_ONLY:
        return !inside && c->len <= QN_UMP_CELL_BYTES;
    case QN_FRAME_FIRST:
        return !inside && c->len <= QN_UMP_FIRST_BYTES && c->len <= c->total &&
               c->total <= u->msg_max;
    case QN_FRAME_MORE:
        return inside && c->len <= QN_UMP_CELL_BYTES && c->len <= left;
    case QN_FRAME_LAST:
        return inside && c->len <= QN_UMP_CELL_BYTES && c->len == left;
    case QN_FRAME_ABORT:
        return inside && c->len == 0;
    default:
        return false;
    }
}

/* A segment was read: go on where its last cell says, and give it back. */
static __attribute__((noinline)) void turn(struct qn_ump *u,
                                           const struct qn_ump_cell *last)
{
    /* relaxed: found by C before. Any value leads to cells of this lane; a
     * wrong one to cells that are never what is expected. */
    uint32_t next =
        (uint32_t)qn_load(&last->header, QN_RELAXED) >> QN_UMP_NEXT_SHIFT &
        (QN_UMP_SEGMENTS_MAX - 1);
    next &= (u->cells >> u->seg_shift) - 1;
    u->rx_segment = u->rx->cell + (next << u->seg_shift);
    u->rx_untold = true;
    u->rx_turns++;
    /* K, release: all reads of the cells are over before the sender, whose
     * load in refresh is the acquire, writes them again. */
    qn_store(&u->tx->ack.read, u->rx_tag << 32 | u->rx_next, QN_RELEASE);
}

static inline void consume(struct qn_ump *u)
{
    const struct qn_ump_cell *cell = next_cell(u);
    if ((++u->rx_next & u->seg_mask) == 0) {
        turn(u, cell);
    }
}

/* Nothing there: is it because this lane was not accepted before? Then look
 * again. */
static inline bool accepted_now(struct qn_ump *u)
{
    return !u->accepted && qn_ump_accept(u);
}

/* The answer when there is nothing. */
static inline int nothing(const struct qn_ump *u)
{
    return u->status != QN_OK ? u->status : QN_EAGAIN;
}

/* The state after a cell that grammar() allowed. */
static void advance(struct qn_ump *u, uint32_t kind, uint32_t len,
                    uint32_t total)
{
    if (kind == QN_FRAME_FIRST) {
        u->rx_state = QN_UMP_INSIDE;
        u->rx_total = total;
        u->rx_got = len;
    } else if (kind == QN_FRAME_MORE) {
        u->rx_got += len;
    } else {
        u->rx_state = QN_UMP_IDLE;
        u->rx_got = 0;
    }
}

/* Consume full MORE cells while they come: the inner loop of every long
 * message. What else comes is for assemble. */
static void take_more(struct qn_ump *u)
{
    const uint64_t rest =
        u->rx_tag << 16 | (uint64_t)QN_FRAME_MORE << 8 | QN_UMP_CELL_BYTES;
    const uint32_t most = (u->rx_total - u->rx_got) / QN_UMP_CELL_BYTES;
    uint8_t *to = u->whole + u->rx_got;
    for (uint32_t n = 0; n < most; n++) {
        /* C: load_header returns what belongs to rx_next. Not the last of a
         * segment, which says where to go on. */
        if (load_header(u) != ((uint64_t)u->rx_next << 32 | rest)) {
            break;
        }
        qn_copy_in(to, next_cell(u)->payload,
                   QN_UMP_CELL_BYTES); /* found by C */
        to += QN_UMP_CELL_BYTES;
        consume(u);
    }
    u->rx_got = (uint32_t)(to - u->whole);
}

/* Consume the cells of a long message. @return QN_OK: READY, or `*only` is a
 * one-cell message; QN_EAGAIN: no more cells. */
static int assemble(struct qn_ump *u, struct cell *only)
{
    for (;;) {
        if (u->rx_state == QN_UMP_INSIDE) {
            take_more(u);
        }
        uint64_t header = load_header(u);
        if (!expected(u, header)) {
            return QN_EAGAIN;
        }
        const struct cell c = open_cell(u, header);
        if (!grammar(u, &c)) {
            return qn_ump_corrupt(u);
        }
        if (c.kind == QN_FRAME_ONLY) {
            *only = c;
            return QN_OK;
        }
        uint8_t *to = u->whole + (c.kind == QN_FRAME_FIRST ? 0 : u->rx_got);
        qn_copy_in(to, c.data, c.len); /* found by C */
        advance(u, c.kind, c.len, c.total);
        consume(u);
        if (c.kind == QN_FRAME_LAST) {
            u->rx_state = QN_UMP_READY;
            return QN_OK;
        }
    }
}

static int peek_slow(struct qn_ump *u, const void **msg, size_t *len)
{
    QN_ASSERT(!u->rx_frames); /* the two views are not mixed in a message */
    struct cell only = {0};
    int rc = QN_OK;
    if (u->rx_state != QN_UMP_READY) {
        rc = assemble(u, &only);
        if (rc == QN_EAGAIN && accepted_now(u)) {
            rc = assemble(u, &only);
        }
        if (rc == QN_EAGAIN && u->rx_untold) {
            qn_ump_tell(u);
        }
    }
    if (rc != QN_OK) {
        return nothing(u);
    }
    if (u->rx_state == QN_UMP_READY) {
        *msg = u->whole;
        *len = u->rx_total;
    } else { /* a one-cell message after aborted ones */
        *msg = only.data;
        *len = only.len;
        qn_touch_in(*msg, *len); /* found by C */
    }
    u->rx_held = true;
    return QN_OK;
}

int qn_ump_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    struct qn_ump *u = qn_ump_of(qp);
    uint64_t header = load_header(u);
    uint32_t n = (uint32_t)header & 0xff;
    if (__builtin_expect(expected(u, header) && u->rx_state == QN_UMP_IDLE &&
                             ((uint32_t)header >> 8 & QN_UMP_KIND_MASK) ==
                                 QN_FRAME_ONLY &&
                             n <= QN_UMP_CELL_BYTES,
                         1)) {
        *msg = next_cell(u)->payload;
        *len = n;
        u->rx_held = true;
        qn_touch_in(*msg, n); /* found by C */
        return QN_OK;
    }
    if (!expected(u, header) && u->accepted && u->status == QN_OK &&
        u->rx_state == QN_UMP_IDLE) {
        return QN_EAGAIN;
    }
    return peek_slow(u, msg, len);
}

void qn_ump_release(struct qn_qp *qp)
{
    struct qn_ump *u = qn_ump_of(qp);
    QN_ASSERT(u->rx_held);
    u->rx_held = false;
    if (u->rx_state == QN_UMP_READY) {
        u->rx_state = QN_UMP_IDLE; /* its cells were consumed on the way */
        u->rx_got = 0;
        return;
    }
    if (u->status != QN_ECORRUPT) {
        consume(u);
    }
}

int qn_ump_peek_frame(struct qn_qp *qp, struct qn_frame *f)
{
    struct qn_ump *u = qn_ump_of(qp);
    QN_ASSERT(u->rx_state == QN_UMP_IDLE || u->rx_frames);
    uint64_t header = load_header(u);
    if (!expected(u, header) && accepted_now(u)) {
        header = load_header(u);
    }
    if (!expected(u, header)) {
        return nothing(u);
    }
    const struct cell c = open_cell(u, header);
    if (!grammar(u, &c)) {
        return qn_ump_corrupt(u);
    }
    uint32_t total = c.kind == QN_FRAME_ONLY    ? c.len
                     : c.kind == QN_FRAME_FIRST ? c.total
                                                : u->rx_total;
    *f = (struct qn_frame){.kind = (enum qn_frame_kind)c.kind,
                           .data = c.data,
                           .len = c.len,
                           .total = total};
    u->held = *f;
    u->rx_held = true;
    return QN_OK;
}

void qn_ump_release_frame(struct qn_qp *qp)
{
    struct qn_ump *u = qn_ump_of(qp);
    QN_ASSERT(u->rx_held);
    u->rx_held = false;
    if (u->status == QN_ECORRUPT) {
        return;
    }
    advance(u, u->held.kind, u->held.len, u->held.total);
    u->rx_frames = u->rx_state == QN_UMP_INSIDE;
    consume(u);
}
