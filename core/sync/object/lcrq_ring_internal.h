#ifndef QN_SYNC_OBJECT_LCRQ_RING_INTERNAL_H
#define QN_SYNC_OBJECT_LCRQ_RING_INTERNAL_H

/**
 * One ring of LCRQ: Morrison and Afek's CRQ, "Fast concurrent queues for x86
 * processors" (PPoPP 2013). lcrq.c links rings to a queue.
 *
 *     tail --- fetch_add: my index; the top bit says that the ring is closed
 *     head --- fetch_add: my index
 *     cell[index % cells] = { unsafe, index, value }, changed as one
 *
 * An enqueue and a dequeue with the same index meet in one cell. Whichever
 * comes first leaves a note: the enqueue its value, the dequeue a later index,
 * with which an enqueue of this lap can do nothing. A dequeue that finds the
 * value of an earlier lap may not take it, and cannot put its note: it makes
 * the cell unsafe. An enqueue may use an unsafe cell only if the dequeue of its
 * index has not begun: the head is not beyond it.
 *
 * Two forms of a cell, which differ in nothing else:
 *
 *     wide    {unsafe 1, index 63}, {value + 1: 64}, by qn_cas_pair
 *     narrow  {unsafe 1, index 31, value + 1: 32}, by a 64-bit CAS, as printed
 *             for the TILE-Gx. A ring is closed before its index has no more
 *             room (LCRQ_NARROW_LIMIT); dequeues of an empty ring draw an index
 *             once each, and then only look.
 *
 * Value 0 is "nothing", so memory of zeros is an empty ring. `narrow` is a
 * constant at each call.
 *
 * Orders. The fetch_adds, and where "empty" is said the tail, are seq_cst: an
 * enqueue that is over must be seen. A cell's turn is loaded with acquire; what
 * is done about a cell is confirmed by a compare-and-swap of all of it, or
 * holds for ever (an index never goes back).
 */

#include "core/base/atomic.h"
#include "core/base/mark.h"
#include "core/sync/delegate/delegate.h"
#include "core/sync/object/mutant.h"

#define LCRQ_CLOSED       (UINT64_C(1) << 63)
#define LCRQ_UNSAFE       (UINT64_C(1) << 63)
#define LCRQ_TRIES        10u /* cells lost in a row: close the ring */
#define LCRQ_LOOKS        64u /* for a value whose enqueue has its index */
#define LCRQ_NARROW_LIMIT (UINT64_C(1) << 30)
#define LCRQ_NARROW_BITS  32

struct lcrq_ring {
    alignas(QN_CACHELINE) qn_a64 head; /* index; dequeues */
    alignas(QN_CACHELINE) qn_a64 tail; /* index, LCRQ_CLOSED; enqueues */
    alignas(QN_CACHELINE) qn_a32 next; /* number of a ring; 0: none. Once */
    qn_a32 taken;                      /* 0: a client may take it */
};

struct lcrq_cell {
    alignas(QN_CACHELINE) struct qn_pair pair; /* narrow: the first word */
};

/** What a cell holds. */
struct lcrq_content {
    uint64_t turn;  /* index, LCRQ_UNSAFE */
    uint64_t value; /* + 1; 0: nothing */
};

/** A ring, as one operation sees it. */
struct lcrq_at {
    struct lcrq_ring *ring;
    struct lcrq_cell *cell;          /* [cells] */
    uint64_t cells;                  /* a power of two */
    struct qn_delegate_stats *stats; /* of the client: cas, cas_failed */
};

static inline uint64_t lcrq_narrow_word(struct lcrq_content c)
{
    return (c.turn & LCRQ_UNSAFE) |
           (c.turn & ~LCRQ_UNSAFE) << LCRQ_NARROW_BITS | c.value;
}

