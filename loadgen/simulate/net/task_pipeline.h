#ifndef QN_LOADGEN_SIMULATE_TASK_PIPELINE_H
#define QN_LOADGEN_SIMULATE_TASK_PIPELINE_H

/**
 * Acknowledged broadcasts as tasks (core/tasks/task_broadcast.h) on the timed
 * machine, single ones and bursts (pipeline_times.h): each node is a worker,
 * the task that came last runs first, as in the runtime of the paper on diamond
 * rings.
 *
 * One thread, one call at a time; allocates.
 */

#include "core/sim/timed/timed.h"
#include "core/tasks/task_broadcast.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/tree.h"
#include "loadgen/simulate/net/pipeline_times.h"

struct qn_task_pipeline_opts {
    enum qn_task_broadcast_kind kind;
    struct qn_prices *prices;           /* for all nodes */
    const struct qn_tree *tree;         /* BT: over nodes 0 .. n-1 */
    const struct qn_diamond_ring *ring; /* DR, SDR: its cores are the nodes */
    uint32_t nodes;
    bool fifo; /* the oldest task first */
    uint64_t seed;
    uint64_t operation_ns; /* that an operation costs the root beside its
                              messages */
};

/** @return QN_OK; QN_EINVAL; QN_EIO: a node did not come to its end;
 *  QN_ENOMEM. */
int qn_task_pipeline_run(struct qn_pipeline_result *r,
                         const struct qn_task_pipeline_opts *o);

#endif
