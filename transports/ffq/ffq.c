/*
 * FastForward queues.
 *
 * Position p may be written when the word that stands for p - cells says that
 * it was read. The sender looks only when the slot comes round, and then at the
 * rest of a line of eight: a consumer that keeps up costs it a line per eight
 * messages. The receiver looks at the next slot and at nothing else.
 *
 * The two forms share every instruction: an end knows where the words lie by
 * which its peer says "empty" (tx_empty), where it says so itself (rx_empty),
 * and how far apart they are (apart).
 *
 * A word of another lap, of another incarnation, or noise is not the one that
 * is expected. So "empty" needs no further check: a peer that lies loses its
 * own messages. What a full slot says is checked (fits).
 *
 * A message is taken when one slot is free. What does not fit is staged, and
 * pushed by later calls; nothing is sent behind it. README.md has the pairs.
 */
#include "transports/ffq/ffq.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/frames.h"

#define EMPTY            0xffu /* in place of a kind: that position was read */
#define TAG_MAX          0xffffu    /* of an opening, from 1 */
#define TAG_NONE         UINT64_MAX /* in no word: the lane is not accepted */
#define LINE_WORDS       8u
#define SLOT_WORDS_SHIFT 3u /* a slot is so many words: 2^3 */

static_assert(sizeof(struct qn_ffq_control) == QN_CACHELINE, "one line");
static_assert(sizeof(struct qn_ffq_slot) == QN_CACHELINE, "one line");
static_assert(QN_FFQ_SLOT_BYTES <= QN_INPLACE_MAX, "no msg_max is less");

struct ffq {
    struct qn_qp qp;
    int status;     /* QN_OK, QN_EPEERDEAD or QN_ECORRUPT */
    bool accepted;  /* the peer's lane names both incarnations */
    uint32_t mask;  /* cells of either lane - 1 */
    uint32_t apart; /* log2 of the words from one "empty" to the next */
    struct qn_frame_limits limits;
    /* send */
    struct qn_ffq_lane *tx;
    const qn_a64 *tx_empty;
    uint32_t tx_tag, tx_next;
    uint32_t tx_freed;       /* below it slots are empty, as far as known */
    uint32_t tx_flushed;     /* tx_next at the last ring */
    uint32_t reserved;       /* bytes of the pending reserve */
    uint32_t staged, pushed; /* bytes of the staged message; of them in slots */
    struct qn_course sent;   /* by frames */
    bool starved, wanted;    /* the last try found no room; tx->want */
    /* receive */
    const struct qn_ffq_lane *rx;
    qn_a64 *rx_empty;
    uint64_t rx_tag;
    uint32_t rx_next;
    struct qn_course got;
    struct qn_frame held; /* what was looked at */
    bool peeked;          /* and shown */
    bool by_frames;       /* what is inside was read by frames */
    bool ready;           /* a long message lies in `whole` */
    bool untold;          /* read something, did not look at the peer's want */

    struct qn_qp_traffic traffic; /* in slots */
    struct qn_doorbell_handle *ringer;
    uint64_t self_inc, peer_inc;
    uint8_t *stage, *whole; /* [msg_max] */
};

static struct ffq *ffq_of(struct qn_qp *qp)
{
    return (struct ffq *)(void *)qp; /* qp is its first member */
}

static uint64_t word_of(uint32_t position, uint32_t tag, uint32_t kind,
                        uint32_t len)
{
    return (uint64_t)position << 32 | tag << 16 | kind << 8 | len;
}

static int corrupt(struct ffq *u)
{
    u->status = QN_ECORRUPT;
    u->rx_tag = TAG_NONE;
    u->got = (struct qn_course){0};
    u->ready = u->by_frames = false;
    u->staged = 0;
    return QN_ECORRUPT;
}

/* ---- which lane to believe ----------------------------------------------- */

/* Nothing in it before it names both incarnations; `to` comes first and last.
 */
