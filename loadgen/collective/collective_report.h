#ifndef QN_LOADGEN_COLLECTIVE_REPORT_H
#define QN_LOADGEN_COLLECTIVE_REPORT_H

/** What `quoin bench collectives` tells: a line on stderr and an object of JSON
 *  per form. One thread. */

#include <jansson.h>

#include "loadgen/collective/collective_run.h"

/** The results of one group of nodes, as table on stderr.
 *  @return a new object. Sorts what `r` holds. */
json_t *qn_collective_report(struct qn_collective_result *r,
                             const struct qn_collective_run_opts *o);

#endif
