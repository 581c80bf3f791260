/*
 * The leader's queue: see queue.h.
 *
 * A draft without references is open as it is, at no cost: small commands go
 * this way. A draft with references is copied into a refbuf of its final size,
 * in as many steps as its bytes need. The draft stays until the copy is whole,
 * so that nothing is lost if there is no memory or a run has to be dropped.
 *
 * Commands of one incarnation are dropped together: every later command of it
 * in the queue would have a gap before it.
 */
#include "paxos/machine/queue.h"

#include <string.h>

#include "core/base/assert.h"

void qn_queue_init(struct qn_queue *q, struct qn_draft *draft, uint32_t size)
{
    QN_ASSERT(qn_is_pow2(size));
    *q = (struct qn_queue){.draft = draft, .mask = size - 1};
}

static struct qn_draft *at(const struct qn_queue *q, uint32_t i)
{
    return &q->draft[i & q->mask];
}

static void opening_drop(struct qn_queue *q)
{
    qn_refbuf_unref(q->opening.whole);
    q->opening = (struct qn_opening){.whole = NULL};
}

void qn_queue_clear(struct qn_queue *q)
{
    opening_drop(q);
    for (; q->head != q->tail; q->head++) {
        qn_refbuf_unref(at(q, q->head)->batch);
    }
    q->commands = 0;
    q->closed = false;
}

/* ---- add ----------------------------------------------------------------- */

int qn_queue_check(const struct qn_params *p, const struct qn_uploads *u,
                   qn_node_t origin, uint64_t inc, struct qn_slice commands,
                   struct qn_wants *out)
{
    struct qn_wanted w;
    if (qn_wanted_check(commands, out) != QN_OK || out->count > p->queue ||
        (out->refers && u == NULL)) {
        return QN_ECORRUPT;
    }
    if (!out->refers) {
        return QN_OK;
    }
    const struct qn_arena *a = u->arena(u->ctx, origin, inc);
    bool sane = out->count == 1 || out->bytes <= p->batch_bytes;
    while (a != NULL && sane && qn_wanted_next(&commands, &w)) {
        sane = !w.refers || qn_arena_is_sane(a, &w.place);
    }
    return a == NULL ? QN_ESTALE : sane ? QN_OK : QN_ECORRUPT;
}

static bool tail_takes(const struct qn_queue *q, const struct qn_params *p,
                       const struct qn_command_run *g, uint64_t bytes)
{
    if (qn_queue_empty(q) || (q->closed && q->tail - q->head == 1)) {
        return false;
    }
    const struct qn_draft *d = at(q, q->tail - 1);
    struct qn_slice batch = {d->batch->bytes, d->batch->len};
    return qn_batch_count(batch) + g->count <= p->batch_commands &&
           d->bytes + bytes <= p->batch_bytes;
}

static int draft_begin(struct qn_queue *q, const struct qn_alloc *a, size_t cap)
{
    QN_ASSERT(q->tail - q->head <= q->mask);
    struct qn_refbuf *b = qn_batch_create(a, cap);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    *at(q, q->tail++) = (struct qn_draft){.batch = b, .bytes = b->len};
    return QN_OK;
}

int qn_queue_add(struct qn_queue *q, const struct qn_alloc *a,
                 const struct qn_params *p, const struct qn_command_run *g,
                 const struct qn_wants *w)
{
    bool joins = tail_takes(q, p, g, w->bytes);
    if (!joins && draft_begin(q, a, QN_RUN_HEAD + g->commands.len) != QN_OK) {
        return QN_ENOMEM;
    }
    struct qn_draft *d = at(q, q->tail - 1);
    uint32_t before = d->batch->len;
    int err = qn_batch_add(&d->batch, g);
    QN_ASSERT(joins || err == QN_OK); /* it was made with room for it */
    if (err == QN_OK) {
        uint64_t head = d->batch->len - before - g->commands.len;
        d->bytes += (w->refers ? QN_RUN_HEAD : head) + w->bytes;
        d->refers |= w->refers;
        q->commands += g->count;
        QN_ASSERT(d->bytes >= d->batch->len || d->refers);
        QN_ASSERT(qn_batch_count((struct qn_slice){
                      d->batch->bytes, d->batch->len}) <= q->commands);
    }
    return err;
}

uint64_t qn_queue_bytes(const struct qn_queue *q)
{
    QN_DASSERT(!qn_queue_empty(q));
    return at(q, q->head)->bytes;
}

/* ---- open ---------------------------------------------------------------- */

/** Begin the next run of the draft. @return false: that was all. */
static bool run_begin(struct qn_opening *o, struct qn_slice draft)
{
    struct qn_wants w;
    if (!qn_batch_next(draft, &o->at, &o->run)) {
        return false;
    }
    int err = qn_wanted_check(o->run.commands, &w);
    QN_ASSERT(err == QN_OK); /* checked when it was queued */
    QN_ASSERT(w.count == o->run.count);
    qn_batch_begin(o->whole, &o->run, w.bytes);
    return true;
}

