#ifndef QN_LOADGEN_SYNC_SYNC_PLOT_H
#define QN_LOADGEN_SYNC_SYNC_PLOT_H

/** A picture of what `quoin bench lock|delegate|queue|stack` has measured: the
 *  rate, and p99.9 of an operation, over the number of threads. */

#include <jansson.h>

/** @param report  What the command tells as JSON. Borrowed.
 *  @return the exit status: 0, or 1 after a line of `program`. */
int qn_sync_plot(const json_t *report, const char *path, const char *program);

#endif
