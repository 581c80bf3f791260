/*
 * LCRQ: the list of rings, and how rings are used again.
 *
 *     queue { head, tail: numbers of rings, domain }
 *     place[clients], pin[clients]         a line for each pin
 *     ring[1..rings] { head, tail, next, taken }
 *     cell[1..rings][cells]
 *
 * Numbers of rings begin with 1; 0 is none, so zeros are a free ring.
 *
 * The list is Michael and Scott's. Rules that fixed memory adds:
 *
 * 1. A client looks at a ring only while its pin names it, and the pin counts
 *    only if behind it the head or the tail still names the ring. (Pin, look:
 *    seq_cst; unlink, look at all pins: seq_cst. One of both sees the other.)
 * 2. A ring that the head has left is free. A client takes it by its word
 *    `taken`, then looks at all pins, and puts it back if one names it.
 *
 * The tail may still name a ring that is free (in print the dequeue moves it
 * on): a client that takes a free ring has found the last one of the queue by
 * the tail, so the tail has left all earlier ones by then, and 1 holds for it.
 *
 * By these no operation is under way in a ring that begins its next use, so
 * each value that was put into it has been taken. Its indices run on behind
 * all that its cells have seen, so it needs no cleaning. The narrow form has
 * few indices; there the cells are cleared now and then.
 *
 * A client whose last dequeue has found nothing, or whose last enqueue no room,
 * looks before it draws an index: all indices behind the last value are drawn
 * again by dequeues, one by one. So there are few of them, however often an
 * empty or a full queue is asked.
 *
 * The second look: a dequeue that finds a ring empty and then a successor looks
 * once more before it leaves the ring. An enqueue may have come in between; no
 * other will, since the ring was closed before its successor was linked.
 */
#include "core/sync/object/lcrq.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/sync/object/lcrq_ring_internal.h"
#include "core/wait/park.h"

#define LCRQ_CELLS    1024u
/* 400 kcycles at 2.4 GHz (Morrison, Afek). */
#define LCRQ_PAUSE_NS (170 * QN_US)

struct lcrq_pin {
    alignas(QN_CACHELINE) qn_a32 ring; /* 0: none; its client */
};

/* Shared. What comes in front of `head` is written by format only. */
struct qn_lcrq {
    alignas(QN_CACHELINE) uint64_t pause_ns;
    uint32_t clients, cells, rings;
    alignas(QN_CACHELINE) qn_a32 head;   /* number of a ring; dequeues */
    alignas(QN_CACHELINE) qn_a32 tail;   /* enqueues */
    alignas(QN_CACHELINE) qn_a32 domain; /* + 1, whose turn it is; 0: none's */
};

_Static_assert(sizeof(struct lcrq_ring) == 3 * QN_CACHELINE, "a line each");

static struct lcrq_pin *pins_of(struct qn_lcrq *q)
{
    return (struct lcrq_pin *)(q + 1);
}

static struct lcrq_ring *rings_of(struct qn_lcrq *q)
{
    return (struct lcrq_ring *)(pins_of(q) + q->clients);
}

static struct lcrq_cell *cells_of(struct qn_lcrq *q)
{
    return (struct lcrq_cell *)(rings_of(q) + q->rings);
}

static struct qn_sync_place *places_of(struct qn_lcrq *q)
{
    return (struct qn_sync_place *)(cells_of(q) + (size_t)q->rings * q->cells);
}

static uint32_t cells_wanted(const struct qn_collection_opts *o)
{
    return o->ring != 0 ? o->ring : LCRQ_CELLS;
}

static uint32_t rings_wanted(const struct qn_collection_opts *o)
{
    uint32_t cells = cells_wanted(o);
    return (o->capacity + cells - 1) / cells + 1 + 2 * o->clients;
}

static size_t lcrq_bytes(const struct qn_collection_opts *o)
{
    uint32_t cells = cells_wanted(o);
    if (!qn_is_pow2(cells) || cells < 2 || cells > QN_RING_MAX) {
        return 0;
    }
    return sizeof(struct qn_lcrq) + o->clients * sizeof(struct lcrq_pin) +
           rings_wanted(o) * (sizeof(struct lcrq_ring) +
                              (size_t)cells * sizeof(struct lcrq_cell)) +
           o->clients * sizeof(struct qn_sync_place);
}

static int lcrq_format(void *memory, const struct qn_collection_opts *o)
{
    struct qn_lcrq *q = memory;
    q->pause_ns = o->pause_ns != 0 ? o->pause_ns : LCRQ_PAUSE_NS;
    q->clients = o->clients;
    q->cells = cells_wanted(o);
    q->rings = rings_wanted(o);
    qn_sync_places_format(places_of(q), q->clients);
    /* relaxed: no other thread has the queue yet. */
    qn_store(&rings_of(q)[0].taken, 1, QN_RELAXED);
    qn_store(&q->head, 1, QN_RELAXED);
    qn_store(&q->tail, 1, QN_RELAXED);
    return QN_OK;
}

