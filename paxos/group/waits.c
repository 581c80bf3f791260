/*
 * The queue of waits.h. Deadlines are in no order, so the earliest is kept, and
 * all are looked at when it has come. Callers give few different ones.
 */
#include "paxos/group/waits.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

static struct qn_wait *at(const struct qn_waits *w, uint64_t i)
{
    return &w->ring[i & w->mask];
}

int qn_waits_init(struct qn_waits *w, uint32_t max, size_t bytes_max, int late,
                  const struct qn_alloc *alloc)
{
    const struct qn_alloc *a = qn_alloc_or_malloc(alloc);
    QN_ASSERT(max >= 1);
    uint64_t slots = 1;
    while (slots < max) {
        slots *= 2;
    }
    struct qn_wait *ring = qn_alloc_zeroed(a, slots * sizeof *ring);
    if (ring == NULL) {
        return QN_ENOMEM;
    }
    *w = (struct qn_waits){.ring = ring,
                           .alloc = a,
                           .max = max,
                           .mask = slots - 1,
                           .bytes_max = bytes_max,
                           .late = late,
                           .next = QN_TIME_NEVER};
    return QN_OK;
}

void qn_waits_fini(struct qn_waits *w)
{
    if (w->ring != NULL) {
        qn_alloc_free(w->alloc, w->ring);
    }
    *w = (struct qn_waits){0};
}

void qn_waits_number(struct qn_waits *w, uint64_t count, uint64_t number)
{
    QN_ASSERT(count <= qn_waits_open(w));
    for (uint64_t i = w->tail - count; i != w->tail; i++) {
        at(w, i)->number = number;
    }
}

static void end_oldest(struct qn_waits *w, int err, uint64_t result)
{
    struct qn_wait *x = at(w, w->open++);
    QN_ASSERT(w->bytes >= x->bytes);
    w->bytes -= x->bytes;
    x->err = err;
    x->result = result;
}

void qn_waits_result(struct qn_waits *w, uint64_t number, uint64_t result)
{
    QN_ASSERT(w->open != w->tail);
    QN_ASSERT(at(w, w->open)->number == number);
    end_oldest(w, QN_OK, result);
}

void qn_waits_upto(struct qn_waits *w, uint64_t number, int err)
{
    while (w->open != w->tail && at(w, w->open)->number <= number) {
        end_oldest(w, err, 0);
    }
}

static void expire(struct qn_waits *w, qn_time_t now)
{
    const uint64_t tail = w->tail; /* a callback may add */
    w->next = QN_TIME_NEVER;
    for (uint64_t i = w->open; i != tail; i++) {
        struct qn_wait *x = at(w, i);
        if (x->done != NULL && x->deadline <= now) {
            const struct qn_wait late = *x;
            x->done = NULL;
            late.done(late.ctx, w->late, 0);
        } else if (x->done != NULL) {
            w->next = QN_MIN(w->next, x->deadline);
        }
    }
}

/* Its place is free from here on: it is not read after its callback. One that
 * is alone has always the first place, which is in the cache. */
static const struct qn_wait *next_told(struct qn_waits *w)
{
    const struct qn_wait *x = at(w, w->head++);
    if (w->head == w->tail) {
        w->head = w->open = w->tail = 0;
    }
    return x;
}

bool qn_waits_deliver(struct qn_waits *w, qn_time_t now)
{
    const uint64_t ended = w->open - w->head;
    for (uint64_t left = ended; left > 0; left--) {
        const struct qn_wait *x = next_told(w);
        if (x->done != NULL) {
            x->done(x->ctx, x->err, x->result);
        }
    }
    if (w->next <= now) {
        expire(w, now);
    }
    return ended != 0;
}
