#ifndef QN_LOADGEN_REPORT_H
#define QN_LOADGEN_REPORT_H

/**
 * What a load says about itself: a live line, a final table, a JSON object.
 * The JSON's members are listed in README.md.
 */

#include "core/base/clock.h"
#include "loadgen/stats.h"

#include <stdint.h>
#include <stdio.h>

/** One second, or the rest at the end. */
struct qn_report_interval {
    double seconds; /* its length */
    uint64_t ops;
    uint64_t errors; /* error replies and wrong ones */
    uint64_t p50_ns;
    uint64_t p99_ns;
};

struct qn_report {
    const char *addresses; /* as typed, with blanks between */
    const char *mix;       /* as typed */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t threads;
    uint64_t keys;
    uint64_t key_size;
    uint64_t value_size;
    uint64_t seed;
    double seconds;         /* measured */
    uint64_t own_cpu_ns;    /* of this process while it measured */
    uint64_t server_cpu_ns; /* of the named processes */
    uint32_t server_count;  /* of them; 0: none were named */
    uint32_t interval_count;
    const struct qn_report_interval *interval; /* [interval_count] */
    const struct qn_stats *total;
};

/** Make an interval of what its operations were. */
struct qn_report_interval qn_report_interval(const struct qn_op_stats *ops,
                                             double seconds);

/** "   3 s    812345 ops/s  p50 12.3 us  p99 45.6 us", one line. */
void qn_report_live(FILE *to, const char *what, double at_seconds,
                    const struct qn_report_interval *interval);

/** The final table.
 *  @return QN_OK or QN_ENOMEM. */
int qn_report_table(FILE *to, const struct qn_report *r);

/** One JSON object and a newline.
 *  @return QN_OK or QN_ENOMEM. */
int qn_report_json(FILE *to, const struct qn_report *r);

#endif
