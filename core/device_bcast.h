#ifndef QN_DEVICE_BCAST_H
#define QN_DEVICE_BCAST_H

/**
 * Broadcasts that a device brings along, as an alternative to a tree of
 * queuepairs: an interface, whose backends live in transports/. A context
 * (core/group) uses one if it is told so.
 *
 * Any node sends, all others receive. The messages of one source arrive in
 * order, whole and once; between sources there is no order. What a source had
 * on its way when it died may be missing at some. Whether a message of a source
 * that lives may be lost in a node that dies is the backend's to say; later
 * ones arrive.
 *
 * Threads: one, that of the device's attachment. Nothing waits or allocates;
 * try_send, poll and flush may ring, and pending on a device that delays its
 * interrupts (for tests).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/node.h"

/** A message of `source`, whole. Bytes borrowed for the call, in memory of this
 *  node. Must call nothing of the broadcast. */
typedef void qn_device_bcast_deliver_fn(void *ctx, qn_node_t source,
                                        const void *msg, size_t len);

struct qn_device_bcast;

/** A backend. All members are set. Semantics as of the qn_device_bcast_* calls.
 */
struct qn_device_bcast_ops {
    int (*try_send)(struct qn_device_bcast *b, const struct qn_slice *parts,
                    uint32_t count);
    uint32_t (*poll)(struct qn_device_bcast *b, uint32_t budget,
                     qn_device_bcast_deliver_fn *deliver, void *ctx);
    bool (*pending)(struct qn_device_bcast *b);
    bool (*flush)(struct qn_device_bcast *b);
    void (*destroy)(struct qn_device_bcast *b);
};

struct qn_device_bcast {
    const struct qn_device_bcast_ops *ops; /* what follows is the backend's */
};

/** Send the concatenation of parts to all living nodes.
 *  @return QN_OK: taken; QN_EAGAIN: an earlier message still waits for room;
 *          QN_EMSGSIZE. */
static inline int qn_device_bcast_try_send(struct qn_device_bcast *b,
                                           const struct qn_slice *parts,
                                           uint32_t count)
{
    return b->ops->try_send(b, parts, count);
}

/** Receive, forward and deliver at most `budget` parts of messages, and send
 *  what waits. @return how many came. */
static inline uint32_t qn_device_bcast_poll(struct qn_device_bcast *b,
                                            uint32_t budget,
                                            qn_device_bcast_deliver_fn *deliver,
                                            void *ctx)
{
    return b->ops->poll(b, budget, deliver, ctx);
}

/** Would poll or flush get further? Before a node sleeps: arm the doorbell,
 *  flush, and sleep only if this is false. A node that has more to send sleeps
 *  only if that flush said that something waits, too: what had waited may be
 *  gone since try_send refused, and then no peer rings. */
static inline bool qn_device_bcast_pending(struct qn_device_bcast *b)
{
    return b->ops->pending(b);
}

/** Send what has room. @return true while something waits: a peer rings. False:
 *  try_send takes a message. */
static inline bool qn_device_bcast_flush(struct qn_device_bcast *b)
{
    return b->ops->flush(b);
}

/** NULL is fine. Before the device is detached. */
static inline void qn_device_bcast_destroy(struct qn_device_bcast *b)
{
    if (b != NULL) {
        b->ops->destroy(b);
    }
}

#endif
