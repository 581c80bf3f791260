#ifndef QN_LOADGEN_REPORT_LOAD_PLOT_H
#define QN_LOADGEN_REPORT_LOAD_PLOT_H

/**
 * The plot of a load, as one SVG: setup and results, throughput and latency
 * over time, and latency by percentile.
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

/** The data of one second that the plot needs; a load keeps them until its
 *  end. */
struct qn_load_plot_second {
    uint32_t run;
    double at;
    double seconds;
    double intended; /* ops/s; 0: closed loop */
    uint64_t ops;
    uint64_t trouble; /* errors, wrong replies, lost requests, disconnects */
    uint64_t p50_ns;
    uint64_t p99_ns;
    uint64_t max_ns;
};

struct qn_load_plot_second qn_load_plot_second(
    const struct qn_report_second *second);

/**
 * Draw the plot.
 *
 * @param second  [count] In ascending time. Borrowed.
 * @return QN_OK or QN_ENOMEM.
 */
int qn_load_plot_write(FILE *to, const struct qn_report *r,
                       const struct qn_load_plot_second *second,
                       uint32_t count);

#endif
