#ifndef QN_FRAMED_H
#define QN_FRAMED_H

/**
 * A queuepair whose messages travel in frames, but for how one frame gets to
 * the other side. That is its backend's, a struct qn_framed_wire: cells,
 * whether one is free, that room is wanted. Everything else that core/qp.h asks
 * for is here: messages longer than a cell, staging, the two views, what is
 * checked, deaths.
 *
 *     struct x {
 *         struct qn_framed q;   first
 *         ...
 *     };
 *     static const struct qn_framed_wire wire = {...};
 *     QN_FRAMED_OPS(ops, wire, "slots");
 *     open: x = qn_framed_alloc(sizeof *x, o, &ops, &limits); ...
 *
 * A cell carries a kind and a length (0 .. 255 each) and its payload. The
 * payload of a FIRST begins with the length of the message (32 bits), so
 * limits.first is 4 bytes less than limits.any.
 *
 * A message is taken when one cell is free. What does not fit is staged, and
 * pushed by later calls; nothing is sent behind it.
 *
 * The functions are inlined with a constant wire, so that a call of it costs
 * nothing. Threads: those of core/qp.h; an end belongs to one thread.
 */

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/frames.h"

struct qn_framed {
    struct qn_qp qp;
    int status; /* QN_OK, QN_EPEERDEAD or QN_ECORRUPT */
    struct qn_frame_limits limits;
    struct qn_qp_traffic traffic; /* in cells */
    struct qn_doorbell_handle *ringer;
    uint8_t *stage, *whole; /* [limits.msg] */
    /* send */
    uint32_t free;           /* cells, as far as known */
    uint32_t reserved;       /* bytes of the pending reserve */
    uint32_t staged, pushed; /* bytes of the staged message; of them in cells */
    struct qn_course sent;   /* by frames of the user */
    bool starved;            /* the last try found no room */
    bool wanted;             /* as the peer was told */
    bool unrung;             /* something was sent since the last ring */
    /* receive */
    struct qn_course got;
    struct qn_frame held; /* what was looked at */
    bool peeked;          /* and shown */
    bool by_frames;       /* the message inside is read by frames */
    bool ready;           /* a long message lies in `whole` */
    bool untold;          /* read something, did not look at the peer's want */
};

/** What a backend does. All members are set; none blocks. */
struct qn_framed_wire {
    /** Look again for free cells, and add them to q->free: those that cost one
     *  look, or all. */
    void (*find_room)(struct qn_framed *q, bool all);
    /** Where the payload of the next cell goes; q->free is not 0. */
    void *(*payload)(struct qn_framed *q);
    /** Announce that cell, whose payload is written. */
    void (*publish)(struct qn_framed *q, uint32_t kind, uint32_t len);
    /** Is the next cell there? Fills kind, data and len, unchecked, but `len`
     *  bytes of data can be read if len <= limits.any. */
    bool (*look)(struct qn_framed *q, struct qn_frame *f);
    /** The cell that was looked at was read. */
    void (*give_back)(struct qn_framed *q);
    /** Tell the peer whether this end waits for room. When it returns, room
     *  that the peer makes is found by find_room, or the peer finds this. */
    void (*want)(struct qn_framed *q, bool want);
    /** Does the peer wait for room? The other half of want. */
    bool (*peer_wants)(struct qn_framed *q);
};

/** An end of `bytes`, which begins with struct qn_framed, zeroed but for that,
 *  on a line of its own, and with its buffers. Freed by its ops' close.
 *  @return NULL: no memory. */
void *qn_framed_alloc(size_t bytes, const struct qn_qp_opts *o,
                      const struct qn_qp_ops *ops, uint32_t first,
                      uint32_t any);

static inline struct qn_framed *qn_framed_of(struct qn_qp *qp)
{
    return (struct qn_framed *)(void *)qp; /* qp is its first member */
}

/** The peer broke the rules: every later call says so. */
static inline int qn_framed_corrupt(struct qn_framed *q)
{
    q->status = QN_ECORRUPT;
    q->got = (struct qn_course){0};
    q->ready = q->by_frames = false;
    q->staged = 0;
    return QN_ECORRUPT;
}

/* ---- send ---------------------------------------------------------------- */

