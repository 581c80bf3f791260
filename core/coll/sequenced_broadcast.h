#ifndef QN_COLL_SEQUENCED_BROADCAST_H
#define QN_COLL_SEQUENCED_BROADCAST_H

/**
 * Acknowledged broadcast as a pipeline: the root sends, every member is
 * delivered to, in one order, and the root learns up to which number all have
 * the messages. Over a tree or a pair of trees (a balanced one is BT of the
 * paper on diamond rings), or over a diamond ring (SDR).
 *
 * Unlike a call of coll.h it is begun by the root alone: the other members poll
 * and are called back.
 *
 * Window: a bound on the messages of the root that are not acknowledged. So a
 * lane never holds more than a window, and no member needs a backlog.
 *
 * Death: as in coll_flow.h. Messages that are not acknowledged at the root
 * after an error may have been delivered by some members. To continue, make a
 * new one on a wiring of the living members, with the next `view`.
 *
 * Threads: one per struct. All calls but create and destroy are wait-free;
 * nothing blocks, nothing but create allocates, and no clock is read.
 */

#include "core/coll/coll_lanes.h"

/** Called for each message, at every member, the root included, in the order
 *  of numbers. Bytes borrowed for the call. An acknowledgement that says that
 *  all have worked (qn_wiring_ring_opts.observed) goes out behind it. Must call
 *  nothing of the broadcast. */
typedef void qn_sequenced_deliver_fn(void *ctx, uint32_t number,
                                     const void *msg, size_t len);

struct qn_sequenced_broadcast_opts {
    const struct qn_wiring *wiring; /* of this member: QN_WIRING_ACKNOWLEDGED,
                                       not `called`, or QN_WIRING_RING. Kept */
    struct qn_qp **qp; /* by node; borrowed. Read for the neighbours only; those
                          queuepairs are kept until down, or destroy */
    uint32_t window;   /* messages; a power of two, the same at all members */
    uint32_t bytes_max; /* of a message, the same at all members; at most
                           QN_COLL_PAYLOAD_MAX */
    uint16_t view;      /* all members say the same; see coll.h */
    qn_sequenced_deliver_fn *deliver;
    void *ctx; /* for deliver; kept */
};

struct qn_sequenced_broadcast;

/** @return QN_OK; QN_EINVAL: another wiring, a neighbour without a queuepair,
 *  window or bytes_max out of range; QN_ENOMEM. Memory: window * bytes_max. */
int qn_sequenced_broadcast_create(struct qn_sequenced_broadcast **out,
                                  const struct qn_sequenced_broadcast_opts *o);
void qn_sequenced_broadcast_destroy(
    struct qn_sequenced_broadcast *b); /* NULL too */

/** Root only: send to all, and deliver here. Flush afterwards, once for
 *  several.
 *  @param msg     [len] borrowed.
 *  @param number  Filled, from 1, may wrap; NULL: not wanted.
 *  @return QN_OK; QN_EPERM: not the root; QN_EMSGSIZE; QN_EAGAIN: the window is
 *  full; QN_EPEERDEAD, QN_ECORRUPT: none is sent any more. */
int qn_sequenced_broadcast_send(struct qn_sequenced_broadcast *b,
                                const void *msg, size_t len, uint32_t *number);

/** At the root: all members have the messages up to this number. Elsewhere:
 * this member has no more to do for them. */
uint32_t qn_sequenced_broadcast_acked(const struct qn_sequenced_broadcast *b);

/** Why nothing is sent any more, or QN_OK. */
int qn_sequenced_broadcast_error(const struct qn_sequenced_broadcast *b);

/** Receive at most one message of each neighbour, deliver, send what there is.
 *  @return true if something moved. */
bool qn_sequenced_broadcast_poll(struct qn_sequenced_broadcast *b);

/** As qn_coll_pending and qn_coll_flush. */
bool qn_sequenced_broadcast_pending(struct qn_sequenced_broadcast *b);
bool qn_sequenced_broadcast_flush(struct qn_sequenced_broadcast *b);

/** As qn_coll_down. */
void qn_sequenced_broadcast_down(struct qn_sequenced_broadcast *b,
                                 qn_node_t peer);

#endif
