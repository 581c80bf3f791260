/*
 * WAIT (wait_queue.h). A list without order: each step looks at all entries,
 * since what they wait for is a count of peers at a slot, and few wait.
 */
#include "kvs/frontend/wait_queue.h"

#include "core/base/assert.h"

/* As good as never, if the sum is beyond what a time can say. */
static qn_time_t deadline(uint64_t ms, qn_time_t now)
{
    bool never = ms == 0 || ms > (QN_TIME_NEVER - now) / QN_MS;
    return never ? QN_TIME_NEVER : now + ms * QN_MS;
}

void qn_wait_queue_add(struct qn_wait_queue *q, struct qn_waiter *w,
                       qn_slot_t slot, int64_t want, uint64_t ms, qn_time_t now)
{
    QN_ASSERT(!w->queued);
    QN_ASSERT(!w->cancelled);
    QN_ASSERT((q->first == NULL) == (q->count == 0));
    *w = (struct qn_waiter){.next = q->first,
                            .queued = true,
                            .slot = slot,
                            .want = want,
                            .until = deadline(ms, now)};
    if (q->first == NULL) {
        q->next_check = now + QN_WAIT_CHECK_INTERVAL;
    }
    q->first = w;
    q->count++;
}

bool qn_wait_queue_check(struct qn_wait_queue *q, qn_time_t now)
{
    if (q->first == NULL || now < q->next_check) {
        return false;
    }
    q->next_check = now + QN_WAIT_CHECK_INTERVAL;
    return true;
}

static int64_t peers_at(const struct qn_wait_view *v, qn_slot_t slot)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < v->peers; i++) {
        n += v->applied[i] >= slot;
    }
    return n;
}

static bool is_over(const struct qn_waiter *w, const struct qn_wait_view *v,
                    qn_time_t now)
{
    return w->cancelled || w->ended || w->have >= w->want || now >= w->until ||
           v->draining;
}

struct qn_waiter *qn_wait_queue_step(struct qn_wait_queue *q,
                                     const struct qn_wait_view *v,
                                     qn_time_t now)
{
    struct qn_waiter *over = NULL;
    struct qn_waiter **over_end = &over;
    struct qn_waiter **at = &q->first;
    uint32_t seen = 0, left = 0;
    QN_ASSERT(v->peers < QN_NODES_MAX);
    while (*at != NULL) {
        struct qn_waiter *w = *at;
        QN_ASSERT(w->queued);
        seen++;
        w->have = peers_at(v, w->slot);
        if (is_over(w, v, now)) {
            *at = w->next;
            w->queued = false;
            w->next = NULL;
            *over_end = w;
            over_end = &w->next;
        } else {
            left++;
            at = &w->next;
        }
    }
    QN_ASSERT(seen == q->count); /* each is in the list once */
    q->count = left;
    return over;
}

void qn_wait_queue_clear(struct qn_wait_queue *q)
{
    while (q->first != NULL) {
        struct qn_waiter *w = q->first;
        q->first = w->next;
        *w = (struct qn_waiter){.cancelled = w->cancelled};
        QN_ASSERT(q->count > 0);
        q->count--;
    }
    QN_ASSERT(q->count == 0);
}