static inline void qn_framed_publish(struct qn_framed *q,
                                     const struct qn_framed_wire *w,
                                     uint32_t kind, uint32_t len)
{
    w->publish(q, kind, len);
    q->free--;
    q->traffic.sent++;
    q->unrung = true;
}

static inline void qn_framed_put(struct qn_framed *q,
                                 const struct qn_framed_wire *w,
                                 const struct qn_frame *f)
{
    uint8_t *to = w->payload(q);
    if (f->kind == QN_FRAME_FIRST) {
        qn_copy_out(to, &f->total, sizeof f->total); /* announced below */
        to += sizeof f->total;
    }
    qn_copy_out_line(to, f->data, f->len); /* announced below */
    qn_framed_publish(q, w, f->kind, f->len);
}

/* As much of the staged message, which is `msg`, as there is room for. */
static inline void qn_framed_push(struct qn_framed *q,
                                  const struct qn_framed_wire *w,
                                  const uint8_t *msg)
{
    if (q->staged == 0) {
        return;
    }
    w->find_room(q, true);
    while (q->pushed < q->staged && q->free > 0) {
        const struct qn_frame f =
            qn_frame_cut(msg, q->staged, q->pushed, &q->limits);
        qn_framed_put(q, w, &f);
        q->pushed += f.len;
    }
    if (q->pushed == q->staged) {
        q->staged = 0;
    }
}

/* @return QN_OK: a cell is free, and nothing stands before a message. */
static inline int qn_framed_ready(struct qn_framed *q,
                                  const struct qn_framed_wire *w)
{
    qn_framed_push(q, w, q->stage);
    if (q->status == QN_OK && q->staged == 0 && q->free == 0) {
        w->find_room(q, false);
    }
    if (q->status != QN_OK) {
        return q->status;
    }
    q->starved = q->staged != 0 || q->free == 0;
    return q->starved ? QN_EAGAIN : QN_OK;
}

static inline int qn_framed_ready_for(struct qn_framed *q,
                                      const struct qn_framed_wire *w,
                                      size_t len)
{
    if (len > q->limits.msg) {
        return QN_EMSGSIZE;
    }
    return q->sent.inside ? QN_EAGAIN : qn_framed_ready(q, w);
}

static inline void qn_framed_send_staged(struct qn_framed *q,
                                         const struct qn_framed_wire *w,
                                         const uint8_t *msg, uint32_t len)
{
    q->staged = len;
    q->pushed = 0;
    qn_framed_push(q, w, msg);
}

static inline int qn_framed_try_reserve(struct qn_framed *q,
                                        const struct qn_framed_wire *w,
                                        size_t len, void **buf)
{
    int rc = qn_framed_ready_for(q, w, len);
    if (rc == QN_OK) {
        q->reserved = (uint32_t)len;
        *buf = len <= q->limits.any ? w->payload(q) : q->stage;
    }
    return rc;
}

static inline void qn_framed_commit(struct qn_framed *q,
                                    const struct qn_framed_wire *w, size_t len)
{
    QN_ASSERT(len <= q->reserved);
    if (q->reserved > q->limits.any && len > 0) {
        qn_framed_send_staged(q, w, q->stage, (uint32_t)len);
    } else {
        qn_touch_out(w->payload(q), len); /* announced below */
        qn_framed_publish(q, w, QN_FRAME_ONLY, (uint32_t)len);
    }
    q->reserved = 0;
}

static inline int qn_framed_try_send(struct qn_framed *q,
                                     const struct qn_framed_wire *w,
                                     const void *msg, size_t len)
{
    int rc = qn_framed_ready_for(q, w, len);
    if (rc == QN_OK && len <= q->limits.any) {
        const struct qn_frame f = {
            .kind = QN_FRAME_ONLY, .data = msg, .len = (uint32_t)len};
        qn_framed_put(q, w, &f);
    } else if (rc == QN_OK) {
        qn_framed_send_staged(q, w, msg, (uint32_t)len);
        memcpy(q->stage, msg, q->staged); /* what could not be pushed */
    }
    return rc;
}

static inline int qn_framed_try_send_frame(struct qn_framed *q,
                                           const struct qn_framed_wire *w,
                                           const struct qn_frame *f)
{
    int rc = qn_course_fits(&q->sent, f, &q->limits) ? qn_framed_ready(q, w)
                                                     : QN_EINVAL;
    if (rc == QN_OK) {
        qn_framed_put(q, w, f);
        qn_course_advance(&q->sent, f);
    }
    return rc;
}

