#ifndef QN_LOADGEN_REPORT_FIGURE_INTERNAL_H
#define QN_LOADGEN_REPORT_FIGURE_INTERNAL_H

/**
 * The picture in three files: its frame, words and scales (figure.c), the two
 * panels over time (figure_time.c), the percentiles (figure_tail.c). Pixels of
 * the parts, and what they share.
 */

#include "loadgen/plot/plot.h"
#include "loadgen/report/figure.h"

#include <stdbool.h>

/* Pixels. */
#define QN_FIGURE_WIDTH       1100.0
#define QN_FIGURE_HEIGHT      640.0
#define QN_FIGURE_TIME_LEFT   66.0 /* both panels over time */
#define QN_FIGURE_TIME_RIGHT  586.0
#define QN_FIGURE_TAIL_LEFT   714.0 /* the percentiles */
#define QN_FIGURE_TAIL_RIGHT  1026.0
#define QN_FIGURE_TABLE_RIGHT 1090.0
#define QN_FIGURE_RATE_TOP    122.0
#define QN_FIGURE_RATE_END    292.0
#define QN_FIGURE_LAT_TOP     352.0 /* both lower panels */
#define QN_FIGURE_LAT_END     588.0
#define QN_FIGURE_LABEL_GAP   14.0
#define QN_FIGURE_ROW_HEIGHT  17.0 /* of the table */

struct qn_figure {
    FILE *to;
    const struct qn_report *r;
    const struct qn_figure_second *second;
    uint32_t count;
    const struct qn_op_stats *sum; /* all kinds */
    double last_at;                /* s; where the time ends */
    double unit;                   /* s per unit of the time axis */
    const char *unit_name;
    struct qn_scale time;
    struct qn_scale rate;
    struct qn_scale latency;
    struct qn_scale tail; /* 1/(1-p) */
};

struct qn_figure_name {
    const char *text;
    const char *classes;
};

/** The colours of the used-th kind of operation: of its line, of its name. */
const char *qn_figure_kind_line(uint32_t used);
const char *qn_figure_kind_text(uint32_t used);

/** How many kinds of operations were answered. */
uint32_t qn_figure_kinds(const struct qn_stats *total);

bool qn_figure_is_open(const struct qn_figure *f);

/** Where second i ends on the time axis, in s. Repetitions follow one another:
 *  `*offset`, 0 at first, moves on by a run's length. In order of i. */
double qn_figure_end_of(const struct qn_figure *f, uint32_t i, double *offset);

/** Ticks and grid of the axis that both lower panels share. */
void qn_figure_latency_axis(const struct qn_figure *f, double left,
                            double right);

/** Names at the right ends of lines, none upon another. y[n] is moved. */
void qn_figure_names(const struct qn_figure *f,
                     const struct qn_figure_name *name, double *y, uint32_t n,
                     double x, double top, double end);

void qn_figure_throughput(const struct qn_figure *f);
void qn_figure_latency(const struct qn_figure *f);
void qn_figure_percentiles(const struct qn_figure *f);

#endif
