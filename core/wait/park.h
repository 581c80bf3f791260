#ifndef QN_WAIT_PARK_H
#define QN_WAIT_PARK_H

/**
 * The system calls under a doorbell, and nothing else: what a simulated machine
 * replaces. Any thread.
 */

#include "core/base/atomic.h"
#include "core/base/clock.h"

/** Sleep while *word == seen, until woken or until `deadline` (ns, monotonic;
 *  QN_TIME_NEVER). Works between processes. @return QN_OK (woken, changed or
 *  spurious) or QN_ETIMEDOUT. */
int qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline);

/** Wake the threads that sleep on *word. */
void qn_unpark_word(qn_a32 *word);

/** Wake one of them. */
void qn_unpark_one(qn_a32 *word);

/** Sleep until the eventfd can be read, a signal comes, or `deadline`.
 *  @return QN_OK or QN_ETIMEDOUT. */
int qn_park_fd(int fd, qn_time_t deadline);

/** Make the eventfd readable. */
void qn_unpark_fd(int fd);

/** Make it unreadable again. */
void qn_park_drain(int fd);

/** Let other runnable threads of this core run first. */
void qn_park_yield(void);

/** @return cores that this thread may run on, by its affinity mask. */
uint32_t qn_park_cores(void);

#endif
