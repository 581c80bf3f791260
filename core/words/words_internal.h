#ifndef QN_WORDS_INTERNAL_H
#define QN_WORDS_INTERNAL_H

/**
 * The device in memory, and one node's attachment.
 *
 *   memory of the device
 *   +--------------------------------------------+ 0
 *   | magic, nodes, lanes, split, numbers        |
 *   +--------------------------------------------+ 64
 *   | core 0  state    all senders, and the owner| (S) one line each
 *   |         life, head[4]            the owner | (L)
 *   |         waiting[2]    senders, the owner   | (W)
 *   |         intent   the owner, as a sender    | (I)
 *   |         slot[4][128]  senders              | (H)
 *   | core 1  ...                                |
 *
 *   state    63 ........ 56 55 ... 42 41 .. 28 27 .. 14 13 ... 0
 *   shared   used words     tail 3    tail 2   tail 1   tail 0
 *   split    4 times 5 bits of used words, 4 times 11 bits of tail
 *
 *   header   60  59 ...... 44 43 .... 28 27 .. 21 20 .. 14 13 ....... 0
 *            1   receiver's   sender's   sender   words    position
 *                incarnation  incarnation
 *
 *   intent   39  38 ...... 23 22 .. 16  15 14  13 ....... 0
 *            1   incarnation  target    queue  position
 *
 * A position counts the words of a queue, modulo 2^14 (split: 2^11). Slots are
 * found by its low bits. Each lap writes each header: that of a message's first
 * word with its position, those of its other words with 0. So a header that
 * names the position expected is that of a message that is there.
 *
 * The pairs (labels as in the code):
 *   S  state:   compare-and-swap by senders, acquire and release; subtraction
 *               by the owner. The reads of words are over before their room is
 *               given back, and an intent is seen by a node that has seen the
 *               reservation it precedes.
 *   H  header:  release by the sender, acquire by the owner: the words of the
 *               message are there.
 *   I  intent:  0, release by the sender: the header is there. acquire by the
 *               owner that repairs.
 *   W  waiting: store-then-load on both sides, all four seq_cst: waiting, then
 *               state, by a sender; state, then waiting, by the owner. The same
 *               with life in place of state, by a node that is told of an end.
 */

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/words/attachment.h"

#define QN_WORDS_SLOTS 128u /* of a queue; split: 32 are used */
#define QN_WORDS_ENDED                                                         \
    (UINT64_C(1) << 63)    /* in life: that incarnation is over                \
                            */
#define QN_WORDS_TRIES 64u /* for one reservation, while others reserve */

struct qn_words_slot {
    qn_a64 header;
    qn_a64 word;
};

struct qn_words_core {
    alignas(QN_CACHELINE) qn_a64 state;
    alignas(QN_CACHELINE) qn_a64 life; /* incarnation; QN_WORDS_ENDED is set by
                                          any node that was told */
    qn_a32 head[QN_WORDS_QUEUES]; /* positions below were copied or skipped */
    alignas(QN_CACHELINE) qn_a64 waiting[2]; /* sets of senders */
    alignas(QN_CACHELINE) qn_a64 intent;
    alignas(QN_CACHELINE) struct qn_words_slot
        slot[QN_WORDS_QUEUES][QN_WORDS_SLOTS];
};

struct qn_words_memory {
    alignas(QN_CACHELINE) qn_a64 magic;
    qn_a32 nodes, lanes, split;
    qn_a32 numbers; /* that were given, by all nodes */
    struct qn_words_core core[];
};

static_assert(QN_WORDS_CORES_MAX <= 128, "bits of waiting, of a sender");
static_assert(QN_WORDS_SHARED_MAX < QN_WORDS_SLOTS,
              "a queue can hold them all");
static_assert(4 * QN_WORDS_SPLIT_MAX <= QN_WORDS_SHARED_MAX,
              "of the same room");

/** The fields of a state word. */
struct qn_words_shape {
    uint32_t tail_bits;
    uint32_t used_bits;
    bool split;     /* a count of used words for each queue */
    uint32_t room;  /* that a count can come to */
    uint32_t slots; /* of a queue, a power of two */
};

/** A word that was copied and not yet taken. */
struct qn_words_word {
    uint64_t value;
    uint16_t inc; /* of its sender, low bits */
    uint8_t sender;
    bool first; /* of its message */
    bool held;  /* of an incarnation that was not named yet */
};

struct qn_words_queue {
    uint32_t head;      /* as in memory */
    uint32_t repair_to; /* below it, ranges of dead senders may lie */
    bool repairs;
    uint32_t count; /* words */
    uint32_t held;  /* of them */
    struct qn_words_word word[QN_WORDS_SLOTS];
};

