#ifndef QN_PAXOS_DRIVER_SENDQ_H
#define QN_PAXOS_DRIVER_SENDQ_H

/**
 * Messages that wait for room in one channel, oldest first, and the cutting of
 * long ones into pieces. A queue holds one reference to each message's blob.
 * Who pushes bounds it: commands by credit and window, long answers wait in the
 * machine until there is room, of a question that is asked again only the
 * newest waits (qn_sendq_drop), broadcasts are dropped beyond a bound in bytes
 * (driver_send.c), and the rest is said once per event. One thread.
 */

#include "paxos/wire/msg.h"

/* What a piece is copied through on its way (staging, assembly, the joined
 * message) stays in a first-level cache, and a lane holds several. */
#define QN_PIECE_MAX 8192u /* bytes of one piece, head included */

struct qn_sendq {
    struct qn_msg *msg;   /* [cap] ring */
    uint32_t cap;         /* power of two, or 0 */
    uint32_t head, tail;  /* free-running */
    uint32_t offset;      /* bytes of the oldest message's body sent so far */
    uint64_t bytes, most; /* of all bodies; the most that ever waited */
};

static inline bool qn_sendq_empty(const struct qn_sendq *q)
{
    return q->head == q->tail;
}

/** Add a message; takes a reference of its own. QN_OK, QN_ENOMEM. */
int qn_sendq_push(struct qn_sendq *q, const struct qn_msg *m);

/** Drop what waits of this kind, as if it were lost on its way; not what has
 *  begun to leave. */
void qn_sendq_drop(struct qn_sendq *q, uint8_t kind);

/** The next piece to send, without taking it. Only if not empty. */
void qn_sendq_piece(const struct qn_sendq *q, struct qn_msg *piece);

/** The piece was sent: go on behind it. */
void qn_sendq_sent(struct qn_sendq *q, const struct qn_msg *piece);

/** Drop everything and free the memory. */
void qn_sendq_free(struct qn_sendq *q);

#endif
