#ifndef QN_LOADGEN_REPORT_HDR_FORMAT_H
#define QN_LOADGEN_REPORT_HDR_FORMAT_H

/**
 * A histogram as text in HdrHistogram's percentile format (".hgrm"), which the
 * HdrHistogram plotter and the scripts of wrk2 and memtier read.
 *
 *     Value     Percentile TotalCount 1/(1-Percentile)
 *
 *     0.012000 0.000000000000          1           1.00
 *     ...
 *     #[Mean    =     0.013250, StdDeviation   =     0.001479]
 *
 * Values are milliseconds, the default of the plotter, with a resolution of 1
 * ns. Each step is a tenth of the remaining distance to 100 %, in
 * HdrHistogram's terms five per half distance, so that the tail is as fine as
 * the middle. A value is the upper end of its bucket, at most the largest
 * recorded value; core/base/histogram.h gives the precision.
 */

#include "core/base/histogram.h"

#include <stdio.h>

/**
 * Write the histogram.
 *
 * @param about  One line that describes the measurement; written as a comment.
 *
 * The caller checks ferror(). O(buckets).
 */
void qn_hdr_format_write(FILE *to, const struct qn_histogram *h,
                         const char *about);

#endif
