#ifndef QN_LOADGEN_ENGINE_CPU_TIME_H
#define QN_LOADGEN_ENGINE_CPU_TIME_H

/** CPU time of other processes, for "CPU per operation". */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * CPU time that a process has used, including all its threads and those that
 * ended. Resolution of the scheduler's clock: ns.
 *
 * @param ns  Filled.
 * @return QN_OK; QN_ENOENT if there is no such process.
 */
int qn_cpu_time_read(pid_t pid, uint64_t *ns);

/**
 * A process and all its descendants.
 *
 * @param pids  [max] Filled; pids[0] is `root`.
 * @return the number filled; QN_ENOENT if `root` or /proc does not exist;
 *         QN_ERANGE if there are more than `max`. O(processes of the machine).
 */
int qn_cpu_time_tree(pid_t root, pid_t *pids, size_t max);

#endif
