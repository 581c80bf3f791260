#include "loadgen/report.h"

#include "core/base/bits.h"
#include "core/base/err.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Rates count right answers only. Latencies are in microseconds everywhere, so
 * that columns and JSON members compare; the histogram knows them to 0.1 %.
 */

static const struct {
    const char *name;
    double q;
} quantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static double per(double amount, double by)
{
    return by > 0 ? amount / by : 0;
}

struct qn_report_interval qn_report_interval(const struct qn_op_stats *ops,
                                             double seconds)
{
    return (struct qn_report_interval){
        .seconds = seconds,
        .ops = ops->ops,
        .errors = ops->errors + ops->wrong,
        .p50_ns = qn_histogram_quantile(&ops->latency, 0.5),
        .p99_ns = qn_histogram_quantile(&ops->latency, 0.99),
    };
}

void qn_report_live(FILE *to, const char *what, double at_seconds,
                    const struct qn_report_interval *interval)
{
    fprintf(to, "%s %5.1f s %9.0f ops/s  p50 %.1f us  p99 %.1f us", what,
            at_seconds, per((double)interval->ops, interval->seconds),
            us(interval->p50_ns), us(interval->p99_ns));
    if (interval->errors > 0) {
        fprintf(to, "  %" PRIu64 " errors", interval->errors);
    }
    fputc('\n', to);
}

static void print_row(FILE *to, const char *name, const struct qn_op_stats *o,
                      double seconds)
{
    fprintf(to, "%-5s %10.0f %11" PRIu64, name, per((double)o->ops, seconds),
            o->ops);
    for (size_t i = 0; i < QN_ARRAY_COUNT(quantiles); i++) {
        fprintf(to, " %9.1f",
                us(qn_histogram_quantile(&o->latency, quantiles[i].q)));
    }
    fputc('\n', to);
}

static bool was_used(const struct qn_op_stats *o)
{
    return o->ops + o->errors + o->wrong > 0;
}

static void print_cpu(FILE *to, const struct qn_report *r, uint64_t ops)
{
    fprintf(to, "%.2f s measured; CPU per operation: ", r->seconds);
    if (r->server_count > 0) {
        fprintf(to, "server %.3f us (%" PRIu32 " process%s), ",
                per(us(r->server_cpu_ns), (double)ops), r->server_count,
                r->server_count == 1 ? "" : "es");
    }
    fprintf(to, "this program %.3f us\n", per(us(r->own_cpu_ns), (double)ops));
    double busy = (double)r->own_cpu_ns / 1e9;
    if (busy > 0.95 * r->seconds * (double)r->threads) {
        fprintf(to, "this program's threads were busy all the time: the server "
                    "may be able to do more (--threads)\n");
    }
}

static void print_trouble(FILE *to, const struct qn_stats *total,
                          const struct qn_op_stats *sum)
{
    if (sum->misses > 0) {
        fprintf(to, "%" PRIu64 " GETs found no value (--preload stores all)\n",
                sum->misses);
    }
    if (sum->errors > 0) {
        fprintf(to, "%" PRIu64 " error replies; the first: %s\n", sum->errors,
                total->first_error);
    } else if (total->first_error[0] != '\0') {
        fprintf(to, "trouble: %s\n", total->first_error);
    }
    if (sum->wrong > 0) {
        fprintf(to, "%" PRIu64 " wrong replies; the first: %s\n", sum->wrong,
                total->first_wrong);
    }
    if (total->disconnects > 0) {
        fprintf(to, "%" PRIu64 " connections lost and opened again\n",
                total->disconnects);
    }
    if (total->unanswered > 0) {
        fprintf(to, "%" PRIu64 " requests were never answered\n",
                total->unanswered);
    }
}

int qn_report_table(FILE *to, const struct qn_report *r)
{
    struct qn_op_stats *sum = calloc(1, sizeof *sum);
    if (sum == NULL) {
        return QN_ENOMEM;
    }
    qn_stats_sum(r->total, sum);
    fprintf(to,
            "%s: %s, %" PRIu64 " connections, pipeline %" PRIu64 ", %" PRIu64
            " thread%s\n%" PRIu64 " keys of %" PRIu64
            " bytes, values of %" PRIu64 " bytes, seed %" PRIu64 "\n\n",
            r->addresses, r->mix, r->connections, r->pipeline, r->threads,
            r->threads == 1 ? "" : "s", r->keys, r->key_size, r->value_size,
            r->seed);
    fprintf(to, "           ops/s         ops");
    for (size_t i = 0; i < QN_ARRAY_COUNT(quantiles); i++) {
        fprintf(to, " %6s us", quantiles[i].name);
    }
    fputc('\n', to);
    for (int op = 0; op < QN_OP_COUNT; op++) {
        if (was_used(&r->total->op[op])) {
            print_row(to, qn_op_name((enum qn_op)op), &r->total->op[op],
                      r->seconds);
        }
    }
    print_row(to, "all", sum, r->seconds);
    fputc('\n', to);
    print_cpu(to, r, sum->ops);
    print_trouble(to, r->total, sum);
    free(sum);
    return QN_OK;
}