static inline uint32_t qn_framed_room(struct qn_framed *q,
                                      const struct qn_framed_wire *w)
{
    if (qn_framed_ready(q, w) != QN_OK) {
        return 0;
    }
    w->find_room(q, true);
    return q->free;
}

static inline void qn_framed_ring(const struct qn_framed *q)
{
    if (q->ringer != NULL && q->status == QN_OK) {
        qn_doorbell_ring(q->ringer);
    }
}

/* Room was made that the peer was not told of; does it wait for it? */
static inline bool qn_framed_owes(struct qn_framed *q,
                                  const struct qn_framed_wire *w)
{
    bool untold = q->untold;
    q->untold = false;
    return untold && w->peer_wants(q);
}

static inline void qn_framed_want(struct qn_framed *q,
                                  const struct qn_framed_wire *w, bool want)
{
    if (q->wanted != want) {
        q->wanted = want;
        w->want(q, want);
    }
}

static inline bool qn_framed_flush(struct qn_framed *q,
                                   const struct qn_framed_wire *w)
{
    if (q->status == QN_ECORRUPT) {
        return false;
    }
    bool ring = qn_framed_owes(q, w);
    if (q->staged != 0 || q->starved) {
        qn_framed_want(q, w, true);
        qn_framed_push(q, w, q->stage);
        w->find_room(q, true);
        /* Behind a staged message there is no room, whatever is free: the next
         * flush may fill the lane with it. */
        q->starved = q->starved && (q->staged != 0 || q->free == 0);
    }
    qn_framed_want(q, w, q->staged != 0 || q->starved);
    if (q->unrung || ring) {
        q->unrung = false;
        qn_framed_ring(q);
    }
    return q->staged != 0;
}

/* ---- receive ------------------------------------------------------------- */

/* Look at the next frame: `held`. @return QN_OK: there, and it may follow. */
static inline int qn_framed_look(struct qn_framed *q,
                                 const struct qn_framed_wire *w)
{
    struct qn_frame *f = &q->held;
    if (q->status == QN_ECORRUPT || !w->look(q, f)) {
        return q->status != QN_OK ? q->status : QN_EAGAIN;
    }
    f->total = f->kind == QN_FRAME_ONLY ? f->len : q->got.total;
    if (f->kind == QN_FRAME_FIRST) {
        qn_copy_in(&f->total, f->data, sizeof f->total); /* found by look */
        f->data = (const uint8_t *)f->data + sizeof f->total;
    }
    return qn_course_fits(&q->got, f, &q->limits) ? QN_OK
                                                  : qn_framed_corrupt(q);
}

/* Give the cell of `held` back. */
static inline void qn_framed_consume(struct qn_framed *q,
                                     const struct qn_framed_wire *w)
{
    if (q->status != QN_ECORRUPT) {
        qn_course_advance(&q->got, &q->held);
        w->give_back(q);
        q->traffic.received++;
        q->untold = true;
    }
}

/* A look that consumes may make the room for which the sender sleeps, and may
 * be the last before this node sleeps: then it tells the sender itself. */
static inline int qn_framed_peek(struct qn_framed *q,
                                 const struct qn_framed_wire *w,
                                 const void **msg, size_t *len)
{
    bool took = false;
    int rc = QN_OK;
    QN_ASSERT(!q->by_frames); /* the two views are not mixed in a message */
    while (!q->ready && (rc = qn_framed_look(q, w)) == QN_OK &&
           q->held.kind != QN_FRAME_ONLY) {
        uint32_t at = q->held.kind == QN_FRAME_FIRST ? 0 : q->got.done;
        qn_copy_in(q->whole + at, q->held.data, q->held.len); /* by look */
        q->ready = q->held.kind == QN_FRAME_LAST;
        qn_framed_consume(q, w);
        took = true;
    }
    if (rc == QN_EAGAIN && took && qn_framed_owes(q, w)) {
        qn_framed_ring(q);
    }
    if (rc == QN_OK) {
        *msg = q->ready ? q->whole : q->held.data;
        *len = q->ready ? q->got.total : q->held.len;
        qn_touch_in(*msg, *len); /* found by look */
    }
    q->peeked = rc == QN_OK;
    return rc;
}

