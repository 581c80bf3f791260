#include "loadgen/report/report_internal.h"

#include "core/base/bits.h"

#include <stdlib.h>

/*
 * Repetitions. The main table and the percentiles count all runs as one; here
 * each run is shown alone with the median and the extremes, so that a reader
 * can compare a difference with the noise.
 */

struct summary {
    double rate[3]; /* least, median, most */
    double ns[QN_QUANTILE_COUNT][3];
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Least, median and most of n values; sorts them. */
static void order(double *value, uint32_t n, double out[3])
{
    qsort(value, n, sizeof *value, compare);
    out[0] = value[0];
    out[1] = (value[(n - 1) / 2] + value[n / 2]) / 2;
    out[2] = value[n - 1];
}

static bool summarize(const struct qn_report *r, struct summary *s)
{
    double *value = calloc(r->run_count, sizeof *value);
    if (value == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < r->run_count; i++) {
        value[i] = qn_report_rate(r->run[i].all.ops, r->run[i].seconds);
    }
    order(value, r->run_count, s->rate);
    for (int q = 0; q < QN_QUANTILE_COUNT; q++) {
        for (uint32_t i = 0; i < r->run_count; i++) {
            value[i] = (double)r->run[i].all.ns[q];
        }
        order(value, r->run_count, s->ns[q]);
    }
    free(value);
    return true;
}

static void print_row(FILE *to, const char *name, double rate,
                      const double ns[QN_QUANTILE_COUNT])
{
    fprintf(to, "%-7s %8.0f", name, rate);
    for (int q = 0; q < QN_QUANTILE_COUNT; q++) {
        double us = ns[q] / 1e3;
        fprintf(to, " %8.*f", us < 99999.95 ? 1 : 0, us);
    }
    fputc('\n', to);
}

static void print_runs(FILE *to, const struct qn_report *r)
{
    struct summary s;
    double ns[QN_QUANTILE_COUNT];
    if (!summarize(r, &s)) {
        return; /* without memory only the rows above are printed */
    }
    fputc('\n', to);
    for (uint32_t i = 0; i < r->run_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "run %u", i + 1);
        for (int q = 0; q < QN_QUANTILE_COUNT; q++) {
            ns[q] = (double)r->run[i].all.ns[q];
        }
        print_row(to, name,
                  qn_report_rate(r->run[i].all.ops, r->run[i].seconds), ns);
    }
    static const char *const name[] = {"least", "median", "most"};
    for (int k = 0; k < 3; k++) {
        for (int q = 0; q < QN_QUANTILE_COUNT; q++) {
            ns[q] = s.ns[q][k];
        }
        print_row(to, name[k], s.rate[k], ns);
    }
}

void qn_report_runs_table(FILE *to, const struct qn_report *r)
{
    if (r->run_count > 1) {
        print_runs(to, r);
    }
    const struct qn_report_second *w = r->warmup;
    if (w != NULL && w->all.ops > 0) {
        fprintf(to,
                "\nnot counted: a warm-up of %.2f s, %.0f ops/s, p50 %.1f us, "
                "p99 %.1f us\n",
                w->seconds, qn_report_rate(w->all.ops, w->seconds),
                (double)w->all.ns[QN_QUANTILE_P50] / 1e3,
                (double)w->all.ns[QN_QUANTILE_P99] / 1e3);
    }
}

static json_t *json_row(double seconds, double rate,
                        const double ns[QN_QUANTILE_COUNT])
{
    json_t *latency = json_object();
    for (int q = 0; q < QN_QUANTILE_COUNT; q++) {
        json_object_set_new(latency, qn_quantile_name((enum qn_quantile)q),
                            json_real(ns[q] / 1e3));
    }
    return json_pack("{s:f, s:f, s:o}", "seconds", seconds, "ops_per_s", rate,
                     "latency_us", latency);
}

static json_t *json_run(const struct qn_report_second *s)
{
    double ns[QN_QUANTILE_COUNT];
    for (int q = 0; q < QN_QUANTILE_COUNT; q++) {
        ns[q] = (double)s->all.ns[q];
    }
    return json_row(s->seconds, qn_report_rate(s->all.ops, s->seconds), ns);
}

json_t *qn_report_warmup_json(const struct qn_report *r)
{
    return r->warmup != NULL && r->warmup->all.ops > 0 ? json_run(r->warmup)
                                                       : json_null();
}

json_t *qn_report_runs_json(const struct qn_report *r)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->run_count; i++) {
        json_array_append_new(list, json_run(&r->run[i]));
    }
    return list;
}