static int lcrq_join(struct qn_collection_client *client,
                     const struct qn_collection_join_opts *o)
{
    struct qn_lcrq_client *c = &client->of.lcrq;
    struct qn_lcrq *q = client->q->memory;
    uint32_t node;
    if (o->domain >= QN_DELEGATE_DOMAINS) {
        return QN_EINVAL;
    }
    int err = qn_sync_join(places_of(q), q->clients, &client->place, &node);
    if (err != QN_OK) {
        return err;
    }
    *c = (struct qn_lcrq_client){
        .q = q,
        .ring = rings_of(q),
        .cell = cells_of(q),
        .pin = &pins_of(q)[client->place].ring,
        .cells = q->cells,
        .from = client->place % q->rings,
        .domain = o->domain + 1,
        .empty = true,
        .full = true,
    };
    return QN_OK;
}

static void lcrq_leave(struct qn_collection_client *client)
{
    struct qn_lcrq_client *c = &client->of.lcrq;
    /* release -> the look at all pins: the last operation is over. */
    qn_store(c->pin, 0, QN_RELEASE);
    qn_sync_leave(places_of(c->q), client->place, client->place);
}

static struct lcrq_at at(struct qn_lcrq_client *c, uint32_t number)
{
    return (struct lcrq_at){
        .ring = &c->ring[number - 1],
        .cell = &c->cell[(number - 1) * c->cells],
        .cells = c->cells,
        .stats = &c->stats,
    };
}

/* The ring that `end` names, pinned (rule 1). */
static uint32_t pin(struct qn_lcrq_client *c, const qn_a32 *end)
{
    /* relaxed: one that is not pinned is loaded again below; the pinned one,
     * if it is an old one, has a successor, which is found there. */
    uint32_t number = qn_load(end, QN_RELAXED);
    while (number != c->pinned) {
        c->pinned = number;
        if (!QN_OBJECT_MUTANT(LCRQ_NO_PIN)) {
            /* seq_cst, as the look behind it -> pinned(): either this look
             * finds that the ring has been left, or that one the pin. */
            qn_store(c->pin, number, QN_SEQ_CST);
        }
        /* It also acquires the ring as it begins. */
        number = qn_load(end, QN_SEQ_CST);
    }
    return number;
}

static bool pinned(struct qn_lcrq *q, uint32_t number)
{
    const struct lcrq_pin *p = pins_of(q);
    for (uint32_t i = 0; i < q->clients; i++) {
        /* seq_cst: rule 1. It also acquires what a client did in front of its
         * next pin. */
        if (qn_load(&p[i].ring, QN_SEQ_CST) == number) {
            return true;
        }
    }
    return false;
}

/* A ring that no other client has. */
static bool claim(const struct qn_lcrq_client *c, uint32_t number)
{
    struct lcrq_ring *r = &c->ring[number - 1];
    uint32_t free_now = 0;
    /* A first look without the claim: a ring that is claimed and given back
     * at once looks taken to others. relaxed: the next look counts. */
    if (qn_load(&r->taken, QN_RELAXED) != 0 || pinned(c->q, number)) {
        return false;
    }
    /* acquire -> the release in leave_ring and append. */
    if (!qn_cas(&r->taken, &free_now, 1, QN_ACQUIRE)) {
        return false;
    }
    /* Between the first look and the claim the ring may have had a whole use,
     * in which a client has pinned it. */
    if (pinned(c->q, number) && !QN_OBJECT_MUTANT(LCRQ_ONE_PIN)) {
        qn_store(&r->taken, 0, QN_RELEASE); /* -> the acquire above */
        return false;
    }
    return true;
}

static uint32_t claim_any(struct qn_lcrq_client *c)
{
    for (uint32_t i = 0; i < c->q->rings; i++) {
        uint32_t number = (c->from + i) % c->q->rings + 1;
        if (claim(c, number)) {
            c->from = number % c->q->rings;
            return number;
        }
    }
    return 0;
}

/* The tail leaves a ring that has a successor. @return QN_EBUSY: try there. */
static int follow(const struct qn_lcrq_client *c, uint32_t last, uint32_t next)
{
    (void)qn_cas(&c->q->tail, &last, next, QN_SEQ_CST);
    return QN_EBUSY;
}

/* Put the value into a new ring behind `last`, which is closed. @return QN_OK;
 *  QN_EAGAIN: no ring is free; QN_EBUSY: `last` has a successor. */
static int append(struct qn_lcrq_client *c, uint32_t last, uint64_t value,
                  bool narrow)
{
    qn_a32 *link = &c->ring[last - 1].next;
    /* acquire -> the compare-and-swap below: the ring as it begins. */
    uint32_t next = qn_load(link, QN_ACQUIRE);
    if (next != 0) {
        return follow(c, last, next);
    }
    uint32_t number = claim_any(c);
    if (number == 0) {
        /* relaxed: if there is one, it is loaded again. */
        return qn_load(link, QN_RELAXED) == 0 ? QN_EAGAIN : QN_EBUSY;
    }
    struct lcrq_at a = at(c, number);
    lcrq_ring_begin(&a, value, narrow);
    if (!qn_cas(link, &next, number, QN_SEQ_CST)) {
        /* Another client has linked a ring. The value stays in this one, which
         * none looks at, until its next use begins in the same cell.
         * release -> the acquire in claim. */
        qn_store(&a.ring->taken, 0, QN_RELEASE);
        return follow(c, last, next);
    }
    (void)follow(c, last, number);
    return QN_OK;
}

