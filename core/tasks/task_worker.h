#ifndef QN_TASKS_TASK_WORKER_H
#define QN_TASKS_TASK_WORKER_H

/**
 * Workers: one per thread, each with a queue that all others put tasks into
 * and a deque of its own. Source: the framework of the paper on diamond rings
 * (docs/collectives.md).
 *
 * A step runs the newest task of the deque (LIFO; or the oldest, FIFO). When
 * the deque is empty, all tasks of the queue are moved into it. So the order in
 * which tasks arrive is not the one in which they run.
 *
 * Congestion: a task that does not fit into another worker's queue waits in the
 * backlog of its sender, which runs nothing until it is gone, but keeps moving
 * tasks out of its own queue. So there is no deadlock, as long as `local` is at
 * least the number of tasks that can be under way to a worker at once.
 *
 * Bounds: `slots` of the queue, `local` of the deque, `sends` of the backlog;
 * 64 bytes a slot, 56 bytes a task.
 *
 * Threads: a worker belongs to one thread. Any thread may put into its queue.
 */

#include "core/tasks/task_queue.h"
#include "core/wait/doorbell.h"

struct qn_task_team; /* all workers, made before their threads start */

struct qn_task_team_opts {
    uint32_t workers; /* 1 .. QN_TASK_WORKERS_MAX */
    uint32_t slots;   /* of each queue; a power of two */
    uint32_t local;   /* tasks of each deque */
    uint32_t sends;   /* maximum of sends by one task */
    bool fifo;        /* the oldest task first, not the newest */
};

#define QN_TASK_WORKERS_MAX 1024u
#define QN_TASK_LOCAL_MAX   (1u << 20)
#define QN_TASK_SENDS_MAX   1024u

/** @return QN_OK; QN_EINVAL: an option out of its range; QN_ENOMEM. */
int qn_task_team_create(struct qn_task_team **out,
                        const struct qn_task_team_opts *opts);
/** All threads of its workers have ended. NULL too. */
void qn_task_team_destroy(struct qn_task_team *team);

const struct qn_task_team_opts *qn_task_team_opts(
    const struct qn_task_team *team);

struct qn_task_worker *qn_task_worker_of(struct qn_task_team *team,
                                         uint32_t number);
uint32_t qn_task_worker_number(const struct qn_task_worker *w);

/** Put a task into the own deque, as its newest. @return false: it is full. */
bool qn_task_spawn(struct qn_task_worker *w, const struct qn_task *task);

/** Send a task to a worker, also to itself. In a task only, and at most `sends`
 *  times; or from outside, if qn_task_can_send. Tasks of one sender reach a
 *  queue in order. */
void qn_task_send(struct qn_task_worker *w, uint32_t to,
                  const struct qn_task *task);
bool qn_task_can_send(const struct qn_task_worker *w);

/** Run one task, or move what can be moved, and ring for what was sent.
 *  @return true if something was done. */
bool qn_task_step(struct qn_task_worker *w);

/** Step until qn_task_stop; look for `spin` ns before each sleep
 *  (core/wait/spin.h). Tasks that are left are not run. */
void qn_task_run(struct qn_task_worker *w, qn_time_t spin);

/** For a loop of the caller's that has found nothing to step: sleep until a
 *  task comes or the deadline, ns. It may return early, and at once after
 *  qn_task_stop. */
void qn_task_rest(struct qn_task_worker *w, qn_time_t deadline);

/** End all runs, also those that begin later. Any worker's thread. */
void qn_task_stop(struct qn_task_worker *w);

#endif
