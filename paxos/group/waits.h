#ifndef QN_PAXOS_GROUP_WAITS_H
#define QN_PAXOS_GROUP_WAITS_H

/**
 * What waits for the log: proposals under way, and reads. A bounded queue in
 * the order in which it was asked, each with a number that grows, a deadline
 * and a callback.
 *
 *     proposals   number: sequence of the command; it ends when that command is
 *                 applied, with its result
 *     barriers    number: index of the read; it ends when that is reached
 *
 *        head            open              tail
 *         | have an end   | wait            |
 *         v               v                 v
 *
 * Ends are noted first (result, upto) and told later (deliver), in order, so
 * that callbacks run when the caller's state is consistent and may ask again.
 * One whose deadline has come is told at once and keeps its place without a
 * callback: the log may still bring its command.
 *
 * Threads: one. Nothing blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/assert.h"
#include "core/base/clock.h"

typedef void qn_waits_done(void *ctx, int err, uint64_t result);

/** Fields are private. */
struct qn_wait {
    uint64_t number;
    qn_time_t deadline;
    size_t bytes;
    qn_waits_done *done; /* NULL: given up */
    void *ctx;
    int err; /* its end, with */
    uint64_t result;
};

struct qn_waits {
    struct qn_wait *ring; /* [a power of two, >= max], owned */
    uint32_t max;
    uint64_t mask; /* of an index in it */
    uint64_t head, open, tail;
    const struct qn_alloc *alloc;
    size_t bytes, bytes_max; /* kept; of all that have no end */
    int late;                /* what one is told whose deadline comes */
    qn_time_t next;          /* no deadline comes before it */
};

/** @param max        At once, at least 1; and bytes of them together.
 *  @param late       What one is told whose deadline comes.
 *  @param alloc      Kept; NULL: malloc's.
 *  @return QN_OK; QN_ENOMEM. */
int qn_waits_init(struct qn_waits *w, uint32_t max, size_t bytes_max, int late,
                  const struct qn_alloc *alloc);

/** Nothing is told. */
void qn_waits_fini(struct qn_waits *w);

/** One more of `bytes` bytes fits. If nothing else waits, one of any size. */
static inline bool qn_waits_room(const struct qn_waits *w, size_t bytes)
{
    return w->tail - w->head < w->max &&
           (w->bytes == 0 ||
            (bytes <= w->bytes_max && w->bytes <= w->bytes_max - bytes));
}

/** Nothing waits, and nothing is to be told: there is room. */
static inline bool qn_waits_empty(const struct qn_waits *w)
{
    return w->head == w->tail;
}

/** There is room, and `number` is not below that of the last one. */
static inline void qn_waits_add(struct qn_waits *w, const struct qn_wait *like)
{
    QN_DASSERT(qn_waits_room(w, like->bytes));
    QN_DASSERT(like->done != NULL);
    QN_DASSERT(w->tail == w->open ||
               w->ring[(w->tail - 1) & w->mask].number <= like->number);
    struct qn_wait *x = &w->ring[w->tail++ & w->mask];
    x->number = like->number; /* one by one: the compiler needs no copy of it */
    x->deadline = like->deadline;
    x->bytes = like->bytes;
    x->done = like->done;
    x->ctx = like->ctx;
    w->bytes += like->bytes;
    w->next = like->deadline < w->next ? like->deadline : w->next;
}

/** The newest `count` get this number in place of theirs; it is not below those
 *  before. */
void qn_waits_number(struct qn_waits *w, uint64_t count, uint64_t number);

/** The oldest that is open has this number, and ends well. */
void qn_waits_result(struct qn_waits *w, uint64_t number, uint64_t result);

/** All that are open up to this number end. */
void qn_waits_upto(struct qn_waits *w, uint64_t number, int err);

/** One has ended, and is not told. */
static inline bool qn_waits_ended(const struct qn_waits *w)
{
    return w->head != w->open;
}

/** When `deliver` is due though none has ended; QN_TIME_NEVER. */
static inline qn_time_t qn_waits_next(const struct qn_waits *w)
{
    return w->next;
}

/** The oldest that is open was given up. */
static inline bool qn_waits_given_up(const struct qn_waits *w)
{
    return w->open != w->tail && w->ring[w->open & w->mask].done == NULL;
}

/** `deliver` has something to tell. */
static inline bool qn_waits_due(const struct qn_waits *w, qn_time_t now)
{
    return qn_waits_ended(w) || qn_waits_next(w) <= now;
}

/** Tell what has ended, and those whose deadline has come. Callbacks may add.
 *  @return true: something had ended. */
bool qn_waits_deliver(struct qn_waits *w, qn_time_t now);

/** How many are open. */
static inline uint64_t qn_waits_open(const struct qn_waits *w)
{
    return w->tail - w->open;
}

#endif