static inline struct lcrq_content lcrq_cell_load(const struct lcrq_cell *c,
                                                 bool narrow)
{
    /* acquire -> the compare-and-swap of the cell: what came before it, the
     * head's move among it. */
    uint64_t first = qn_load(&c->pair.first, QN_ACQUIRE);
    if (narrow) {
        return (struct lcrq_content){.turn = (first & LCRQ_UNSAFE) |
                                             (first & ~LCRQ_UNSAFE) >>
                                                 LCRQ_NARROW_BITS,
                                     .value = first & UINT32_MAX};
    }
    /* relaxed: a value that is not the turn's fails at the next step. */
    return (struct lcrq_content){.turn = first,
                                 .value = qn_load(&c->pair.second, QN_RELAXED)};
}

static inline struct lcrq_cell *lcrq_cell_of(const struct lcrq_at *at,
                                             uint64_t index)
{
    return &at->cell[index & (at->cells - 1)];
}

static inline bool lcrq_cell_swap(struct lcrq_cell *c, struct lcrq_content from,
                                  struct lcrq_content to, bool narrow)
{
    if (narrow) {
        uint64_t seen = lcrq_narrow_word(from);
        return qn_cas(&c->pair.first, &seen, lcrq_narrow_word(to), QN_SEQ_CST);
    }
    return qn_cas_pair(&c->pair, from.turn, from.value, to.turn, to.value);
}

static inline bool lcrq_cell_cas(const struct lcrq_at *at, uint64_t index,
                                 struct lcrq_content from,
                                 struct lcrq_content to, bool narrow)
{
    bool done = lcrq_cell_swap(lcrq_cell_of(at, index), from, to, narrow);
    at->stats->cas++;
    at->stats->cas_failed += !done;
    return done;
}

/* The cell of an enqueue's index takes its value, or has met the dequeue. */
static inline bool lcrq_put_at(const struct lcrq_at *at, uint64_t index,
                               uint64_t value, bool narrow)
{
    struct lcrq_content now = lcrq_cell_load(lcrq_cell_of(at, index), narrow);
    if (now.value != 0 || (now.turn & ~LCRQ_UNSAFE) > index) {
        return false;
    }
    /* Behind the cell's load: a dequeue that begins later meets the value, or
     * changes the cell, and the compare-and-swap fails. */
    if ((now.turn & LCRQ_UNSAFE) != 0 &&
        qn_load(&at->ring->head, QN_SEQ_CST) > index &&
        !QN_OBJECT_MUTANT(LCRQ_UNSAFE)) {
        return false;
    }
    return lcrq_cell_cas(at, index, now, (struct lcrq_content){index, value},
                         narrow);
}

/** @param value  + 1. @return false: the ring is closed. */
static inline bool lcrq_ring_put(const struct lcrq_at *at, uint64_t value,
                                 bool narrow)
{
    for (uint32_t tries = 1;; tries++) {
        uint64_t index = qn_fetch_add(&at->ring->tail, 1, QN_SEQ_CST);
        if ((index & LCRQ_CLOSED) != 0) {
            return false;
        }
        bool over = narrow && index >= LCRQ_NARROW_LIMIT;
        if (!over && lcrq_put_at(at, index, value, narrow)) {
            return true;
        }
        /* relaxed: with an old head the ring is closed early. */
        uint64_t head = qn_load(&at->ring->head, QN_RELAXED);
        if (over || tries == LCRQ_TRIES ||
            (int64_t)(index - head) >= (int64_t)at->cells) {
            if (!QN_OBJECT_MUTANT(LCRQ_OPEN)) {
                /* relaxed: what finds the successor finds this, too. */
                (void)qn_fetch_or(&at->ring->tail, LCRQ_CLOSED, QN_RELAXED);
            }
            return false;
        }
    }
}

/* Is the enqueue of that index under way, or over? */
static inline bool lcrq_expected(const struct lcrq_at *at, uint64_t index)
{
    return (qn_load(&at->ring->tail, QN_SEQ_CST) & ~LCRQ_CLOSED) > index;
}