static bool accept(struct ffq *u)
{
    const struct qn_ffq_control *c = &u->rx->control;
    if (u->accepted || u->status == QN_ECORRUPT) {
        return u->accepted;
    }
    /* E: seq_cst throughout, as in open_lane. Once per incarnation. */
    if (qn_load(&c->to, QN_SEQ_CST) != u->self_inc ||
        qn_load(&c->from, QN_SEQ_CST) != u->peer_inc) {
        return false;
    }
    uint32_t tag = qn_load(&c->tag, QN_SEQ_CST);
    uint32_t start = qn_load(&c->start, QN_SEQ_CST);
    if (qn_load(&c->to, QN_SEQ_CST) != u->self_inc) {
        return false; /* opened again for a successor of this one */
    }
    if (tag == 0 || tag > TAG_MAX) {
        corrupt(u);
        return false;
    }
    u->rx_tag = tag;
    u->rx_next = start;
    u->accepted = true;
    return true;
}

/* E: `to` is 0 while anything else changes. `mirror`: the lane has one. */
static void open_lane(struct ffq *u, uint32_t start, bool mirror)
{
    struct qn_ffq_control *c = &u->tx->control;
    qn_store(&c->to, 0, QN_SEQ_CST);
    /* relaxed: only this node writes it. */
    u->tx_tag = qn_load(&c->tag, QN_RELAXED) % TAG_MAX + 1;
    qn_store(&c->from, u->self_inc, QN_SEQ_CST);
    qn_store(&c->tag, u->tx_tag, QN_SEQ_CST);
    qn_store(&c->start, start, QN_SEQ_CST);
    qn_store(&c->want, 0, QN_SEQ_CST);
    for (uint32_t i = 0; i <= u->mask; i++) { /* relaxed: published by `to` */
        qn_store(&u->tx->slot[i].word, 0, QN_RELAXED);
        if (mirror) {
            qn_store(&u->rx_empty[i], 0, QN_RELAXED);
        }
    }
    qn_store(&c->to, u->peer_inc, QN_SEQ_CST);
}

/* ---- send ---------------------------------------------------------------- */

/* Look for up to `most` more empty slots. @return free slots. */
static uint32_t refresh(struct ffq *u, uint32_t most)
{
    uint32_t n = accept(u) ? QN_MIN(most, u->tx_next - u->tx_freed) : 0;
    for (; n > 0; n--, u->tx_freed++) {
        /* K, acquire: release in consume; the peer's reads of the slot are over
         * before it is written again. */
        if (qn_load(&u->tx_empty[(u->tx_freed & u->mask) << u->apart],
                    QN_ACQUIRE) != word_of(u->tx_freed, u->tx_tag, EMPTY, 0)) {
            break;
        }
    }
    return u->mask + 1 - (u->tx_next - u->tx_freed);
}

static bool have_room(struct ffq *u)
{
    u->starved = u->tx_next - u->tx_freed > u->mask &&
                 refresh(u, LINE_WORDS - u->tx_freed % LINE_WORDS) == 0;
    return !u->starved;
}

static uint8_t *next_payload(struct ffq *u)
{
    return u->tx->slot[u->tx_next & u->mask].payload;
}

/* Announce the next slot, whose payload is written. */
static void publish(struct ffq *u, uint32_t kind, uint32_t len)
{
    /* C, release: the payload is there before its word; acquire in look. */
    qn_store(&u->tx->slot[u->tx_next & u->mask].word,
             word_of(u->tx_next, u->tx_tag, kind, len), QN_RELEASE);
    u->tx_next++;
    u->traffic.sent++;
}

static void put(struct ffq *u, const struct qn_frame *f)
{
    uint8_t *to = next_payload(u);
    if (f->kind == QN_FRAME_FIRST) {
        qn_copy_out(to, &f->total, sizeof f->total); /* announced by C */
        to += sizeof f->total;
    }
    qn_copy_out_line(to, f->data, f->len); /* announced by C */
    publish(u, f->kind, f->len);
}

/* As much of the staged message, which is `msg`, as there is room for. */
static void push(struct ffq *u, const uint8_t *msg)
{
    uint32_t room = u->staged != 0 ? refresh(u, UINT32_MAX) : 0;
    for (; u->pushed < u->staged && room > 0; room--) {
        const struct qn_frame f =
            qn_frame_cut(msg, u->staged, u->pushed, &u->limits);
        put(u, &f);
        u->pushed += f.len;
    }
    if (u->pushed == u->staged) {
        u->staged = 0;
    }
}