static inline int put(struct qn_collection_client *client, uint64_t value,
                      bool narrow)
{
    struct qn_lcrq_client *c = &client->of.lcrq;
    for (;;) {
        uint32_t last = pin(c, &c->q->tail);
        struct lcrq_at a = at(c, last);
        bool closed = c->full && lcrq_ring_closed(&a);
        int err = !closed && lcrq_ring_put(&a, value + 1, narrow)
                      ? QN_OK
                      : append(c, last, value + 1, narrow);
        if (err != QN_EBUSY) {
            c->full = err != QN_OK;
            return err;
        }
    }
}

/* The head leaves a ring that is empty for ever (rule 2). */
static void leave_ring(struct qn_lcrq_client *c, uint32_t first, uint32_t next)
{
    uint32_t head = first;
    if (qn_cas(&c->q->head, &head, next, QN_SEQ_CST)) {
        /* release -> the acquire in claim: the ring has been left. */
        qn_store(&c->ring[first - 1].taken, 0, QN_RELEASE);
        c->from = first - 1; /* its cells are in this core's cache */
    }
}

static inline int take(struct qn_collection_client *client, uint64_t *value,
                       bool narrow)
{
    struct qn_lcrq_client *c = &client->of.lcrq;
    for (;;) {
        uint32_t first = pin(c, &c->q->head);
        struct lcrq_at a = at(c, first);
        bool empty = c->empty && lcrq_ring_empty(&a);
        uint64_t found = empty ? 0 : lcrq_ring_take(&a, narrow);
        uint32_t next = 0;
        if (found == 0) {
            c->empty = true;
            /* seq_cst: that the queue is empty is said of the ring's tail and
             * of this, in this order. */
            next = qn_load(&a.ring->next, QN_SEQ_CST);
            if (next == 0) {
                return QN_EAGAIN;
            }
            if (!QN_OBJECT_MUTANT(LCRQ_ONE_LOOK)) {
                found = lcrq_ring_take(&a, narrow);
            }
        }
        if (found != 0) {
            c->empty = false;
            *value = found - 1;
            return QN_OK;
        }
        leave_ring(c, first, next);
    }
}

static int put_wide(struct qn_collection_client *c, uint64_t value)
{
    return put(c, value, false);
}

static int take_wide(struct qn_collection_client *c, uint64_t *value)
{
    return take(c, value, false);
}

static int put_narrow(struct qn_collection_client *c, uint64_t value)
{
    return put(c, value, true);
}

static int take_narrow(struct qn_collection_client *c, uint64_t *value)
{
    return take(c, value, true);
}

/* Wait for the domain's turn, not longer than the pause, and then take it. */
static void await_turn(const struct qn_lcrq_client *c)
{
    qn_a32 *turn = &c->q->domain;
    /* relaxed, and acquire below with no partner: the turn orders nothing. */
    uint32_t seen = qn_load(turn, QN_RELAXED);
    if (seen == c->domain) {
        return;
    }
    qn_time_t deadline = qn_clock_now() + c->q->pause_ns;
    /* The clock, too: other domains may take the turn from each other faster
     * than this thread goes to sleep. */
    while (seen != c->domain && seen != 0 && qn_clock_now() < deadline &&
           qn_park_word(turn, seen, deadline) != QN_ETIMEDOUT) {
        seen = qn_load(turn, QN_RELAXED);
    }
    if (seen != c->domain && qn_cas(turn, &seen, c->domain, QN_ACQUIRE)) {
        qn_unpark_word(turn);
    }
}

static int put_numa(struct qn_collection_client *c, uint64_t value)
{
    await_turn(&c->of.lcrq);
    return put(c, value, false);
}

static int take_numa(struct qn_collection_client *c, uint64_t *value)
{
    await_turn(&c->of.lcrq);
    return take(c, value, false);
}

static struct qn_delegate_stats lcrq_stats(const struct qn_collection_client *c)
{
    return c->of.lcrq.stats;
}

#define LCRQ_TYPE(form, text, max)                                             \
    {                                                                          \
        .name = (text), .order = QN_FIFO, .lock_free = true,                   \
        .value_max = (max), .bytes = lcrq_bytes, .format = lcrq_format,        \
        .join = lcrq_join, .leave = lcrq_leave, .put = put_##form,             \
        .take = take_##form, .stats = lcrq_stats,                              \
    }

const struct qn_collection_type qn_lcrq = LCRQ_TYPE(wide, "lcrq", QN_VALUE_MAX);
const struct qn_collection_type qn_lcrq32 =
    LCRQ_TYPE(narrow, "lcrq32", UINT32_MAX - 1);
const struct qn_collection_type qn_lcrq_numa =
    LCRQ_TYPE(numa, "lcrq_numa", QN_VALUE_MAX);
