/* The queue of tasks. */
#include "core/tasks/task_queue.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"

_Static_assert(sizeof(struct qn_task_slot) == QN_CACHELINE, "one line each");

int qn_task_queue_init(struct qn_task_queue *q, uint32_t slots)
{
    if (slots < 2 || slots > QN_TASK_QUEUE_MAX || !qn_is_pow2(slots)) {
        return QN_EINVAL;
    }
    q->slot = aligned_alloc(QN_CACHELINE, slots * sizeof *q->slot);
    if (q->slot == NULL) {
        return QN_ENOMEM;
    }
    q->head = 0;
    q->mask = slots - 1;
    /* relaxed: no other thread has the queue yet. */
    qn_store(&q->tail, 0, QN_RELAXED);
    for (uint32_t i = 0; i < slots; i++) {
        qn_store(&q->slot[i].turn, i, QN_RELAXED);
    }
    return QN_OK;
}

void qn_task_queue_fini(struct qn_task_queue *q)
{
    free(q->slot);
    q->slot = NULL;
}

bool qn_task_queue_put(struct qn_task_queue *q, const struct qn_task *task)
{
    /* relaxed, and acquire below with no partner: the tail orders nothing, the
     * turns do. */
    uint64_t at = qn_load(&q->tail, QN_RELAXED);
    for (;;) {
        struct qn_task_slot *s = &q->slot[at & q->mask];
        /* acquire -> the release in take: the task before was copied out. */
        int64_t early = (int64_t)(qn_load(&s->turn, QN_ACQUIRE) - at);
        if (early < 0) {
            return false; /* that of the lap before is still in */
        }
        if (early > 0) {
            at = qn_load(&q->tail, QN_RELAXED); /* another producer has it */
        } else if (qn_cas(&q->tail, &at, at + 1, QN_ACQUIRE)) {
            qn_copy_out_line(s->task, task, sizeof *task);
            /* release -> the acquire in take: the task before its turn. */
            qn_store(&s->turn, at + 1, QN_RELEASE);
            return true;
        }
    }
}

bool qn_task_queue_take(struct qn_task_queue *q, struct qn_task *task)
{
    struct qn_task_slot *s = &q->slot[q->head & q->mask];
    /* acquire -> the release in put. */
    if (qn_load(&s->turn, QN_ACQUIRE) != q->head + 1) {
        return false;
    }
    qn_copy_in(task, s->task, sizeof *task);
    /* release -> the acquire in put, one lap later. */
    qn_store(&s->turn, q->head + q->mask + 1, QN_RELEASE);
    q->head++;
    return true;
}
