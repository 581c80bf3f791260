#ifndef QN_LOADGEN_COLLECTIVE_REPORT_H
#define QN_LOADGEN_COLLECTIVE_REPORT_H

/** What `quoin bench collectives` tells: a line on stderr and an object of JSON
 *  per form, and a picture of all groups. One thread. */

#include <jansson.h>
#include <stdio.h>

#include "loadgen/collective/collective_run.h"

/** The results of one group of nodes, as table on stderr.
 *  @return a new object. Sorts what `r` holds. */
json_t *qn_collective_report(struct qn_collective_result *r,
                             const struct qn_collective_run_opts *o);

/** All groups as SVG: time of each operation over the number of nodes, threads
 *  and processes side by side.
 *  @param groups  Array of what qn_collective_report has returned. Borrowed. */
void qn_collective_plot(const json_t *groups, FILE *to);

#endif
