#include "loadgen/report/report.h"

#include <inttypes.h>

/*
 * One row per second and kind, so that a spreadsheet or a data frame needs no
 * reshaping. Requests are lost with their connection, not by kind: the last
 * columns are filled in rows of "all" only. A field without a value (no answer,
 * so no latency; no schedule) is empty.
 */

void qn_report_csv_header(FILE *to)
{
    fputs("run,at_s,seconds,kind,intended_per_s,ops_per_s,ops,misses,errors,"
          "wrong",
          to);
    for (int i = 0; i < QN_QUANTILE_COUNT; i++) {
        fprintf(to, ",%s_us", qn_quantile_name((enum qn_quantile)i));
    }
    fputs(",unanswered,waiting,disconnects\n", to);
}

static void print_row(FILE *to, const struct qn_report_second *s,
                      const char *kind, double intended,
                      const struct qn_report_row *row)
{
    fprintf(to, "%" PRIu32 ",%.3f,%.3f,%s,", s->run, s->at, s->seconds, kind);
    if (intended > 0) {
        fprintf(to, "%.1f", intended);
    }
    fprintf(to, ",%.1f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
            qn_report_rate(row->ops, s->seconds), row->ops, row->misses,
            row->errors, row->wrong);
    for (int i = 0; i < QN_QUANTILE_COUNT; i++) {
        fputc(',', to);
        if (row->ops > 0) {
            fprintf(to, "%.3f", (double)row->ns[i] / 1e3);
        }
    }
}

void qn_report_csv_second(FILE *to, const struct qn_report_second *s)
{
    for (int op = 0; op < QN_OP_COUNT; op++) {
        const struct qn_report_row *row = &s->kind[op];
        if (row->ops + row->errors + row->wrong > 0) {
            print_row(to, s, qn_mix_op_name((enum qn_op)op), 0, row);
            fputs(",,,\n", to);
        }
    }
    print_row(to, s, "all", s->intended, &s->all);
    fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", s->unanswered,
            s->waiting, s->disconnects);
}