/* The value of a dequeue's index; 0: its enqueue has not come, nor will it. */
static inline uint64_t lcrq_take_at(const struct lcrq_at *at, uint64_t index,
                                    bool narrow)
{
    uint32_t looks = 0;
    for (;;) {
        struct lcrq_content now =
            lcrq_cell_load(lcrq_cell_of(at, index), narrow);
        struct lcrq_content marked = {now.turn | LCRQ_UNSAFE, now.value};
        struct lcrq_content passed = {
            (now.turn & LCRQ_UNSAFE) | (index + at->cells), 0};
        uint64_t theirs = now.turn & ~LCRQ_UNSAFE;
        if (theirs > index) {
            return 0;
        }
        if (now.value != 0 && theirs != index) {
            /* Also where it is unsafe: the head's move comes before what takes
             * the value, and so before an enqueue that looks at the head. */
            if (lcrq_cell_cas(at, index, now, marked, narrow)) {
                return 0;
            }
        } else if (now.value == 0 && looks < LCRQ_LOOKS && qn_may_look() &&
                   lcrq_expected(at, index)) {
            looks++;
            qn_pause();
        } else if (lcrq_cell_cas(at, index, now, passed, narrow)) {
            return now.value;
        }
    }
}

/* Dequeues that found nothing have drawn indices beyond the tail: it follows.
 * Not where the ring is closed: the bit makes it larger than any head. relaxed:
 * it only saves enqueues from cells that are lost to them. */
static inline void lcrq_ring_fix(const struct lcrq_at *at)
{
    uint64_t tail = qn_load(&at->ring->tail, QN_RELAXED);
    uint64_t head = qn_load(&at->ring->head, QN_RELAXED);
    /* acquire has no partner: the weakest that a failure allows. */
    while (tail < head && !qn_cas(&at->ring->tail, &tail, head, QN_ACQUIRE)) {
        head = qn_load(&at->ring->head, QN_RELAXED);
    }
}

/** @return the oldest value + 1; 0: the ring was empty. */
static inline uint64_t lcrq_ring_take(const struct lcrq_at *at, bool narrow)
{
    for (;;) {
        uint64_t index = qn_fetch_add(&at->ring->head, 1, QN_SEQ_CST);
        uint64_t value = lcrq_take_at(at, index, narrow);
        if (value != 0) {
            return value;
        }
        if (!lcrq_expected(at, index + 1)) {
            lcrq_ring_fix(at);
            return 0;
        }
    }
}

/** The next use of an empty ring begins, with one value, + 1. Its indices run
 * on behind all that the cells have seen. The caller is alone with the ring;
 *  relaxed: what links it publishes this. */
static inline void lcrq_ring_begin(const struct lcrq_at *a, uint64_t value,
                                   bool narrow)
{
    uint64_t head = qn_load(&a->ring->head, QN_RELAXED);
    uint64_t start = (head | (a->cells - 1)) + 1 + a->cells;
    if (narrow && start >= LCRQ_NARROW_LIMIT / 2) {
        for (uint64_t i = 0; i < a->cells; i++) {
            qn_store(&a->cell[i].pair.first, 0, QN_RELAXED);
        }
        start = 0;
    }
    struct lcrq_content first = {start, value};
    if (narrow) {
        qn_store(&a->cell[0].pair.first, lcrq_narrow_word(first), QN_RELAXED);
    } else {
        qn_store(&a->cell[0].pair.first, first.turn, QN_RELAXED);
        qn_store(&a->cell[0].pair.second, first.value, QN_RELAXED);
    }
    qn_store(&a->ring->head, start, QN_RELAXED);
    qn_store(&a->ring->tail, start + 1, QN_RELAXED);
    qn_store(&a->ring->next, 0, QN_RELAXED);
}

/** A look that draws no index. acquire: the head first; while the tail is
 *  loaded, the head is at least what was loaded. */
static inline bool lcrq_ring_empty(const struct lcrq_at *at)
{
    uint64_t head = qn_load(&at->ring->head, QN_ACQUIRE);
    return !lcrq_expected(at, head);
}

/** A look that draws no index. relaxed: a ring that is closed stays so as long
 *  as it is pinned. */
static inline bool lcrq_ring_closed(const struct lcrq_at *at)
{
    return (qn_load(&at->ring->tail, QN_RELAXED) & LCRQ_CLOSED) != 0;
}

#endif