/** Go on with the first command that is left of the run, which is not empty.
 *  @return QN_OK; QN_ESTALE. */
static int command_copy(struct qn_opening *o, const struct qn_uploads *u,
                        size_t *most)
{
    struct qn_slice rest = o->run.commands;
    struct qn_wanted w;
    qn_wanted_next(&rest, &w);
    if (o->done == 0) {
        qn_batch_put(o->whole, w.place.len);
    }
    QN_ASSERT(o->done <= w.place.len);
    size_t n = QN_MIN((size_t)(w.place.len - o->done), *most);
    QN_ASSERT(n <= o->whole->cap - o->whole->len);
    uint8_t *to = o->whole->bytes + o->whole->len;
    if (w.refers) {
        const struct qn_arena *from =
            u->arena(u->ctx, o->run.origin, o->run.inc);
        if (from == NULL ||
            qn_arena_pull(from, &w.place, o->done, to, n) != QN_OK) {
            return QN_ESTALE;
        }
    } else if (n != 0) {
        memcpy(to, w.bytes.data + o->done, n);
    }
    o->whole->len += (uint32_t)n;
    o->done += n;
    *most -= n;
    if (o->done == w.place.len) {
        o->done = 0;
        o->run.commands = rest;
    }
    return QN_OK;
}

/** All commands of that incarnation are dropped: the first of them may be in
 *  an earlier run of the same draft. */
static struct qn_command_run first_of_life(struct qn_slice draft,
                                           const struct qn_command_run *lost)
{
    struct qn_command_run g;
    uint32_t i = 0;
    while (qn_batch_next(draft, &i, &g)) {
        if (g.origin == lost->origin && g.inc == lost->inc) {
            return g;
        }
    }
    return *lost;
}

static int open_begin(struct qn_queue *q, const struct qn_alloc *a)
{
    size_t bytes = at(q, q->head)->bytes - QN_BATCH_HEAD + QN_RUN_HEAD;
    q->opening = (struct qn_opening){.whole = qn_batch_create(a, bytes)};
    return q->opening.whole != NULL ? QN_OK : QN_ENOMEM;
}

int64_t qn_queue_open(struct qn_queue *q, const struct qn_alloc *a,
                      const struct qn_uploads *u, size_t most,
                      struct qn_command_run *lost)
{
    struct qn_draft *d = at(q, q->head);
    struct qn_opening *o = &q->opening;
    struct qn_slice draft = {d->batch->bytes, d->batch->len};
    q->closed = true;
    if (!d->refers) {
        return 0;
    }
    if (o->whole == NULL && open_begin(q, a) != QN_OK) {
        return QN_ENOMEM;
    }
    while (o->run.commands.len != 0 || run_begin(o, draft)) {
        if (most == 0) {
            return (int64_t)QN_MAX(d->bytes - o->whole->len, UINT64_C(1));
        }
        if (command_copy(o, u, &most) != QN_OK) {
            *lost = first_of_life(draft, &o->run);
            return QN_ESTALE;
        }
    }
    struct qn_slice whole = {o->whole->bytes, o->whole->len};
    QN_ASSERT(whole.len <= d->bytes);
    QN_ASSERT(qn_batch_count(whole) == qn_batch_count(draft));
    qn_refbuf_unref(d->batch);
    *d = (struct qn_draft){.batch = o->whole, .bytes = o->whole->len};
    *o = (struct qn_opening){.whole = NULL};
    return 0;
}

struct qn_refbuf *qn_queue_head(const struct qn_queue *q)
{
    QN_ASSERT(q->closed);
    QN_ASSERT(!at(q, q->head)->refers); /* what is decided is whole */
    return at(q, q->head)->batch;
}

struct qn_refbuf *qn_queue_take(struct qn_queue *q)
{
    QN_ASSERT(!at(q, q->head)->refers);
    struct qn_refbuf *b = at(q, q->head++)->batch;
    uint32_t count = qn_batch_count((struct qn_slice){b->bytes, b->len});
    QN_ASSERT(q->tail - q->head <= q->mask);
    QN_ASSERT(count <= q->commands);
    q->commands -= count;
    q->closed = false;
    return b;
}

/* ---- drop ---------------------------------------------------------------- */

void qn_queue_drop(struct qn_queue *q, qn_node_t origin, uint64_t inc)
{
    uint32_t to = q->head;
    opening_drop(q);
    for (uint32_t i = q->head; i != q->tail; i++) {
        struct qn_draft d = *at(q, i);
        q->commands -= qn_batch_strip(d.batch, origin, inc);
        if (d.batch->len != QN_BATCH_HEAD) {
            *at(q, to++) = d;
        } else {
            qn_refbuf_unref(d.batch);
        }
    }
    QN_ASSERT(to - q->head <= q->tail - q->head);
    QN_ASSERT(q->commands != 0 || to == q->head);
    q->tail = to;
    q->closed = false;
}
