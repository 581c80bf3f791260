#include "loadgen/report/report_internal.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * The live line and the table, to be read while a load runs and when it has
 * ended. 80 columns. All latencies are in microseconds, so that columns
 * compare; the histogram has a precision of 0.1 %.
 */

static const struct {
    const char *name;
    double q;
} quantiles[QN_QUANTILE_COUNT] = {
#define X(name, text, q) {text, q},
    QN_QUANTILE_MAP(X)
#undef X
};

const char *qn_quantile_name(enum qn_quantile q)
{
    QN_ASSERT(q < QN_QUANTILE_COUNT);
    return quantiles[q].name;
}

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static double per(double amount, double by)
{
    return by > 0 ? amount / by : 0;
}

double qn_report_rate(uint64_t ops, double seconds)
{
    return per((double)ops, seconds);
}

void qn_report_row(struct qn_report_row *row, const struct qn_op_stats *ops)
{
    row->ops = ops->ops;
    row->misses = ops->misses;
    row->errors = ops->errors;
    row->wrong = ops->wrong;
    row->open = ops->service.count > 0;
    for (int i = 0; i < QN_QUANTILE_COUNT; i++) {
        double q = quantiles[i].q;
        row->ns[i] = qn_histogram_quantile(&ops->latency, q);
        row->service_ns[i] =
            row->open ? qn_histogram_quantile(&ops->service, q) : 0;
    }
}

void qn_report_second(struct qn_report_second *out,
                      const struct qn_stats *stats, double seconds,
                      struct qn_op_stats *sum)
{
    out->seconds = seconds;
    out->unanswered = stats->unanswered;
    out->waiting = stats->waiting;
    out->disconnects = stats->disconnects;
    for (int op = 0; op < QN_OP_COUNT; op++) {
        qn_report_row(&out->kind[op], &stats->op[op]);
    }
    qn_op_stats_clear(sum);
    qn_stats_sum(stats, sum);
    qn_report_row(&out->all, sum);
}

void qn_report_live(FILE *to, const char *what,
                    const struct qn_report_second *s)
{
    const struct qn_report_row *all = &s->all;
    fprintf(to, "%s%6.1f s %9.0f ops/s", what, s->at,
            qn_report_rate(all->ops, s->seconds));
    if (all->ops > 0) {
        fprintf(to, "  p50 %.1f us  p99 %.1f us", us(all->ns[QN_QUANTILE_P50]),
                us(all->ns[QN_QUANTILE_P99]));
    }
    fprintf(to,
            "  errors %" PRIu64 "  unanswered %" PRIu64 "  waiting %" PRIu64
            "\n",
            all->errors + all->wrong, s->unanswered, s->waiting);
}

/* ---- the table ---- */

/* Four digits are enough, and 100 s fit. */
static void print_latencies(FILE *to, const struct qn_histogram *h)
{
    for (int i = 0; i < QN_QUANTILE_COUNT; i++) {
        double t = us(qn_histogram_quantile(h, quantiles[i].q));
        if (h->count == 0) {
            fprintf(to, " %8s", "-");
        } else {
            fprintf(to, " %8.*f", t < 99999.95 ? 1 : 0, t);
        }
    }
    fputc('\n', to);
}

static void print_row(FILE *to, const char *name, const struct qn_op_stats *o,
                      double seconds)
{
    fprintf(to, "%-7s %8.0f", name, qn_report_rate(o->ops, seconds));
    print_latencies(to, &o->latency);
    if (o->service.count > 0) {
        fprintf(to, "%16s", "service");
        print_latencies(to, &o->service);
    }
}

static bool was_used(const struct qn_op_stats *o)
{
    return o->ops + o->errors + o->wrong > 0;
}

void qn_report_model(const struct qn_report *r, char model[QN_REPORT_MODEL_MAX])
{
    if (r->rate == NULL) {
        snprintf(model, QN_REPORT_MODEL_MAX, "closed loop");
    } else {
        snprintf(model, QN_REPORT_MODEL_MAX, "open loop %.150s/s, %s", r->rate,
                 r->poisson ? "poisson" : "constant");
    }
}

void qn_report_about(const struct qn_report *r, char about[QN_REPORT_ABOUT_MAX])
{
    char model[QN_REPORT_MODEL_MAX];
    char connections[QN_REPORT_CONNECTIONS_MAX];
    qn_report_model(r, model);
    qn_report_connections(r, connections);
    snprintf(about, QN_REPORT_ABOUT_MAX,
             "%s: %s, %s, %s, pipeline %" PRIu64 ", %" PRIu64
             " thread%s; %" PRIu64
             " keys (%s) of %s bytes, values of %s bytes, seed %" PRIu64,
             r->addresses, r->mix, model, connections, r->pipeline, r->threads,
             r->threads == 1 ? "" : "s", r->keys, r->dist, r->key_size,
             r->value_size, r->seed);
}

