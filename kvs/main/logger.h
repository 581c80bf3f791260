#ifndef QN_KVS_MAIN_LOGGER_H
#define QN_KVS_MAIN_LOGGER_H

/**
 * Log lines of `quoind`, on its standard error.
 *
 * A replica must not wait for whoever takes them: a file on a busy disk, a pipe
 * that nobody reads, a terminal that was stopped would hold up its clients, and
 * everybody's if it leads. So in a replica a thread writes them, in their
 * order; when QN_LOGGER_LINES wait, further ones are dropped until these are
 * written, and then it is said how many. Only an error is waited for, and for
 * what waits before it, a second each at most: it may be the last that is heard
 * of this process. The supervisor, for which no client waits, writes its lines
 * itself.
 *
 * Logging: any thread, not a signal handler. The rest: the first thread.
 */

#include "core/base/log.h"

#define QN_LOGGER_LINES 256u
#define QN_LOGGER_BYTES 1152u /* of a line with its time */

/** All lines from this level on go to standard error, written by who logs. */
void qn_logger_init(enum qn_log_level lowest);

/** From now on, a thread of this process writes them. @return QN_OK; QN_ENOMEM:
 *  no thread, it is as before. */
int qn_logger_start(void);

/** The process ends: wait for what has not been written, for a second at most.
 *  Later lines are written by who logs, unless that second was too short. */
void qn_logger_end(void);

#endif
