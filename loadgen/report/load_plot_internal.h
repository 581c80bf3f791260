#ifndef QN_LOADGEN_REPORT_LOAD_PLOT_INTERNAL_H
#define QN_LOADGEN_REPORT_LOAD_PLOT_INTERNAL_H

/**
 * The plot in three files: its frame, text and scales (load_plot.c), the two
 * panels over time (load_plot_time.c), the percentiles (load_plot_tail.c).
 * Pixels of the parts, and shared functions.
 */

#include "loadgen/plot/plot.h"
#include "loadgen/report/load_plot.h"

#include <stdbool.h>

/* Pixels. */
#define QN_LOAD_PLOT_WIDTH       1100.0
#define QN_LOAD_PLOT_HEIGHT      640.0
#define QN_LOAD_PLOT_TIME_LEFT   66.0 /* both panels over time */
#define QN_LOAD_PLOT_TIME_RIGHT  586.0
#define QN_LOAD_PLOT_TAIL_LEFT   714.0 /* the percentiles */
#define QN_LOAD_PLOT_TAIL_RIGHT  1026.0
#define QN_LOAD_PLOT_TABLE_RIGHT 1090.0
#define QN_LOAD_PLOT_RATE_TOP    122.0
#define QN_LOAD_PLOT_RATE_END    292.0
#define QN_LOAD_PLOT_LAT_TOP     352.0 /* both lower panels */
#define QN_LOAD_PLOT_LAT_END     588.0
#define QN_LOAD_PLOT_LABEL_GAP   14.0
#define QN_LOAD_PLOT_ROW_HEIGHT  17.0 /* of the table */

struct qn_load_plot {
    FILE *to;
    const struct qn_report *r;
    const struct qn_load_plot_second *second;
    uint32_t count;
    const struct qn_op_stats *sum; /* all kinds */
    double last_at;                /* s; end of the time axis */
    double unit;                   /* s per unit of the time axis */
    const char *unit_name;
    struct qn_scale time;
    struct qn_scale rate;
    struct qn_scale latency;
    struct qn_scale tail; /* 1/(1-p) */
};

struct qn_load_plot_name {
    const char *text;
    const char *classes;
};

/** Colours of the used-th kind of operation: of its line, of its name. */
const char *qn_load_plot_kind_line(uint32_t used);
const char *qn_load_plot_kind_text(uint32_t used);

/** Number of kinds of operations that were answered. */
uint32_t qn_load_plot_kinds(const struct qn_stats *total);

bool qn_load_plot_is_open(const struct qn_load_plot *f);

/** End of second i on the time axis, in s. Repetitions follow one another:
 *  `*offset`, 0 at first, grows by the length of each run. Call it in the order
 *  of i. */
double qn_load_plot_end_of(const struct qn_load_plot *f, uint32_t i,
                           double *offset);

/** Ticks and grid of the axis that both lower panels share. */
void qn_load_plot_latency_axis(const struct qn_load_plot *f, double left,
                               double right);

/** Draw names at the right ends of lines without overlaps. y[n] is changed. */
void qn_load_plot_names(const struct qn_load_plot *f,
                        const struct qn_load_plot_name *name, double *y,
                        uint32_t n, double x, double top, double end);

void qn_load_plot_throughput(const struct qn_load_plot *f);
void qn_load_plot_latency(const struct qn_load_plot *f);
void qn_load_plot_percentiles(const struct qn_load_plot *f);

#endif
