#ifndef QN_LOADGEN_REPORT_REPORT_INTERNAL_H
#define QN_LOADGEN_REPORT_REPORT_INTERNAL_H

/** Parts of the table and of the JSON summary: repetitions (report_runs.c),
 *  connections (report_opened.c) and unavailability (report_unavailability.c).
 *  JSON values belong to the caller; NULL without memory. */

#include "loadgen/report/report.h"

#include <jansson.h>

/** One row per repetition, median and spread; nothing for a single run. One
 *  line about the warm-up. */
void qn_report_runs_table(FILE *to, const struct qn_report *r);

json_t *qn_report_runs_json(const struct qn_report *r);
json_t *qn_report_warmup_json(const struct qn_report *r);

/** One line per address with connections that could never be opened. */
void qn_report_opened_table(FILE *to, const struct qn_report *r);

json_t *qn_report_opened_json(const struct qn_report *r);

/** One row per address, and one for all if there are several. */
void qn_report_unavailability_table(FILE *to, const struct qn_report *r);

json_t *qn_report_unavailability_json(const struct qn_report *r);

#endif
