#ifndef QN_QP_H
#define QN_QP_H

/**
 * Queuepairs: a bidirectional, reliable, FIFO, bounded channel of messages
 * between two nodes on one lane. This is the interface; backends live in
 * transports/ and are found by name in transports/registry.h.
 *
 * A message is a byte string of 0 .. QN_MSG_MAX bytes, or less if the ends say
 * so (qn_qp_opts.msg_max). A backend splits it
 * into frames (one per 64-byte cell in UMP) of kind FIRST, MORE, LAST, ONLY or
 * ABORT, and a receiver never sees a torn one: either the whole message
 * arrives or nothing of it. A one-cell message is written and read in place;
 * a longer one is assembled once.
 *
 * Two views of the receive side, not to be mixed within one message:
 *   - messages: peek / release. An aborted message is dropped silently.
 *   - frames: peek_frame / release_frame, for cut-through forwarding.
 *
 * Full is QN_EAGAIN (send), empty is QN_EAGAIN (receive); both are answers. A
 * message of any size is taken as soon as one cell is free and no earlier
 * message is still being pushed: what does not fit waits in the queuepair's
 * own staging buffer and is pushed by later calls (flush, or any try call).
 *
 * Incarnations: a queuepair connects one incarnation of a node with one
 * incarnation of its peer. Nothing sent by or to another incarnation is ever
 * delivered. When a peer comes back the queuepair is opened again on its new
 * outbox.
 *
 * Threads: each end belongs to one thread. Progress: all try calls are
 * wait-free and make no system call; flush may ring (one system call), and so
 * may a peek in the middle of a message that does not fit into the ring.
 *
 * | may run concurrently | send side, end A | receive side, end A | end B |
 * | send side, end A     | same thread      | same thread         | free  |
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/atomic.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/device.h"
#include "core/node.h"
#include "core/wait/doorbell.h"

#define QN_MSG_MAX       65536u /* bytes of one message */
#define QN_CELLS_DEFAULT 1024u  /* cells of one lane, a power of two */
#define QN_INPLACE_MAX                                                         \
    56u /* bytes of a message shown in place, or of a                          \
           frame, at most */

enum qn_frame_kind {
    QN_FRAME_ONLY,  /* a whole message */
    QN_FRAME_FIRST, /* its first part; `total` is known */
    QN_FRAME_MORE,
    QN_FRAME_LAST,
    QN_FRAME_ABORT, /* the message begun by FIRST will never be finished */
};

struct qn_frame {
    enum qn_frame_kind kind;
    const void *data; /* borrowed until release_frame / for the call */
    uint32_t len;     /* bytes of this frame */
    uint32_t total;   /* FIRST and ONLY: bytes of the message */
};

/** What a transport writes to, and what its user must give it. */
enum qn_transport_memory {
    /** A lane has one writer: `tx` is written by this end, `rx` only read. A
     *  process can damage only its own lanes. Memory is used again by the next
     *  incarnation of a peer. */
    QN_TRANSPORT_ISOLATED,
    /** Both ends write both lanes, so `rx` is mapped writable. Both lanes are
     *  zeroed memory, made anew for each pair of incarnations: an end that
     *  wakes late would write into the lanes of its successor. */
    QN_TRANSPORT_BOTH_WRITE,
    /** There are no lanes: `tx` and `rx` are NULL, lane_bytes is 0, and
     * `device` is this node's attachment to the device of the group
     * (core/device.h). */
    QN_TRANSPORT_DEVICE,
};

/**
 * What a queuepair is opened on. `tx` is lane memory in this node's own
 * outbox, written by this node; `rx` the matching lane memory in the peer's
 * outbox, mapped read-only. Both have qn_transport.lane_bytes(cells) bytes,
 * are aligned to QN_CACHELINE, and were zeroed when their outbox was made.
 * What else there is says qn_transport.memory.
 */
struct qn_qp_opts {
    void *tx;                 /* shared, kept */
    const void *rx;           /* shared, kept */
    struct qn_device *device; /* kept; NULL where there are lanes */
    enum qn_lane lane;        /* with a device: which queuepair of this pair */
    uint32_t cells;       /* power of two, 16 .. 65536; a device has its own */
    qn_node_t self, peer; /* < QN_MEMBERS_MAX */
    uint32_t msg_max;     /* bytes of the longest message either way, the same
                             at both ends: QN_INPLACE_MAX .. QN_MSG_MAX; 0:
                             QN_MSG_MAX. An end stages and assembles messages
                             in memory of about twice that */
    uint64_t self_inc;    /* incarnations, never 0 */
    uint64_t peer_inc;
    struct qn_doorbell *doorbell;      /* own; NULL: no waiting forms. Kept */
    struct qn_doorbell_handle *ringer; /* peer's; NULL: never ring. Kept; may be
                                 shared by all queuepairs to that peer */
    const struct qn_alloc *alloc; /* of this end's memory, kept; NULL: malloc's
                                   */
};

