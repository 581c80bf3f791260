#ifndef QN_PAXOS_DRIVER_SENDQ_H
#define QN_PAXOS_DRIVER_SENDQ_H

/**
 * Messages that wait for room in one channel, oldest first, and the cutting of
 * long ones into fragments. A queue holds one reference to each message's
 * refbuf.
 *
 * The caller bounds it: commands by credit and window; long answers wait in the
 * machine until there is room; of a question that is asked again only the
 * newest one waits (qn_sendq_drop); broadcasts are dropped above a bound in
 * bytes (driver_send.c); other messages are sent once per event.
 *
 * Invariants: tail - head <= cap; offset is 0 or inside the oldest body; bytes
 * is the sum of all bodies, so 0 if the queue is empty; most >= bytes.
 *
 * One thread.
 */

#include "core/base/alloc.h"
#include "paxos/wire/msg.h"

/* A fragment is copied through staging, assembly and the joined message: these
 * stay in a first-level cache, and a lane holds several fragments. */
#define QN_FRAGMENT_MAX 8192u /* bytes of one fragment, head included */

/** All zero but for `alloc`: an empty one. */
struct qn_sendq {
    const struct qn_alloc *alloc; /* kept; NULL: malloc's */
    struct qn_msg *msg;           /* [cap] ring */
    uint32_t cap;                 /* power of two, or 0 */
    uint32_t head, tail;          /* free-running */
    uint32_t offset;      /* bytes of the oldest message's body sent so far */
    uint64_t bytes, most; /* of all bodies; the most that ever waited */
};

static inline bool qn_sendq_empty(const struct qn_sendq *q)
{
    return q->head == q->tail;
}

/** A part of the oldest message has left. */
static inline bool qn_sendq_begun(const struct qn_sendq *q)
{
    return q->offset != 0;
}

/** Messages in it. */
static inline uint32_t qn_sendq_count(const struct qn_sendq *q)
{
    return q->tail - q->head;
}

/** Add a message; takes a reference of its own. QN_OK, QN_ENOMEM. */
int qn_sendq_push(struct qn_sendq *q, const struct qn_msg *m);

/** Slot of the oldest message. Only if not empty. */
qn_slot_t qn_sendq_slot(const struct qn_sendq *q);

/** Drop the messages of this kind, as if they were lost on their way; not one
 *  that has begun to leave. */
void qn_sendq_drop(struct qn_sendq *q, uint8_t kind);

/** The next fragment to send, without taking it. Only if not empty. */
void qn_sendq_fragment(const struct qn_sendq *q, struct qn_msg *fragment);

/** The fragment was sent: go on behind it. */
void qn_sendq_sent(struct qn_sendq *q, const struct qn_msg *fragment);

/** Drop everything and free the memory. */
void qn_sendq_free(struct qn_sendq *q);

#endif
