#ifndef QN_LOADGEN_ENGINE_PROC_H
#define QN_LOADGEN_ENGINE_PROC_H

/** Processor time of other processes, for "CPU per operation". */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * Processor time that a process has used, all its threads, also those that
 * ended. Resolution of the scheduler's clock: ns.
 *
 * @param ns  Filled.
 * @return QN_OK; QN_ENOENT if there is no such process.
 */
int qn_proc_cpu(pid_t pid, uint64_t *ns);

/**
 * A process and its descendants.
 *
 * @param pids  [max] Filled; pids[0] is `root`.
 * @return how many were filled; QN_ENOENT without `root` or /proc; QN_ERANGE if
 *         there are more than `max`. O(processes of the machine).
 */
int qn_proc_tree(pid_t root, pid_t *pids, size_t max);

#endif
