#ifndef QN_LOADGEN_SYNC_SYNC_PLOT_H
#define QN_LOADGEN_SYNC_SYNC_PLOT_H

/** A picture of what `quoin bench lock|delegate|queue|stack` has measured: the
 *  rate, and p99.9 of an operation, over the number of threads. */

#include <jansson.h>
#include <stdio.h>

/** @param report  What the command tells as JSON. Borrowed. The caller checks
 *  ferror(). */
void qn_sync_plot(const json_t *report, FILE *to);

#endif