/* @return QN_OK: a slot is free, and nothing stands before a message. */
static int ready_to_send(struct ffq *u)
{
    push(u, u->stage);
    if (u->status != QN_OK) {
        return u->status;
    }
    if (u->staged != 0 || !have_room(u)) {
        u->starved = true;
        return u->status != QN_OK ? u->status : QN_EAGAIN;
    }
    return QN_OK;
}

static int ready_for_message(struct ffq *u, size_t len)
{
    if (len > u->limits.msg) {
        return QN_EMSGSIZE;
    }
    return u->sent.inside ? QN_EAGAIN : ready_to_send(u);
}

static int try_reserve(struct qn_qp *qp, size_t len, void **buf)
{
    struct ffq *u = ffq_of(qp);
    int rc = ready_for_message(u, len);
    if (rc == QN_OK) {
        u->reserved = (uint32_t)len;
        *buf = len <= QN_FFQ_SLOT_BYTES ? next_payload(u) : u->stage;
    }
    return rc;
}

static void commit(struct qn_qp *qp, size_t len)
{
    struct ffq *u = ffq_of(qp);
    QN_ASSERT(len <= u->reserved);
    if (u->reserved <= QN_FFQ_SLOT_BYTES) {
        qn_touch_out(next_payload(u), len); /* announced by C */
        publish(u, QN_FRAME_ONLY, (uint32_t)len);
    } else if (len == 0) {
        publish(u, QN_FRAME_ONLY, 0);
    } else {
        u->staged = (uint32_t)len;
        u->pushed = 0;
        push(u, u->stage);
    }
    u->reserved = 0;
}

static int try_send(struct qn_qp *qp, const void *msg, size_t len)
{
    struct ffq *u = ffq_of(qp);
    int rc = ready_for_message(u, len);
    if (rc == QN_OK && len <= QN_FFQ_SLOT_BYTES) {
        put(u, &(struct qn_frame){QN_FRAME_ONLY, msg, (uint32_t)len, 0});
    } else if (rc == QN_OK) {
        u->staged = (uint32_t)len;
        u->pushed = 0;
        push(u, msg);
        memcpy(u->stage, msg, u->staged); /* what could not be pushed */
    }
    return rc;
}

static int try_send_frame(struct qn_qp *qp, const struct qn_frame *f)
{
    struct ffq *u = ffq_of(qp);
    int rc =
        qn_course_fits(&u->sent, f, &u->limits) ? ready_to_send(u) : QN_EINVAL;
    if (rc == QN_OK) {
        put(u, f);
        qn_course_advance(&u->sent, f);
    }
    return rc;
}

static uint32_t room(struct qn_qp *qp)
{
    struct ffq *u = ffq_of(qp);
    return ready_to_send(u) == QN_OK ? refresh(u, UINT32_MAX) : 0;
}

static void ring_peer(struct ffq *u)
{
    if (u->ringer != NULL && u->status == QN_OK) {
        qn_doorbell_ring(u->ringer);
    }
}

/* W: the words of empty slots, a fence, want; the sender stores want, and loads
 * words behind a fence. So one of the two sees the other. */
static bool wants_room(struct ffq *u)
{
    bool look = u->untold;
    u->untold = false;
    if (look) {
        qn_fence(QN_SEQ_CST);
    }
    return look && qn_load(&u->rx->control.want, QN_RELAXED) != 0;
}

static void want_room(struct ffq *u, bool want)
{
    if (u->wanted != want) {
        u->wanted = want;
        /* relaxed: W, by the fence; 0 seen late costs one ring. */
        qn_store(&u->tx->control.want, want, QN_RELAXED);
        if (want) {
            qn_fence(QN_SEQ_CST);
        }
    }
}

static bool flush(struct qn_qp *qp)
{
    struct ffq *u = ffq_of(qp);
    if (u->status == QN_ECORRUPT) {
        return false;
    }
    bool ring = wants_room(u);
    if (u->staged != 0 || u->starved) {
        want_room(u, true);
        push(u, u->stage);
        u->starved = u->starved && refresh(u, UINT32_MAX) == 0;
    }
    want_room(u, u->staged != 0 || u->starved);
    if (u->tx_next != u->tx_flushed || ring) {
        u->tx_flushed = u->tx_next;
        ring_peer(u);
    }
    return u->staged != 0;
}

/* ---- receive ------------------------------------------------------------- */

