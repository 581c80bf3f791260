#ifndef QN_LOADGEN_REPORT_HGRM_H
#define QN_LOADGEN_REPORT_HGRM_H

/**
 * A histogram as text in HdrHistogram's percentile format (".hgrm"), which the
 * HdrHistogram plotter and wrk2's and memtier's scripts read.
 *
 *     Value     Percentile TotalCount 1/(1-Percentile)
 *
 *     0.012000 0.000000000000          1           1.00
 *     ...
 *     #[Mean    =     0.013250, StdDeviation   =     0.001479]
 *
 * Values are milliseconds, the plotter's default, to the nanosecond. Each step
 * goes a tenth of the remaining distance to 100 %, in HdrHistogram's terms five
 * per half distance, so that the tail is as fine as the middle. A value is the
 * upper end of its bucket, at most the largest one seen: what is exact about it
 * says core/base/histogram.h.
 */

#include "core/base/histogram.h"

#include <stdio.h>

/**
 * Write all of it.
 *
 * @param about  One line, for people: what was measured. Becomes a comment.
 *
 * The caller checks ferror(). O(buckets).
 */
void qn_hgrm_write(FILE *to, const struct qn_histogram *h, const char *about);

#endif