/* ---- JSON; jansson passes a failed allocation on as NULL ---- */

static json_t *rounded(double x)
{
    return json_real(round(x * 1000) / 1000);
}

static json_t *json_op(const struct qn_op_stats *o, double seconds)
{
    json_t *j =
        json_pack("{s:o, s:I, s:I, s:I, s:I}", "ops_per_s",
                  rounded(per((double)o->ops, seconds)), "ops",
                  (json_int_t)o->ops, "misses", (json_int_t)o->misses, "errors",
                  (json_int_t)o->errors, "wrong", (json_int_t)o->wrong);
    json_t *latency = json_object();
    for (size_t i = 0; i < QN_ARRAY_COUNT(quantiles); i++) {
        uint64_t ns = qn_histogram_quantile(&o->latency, quantiles[i].q);
        json_object_set_new(latency, quantiles[i].name, rounded(us(ns)));
    }
    json_object_set_new(j, "latency_us", latency);
    return j;
}

static json_t *json_ops(const struct qn_report *r)
{
    json_t *all = json_object();
    for (int op = 0; op < QN_OP_COUNT; op++) {
        if (was_used(&r->total->op[op])) {
            json_object_set_new(all, qn_op_name((enum qn_op)op),
                                json_op(&r->total->op[op], r->seconds));
        }
    }
    return all;
}

static json_t *json_intervals(const struct qn_report *r)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->interval_count; i++) {
        const struct qn_report_interval *v = &r->interval[i];
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:I, s:o, s:o}", "seconds",
                      rounded(v->seconds), "ops_per_s",
                      rounded(per((double)v->ops, v->seconds)), "errors",
                      (json_int_t)v->errors, "p50_us", rounded(us(v->p50_ns)),
                      "p99_us", rounded(us(v->p99_ns))));
    }
    return list;
}

static void json_setup(json_t *j, const struct qn_report *r)
{
    json_t *setup = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "to", r->addresses, "mix",
        r->mix, "connections", (json_int_t)r->connections, "pipeline",
        (json_int_t)r->pipeline, "threads", (json_int_t)r->threads, "keys",
        (json_int_t)r->keys, "key_size", (json_int_t)r->key_size, "value_size",
        (json_int_t)r->value_size);
    /* A seed uses all 64 bits, which JSON's numbers do not. */
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, r->seed);
    json_object_set_new(setup, "seed", json_string(seed));
    json_object_set_new(j, "setup", setup);
}

int qn_report_json(FILE *to, const struct qn_report *r)
{
    struct qn_op_stats *sum = calloc(1, sizeof *sum);
    if (sum == NULL) {
        return QN_ENOMEM;
    }
    qn_stats_sum(r->total, sum);
    double ops = (double)sum->ops;
    json_t *j = json_op(sum, r->seconds);
    json_setup(j, r);
    json_object_set_new(j, "seconds", rounded(r->seconds));
    json_object_set_new(j, "disconnects",
                        json_integer((json_int_t)r->total->disconnects));
    json_object_set_new(j, "unanswered",
                        json_integer((json_int_t)r->total->unanswered));
    json_object_set_new(j, "cpu_us_per_op",
                        r->server_count > 0
                            ? rounded(per(us(r->server_cpu_ns), ops))
                            : json_null());
    json_object_set_new(j, "own_cpu_us_per_op",
                        rounded(per(us(r->own_cpu_ns), ops)));
    json_object_set_new(j, "first_error", json_string(r->total->first_error));
    json_object_set_new(j, "first_wrong", json_string(r->total->first_wrong));
    json_object_set_new(j, "kinds", json_ops(r));
    json_object_set_new(j, "intervals", json_intervals(r));
    int err = json_dumpf(j, to, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) == 0
                  ? QN_OK
                  : QN_ENOMEM;
    fputc('\n', to);
    json_decref(j);
    free(sum);
    return err;
}
