#ifndef QN_LOADGEN_REPORT_REPORT_INTERNAL_H
#define QN_LOADGEN_REPORT_REPORT_INTERNAL_H

/** Parts of the table and of the JSON summary: repetitions (report_runs.c),
 *  connections (report_opened.c) and silences (report_silence.c). The JSON is
 * the caller's; NULL without memory. */

#include "loadgen/report/report.h"

#include <jansson.h>

/** A row per repetition, their median and spread; nothing if there was one. A
 *  line about the warm-up. */
void qn_report_runs_table(FILE *to, const struct qn_report *r);

json_t *qn_report_runs_json(const struct qn_report *r);
json_t *qn_report_warmup_json(const struct qn_report *r);

/** A line per address some of whose connections could never be opened. */
void qn_report_opened_table(FILE *to, const struct qn_report *r);

json_t *qn_report_opened_json(const struct qn_report *r);

/** A row per address, and one for all if there are several. */
void qn_report_silence_table(FILE *to, const struct qn_report *r);

json_t *qn_report_silence_json(const struct qn_report *r);

#endif
