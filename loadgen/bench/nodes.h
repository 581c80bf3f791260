#ifndef QN_LOADGEN_BENCH_NODES_H
#define QN_LOADGEN_BENCH_NODES_H

/**
 * Run a function once per node, each in a thread or in a child process, and
 * wait for all.
 *
 * A process that a signal ends ends the others, which may wait for it, unless
 * they are to survive it; one that cannot be started ends them always. Of
 * threads then none begins.
 *
 * Threads: called by one thread; of a process that starts children, the only
 * one, and it has no other children. These do not outlive it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

/** For a line that says that one cannot be started. */
#define QN_NODES_ADVICE                                                        \
    "ask for fewer --members, or raise the limits of processes and memory "    \
    "(ulimit -u, ulimit -v, pids.max of the control group)"

struct qn_nodes_opts {
    uint32_t nodes;       /* 1 .. QN_NODES_MAX */
    bool processes;       /* children, else threads */
    bool survive;         /* the others go on when a signal ends a child */
    const uint32_t *core; /* [nodes] CPU to pin each node to; NULL: not pinned.
                             Borrowed */
};

/** Main function of a node. @return 0 on success. */
typedef int qn_nodes_fn(qn_node_t node, void *arg);

/**
 * @param arg  Passed to all nodes; children see a copy made at fork, so results
 *             need memory that was mapped as shared before.
 * @return number of nodes that did not return 0 (died, or could not start).
 */
uint32_t qn_nodes_run(const struct qn_nodes_opts *o, qn_nodes_fn *fn,
                      void *arg);

#endif