static void print_cpu(FILE *to, const struct qn_report *r, uint64_t ops)
{
    fprintf(to, "CPU per operation: ");
    if (r->server_count > 0) {
        fprintf(to, "server %.3f us (%" PRIu32 " process%s), ",
                per(us(r->server_cpu_ns), (double)ops), r->server_count,
                r->server_count == 1 ? "" : "es");
    }
    fprintf(to, "this program %.3f us\n", per(us(r->own_cpu_ns), (double)ops));
    double busy = (double)r->own_cpu_ns / 1e9;
    if (busy > 0.95 * r->seconds * (double)r->threads) {
        fprintf(to, "the threads of this program were busy all the time; the "
                    "server may be faster (use more --threads)\n");
    }
}

/* Could the wrong values come from another load? A key has one value of one
 * size; another size makes other values wrong. */
static bool may_be_of_others(const struct qn_report *r)
{
    const struct qn_op_stats *op = r->total->op;
    return !r->preload && op[QN_OP_GET].wrong + op[QN_OP_RMW].wrong > 0;
}

static void print_trouble(FILE *to, const struct qn_report *r,
                          const struct qn_op_stats *sum)
{
    const struct qn_stats *total = r->total;
    qn_report_opened_table(to, r);
    if (sum->misses > 0) {
        fprintf(to,
                "%" PRIu64 " operations found no value or another one "
                "(--preload stores all keys)\n",
                sum->misses);
    }
    if (sum->errors > 0) {
        fprintf(to, "%" PRIu64 " error replies; the first: %s\n", sum->errors,
                total->first_error);
    } else if (total->first_error[0] != '\0') {
        fprintf(to, "error: %s\n", total->first_error);
    }
    if (sum->wrong > 0) {
        fprintf(to, "%" PRIu64 " wrong replies; the first: %s\n", sum->wrong,
                total->first_wrong);
        if (may_be_of_others(r)) {
            fprintf(to,
                    "if these keys hold values of another load, use --preload "
                    "to store the values of this one first\n");
        }
    }
    if (total->disconnects > 0) {
        fprintf(to, "%" PRIu64 " connections lost and opened again\n",
                total->disconnects);
    }
    if (total->unsent > 0) {
        fprintf(to, "%" PRIu64 " requests were due and never sent\n",
                total->unsent);
    }
    if (total->spent > 0) {
        fprintf(to,
                "%" PRIu64
                " connections stopped early, since --verify can record "
                "no more operations\n",
                total->spent);
    }
    if (total->unanswered > 0) {
        fprintf(to, "%" PRIu64 " requests were never answered\n",
                total->unanswered);
    }
}

static void print_kinds(FILE *to, const struct qn_report *r,
                        const struct qn_op_stats *sum)
{
    fprintf(to, "us         ops/s");
    for (int i = 0; i < QN_QUANTILE_COUNT; i++) {
        fprintf(to, " %8s", quantiles[i].name);
    }
    fputc('\n', to);
    uint32_t used = 0;
    for (int op = 0; op < QN_OP_COUNT; op++) {
        if (was_used(&r->total->op[op])) {
            used++;
            print_row(to, qn_mix_op_name((enum qn_op)op), &r->total->op[op],
                      r->seconds);
        }
    }
    if (used != 1) {
        print_row(to, "all", sum, r->seconds);
    }
}

int qn_report_table(FILE *to, const struct qn_report *r)
{
    struct qn_op_stats *sum = calloc(1, sizeof *sum);
    if (sum == NULL) {
        return QN_ENOMEM;
    }
    qn_stats_sum(r->total, sum);
    char about[QN_REPORT_ABOUT_MAX];
    qn_report_about(r, about);
    /* Two lines on a terminal. */
    char *half = strstr(about, "; ");
    if (half != NULL) {
        half[0] = ',';
        half[1] = '\n';
    }
    fprintf(to, "%s\n\n", about);
    print_kinds(to, r, sum);
    qn_report_runs_table(to, r);
    qn_report_unavailability_table(to, r);
    fprintf(to, "\n%" PRIu64 " operations in %.2f s; ", sum->ops, r->seconds);
    print_cpu(to, r, sum->ops);
    print_trouble(to, r, sum);
    free(sum);
    return QN_OK;
}
