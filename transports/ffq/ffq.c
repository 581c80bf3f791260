/*
 * FastForward queues: the slots. core/framed.h makes messages of them.
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
 * own messages. What a full slot says is checked in core/framed.h.
 *
 * README.md has the pairs.
 */
#include "transports/ffq/ffq.h"

#include <assert.h>

#include "core/base/bits.h"
#include "core/framed.h"

#define EMPTY            0xffu      /* as a kind: that position was read */
#define TAG_MAX          0xffffu    /* of an opening, from 1 */
#define TAG_NONE         UINT64_MAX /* in no word: the lane is not accepted */
#define LINE_WORDS       8u
#define SLOT_WORDS_SHIFT 3u /* a slot is so many words: 2^3 */

static_assert(sizeof(struct qn_ffq_control) == QN_CACHELINE, "one line");
static_assert(sizeof(struct qn_ffq_slot) == QN_CACHELINE, "one line");
static_assert(QN_FFQ_SLOT_BYTES <= QN_INPLACE_MAX, "no msg_max is less");
static_assert(QN_FFQ_FIRST_BYTES + sizeof(uint32_t) == QN_FFQ_SLOT_BYTES,
              "FIRST carries the total");

struct ffq {
    struct qn_framed q;
    uint64_t self_inc, peer_inc;
    uint32_t mask;  /* cells of either lane - 1 */
    uint32_t apart; /* log2 of the words from one "empty" to the next */
    /* send */
    struct qn_ffq_lane *tx;
    const qn_a64 *tx_empty;
    uint32_t tx_tag;
    uint32_t tx_next;  /* position of the next slot */
    uint32_t tx_freed; /* below it slots are empty, as far as known */
    /* receive */
    const struct qn_ffq_lane *rx;
    qn_a64 *rx_empty;
    uint64_t rx_tag; /* TAG_NONE: the peer's lane is not accepted */
    uint32_t rx_next;
};

static struct ffq *ffq_of(struct qn_framed *q)
{
    return (struct ffq *)(void *)q; /* q is its first member */
}

static uint64_t word_of(uint32_t position, uint32_t tag, uint32_t kind,
                        uint32_t len)
{
    return (uint64_t)position << 32 | tag << 16 | kind << 8 | len;
}

/* ---- which lane to believe ----------------------------------------------- */

/* Nothing in it before it names both incarnations; `to` comes first and last.
 */
static bool accept(struct ffq *u)
{
    const struct qn_ffq_control *c = &u->rx->control;
    if (u->rx_tag != TAG_NONE || u->q.status == QN_ECORRUPT) {
        return u->rx_tag != TAG_NONE;
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
        (void)qn_framed_corrupt(&u->q);
        return false;
    }
    u->rx_tag = tag;
    u->rx_next = start;
    return true;
}

