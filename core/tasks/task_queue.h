#ifndef QN_TASKS_TASK_QUEUE_H
#define QN_TASKS_TASK_QUEUE_H

/**
 * A bounded queue of tasks: any thread puts, one takes. First in, first out.
 *
 * A task is one cache line with the slot's own word, so a put moves the tail
 * and one line; there is no memory to allocate or to give back. The form is
 * that of Vyukov's bounded queue: the word of a slot says whose turn it is.
 *
 * Threads of one process only: a thread that dies in the middle of a put stops
 * the queue there.
 *
 * Shapes: a task is 56 bytes: function, context, 40 bytes of payload.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/atomic.h"

#define QN_TASK_PAYLOAD 40u /* bytes */

struct qn_task;
struct qn_task_worker;

/** Runs on the worker that took the task. Does not block. */
typedef void qn_task_fn(struct qn_task_worker *worker,
                        const struct qn_task *task);

struct qn_task {
    qn_task_fn *run;
    void *ctx; /* for run; the receiver's, as a rule */
    uint8_t payload[QN_TASK_PAYLOAD];
};

struct qn_task_slot {
    alignas(QN_CACHELINE) qn_a64 turn; /* position: free for it; position + 1:
                                          its task is in */
    uint8_t task[sizeof(struct qn_task)];
};

struct qn_task_queue {
    alignas(QN_CACHELINE) qn_a64 tail; /* next position to put; producers */
    alignas(
        QN_CACHELINE) uint64_t head; /* next position to take; the taker's */
    uint64_t mask;
    struct qn_task_slot *slot; /* [mask + 1] */
};

#define QN_TASK_QUEUE_MAX (1u << 20) /* slots */

/** @param slots  A power of two, 2 to QN_TASK_QUEUE_MAX; 64 bytes each.
 *  @return QN_OK, QN_EINVAL, QN_ENOMEM. */
int qn_task_queue_init(struct qn_task_queue *q, uint32_t slots);
void qn_task_queue_fini(struct qn_task_queue *q);

/** Any thread. Lock-free. @return false: the queue is full. */
bool qn_task_queue_put(struct qn_task_queue *q, const struct qn_task *task);

/** The taker only. Wait-free. @return false: the queue is empty, or the next
 *  put is not finished. */
bool qn_task_queue_take(struct qn_task_queue *q, struct qn_task *task);

#endif
