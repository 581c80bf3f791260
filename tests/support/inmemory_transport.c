/*
 * Every send goes through `put`, so that limit, capacity and count apply to
 * messages and frames alike. Acknowledgements are immediate: a released cell is
 * free. There is no fast path: a message is staged, then pushed.
 */
#include "tests/support/inmemory_transport.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"

struct cell {
    enum qn_frame_kind kind;
    uint32_t len, total;
    uint8_t *bytes;
};

struct fifo {
    uint32_t cells, cell_bytes;
    uint64_t head, tail; /* released, sent */
    struct cell *cell;   /* [cells] */
};

struct inmemory_qp {
    struct qn_qp qp;
    struct inmemory_qp *peer; /* NULL after close */
    struct fifo *tx, *rx;
    bool down;
    uint32_t allow;
    bool tx_open; /* within a message sent as frames */
    bool reserved, staged;
    uint32_t out_len, out_at;
    bool rx_whole;           /* a message is being assembled */
    bool rx_only;            /* a message of one cell is shown in place */
    bool rx_frames, rx_held; /* a view is in use: peeked and not released */
    uint32_t in_len, in_total;
    uint32_t msg_max;
    uint8_t *out; /* [msg_max] */
    uint8_t *in;  /* [msg_max] */
};

static struct inmemory_qp *of(const struct qn_qp *qp)
{
    return QN_CONTAINER_OF(qp, struct inmemory_qp, qp);
}

static struct fifo *fifo_new(uint32_t cells, uint32_t cell_bytes)
{
    struct fifo *f = calloc(1, sizeof *f);
    QN_ASSERT(f != NULL && cells >= 1 && cell_bytes >= 1 &&
              cell_bytes <= QN_INPLACE_MAX);
    *f = (struct fifo){.cells = cells, .cell_bytes = cell_bytes};
    f->cell = calloc(cells, sizeof *f->cell);
    QN_ASSERT(f->cell != NULL);
    for (uint32_t i = 0; i < cells; i++) {
        f->cell[i].bytes = malloc(cell_bytes);
        QN_ASSERT(f->cell[i].bytes != NULL);
    }
    return f;
}

static void fifo_free(struct fifo *f)
{
    for (uint32_t i = 0; i < f->cells; i++) {
        free(f->cell[i].bytes);
    }
    free(f->cell);
    free(f);
}

static uint32_t free_cells(const struct inmemory_qp *q)
{
    return QN_MIN(q->allow,
                  q->tx->cells - (uint32_t)(q->tx->tail - q->tx->head));
}

static bool put(struct inmemory_qp *q, enum qn_frame_kind kind,
                const void *data, uint32_t len, uint32_t total)
{
    QN_ASSERT(len <= q->tx->cell_bytes);
    if (free_cells(q) == 0) {
        return false;
    }
    q->allow -= q->allow != INMEMORY_UNLIMITED ? 1 : 0;
    struct cell *c = &q->tx->cell[q->tx->tail++ % q->tx->cells];
    c->kind = kind;
    c->len = len;
    c->total = total;
    if (len > 0) {
        memcpy(c->bytes, data, len);
    }
    return true;
}

/* @return true if nothing is staged any more. */
static bool push(struct inmemory_qp *q)
{
    while (q->staged) {
        uint32_t left = q->out_len - q->out_at;
        uint32_t len = QN_MIN(left, q->tx->cell_bytes);
        bool first = q->out_at == 0;
        enum qn_frame_kind kind =
            len == left ? (first ? QN_FRAME_ONLY : QN_FRAME_LAST)
                        : (first ? QN_FRAME_FIRST : QN_FRAME_MORE);
        if (!put(q, kind, q->out + q->out_at, len, q->out_len)) {
            return false;
        }
        q->out_at += len;
        q->staged = q->out_at < q->out_len;
    }
    return true;
}

static int try_reserve(struct qn_qp *qp, size_t len, void **buf)
{
    struct inmemory_qp *q = of(qp);
    if (len > q->msg_max) {
        return QN_EMSGSIZE;
    }
    if (q->down) {
        return QN_EPEERDEAD;
    }
    if (q->tx_open || !push(q) || free_cells(q) == 0) {
        return QN_EAGAIN;
    }
    q->reserved = true;
    q->out_len = (uint32_t)len;
    *buf = q->out;
    return QN_OK;
}

static void commit(struct qn_qp *qp, size_t len)
{
    struct inmemory_qp *q = of(qp);
    QN_ASSERT(q->reserved && len <= q->out_len);
    q->reserved = false;
    q->staged = true;
    q->out_len = (uint32_t)len;
    q->out_at = 0;
    push(q);
}

static int try_send_frame(struct qn_qp *qp, const struct qn_frame *f)
{
    struct inmemory_qp *q = of(qp);
    bool begins = f->kind == QN_FRAME_ONLY || f->kind == QN_FRAME_FIRST;
    QN_ASSERT(begins != q->tx_open && f->total <= q->msg_max);
    if (q->down) {
        return QN_EPEERDEAD;
    }
    if (!push(q) || !put(q, f->kind, f->data, f->len, f->total)) {
        return QN_EAGAIN;
    }
    q->tx_open = f->kind == QN_FRAME_FIRST || f->kind == QN_FRAME_MORE;
    return QN_OK;
}

/* The oldest cell, NULL if none. */
static struct cell *front(struct inmemory_qp *q)
{
    struct fifo *f = q->rx;
    return f->head == f->tail ? NULL : &f->cell[f->head % f->cells];
}

