#ifndef QN_KVS_MAIN_LOGGER_H
#define QN_KVS_MAIN_LOGGER_H

/**
 * Log lines of `quoind`, on its standard error.
 *
 * A replica must not wait for the reader of its log: a file on a busy disk, a
 * pipe without a reader or a stopped terminal would delay its clients, and all
 * clients if it leads. In a replica, therefore, a thread writes the lines, in
 * order. When QN_LOGGER_LINES wait, further lines are dropped until these are
 * written, and then their number is logged. Only an error blocks, for itself
 * and for the lines before it, one second each at most: it may be the last line
 * of this process. The supervisor, for which no client waits, writes its lines
 * itself.
 *
 * Threads: qn_log from any thread, but not from a signal handler; these
 * functions from the first thread.
 */

#include "core/base/log.h"

#define QN_LOGGER_LINES 256u
#define QN_LOGGER_BYTES 1152u /* of a line with its time */

/** Write all lines from this level on to standard error, from the calling
 *  thread. */
void qn_logger_init(enum qn_log_level lowest);

/** From now on, a thread of this process writes the lines. @return QN_OK;
 *  QN_ENOMEM: there is no thread, and the callers write as before. */
int qn_logger_start(void);

/** The process ends: wait until all lines are written, one second at most.
 *  Later lines are written by the calling thread, unless that second was too
 *  short. */
void qn_logger_end(void);

#endif