struct qn_words_peer {
    uint64_t inc; /* 0: not named yet */
    bool ended;
};

struct qn_words_port {
    struct qn_device device;
    struct qn_words_memory *memory; /* shared */
    struct qn_words_core *own;      /* core of this node */
    const struct qn_words_shape *shape;
    uint32_t nodes;
    bool corrupt;
    uint64_t padded;                    /* words of dead senders */
    uint32_t taken;                     /* bits: queues that have a user */
    uint32_t promised[QN_WORDS_QUEUES]; /* words */
    struct qn_doorbell *doorbell;
    struct qn_doorbell_handle *ringer;
    struct qn_words_peer peer[QN_WORDS_CORES_MAX];
    struct qn_words_queue queue[QN_WORDS_QUEUES];
    alignas(QN_CACHELINE) uint8_t behind[]; /* attachment.h */
};

static_assert(offsetof(struct qn_words_port, device) == 0, "qn_words_port_of");

static inline struct qn_words_port *qn_words_port_of(struct qn_device *d)
{
    return (struct qn_words_port *)(void *)d;
}

static inline const struct qn_words_port *qn_words_port_seen(
    const struct qn_device *d)
{
    return (const struct qn_words_port *)(const void *)d;
}

/* ---- the state word ---- */

static inline uint32_t qn_words_tail(const struct qn_words_shape *s,
                                     uint64_t state, uint32_t queue)
{
    return (uint32_t)(state >> queue * s->tail_bits) &
           ((1u << s->tail_bits) - 1);
}

static inline uint32_t qn_words_used_shift(const struct qn_words_shape *s,
                                           uint32_t queue)
{
    return QN_WORDS_QUEUES * s->tail_bits +
           (s->split ? queue * s->used_bits : 0);
}

static inline uint32_t qn_words_used(const struct qn_words_shape *s,
                                     uint64_t state, uint32_t queue)
{
    return (uint32_t)(state >> qn_words_used_shift(s, queue)) &
           ((1u << s->used_bits) - 1);
}

/** A position `words` further. */
static inline uint32_t qn_words_further(const struct qn_words_shape *s,
                                        uint32_t position, uint32_t words)
{
    return (position + words) & ((1u << s->tail_bits) - 1);
}

static inline struct qn_words_slot *qn_words_slot_of(
    const struct qn_words_shape *s, struct qn_words_core *c, uint32_t queue,
    uint32_t position)
{
    return &c->slot[queue][position & (s->slots - 1)];
}

/* ---- headers ---- */

#define QN_WORDS_HEADER_VALID (UINT64_C(1) << 60)

static inline uint64_t qn_words_header(uint32_t position, uint32_t words,
                                       qn_node_t sender, uint64_t sender_inc,
                                       uint64_t receiver_inc)
{
    return QN_WORDS_HEADER_VALID | (receiver_inc & 0xffff) << 44 |
           (sender_inc & 0xffff) << 28 | (uint64_t)sender << 21 |
           (uint64_t)words << 14 | position;
}

static inline bool qn_words_header_names(uint64_t header, uint32_t position)
{
    return (header & QN_WORDS_HEADER_VALID) != 0 &&
           (header & 0x3fff) == position;
}

/* ---- intents ---- */

#define QN_WORDS_INTENT_VALID (UINT64_C(1) << 39)

static inline uint64_t qn_words_intent(struct qn_words_target to,
                                       uint32_t position, uint64_t inc)
{
    return QN_WORDS_INTENT_VALID | (inc & 0xffff) << 23 |
           (uint64_t)to.node << 16 | (uint64_t)to.queue << 14 | position;
}

static inline bool qn_words_intent_names(uint64_t intent,
                                         struct qn_words_target to,
                                         uint32_t position)
{
    const uint64_t mask = QN_WORDS_INTENT_VALID | 0x7fffff;
    return ((intent ^ qn_words_intent(to, position, 0)) & mask) == 0;
}

/* ---- between the files of this folder ---- */

/** Take room for n words at the end of a queue, by one step. The sender's
 *  intent names it until qn_words_publish has ended.
 *  @return QN_OK, position filled; or as qn_words_try_send. */
int qn_words_reserve(struct qn_words_port *p, struct qn_words_target to,
                     uint32_t n, uint32_t *position);

/** Fill what was reserved. Its first word is published last. */
void qn_words_publish(struct qn_words_port *p, struct qn_words_target to,
                      uint32_t position, const uint64_t *words, uint32_t n);

/** Ring all senders that wait for room at a core. */
void qn_words_ring_waiting(struct qn_words_port *p, struct qn_words_core *c);

/** A peer's next incarnation was named: what is held of it can be received,
 *  what is left of earlier ones goes. */
void qn_words_sort(struct qn_words_port *p, qn_node_t node);

#endif