static inline void qn_framed_release(struct qn_framed *q,
                                     const struct qn_framed_wire *w)
{
    QN_ASSERT(q->peeked);
    q->peeked = false;
    if (q->ready) {
        q->ready = false; /* its cells were given back on the way */
    } else {
        qn_framed_consume(q, w);
    }
}

static inline int qn_framed_peek_frame(struct qn_framed *q,
                                       const struct qn_framed_wire *w,
                                       struct qn_frame *f)
{
    QN_ASSERT(!q->ready && q->by_frames == q->got.inside);
    int rc = qn_framed_look(q, w);
    q->peeked = rc == QN_OK;
    if (q->peeked) {
        *f = q->held;
    }
    return rc;
}

static inline void qn_framed_release_frame(struct qn_framed *q,
                                           const struct qn_framed_wire *w)
{
    QN_ASSERT(q->peeked);
    q->peeked = false;
    qn_framed_consume(q, w);
    q->by_frames = q->got.inside;
}

/* ---- the rest of the operations, which need no wire ---------------------- */

void qn_framed_down(struct qn_qp *qp);
void qn_framed_close(struct qn_qp *qp);
struct qn_qp_traffic qn_framed_traffic(const struct qn_qp *qp);

/** Define `ops`, the operations of a backend with that constant wire, which
 *  moves `what`. */
#define QN_FRAMED_OPS(ops, wire, what)                                         \
    static int ops##_try_reserve(struct qn_qp *qp, size_t len, void **buf)     \
    {                                                                          \
        return qn_framed_try_reserve(qn_framed_of(qp), &(wire), len, buf);     \
    }                                                                          \
    static void ops##_commit(struct qn_qp *qp, size_t len)                     \
    {                                                                          \
        qn_framed_commit(qn_framed_of(qp), &(wire), len);                      \
    }                                                                          \
    static int ops##_peek(struct qn_qp *qp, const void **msg, size_t *len)     \
    {                                                                          \
        return qn_framed_peek(qn_framed_of(qp), &(wire), msg, len);            \
    }                                                                          \
    static void ops##_release(struct qn_qp *qp)                                \
    {                                                                          \
        qn_framed_release(qn_framed_of(qp), &(wire));                          \
    }                                                                          \
    static int ops##_peek_frame(struct qn_qp *qp, struct qn_frame *f)          \
    {                                                                          \
        return qn_framed_peek_frame(qn_framed_of(qp), &(wire), f);             \
    }                                                                          \
    static void ops##_release_frame(struct qn_qp *qp)                          \
    {                                                                          \
        qn_framed_release_frame(qn_framed_of(qp), &(wire));                    \
    }                                                                          \
    static int ops##_try_send_frame(struct qn_qp *qp,                          \
                                    const struct qn_frame *f)                  \
    {                                                                          \
        return qn_framed_try_send_frame(qn_framed_of(qp), &(wire), f);         \
    }                                                                          \
    static bool ops##_flush(struct qn_qp *qp)                                  \
    {                                                                          \
        return qn_framed_flush(qn_framed_of(qp), &(wire));                     \
    }                                                                          \
    static uint32_t ops##_room(struct qn_qp *qp)                               \
    {                                                                          \
        return qn_framed_room(qn_framed_of(qp), &(wire));                      \
    }                                                                          \
    static int ops##_try_send(struct qn_qp *qp, const void *msg, size_t len)   \
    {                                                                          \
        return qn_framed_try_send(qn_framed_of(qp), &(wire), msg, len);        \
    }                                                                          \
    static const struct qn_qp_ops ops = {                                      \
        .unit = what,                                                          \
        .try_reserve = ops##_try_reserve,                                      \
        .commit = ops##_commit,                                                \
        .peek = ops##_peek,                                                    \
        .release = ops##_release,                                              \
        .peek_frame = ops##_peek_frame,                                        \
        .release_frame = ops##_release_frame,                                  \
        .try_send_frame = ops##_try_send_frame,                                \
        .flush = ops##_flush,                                                  \
        .room = ops##_room,                                                    \
        .down = qn_framed_down,                                                \
        .close = qn_framed_close,                                              \
        .traffic = qn_framed_traffic,                                          \
        .try_send = ops##_try_send,                                            \
    }

#endif
