#ifndef QN_TASKS_TASK_BROADCAST_H
#define QN_TASKS_TASK_BROADCAST_H

/**
 * Acknowledged broadcasts as tasks: the three variants of the paper on diamond
 * rings. Many are under way at once; each hop is a task.
 *
 *     DR   diamond ring. A member works on the first message of an operation,
 *          and forwards when its last predecessor's is in.
 *     SDR  sequenced diamond ring: as DR, and each member works and forwards in
 *          the order of numbers. What comes early waits.
 *     BT   balanced tree: a member forwards, works, and acknowledges when all
 *          below it have.
 *
 * The workers run the newest task first, so operations overtake each other; SDR
 * is DR where that must not be seen.
 *
 * Shapes: an operation is a number from 1, which may wrap, and a payload of up
 * to QN_TASK_BROADCAST_BYTES. Member i of the wirings is worker i.
 *
 * Bounds: a window of operations, at most; so at most qn_task_broadcast_most
 * tasks are under way to a worker, and its deque (`local`) must hold them.
 *
 * Threads: create and destroy before and after the workers run; start in the
 * root's thread; `work` is called in each member's, `done` in the root's.
 */

#include "core/coll/wiring.h"
#include "core/tasks/task_worker.h"

enum qn_task_broadcast_kind { QN_TASK_DR, QN_TASK_SDR, QN_TASK_BT };

#define QN_TASK_BROADCAST_BYTES      32u
#define QN_TASK_BROADCAST_WINDOW_MAX 4096u

/** The member's part of an operation. Must not start one. */
typedef void qn_task_work_fn(void *ctx, uint32_t member, uint32_t number,
                             const void *payload, size_t len);
/** The operation is complete: all members have worked. Must not start one; it
 *  may spawn a task that does. */
typedef void qn_task_done_fn(void *ctx, struct qn_task_worker *root,
                             uint32_t number);

struct qn_task_broadcast_opts {
    enum qn_task_broadcast_kind kind;
    const struct qn_wiring *const *wiring; /* [workers], by member: RING, or
                                              ACKNOWLEDGED for BT; kept */
    uint32_t window;                       /* operations; a power of two */
    qn_task_work_fn *work;
    qn_task_done_fn *done; /* NULL: none */
    void *ctx;             /* for both */
};

struct qn_task_broadcast;

/** @return QN_OK; QN_EINVAL: another wiring, two roots, a window out of range,
 * a team whose `local` or `sends` is too small; QN_ENOMEM. */
int qn_task_broadcast_create(struct qn_task_broadcast **out,
                             struct qn_task_team *team,
                             const struct qn_task_broadcast_opts *o);
void qn_task_broadcast_destroy(struct qn_task_broadcast *b); /* NULL too */

/** Tasks that can be under way to one worker with this wiring and window. */
uint32_t qn_task_broadcast_most(const struct qn_wiring *w, uint32_t window);

/** Begin an operation. @param payload [len] borrowed. @param number filled;
 *  NULL: not wanted.
 *  @return QN_OK; QN_EPERM: not the root's worker; QN_EMSGSIZE; QN_EAGAIN: the
 *  window is full, or the worker has a backlog. */
int qn_task_broadcast_start(struct qn_task_broadcast *b,
                            struct qn_task_worker *w, const void *payload,
                            size_t len, uint32_t *number);

/** Operations that are complete. The root's thread. */
uint32_t qn_task_broadcast_completed(const struct qn_task_broadcast *b);

#endif
