#ifndef QN_PLACE_PROCESS_H
#define QN_PLACE_PROCESS_H

/**
 * Other processes, as the kernel knows them; and how a process shares its core.
 *
 * The slice is how long a process may go on, once it runs, before another one
 * of the same weight gets its turn. It changes no process's share of a core,
 * only which one waits: the scheduler (EEVDF, Linux 6.12 and later) lets a
 * process that wakes interrupt one with a longer slice at once, as long as it
 * has not used up its share; one with a slice as long waits for the end of it,
 * or for the tick, 4 ms apart. So a process that serves clients gets a short
 * slice, and one with background work keeps a long one. No privilege is needed
 * for that. Older kernels ignore it.
 *
 * A process is named by its id, which another one may have after it has ended:
 * answers are hints then, and a caller that changes a slice makes sure that the
 * process is still there (core/place/hold.h).
 *
 * Threads: any. Nothing blocks.
 */

#include <stdbool.h>

#include "core/base/clock.h"

/** Of a process that answers clients: several of its turns at full load. */
#define QN_SLICE_SERVING ((qn_time_t)500 * QN_US)
/** Of background work: the longest that the kernel takes. */
#define QN_SLICE_LONGEST ((qn_time_t)100 * QN_MS)

/**
 * A descriptor that is readable once the process has ended: with all its
 * threads, after its memory and its locks were taken back. Close-on-exec. An id
 * may be another process's by now: the caller makes sure afterwards
 * (qn_hold_by).
 *
 * @return it; QN_ENOENT: no such process; QN_EMFILE; QN_ENOSYS: the kernel
 *         (before Linux 5.3), or a filter of it, does not do that.
 */
int qn_process_open(int pid);

/** Is it readable? @param fd  Of qn_process_open; below 0: false. */
bool qn_process_ended(int fd);

/** What a process has run so far, ns; 0: unknown. By its id, which is that of
 *  its first thread, too: all its threads; by the id of a later one: only that
 *  thread, and up to 10 ms late. */
qn_time_t qn_process_ran(int pid);

/** It was stopped (SIGSTOP, a debugger) and does not run until it is told to go
 *  on. False if unknown. */
bool qn_process_stopped(int pid);

/**
 * Give the main thread of a process another slice; its policy and its nice
 * value stay.
 *
 * @param pid    0: the calling thread. Of the same user.
 * @param slice  ns; the kernel takes 0.1 to 100 ms.
 * @return QN_OK; QN_EINVAL: its policy has none; QN_ENOENT: no such process;
 *         QN_ENOSYS: the kernel, or a filter of it, does not do that.
 */
int qn_process_slice(int pid, qn_time_t slice);

#endif
