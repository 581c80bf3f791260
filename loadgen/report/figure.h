#ifndef QN_LOADGEN_REPORT_FIGURE_H
#define QN_LOADGEN_REPORT_FIGURE_H

/**
 * The picture of a load, as one SVG: what was run and what came out, throughput
 * and latency over time, and latency by percentile.
 *
 *     +--------------------------------------------+
 *     | title, setup                               |
 *     | throughput over time  |  table of kinds    |
 *     | latency over time     |  percentiles       |   same latency axis
 *     +--------------------------------------------+
 *
 * One thread. The caller checks ferror().
 */

#include "loadgen/report/report.h"

#include <stdint.h>
#include <stdio.h>

/** What the picture needs of a second: less than all of it, for a load keeps
 *  them until its end. */
struct qn_figure_second {
    uint32_t run;
    double at;
    double seconds;
    double intended; /* ops/s; 0: closed loop */
    uint64_t ops;
    uint64_t trouble; /* errors, wrong answers, lost requests, disconnects */
    uint64_t p50_ns;
    uint64_t p99_ns;
    uint64_t max_ns;
};

struct qn_figure_second qn_figure_second(const struct qn_report_second *second);

/**
 * Draw it.
 *
 * @param second  [count] In the order of time. Borrowed.
 * @return QN_OK or QN_ENOMEM.
 */
int qn_figure_write(FILE *to, const struct qn_report *r,
                    const struct qn_figure_second *second, uint32_t count);

#endif
