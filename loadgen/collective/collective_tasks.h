#ifndef QN_LOADGEN_COLLECTIVE_TASKS_H
#define QN_LOADGEN_COLLECTIVE_TASKS_H

/**
 * Acknowledged broadcasts as tasks (core/tasks) between the threads of a group:
 * DR, SDR and BT, a window under way. One worker per node.
 *
 * Threads: create and destroy before and after the nodes run; run in each
 * node's, of all nodes at the same time.
 */

#include "core/tasks/task_broadcast.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/tree.h"
#include "core/wait/backoff.h"

struct qn_collective_tasks;

struct qn_collective_tasks_opts {
    uint32_t nodes;
    const struct qn_tree *tree; /* BT; nodes 0 .. nodes-1, the root is 0 */
    const struct qn_diamond_ring *ring; /* DR and SDR; likewise */
    uint32_t window;                    /* a power of two */
    struct qn_backoff_opts backoff;
};

/** @return QN_OK, QN_EINVAL, QN_ENOMEM. */
int qn_collective_tasks_create(struct qn_collective_tasks **out,
                               const struct qn_collective_tasks_opts *o);
void qn_collective_tasks_destroy(struct qn_collective_tasks *t); /* NULL too */

/** A node's part of `count` broadcasts of QN_TASK_BROADCAST_BYTES.
 *  @param wrong  Increased by what this node found to be lost, repeated,
 *                damaged, or out of a promised order.
 *  @return QN_OK or QN_ETIMEDOUT. */
int qn_collective_tasks_run(struct qn_collective_tasks *t, qn_node_t node,
                            enum qn_task_broadcast_kind kind, uint32_t count,
                            qn_time_t deadline, uint64_t *wrong);

#endif
