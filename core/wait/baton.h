#ifndef QN_WAIT_BATON_H
#define QN_WAIT_BATON_H

/**
 * A baton: one thread waits, another ends the wait and hands over a value.
 *
 *     waiter                               waker
 *     init, publish the baton
 *     look ... yield ... look              exchange(word, value)
 *     CAS(word, waiting -> parked)         was it parked? wake
 *     sleep while it is parked
 *
 * The word says whether the waiter sleeps, so a hand-over is one exchange, and
 * makes a system call only for a sleeper. Locks, combiners and servers wait by
 * batons (core/sync).
 *
 * The waiter looks first, also where threads share cores: a hand-over between
 * two cores takes less than the look. Then it yields twice, since the waker
 * may wait for this core, and then it sleeps.
 *
 * Once the value is stored, the waker touches the baton no more, but for the
 * wake-up, which only names the address. So the waiter may use the baton again
 * at once, and a late wake-up meets it in its next use. Every wait here takes
 * wake-ups without a cause. The memory stays mapped until all wakers have
 * returned.
 *
 * *Own cores.* A waiter that has a core of its own need not sleep. Where that
 * is promised for all (`own_cores` of both sides), it looks on, and a hand-over
 * is one store. A waiter that has no core after all yields the one that it is
 * on.
 *
 * Works between processes that map the baton at different addresses. Not in
 * signal handlers. A waker that ends before qn_baton_go leaves the waiter
 * asleep for ever.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/wait/backoff.h"

enum {
    QN_BATON_WAITING = 0,
    QN_BATON_PARKED = 1, /* the waiter sleeps, or is about to */
    QN_BATON_GO = 2,     /* the smallest value that can be handed over */
};

/** Shared. One waiter and one waker at a time. */
struct qn_baton {
    qn_a32 word; /* waiting, parked, or the value */
};

/** What the waits of one thread have cost. Private to that thread, zeroed at
 *  first. The thread counts `wakes` by what qn_baton_go returns; a wait behind
 *  a wake-up takes into account that the woken thread needs time to run. */
struct qn_wait_stats {
    uint64_t parks;        /* waits that have slept */
    uint64_t wakes;        /* sleepers that this thread has woken */
    uint64_t yields;       /* of its core, while it waited */
    uint64_t wakes_before; /* private: `wakes` when its last wait began */
};

/** A wait begins: looks, then yields, then the caller parks. For waits of
 *  core/sync that are not on a baton, too. In the explorer, where no time
 *  passes, the caller parks at once. */
void qn_baton_backoff(struct qn_backoff *p);

/** One look of a wait. @return whether there is what it waits for. */
typedef bool qn_baton_look_fn(void *ctx);

/** All of a wait that comes before the sleep: longer behind a wake-up of the
 *  caller's own. For waits of core/sync that are not on a baton and whose
 *  callers count their wake-ups. Of the caller's thread.
 *  @param look  Called with `ctx` at least once, until it says yes.
 *  @param s     Filled: yields are counted.
 *  @return false: it is not there, and the caller should park. */
bool qn_baton_look(qn_baton_look_fn *look, void *ctx, struct qn_wait_stats *s);

/** Wait for the next qn_baton_go. Before the baton is published to its waker,
 *  by an operation of the caller that is at least a release. */
static inline void qn_baton_init(struct qn_baton *b)
{
    /* relaxed: published by the caller. */
    qn_store(&b->word, QN_BATON_WAITING, QN_RELAXED);
}

/** One look. acquire -> the exchange of qn_baton_go.
 *  @param value  Filled if true; else untouched.
 *  @return whether the value is there. Any thread. Wait-free. */
static inline bool qn_baton_is_go(const struct qn_baton *b, uint32_t *value)
{
    const uint32_t now = qn_load(&b->word, QN_ACQUIRE);
    if (now < QN_BATON_GO) {
        return false;
    }
    *value = now;
    return true;
}

/** Wait until a value is handed over. Blocking. acquire: what the waker did
 *  before qn_baton_go is visible behind it.
 *  @param s  Counts what the wait costs.
 *  @return the value, at least QN_BATON_GO. */
uint32_t qn_baton_wait(struct qn_baton *b, struct qn_wait_stats *s);

/** End the wait. release.
 *  @param value  At least QN_BATON_GO.
 *  @return true: the waiter slept, and was woken by a system call. Any thread,
 *  once per qn_baton_init. Wait-free. */
bool qn_baton_go(struct qn_baton *b, uint32_t value);

/* ---- own cores ---- */

/** One turn of a wait that never sleeps.
 *  @param p  Of qn_baton_backoff, when the wait began. */
void qn_baton_look_on(struct qn_backoff *p, struct qn_wait_stats *s);

/** As qn_baton_wait. @param own_cores  Do not sleep. */
uint32_t qn_baton_await(struct qn_baton *b, bool own_cores,
                        struct qn_wait_stats *s);

/** As qn_baton_go. @param own_cores  As of the waiter's qn_baton_await. */
static inline void qn_baton_pass(struct qn_baton *b, uint32_t value,
                                 bool own_cores, struct qn_wait_stats *s)
{
    if (own_cores) {
        /* release -> the looks of qn_baton_await. */
        qn_store(&b->word, value, QN_RELEASE);
    } else {
        s->wakes += qn_baton_go(b, value);
    }
}

#endif