/* Look at the next frame: `held`. @return QN_OK: there, and it may follow. */
static int look(struct ffq *u)
{
    const struct qn_ffq_slot *s = &u->rx->slot[u->rx_next & u->mask];
    struct qn_frame *f = &u->held;
    /* C, acquire: release in publish; the payload belongs to the word. */
    uint64_t word = qn_load(&s->word, QN_ACQUIRE);
    if (word >> 16 != ((uint64_t)u->rx_next << 16 | u->rx_tag)) {
        bool again = !u->accepted && accept(u);
        return again ? look(u) : u->status != QN_OK ? u->status : QN_EAGAIN;
    }
    *f = (struct qn_frame){.kind = (enum qn_frame_kind)(word >> 8 & 0xff),
                           .data = s->payload,
                           .len = (uint32_t)word & 0xff,
                           .total = u->got.total};
    if (f->kind == QN_FRAME_FIRST) {
        qn_copy_in(&f->total, s->payload, sizeof f->total); /* found by C */
        f->data = s->payload + sizeof f->total;
    } else if (f->kind == QN_FRAME_ONLY) {
        f->total = f->len;
    }
    return qn_course_fits(&u->got, f, &u->limits) ? QN_OK : corrupt(u);
}

/* Give the slot of `held` back. */
static void consume(struct ffq *u)
{
    if (u->status != QN_ECORRUPT) {
        qn_course_advance(&u->got, &u->held);
        /* K, release: all reads of the slot are over; acquire in refresh. */
        qn_store(&u->rx_empty[(u->rx_next & u->mask) << u->apart],
                 word_of(u->rx_next, (uint32_t)u->rx_tag, EMPTY, 0),
                 QN_RELEASE);
        u->rx_next++;
        u->traffic.received++;
        u->untold = true;
    }
}

/* A look that consumes may make the room for which the sender sleeps, and may
 * be the last before this node sleeps: then it tells the sender itself. */
static int peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    struct ffq *u = ffq_of(qp);
    bool took = false;
    int rc = QN_OK;
    QN_ASSERT(!u->by_frames); /* the two views are not mixed in a message */
    while (!u->ready && (rc = look(u)) == QN_OK &&
           u->held.kind != QN_FRAME_ONLY) {
        qn_copy_in(u->whole +
                       (u->held.kind == QN_FRAME_FIRST ? 0 : u->got.done),
                   u->held.data, u->held.len); /* found by C */
        u->ready = u->held.kind == QN_FRAME_LAST;
        consume(u);
        took = true;
    }
    if (rc == QN_EAGAIN && took && wants_room(u)) {
        ring_peer(u);
    }
    if (rc == QN_OK) {
        *msg = u->ready ? u->whole : u->held.data;
        *len = u->ready ? u->got.total : u->held.len;
        qn_touch_in(*msg, *len); /* found by C */
    }
    u->peeked = rc == QN_OK;
    return rc;
}

static void release(struct qn_qp *qp)
{
    struct ffq *u = ffq_of(qp);
    QN_ASSERT(u->peeked);
    u->peeked = false;
    if (u->ready) {
        u->ready = false; /* its slots were given back on the way */
    } else {
        consume(u);
    }
}

static int peek_frame(struct qn_qp *qp, struct qn_frame *f)
{
    struct ffq *u = ffq_of(qp);
    QN_ASSERT(!u->ready && u->by_frames == u->got.inside);
    int rc = look(u);
    u->peeked = rc == QN_OK;
    if (u->peeked) {
        *f = u->held;
    }
    return rc;
}

static void release_frame(struct qn_qp *qp)
{
    struct ffq *u = ffq_of(qp);
    QN_ASSERT(u->peeked);
    u->peeked = false;
    consume(u);
    u->by_frames = u->got.inside;
}

/* ---- an end -------------------------------------------------------------- */

static void down(struct qn_qp *qp)
{
    struct ffq *u = ffq_of(qp);
    if (u->status == QN_OK) {
        u->status = QN_EPEERDEAD;
        u->staged = 0;
        u->starved = false;
    }
}

static struct qn_qp_traffic traffic(const struct qn_qp *qp)
{
    return ((const struct ffq *)(const void *)qp)->traffic;
}