struct qn_qp; /* what follows its fields is the backend's */

/** What an end has written and read, in units of its transport
 *  (qn_qp_ops.unit). */
struct qn_qp_traffic {
    uint64_t sent, received;
};

/** A backend. All members but the last are set. Semantics as of the qn_qp_*
 *  calls. */
struct qn_qp_ops {
    const char *unit; /* what it moves, in the plural: "cells", ... */
    int (*try_reserve)(struct qn_qp *qp, size_t len, void **buf);
    void (*commit)(struct qn_qp *qp, size_t len);
    int (*peek)(struct qn_qp *qp, const void **msg, size_t *len);
    void (*release)(struct qn_qp *qp);
    int (*peek_frame)(struct qn_qp *qp, struct qn_frame *f);
    void (*release_frame)(struct qn_qp *qp);
    int (*try_send_frame)(struct qn_qp *qp, const struct qn_frame *f);
    bool (*flush)(struct qn_qp *qp);
    uint32_t (*room)(struct qn_qp *qp);
    void (*down)(struct qn_qp *qp);
    void (*close)(struct qn_qp *qp);
    struct qn_qp_traffic (*traffic)(const struct qn_qp *qp);
    /** Optional: qn_qp_try_send without a staging copy. NULL: reserve, copy,
     *  commit. */
    int (*try_send)(struct qn_qp *qp, const void *msg, size_t len);
};

struct qn_transport {
    const char *name;            /* "ump", ... */
    const struct qn_qp_ops *ops; /* of each end that it opens */
    enum qn_transport_memory memory;
    uint32_t frame_max; /* bytes of the longest frame that peek_frame yields */
    const struct qn_device_type *device;  /* NULL where there are lanes */
    size_t (*lane_bytes)(uint32_t cells); /* of tx and rx memory; 0: device */
    /** Open an end. Allocates its staging buffers.
     *  @return QN_OK, QN_EINVAL (opts out of range), QN_ENOMEM. */
    int (*open)(struct qn_qp **out, const struct qn_qp_opts *opts);
};

/** Shared memory that a group needs for its queuepairs. */
struct qn_transport_bytes {
    size_t lane;   /* each lane, in an outbox; 0: there are none */
    size_t device; /* once; 0: there is none, or not with these options */
};

/** `o` counts for a device only. */
static inline struct qn_transport_bytes qn_transport_needs(
    const struct qn_transport *t, uint32_t cells,
    const struct qn_device_opts *o)
{
    return (struct qn_transport_bytes){
        .lane = t->lane_bytes(cells),
        .device = t->device == NULL ? 0 : t->device->bytes(o)};
}

struct qn_qp {
    const struct qn_qp_ops *ops;
    struct qn_doorbell *doorbell; /* own; NULL: no waiting forms */
    const struct qn_alloc *alloc; /* of this end */
};

/**
 * Room for a message of `len` bytes. *buf [len] is then filled by the caller
 * and published by commit; for a one-cell message it may be the cell itself, or
 * private memory of this end, from which commit copies.
 * A reserve that is never committed is simply forgotten.
 * @return QN_OK; QN_EAGAIN full, or a message begun by frames is not ended;
 *         QN_EMSGSIZE longer than msg_max; QN_EPEERDEAD after qn_qp_down;
 *         QN_ECORRUPT once the peer's memory was found damaged.
 */
static inline int qn_qp_try_reserve(struct qn_qp *qp, size_t len, void **buf)
{
    return qp->ops->try_reserve(qp, len, buf);
}

/** Publish what was reserved; `len` may be smaller than reserved. */
static inline void qn_qp_commit(struct qn_qp *qp, size_t len)
{
    qn_mark(QN_MARK_SEND);
    qp->ops->commit(qp, len);
}

/** Look at the next whole message. *msg stays valid until release. A message
 *  of at most QN_INPLACE_MAX bytes may be shown in place: a peer that breaks
 *  the rules may change it meanwhile, see qn_qp_steady.
 *  @return QN_OK; QN_EAGAIN none; QN_EPEERDEAD none, and none will come (after
 *          qn_qp_down); QN_ECORRUPT the peer's memory is damaged: from now on
 *          every call says so, and the queuepair should be closed. */
static inline int qn_qp_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    return qp->ops->peek(qp, msg, len);
}

/** Give the peeked message back. The acknowledgement reaches the sender
 *  lazily, at the latest with the next flush; a transport may keep a rest
 *  that stops no sender, and says so (udn: one frame). */