/* Takes one cell of a longer message into `in`. */
static void assemble(struct inmemory_qp *q, const struct cell *c)
{
    if (c->kind == QN_FRAME_FIRST) {
        q->in_len = 0;
        q->in_total = c->total;
        QN_ASSERT(q->in_total <= q->msg_max);
    }
    QN_ASSERT(q->in_len + c->len <= q->in_total);
    memcpy(q->in + q->in_len, c->bytes, c->len);
    q->in_len += c->len;
    q->rx_whole = c->kind == QN_FRAME_LAST;
    QN_ASSERT(!q->rx_whole || q->in_len == q->in_total);
    q->rx->head++;
}

static int peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    struct inmemory_qp *q = of(qp);
    QN_ASSERT(!q->rx_frames);
    struct cell *c;
    while (!q->rx_whole && (c = front(q)) != NULL) {
        if (c->kind == QN_FRAME_ONLY) {
            q->rx_only = q->rx_held = true;
            *msg = c->bytes;
            *len = c->len;
            return QN_OK;
        }
        assemble(q, c);
    }
    if (!q->rx_whole) {
        return q->down ? QN_EPEERDEAD : QN_EAGAIN;
    }
    q->rx_held = true;
    *msg = q->in;
    *len = q->in_len;
    return QN_OK;
}

static void release(struct qn_qp *qp)
{
    struct inmemory_qp *q = of(qp);
    QN_ASSERT((q->rx_whole || q->rx_only) && q->rx_held);
    q->rx->head += q->rx_only ? 1 : 0;
    q->rx_whole = q->rx_only = q->rx_held = false;
}

static int peek_frame(struct qn_qp *qp, struct qn_frame *f)
{
    struct inmemory_qp *q = of(qp);
    QN_ASSERT(!q->rx_whole);
    q->rx_only = false;
    const struct cell *c = front(q);
    if (c == NULL) {
        return q->down ? QN_EPEERDEAD : QN_EAGAIN;
    }
    *f = (struct qn_frame){c->kind, c->bytes, c->len, c->total};
    q->rx_held = true;
    return QN_OK;
}

static void release_frame(struct qn_qp *qp)
{
    struct inmemory_qp *q = of(qp);
    QN_ASSERT(q->rx_held);
    enum qn_frame_kind kind = front(q)->kind;
    q->rx_frames = kind == QN_FRAME_FIRST || kind == QN_FRAME_MORE;
    q->rx_held = false;
    q->rx->head++;
}

static bool flush(struct qn_qp *qp)
{
    return !push(of(qp));
}

static uint32_t room(struct qn_qp *qp)
{
    struct inmemory_qp *q = of(qp);
    return q->down || !push(q) ? 0 : free_cells(q);
}

static void down(struct qn_qp *qp)
{
    of(qp)->down = true;
}

static void close_end(struct qn_qp *qp)
{
    struct inmemory_qp *q = of(qp);
    if (q->peer != NULL) {
        q->peer->peer = NULL;
    } else {
        fifo_free(q->tx);
        fifo_free(q->rx);
    }
    free(q->out);
    free(q->in);
    free(q);
}

static struct qn_qp_traffic traffic(const struct qn_qp *qp)
{
    const struct inmemory_qp *q = (const struct inmemory_qp *)(const void *)qp;
    return (struct qn_qp_traffic){.sent = q->tx->tail, .received = q->rx->head};
}

static const struct qn_qp_ops ops = {
    .unit = "messages",
    .try_reserve = try_reserve,
    .commit = commit,
    .peek = peek,
    .release = release,
    .peek_frame = peek_frame,
    .release_frame = release_frame,
    .try_send_frame = try_send_frame,
    .flush = flush,
    .room = room,
    .down = down,
    .close = close_end,
    .traffic = traffic,
};

static struct inmemory_qp *end_new(uint32_t msg_max)
{
    struct inmemory_qp *q = calloc(1, sizeof *q);
    QN_ASSERT(q != NULL);
    q->qp.ops = &ops;
    q->msg_max = msg_max;
    q->out = malloc(msg_max);
    q->in = malloc(msg_max);
    QN_ASSERT(q->out != NULL && q->in != NULL);
    return q;
}

void inmemory_pair_limited(struct qn_qp *end[2], uint32_t cells,
                           uint32_t cell_bytes, uint32_t msg_max)
{
    struct inmemory_qp *a = end_new(msg_max);
    struct inmemory_qp *b = end_new(msg_max);
    a->tx = b->rx = fifo_new(cells, cell_bytes);
    b->tx = a->rx = fifo_new(cells, cell_bytes);
    a->peer = b;
    b->peer = a;
    a->allow = b->allow = INMEMORY_UNLIMITED;
    end[0] = &a->qp;
    end[1] = &b->qp;
}

void inmemory_pair(struct qn_qp *end[2], uint32_t cells, uint32_t cell_bytes)
{
    inmemory_pair_limited(end, cells, cell_bytes, QN_MSG_MAX);
}

void inmemory_allow(struct qn_qp *end, uint32_t frames)
{
    of(end)->allow = frames;
}

uint64_t inmemory_frames(const struct qn_qp *end)
{
    return of(end)->tx->tail;
}

uint32_t inmemory_used(const struct qn_qp *end)
{
    return (uint32_t)(of(end)->tx->tail - of(end)->tx->head);
}

void inmemory_inject(struct qn_qp *end, const struct qn_frame *f)
{
    bool had_room = put(of(end), f->kind, f->data, f->len, f->total);
    QN_ASSERT(had_room);
}

void inmemory_scribble(struct qn_qp *end)
{
    struct fifo *f = of(end)->tx;
    struct cell *c = &f->cell[f->head % f->cells];
    for (uint32_t i = 0; f->head != f->tail && i < c->len; i++) {
        c->bytes[i] = (uint8_t)~c->bytes[i];
    }
}
