#include "core/base/err.h"
#include "loadgen/report/report_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/*
 * JSON lines: a reader can process them while the load still runs; the last
 * line is the summary. load.schema.json is the exact shape.
 *
 * A second without an answer has null latencies, since 0 would be the best of
 * all. jansson passes a failed allocation on as NULL, so only the end is
 * checked. Rows have the same layout in seconds and in the summary.
 */

static json_t *rounded(double x)
{
    return json_real(round(x * 1000) / 1000);
}

static json_t *microseconds(uint64_t ns)
{
    return rounded((double)ns / 1e3);
}

static void set(json_t *to, const char *name, json_t *value)
{
    json_object_set_new(to, name, value);
}

/* JSON allows UTF-8 only; an address, a path or a reply may have other
 * bytes. */
static void set_text(json_t *to, const char *name, const char *text)
{
    json_t *value = json_string(text);
    if (value == NULL) {
        char ascii[1024];
        snprintf(ascii, sizeof ascii, "%s", text);
        for (char *c = ascii; *c != '\0'; c++) {
            *c = (unsigned char)*c < 0x80 ? *c : '?';
        }
        value = json_string(ascii);
    }
    set(to, name, value);
}

static void set_count(json_t *to, const char *name, uint64_t n)
{
    set(to, name, json_integer((json_int_t)n));
}

static json_t *latencies(const uint64_t ns[QN_QUANTILE_COUNT], bool known)
{
    json_t *j = json_object();
    for (int i = 0; i < QN_QUANTILE_COUNT; i++) {
        set(j, qn_quantile_name((enum qn_quantile)i),
            known ? microseconds(ns[i]) : json_null());
    }
    return j;
}

static void set_row(json_t *j, const struct qn_report_row *row, double seconds)
{
    set(j, "ops_per_s", rounded(qn_report_rate(row->ops, seconds)));
    set_count(j, "ops", row->ops);
    set_count(j, "misses", row->misses);
    set_count(j, "errors", row->errors);
    set_count(j, "wrong", row->wrong);
    set(j, "latency_us", latencies(row->ns, row->ops > 0));
    if (row->open) {
        set(j, "service_us", latencies(row->service_ns, true));
    }
}

static void set_kinds(json_t *j, const struct qn_report_row *kind,
                      double seconds)
{
    json_t *kinds = json_object();
    for (int op = 0; op < QN_OP_COUNT; op++) {
        const struct qn_report_row *row = &kind[op];
        if (row->ops + row->errors + row->wrong > 0) {
            json_t *one = json_object();
            set_row(one, row, seconds);
            set(kinds, qn_mix_op_name((enum qn_op)op), one);
        }
    }
    set(j, "kinds", kinds);
}

/* Takes j: frees it. */
static int print_line(FILE *to, json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(j);
    if (text == NULL) {
        return QN_ENOMEM;
    }
    int err = fprintf(to, "%s\n", text) < 0 || fflush(to) != 0;
    free(text);
    return err ? QN_EIO : QN_OK;
}

int qn_report_json_second(FILE *to, const struct qn_report_second *s)
{
    json_t *j = json_object();
    set_text(j, "type", "second");
    set_count(j, "run", s->run);
    set(j, "at", rounded(s->at));
    set(j, "seconds", rounded(s->seconds));
    set(j, "intended_per_s",
        s->intended > 0 ? rounded(s->intended) : json_null());
    set_row(j, &s->all, s->seconds);
    set_count(j, "unanswered", s->unanswered);
    set_count(j, "waiting", s->waiting);
    set_count(j, "disconnects", s->disconnects);
    set_kinds(j, s->kind, s->seconds);
    return print_line(to, j);
}

static json_t *setup_of(const struct qn_report *r)
{
    json_t *j = json_object();
    set_text(j, "to", r->addresses);
    set_text(j, "mix", r->mix);
    set_text(j, "dist", r->dist);
    if (r->rate != NULL) {
        set_text(j, "rate", r->rate);
        set_text(j, "arrivals", r->poisson ? "poisson" : "constant");
    } else {
        set(j, "rate", json_null());
        set(j, "arrivals", json_null());
    }
    set_count(j, "connections", r->connections);
    set_count(j, "pipeline", r->pipeline);
    set_count(j, "threads", r->threads);
    set_count(j, "keys", r->keys);
    set_text(j, "key_size", r->key_size);
    set_text(j, "value_size", r->value_size);
    /* A seed has 64 bits, more than a JSON number holds exactly. */
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, r->seed);
    set_text(j, "seed", seed);
    return j;
}

static json_t *verdict_of(const struct qn_report *r)
{
    const struct qn_report_verdict *v = r->verdict;
    if (v == NULL) {
        return json_null();
    }
    json_t *j = json_object();
    set_text(j, "verdict", v->name);
    set_count(j, "operations", v->operations);
    set_count(j, "keys", v->keys);
    set_count(j, "violations", v->violations);
    set_count(j, "undecided", v->undecided);
    set_count(j, "stopped_early", r->total->spent);
    return j;
}

static json_t *per_op(uint64_t ns, uint64_t ops)
{
    return ops > 0 ? rounded((double)ns / 1e3 / (double)ops) : json_null();
}

static json_t *summary_of(const struct qn_report *r,
                          const struct qn_report_second *s)
{
    json_t *j = json_object();
    set_text(j, "type", "summary");
    set(j, "seconds", rounded(r->seconds));
    set_row(j, &s->all, r->seconds);
    set_count(j, "unanswered", s->unanswered);
    set_count(j, "unsent", r->total->unsent);
    set_count(j, "disconnects", s->disconnects);
    set(j, "cpu_us_per_op",
        r->server_count > 0 ? per_op(r->server_cpu_ns, s->all.ops)
                            : json_null());
    set(j, "own_cpu_us_per_op", per_op(r->own_cpu_ns, s->all.ops));
    set_text(j, "first_error", r->total->first_error);
    set_text(j, "first_wrong", r->total->first_wrong);
    set_kinds(j, s->kind, r->seconds);
    set(j, "connections", qn_report_opened_json(r));
    set(j, "unavailability", qn_report_unavailability_json(r));
    set(j, "warmup", qn_report_warmup_json(r));
    set(j, "runs", qn_report_runs_json(r));
    set(j, "verify", verdict_of(r));
    set(j, "setup", setup_of(r));
    return j;
}

int qn_report_json_summary(FILE *to, const struct qn_report *r)
{
    struct qn_op_stats *sum = calloc(1, sizeof *sum);
    if (sum == NULL) {
        return QN_ENOMEM;
    }
    struct qn_report_second whole = {0};
    qn_report_second(&whole, r->total, r->seconds, sum);
    free(sum);
    return print_line(to, summary_of(r, &whole));
}
