#ifndef QN_KVS_FRONTEND_WAIT_QUEUE_H
#define QN_KVS_FRONTEND_WAIT_QUEUE_H

/**
 * WAIT: connections that wait until a number of other replicas have applied
 * their last write, or until a time, or until their client sends nothing more.
 *
 * An entry is embedded in its connection (kvs/frontend/conn.h). It is in the
 * queue once, from qn_wait_queue_add until a step returns it. A connection that
 * closes meanwhile cancels its entry, and the next step returns it too; until
 * then its memory stays. A draining replica lets no client wait: all are
 * answered with what they have.
 *
 * Threads: one. Pure: no clock, no allocation, no IO.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/base/clock.h"
#include "core/node.h"

#define QN_WAIT_INTERVAL                                                       \
    QN_MS /* between two steps: peers do not ring when they                    \
             have applied something */
#define QN_WAIT_CHECK_INTERVAL                                                 \
    (100 * QN_MS) /* between two checks which clients have ended: a session    \
                     that waits does not read its socket */

/** Private, except `have`. All zero to begin with. */
struct qn_waiter {
    struct qn_waiter *next; /* in the queue, or of those that are over */
    bool queued;
    bool cancelled;  /* its connection has closed */
    bool ended;      /* its client sends nothing more, and may be gone: it is
                        answered at once */
    qn_slot_t slot;  /* of its last write */
    int64_t want;    /* replicas */
    int64_t have;    /* replicas that had applied `slot` at the last step */
    qn_time_t until; /* ns; QN_TIME_NEVER */
};

/** Private. All zero: empty. */
struct qn_wait_queue {
    struct qn_waiter *first;
    uint32_t count;
    qn_time_t next_check; /* of clients; of use while an entry is queued */
};

/** What a step is told. */
struct qn_wait_view {
    const qn_slot_t *applied; /* [peers]: slots up to this one, each present
                                 peer; in any order */
    uint32_t peers;
    bool draining;
};

/** Wait until `want` peers have applied `slot`. @param ms  For so long at most;
 *  0: without limit. `w` is kept until a step returns it. */
void qn_wait_queue_add(struct qn_wait_queue *q, struct qn_waiter *w,
                       qn_slot_t slot, int64_t want, uint64_t ms,
                       qn_time_t now);

/** The connection has closed. Also if it does not wait. */
static inline void qn_waiter_cancel(struct qn_waiter *w)
{
    w->cancelled = true;
}

/** True if an entry is queued: then step once a turn. */
static inline bool qn_wait_queue_active(const struct qn_wait_queue *q)
{
    return q->first != NULL;
}

/** Is it time to check which clients have ended? Then the caller sets `ended`
 * of those before the next step. True once per QN_WAIT_CHECK_INTERVAL. */
bool qn_wait_queue_check(struct qn_wait_queue *q, qn_time_t now);

/** @return those that are over, linked by `next`; NULL: none. The caller
 *  answers each that was not cancelled with `have`. */
struct qn_waiter *qn_wait_queue_step(struct qn_wait_queue *q,
                                     const struct qn_wait_view *v,
                                     qn_time_t now);

/** Take all out, unanswered. */
void qn_wait_queue_clear(struct qn_wait_queue *q);

#endif