static inline void qn_qp_release(struct qn_qp *qp)
{
    qn_mark(QN_MARK_RECEIVE);
    qp->ops->release(qp);
}

/** A peeked message whose bytes stay as they are: what is checked in them may
 *  be relied upon. One that may lie in the peer's memory is copied to `own`
 *  [QN_INPLACE_MAX]; a longer one was assembled in memory of this end.
 *  @return `own` or `msg`. */
static inline const void *qn_qp_steady(const void *msg, size_t len, void *own)
{
    if (len > QN_INPLACE_MAX) {
        return msg;
    }
    qn_copy_in_line(own, msg, len); /* found by the peek */
    return own;
}

/** Frame view: next frame, which lies in the peer's memory. Same errors as
 *  peek. */
static inline int qn_qp_peek_frame(struct qn_qp *qp, struct qn_frame *f)
{
    return qp->ops->peek_frame(qp, f);
}

static inline void qn_qp_release_frame(struct qn_qp *qp)
{
    qn_mark(QN_MARK_RECEIVE);
    qp->ops->release_frame(qp);
}

/** Send one frame (copied). Kinds must form messages: ONLY | FIRST MORE* LAST
 *  | FIRST MORE* ABORT, lengths must add up to `total`. `len` at most what
 *  peek_frame of the same backend yields.
 *  @return QN_OK, QN_EAGAIN, QN_EINVAL (kind or length does not fit, or `total`
 *          is above msg_max), QN_EPEERDEAD, QN_ECORRUPT. */
static inline int qn_qp_try_send_frame(struct qn_qp *qp,
                                       const struct qn_frame *f)
{
    qn_mark(QN_MARK_SEND);
    return qp->ops->try_send_frame(qp, f);
}

/** Push staged cells, publish acknowledgements, ring the peer if it sleeps. If
 *  the last try found no room, tell the peer: it rings when it has made some.
 *  Before a node sleeps: arm the doorbell, then flush, then look once more (at
 *  room too, if it wants to send), as core/qp.c does.
 *  @return true while staged cells remain (call again when the peer rang). */
static inline bool qn_qp_flush(struct qn_qp *qp)
{
    qn_mark(QN_MARK_FLUSH);
    return qp->ops->flush(qp);
}

/** Free cells as far as known; 0 while an earlier message is still staged. A
 *  lane whose messages were all read and flushed has 7/8 of its cells free, or
 *  more: a backend may keep the rest for itself. */
static inline uint32_t qn_qp_room(struct qn_qp *qp)
{
    return qp->ops->room(qp);
}

/** The peer's incarnation has ended. What arrived whole can still be received;
 *  sending fails with QN_EPEERDEAD, and so does receiving after that. */
static inline void qn_qp_down(struct qn_qp *qp)
{
    qp->ops->down(qp);
}

/** Units written and read by this end since it was opened; constant time. NULL
 *  is fine: none. */
static inline struct qn_qp_traffic qn_qp_traffic(const struct qn_qp *qp)
{
    return qp == NULL ? (struct qn_qp_traffic){0} : qp->ops->traffic(qp);
}

/** Close this end; NULL is fine. The lane memory is not freed. */
static inline void qn_qp_close(struct qn_qp *qp)
{
    if (qp != NULL) {
        qp->ops->close(qp);
    }
}

/** reserve + copy + commit, for backends without a try_send of their own. */
int qn_qp_try_send_staged(struct qn_qp *qp, const void *msg, size_t len);

/** reserve + copy + commit. Same errors. */
static inline int qn_qp_try_send(struct qn_qp *qp, const void *msg, size_t len)
{
    if (__builtin_expect(qp->ops->try_send == NULL, 0)) {
        return qn_qp_try_send_staged(qp, msg, len);
    }
    qn_mark(QN_MARK_SEND);
    return qp->ops->try_send(qp, msg, len);
}

/** peek + copy + release. *len filled. QN_EMSGSIZE (message kept) if it is
 *  longer than cap; QN_EAGAIN none. */
int qn_qp_try_recv(struct qn_qp *qp, void *buf, size_t cap, size_t *len);

/** As try_send / try_recv, waiting on the own doorbell until `deadline` (ns,
 *  monotonic). Additional error: QN_ETIMEDOUT. Send also flushes; like
 *  try_send it is content when the message was taken. */
int qn_qp_send(struct qn_qp *qp, const void *msg, size_t len,
               qn_time_t deadline);
int qn_qp_recv(struct qn_qp *qp, void *buf, size_t cap, size_t *len,
               qn_time_t deadline);

/** Flush until nothing is staged, waiting for the peer to make room: before an
 *  end is closed after a long message. @return QN_OK or QN_ETIMEDOUT. */
int qn_qp_drain(struct qn_qp *qp, qn_time_t deadline);

#endif