/* E: `to` is 0 while anything else changes. */
static void open_lane(struct ffq *u, uint32_t start)
{
    struct qn_ffq_control *c = &u->tx->control;
    const bool mirror = u->apart == 0; /* a shared lane has none */
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

static void find_room(struct qn_framed *q, bool all)
{
    struct ffq *u = ffq_of(q);
    uint32_t full = u->tx_next - u->tx_freed;
    uint32_t near = LINE_WORDS - u->tx_freed % LINE_WORDS;
    uint32_t n = accept(u) ? (all ? full : QN_MIN(full, near)) : 0;
    for (; n > 0; n--) {
        /* K, acquire: release in give_back; the peer's reads of the slot are
         * over before it is written again. */
        if (qn_load(&u->tx_empty[(u->tx_freed & u->mask) << u->apart],
                    QN_ACQUIRE) != word_of(u->tx_freed, u->tx_tag, EMPTY, 0)) {
            return;
        }
        u->tx_freed++;
        q->free++;
    }
}

static void *payload(struct qn_framed *q)
{
    struct ffq *u = ffq_of(q);
    return u->tx->slot[u->tx_next & u->mask].payload;
}

static void publish(struct qn_framed *q, uint32_t kind, uint32_t len)
{
    struct ffq *u = ffq_of(q);
    /* C, release: the payload is there before its word; acquire in look. */
    qn_store(&u->tx->slot[u->tx_next & u->mask].word,
             word_of(u->tx_next, u->tx_tag, kind, len), QN_RELEASE);
    u->tx_next++;
}

/* W: the sender stores want, and loads the words of K behind a fence; the
 * receiver stores those, and loads want behind a fence. So one of the two sees
 * the other. */
static void want(struct qn_framed *q, bool want)
{
    /* relaxed: the fence. 0, seen late, costs the peer a ring for nothing. */
    qn_store(&ffq_of(q)->tx->control.want, want, QN_RELAXED);
    if (want) {
        qn_fence(QN_SEQ_CST);
    }
}

/* ---- receive ------------------------------------------------------------- */

static bool peer_wants(struct qn_framed *q)
{
    qn_fence(QN_SEQ_CST); /* W */
    return qn_load(&ffq_of(q)->rx->control.want, QN_RELAXED) != 0;
}

static bool look(struct qn_framed *q, struct qn_frame *f)
{
    struct ffq *u = ffq_of(q);
    const struct qn_ffq_slot *s = &u->rx->slot[u->rx_next & u->mask];
    /* C, acquire: release in publish; the payload belongs to the word. */
    uint64_t word = qn_load(&s->word, QN_ACQUIRE);
    if (word >> 16 != ((uint64_t)u->rx_next << 16 | u->rx_tag)) {
        return u->rx_tag == TAG_NONE && accept(u) && look(q, f);
    }
    f->kind = (enum qn_frame_kind)(word >> 8 & 0xff);
    f->len = (uint32_t)word & 0xff;
    f->data = s->payload;
    return true;
}

static void give_back(struct qn_framed *q)
{
    struct ffq *u = ffq_of(q);
    /* K, release: all reads of the slot are over; acquire in find_room. */
    qn_store(&u->rx_empty[(u->rx_next & u->mask) << u->apart],
             word_of(u->rx_next, (uint32_t)u->rx_tag, EMPTY, 0), QN_RELEASE);
    u->rx_next++;
}

/* ---- the two forms ------------------------------------------------------- */

static const struct qn_framed_wire wire = {.find_room = find_room,
                                           .payload = payload,
                                           .publish = publish,
                                           .look = look,
                                           .give_back = give_back,
                                           .want = want,
                                           .peer_wants = peer_wants};

QN_FRAMED_OPS(ops, wire, "slots");

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
    struct ffq *u = qn_framed_alloc(sizeof *u, o, &ops, QN_FFQ_FIRST_BYTES,
                                    QN_FFQ_SLOT_BYTES);
    if (u == NULL) {
        return QN_ENOMEM;
    }
    u->q.free = o->cells;
    u->self_inc = o->self_inc;
    u->peer_inc = o->peer_inc;
    u->mask = o->cells - 1;
    u->apart = apart;
    u->tx = o->tx;
    u->rx = o->rx;
    u->tx_empty = empty_words(u, u->tx, u->rx);
    u->rx_empty = (qn_a64 *)empty_words(u, u->rx, u->tx);
    u->tx_next = u->tx_freed = start;
    u->rx_tag = TAG_NONE;
    open_lane(u, start);
    *out = &u->q.qp;
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
    .ops = &ops,
    .memory = QN_TRANSPORT_ISOLATED,
    .frame_max = QN_FFQ_SLOT_BYTES,
    .lane_bytes = bytes_isolated,
    .open = open_isolated,
};

const struct qn_transport qn_ffq_shared = {
    .name = "ffq_shared",
    .ops = &ops,
    .memory = QN_TRANSPORT_BOTH_WRITE,
    .frame_max = QN_FFQ_SLOT_BYTES,
    .lane_bytes = bytes_shared,
    .open = open_shared,
};