static void close_end(struct qn_qp *qp)
{
    free(ffq_of(qp)); /* what was sent can still be received */
}

static const struct qn_qp_ops ops = {.try_reserve = try_reserve,
                                     .commit = commit,
                                     .peek = peek,
                                     .release = release,
                                     .peek_frame = peek_frame,
                                     .release_frame = release_frame,
                                     .try_send_frame = try_send_frame,
                                     .flush = flush,
                                     .room = room,
                                     .down = down,
                                     .close = close_end,
                                     .traffic = traffic,
                                     .try_send = try_send};

/* The words that say which slots of lane `of` are empty; `by` is the lane of
 * the end that says it. */
static const qn_a64 *empty_words(const struct ffq *u,
                                 const struct qn_ffq_lane *of,
                                 const struct qn_ffq_lane *by)
{
    const void *first = u->apart == 0 ? by->slot + u->mask + 1 : of->slot;
    return first;
}

static int open_form(struct qn_qp **out, const struct qn_qp_opts *o,
                     uint32_t start, uint32_t apart)
{
    if (!qn_qp_opts_good(o, QN_FFQ_CELLS_MIN, QN_FFQ_CELLS_MAX)) {
        return QN_EINVAL;
    }
    /* A line of its own: two ends in one process belong to two threads. */
    size_t bytes = qn_align_up(sizeof(struct ffq), QN_CACHELINE);
    uint32_t msg_max = o->msg_max != 0 ? o->msg_max : QN_MSG_MAX;
    size_t buffer = qn_align_up(msg_max, QN_CACHELINE);
    struct ffq *u = aligned_alloc(QN_CACHELINE, bytes + 2 * buffer);
    if (u == NULL) {
        return QN_ENOMEM;
    }
    *u =
        (struct ffq){.qp = {.ops = &ops, .doorbell = o->doorbell},
                     .mask = o->cells - 1,
                     .apart = apart,
                     .limits = {QN_FFQ_FIRST_BYTES, QN_FFQ_SLOT_BYTES, msg_max},
                     .tx = o->tx,
                     .tx_next = start,
                     .tx_freed = start,
                     .tx_flushed = start,
                     .rx = o->rx,
                     .rx_tag = TAG_NONE,
                     .ringer = o->ringer,
                     .self_inc = o->self_inc,
                     .peer_inc = o->peer_inc,
                     .stage = (uint8_t *)u + bytes,
                     .whole = (uint8_t *)u + bytes + buffer};
    u->tx_empty = empty_words(u, u->tx, u->rx);
    u->rx_empty = (qn_a64 *)empty_words(u, u->rx, u->tx);
    open_lane(u, start, apart == 0);
    *out = &u->qp;
    return QN_OK;
}

int qn_ffq_open_at(struct qn_qp **out, const struct qn_qp_opts *o,
                   uint32_t start)
{
    return open_form(out, o, start, 0);
}

int qn_ffq_shared_open_at(struct qn_qp **out, const struct qn_qp_opts *o,
                          uint32_t start)
{
    return open_form(out, o, start, SLOT_WORDS_SHIFT);
}

static int open_isolated(struct qn_qp **out, const struct qn_qp_opts *o)
{
    return qn_ffq_open_at(out, o, 0);
}

static int open_shared(struct qn_qp **out, const struct qn_qp_opts *o)
{
    return qn_ffq_shared_open_at(out, o, 0);
}

static size_t bytes_shared(uint32_t cells)
{
    return sizeof(struct qn_ffq_lane) + cells * sizeof(struct qn_ffq_slot);
}

static size_t bytes_isolated(uint32_t cells)
{
    return bytes_shared(cells) + cells * sizeof(qn_a64);
}

const struct qn_transport qn_ffq = {
    .name = "ffq",
    .unit = "slots",
    .memory = QN_TRANSPORT_ISOLATED,
    .frame_max = QN_FFQ_SLOT_BYTES,
    .lane_bytes = bytes_isolated,
    .open = open_isolated,
};

const struct qn_transport qn_ffq_shared = {
    .name = "ffq_shared",
    .unit = "slots",
    .memory = QN_TRANSPORT_BOTH_WRITE,
    .frame_max = QN_FFQ_SLOT_BYTES,
    .lane_bytes = bytes_shared,
    .open = open_shared,
};
