#ifndef QN_LOADGEN_COLLECTIVE_KINDS_PLOT_H
#define QN_LOADGEN_COLLECTIVE_KINDS_PLOT_H

/** A picture of what groups of threads and of processes take: a panel for each
 *  kind, with the same axes; times over the number of members. One thread. */

#include <jansson.h>

/** Where the figures are in the report, and what is said of them. */
struct qn_kinds_plot {
    const char *title, *description;
    const char *members;    /* of a group, and below the axis: "nodes" */
    const char *rows, *row; /* of a group: "operations"; a row's name:
                               "operation". Its time: ns.median */
    double names, height;   /* as in struct qn_panels */
};

/** @param groups  Array of objects with `kind`: "threads" or "processes".
 *  @return the exit status: 0, or 1 after a line of `program`. */
int qn_kinds_plot(const struct qn_kinds_plot *s, const json_t *groups,
                  const char *path, const char *program);

#endif
