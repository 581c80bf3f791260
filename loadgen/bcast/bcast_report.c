/*
 * Unknown values are "-" in the table, null in JSON and empty in CSV.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/search/objective.h"
#include "loadgen/bcast/bcast_internal.h"

#define PTHREAD "pthread_barrier"

/* A row as numbers; NAN: unknown. */
struct results {
    double median_ns, p99_ns;
    double cycles, predicted_ns, latency_ratio;
    double rate, occupancy, bound, rate_ratio;
    double latency_pthread, rate_pthread; /* over those of pthread_barrier */
};

static double known(double x)
{
    return x > 0 ? x : (double)NAN;
}

double qn_bcast_ns(const struct qn_bcast *b, double cycles)
{
    double ghz = b->mapping.m->facts.clock_ghz;
    return ghz > 0 ? cycles / ghz : (double)NAN;
}

static struct results results_of(const struct qn_bcast *b,
                                 const struct qn_bcast_row *r)
{
    struct results f = {
        .median_ns = known((double)qn_operation_latency(&r->d, 0.5)),
        .p99_ns = known((double)qn_operation_latency(&r->d, 0.99)),
        .cycles = r->cycles,
        .predicted_ns = qn_bcast_ns(b, r->cycles),
        .rate = known(qn_operation_rate(&r->d)),
        .occupancy = r->occupancy,
        .bound = 1e9 / qn_bcast_ns(b, r->occupancy),
    };
    f.latency_ratio = f.median_ns / f.predicted_ns;
    f.rate_ratio = f.rate / f.bound;
    const struct qn_operation_result *y = &b->pthread.d;
    f.latency_pthread =
        f.median_ns / known((double)qn_operation_latency(y, 0.5));
    f.rate_pthread = f.rate / known(qn_operation_rate(y));
    return f;
}

double qn_bcast_correlation(const struct qn_bcast *b)
{
    double measured[QN_BCAST_MAX], predicted[QN_BCAST_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct qn_bcast_row *r = &b->row[i];
        if (r->known && isfinite(r->cycles)) {
            predicted[n] = r->cycles;
            measured[n++] = (double)qn_operation_latency(&r->d, 0.5);
        }
    }
    return qn_rank_correlation(measured, predicted, n);
}

/* ---- text ---- */

static void cell(FILE *to, double x, int width, int digits)
{
    if (isfinite(x)) {
        fprintf(to, " %*.*f", width, digits, x);
    } else {
        fprintf(to, " %*s", width, "-");
    }
}

/* Of the first column. */
static int name_width(const struct qn_bcast *b)
{
    return b->kind->pthread ? 15 : 12;
}

static void write_head(const struct qn_bcast *b, FILE *to)
{
    const struct qn_bcast_kind *k = b->kind;
    fprintf(to, "%s, %u nodes on %u cores, root %u", k->title, b->mapping.nodes,
            b->mapping.cores,
            (unsigned)b->mapping.m->core[b->row[0].plan.root].os);
    if (k->size_max > 0) {
        fprintf(to, ", %u bytes", (unsigned)b->size);
    }
    if (k->window) {
        fprintf(to, ", window %u", (unsigned)b->window);
    }
    if (b->sources > 0) {
        fprintf(to, ", %u sources", (unsigned)b->sources);
    }
    fprintf(to, "\nlatency: %s\n",
            b->sources > 0 ? "from a source's call until it knows that all "
                             "have it; the slowest source"
            : b->shared && k->shared != NULL ? k->shared
                                             : k->latency);
    const char *pthread = k->pthread ? " pthread" : "";
    fprintf(to, "%-*s %9s %9s %9s %9s %6s%s %10s %10s %6s%s\n", name_width(b),
            "topology", "median_ns", "p99_ns", "predicted", "cycles", "ratio",
            pthread, "per_second", "bound", "ratio", pthread);
}

static void write_row(const struct qn_bcast *b, const struct qn_bcast_row *r,
                      const char *name, FILE *to)
{
    struct results f = results_of(b, r);
    fprintf(to, "%-*s", name_width(b), name);
    cell(to, f.median_ns, 9, 0);
    cell(to, f.p99_ns, 9, 0);
    cell(to, f.predicted_ns, 9, 0);
    cell(to, f.cycles, 9, 0);
    cell(to, f.latency_ratio, 6, 2);
    if (b->kind->pthread) {
        cell(to, f.latency_pthread, 7, 2);
    }
    cell(to, f.rate, 10, 0);
    cell(to, f.bound, 10, 0);
    cell(to, f.rate_ratio, 6, 2);
    if (b->kind->pthread) {
        cell(to, f.rate_pthread, 7, 2);
    }
    fputc('\n', to);
}

static void write_text(const struct qn_bcast *b, FILE *to)
{
    double correlation = qn_bcast_correlation(b);
    write_head(b, to);
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->row[i].known) {
            write_row(b, &b->row[i], b->row[i].plan.name, to);
        }
    }
    if (b->pthread.known) {
        write_row(b, &b->pthread, PTHREAD, to);
    }
    if (isfinite(correlation)) {
        fprintf(to,
                "rank correlation of measured and predicted latency: %.2f\n",
                correlation);
    }
}

/* ---- csv ---- */

static void field(FILE *to, double x)
{
    fputc(',', to);
    if (isfinite(x)) {
        fprintf(to, "%.6g", x);
    }
}

static void write_csv_row(const struct qn_bcast *b,
                          const struct qn_bcast_row *r, const char *name,
                          FILE *to)
{
    struct results f = results_of(b, r);
    /* The name is quoted, since it may be a file name. */
    fprintf(to, "\"%s\",%u,%u", name, b->mapping.nodes, b->mapping.cores);
    field(to, f.median_ns);
    field(to, f.p99_ns);
    field(to, f.predicted_ns);
    field(to, f.cycles);
    field(to, f.latency_ratio);
    field(to, f.rate);
    field(to, f.bound);
    field(to, f.occupancy);
    field(to, f.rate_ratio);
    fprintf(to, ",%llu,%llu", (unsigned long long)r->d.sent,
            (unsigned long long)r->d.wrong);
    if (b->kind->pthread) {
        field(to, f.latency_pthread);
        field(to, f.rate_pthread);
    }
    fputc('\n', to);
}

static void write_csv(const struct qn_bcast *b, FILE *to)
{
    fprintf(to,
            "topology,nodes,cores,median_ns,p99_ns,predicted_ns,"
            "predicted_cycles,latency_ratio,per_second,bound_per_second,"
            "occupancy_cycles,rate_ratio,sent,wrong%s\n",
            b->kind->pthread ? ",latency_over_pthread,rate_over_pthread" : "");
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->row[i].known) {
            write_csv_row(b, &b->row[i], b->row[i].plan.name, to);
        }
    }
    if (b->pthread.known) {
        write_csv_row(b, &b->pthread, PTHREAD, to);
    }
}

/* ---- JSON ---- */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_json(const struct qn_bcast *b, const struct qn_bcast_row *r,
                        const char *name)
{
    struct results f = results_of(b, r);
    json_t *row = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}",
        "topology", name, "median_ns", number(f.median_ns), "p99_ns",
        number(f.p99_ns), "predicted_ns", number(f.predicted_ns),
        "predicted_cycles", number(f.cycles), "latency_ratio",
        number(f.latency_ratio), "per_second", number(f.rate),
        "bound_per_second", number(f.bound), "occupancy_cycles",
        number(f.occupancy), "rate_ratio", number(f.rate_ratio), "sent",
        (json_int_t)r->d.sent, "wrong", (json_int_t)r->d.wrong);
    if (b->kind->pthread) {
        (void)json_object_set_new(row, "latency_over_pthread",
                                  number(f.latency_pthread));
        (void)json_object_set_new(row, "rate_over_pthread",
                                  number(f.rate_pthread));
    }
    return row;
}

static json_t *count_or_null(bool there, uint64_t count)
{
    return there ? json_integer((json_int_t)count) : json_null();
}

static int write_json(const struct qn_bcast *b, FILE *to)
{
    const struct qn_bcast_kind *k = b->kind;
    json_t *rows = json_array();
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->row[i].known) {
            json_array_append_new(rows,
                                  row_json(b, &b->row[i], b->row[i].plan.name));
        }
    }
    json_t *all =
        json_pack("{s:s, s:i, s:i, s:b, s:i, s:o, s:o, s:o, s:o, s:b, s:o}",
                  "bench", k->name, "nodes", (int)b->mapping.nodes, "cores",
                  (int)b->mapping.cores, "cores_shared", b->shared, "root",
                  (int)b->mapping.m->core[b->row[0].plan.root].os, "size",
                  count_or_null(k->size_max > 0, b->size), "window",
                  count_or_null(k->window, b->window), "sources",
                  count_or_null(b->sources > 0, b->sources), "rank_correlation",
                  number(qn_bcast_correlation(b)), "interrupted",
                  b->interrupted, "topologies", rows);
    if (b->pthread.known) {
        (void)json_object_set_new(all, PTHREAD,
                                  row_json(b, &b->pthread, PTHREAD));
    }
    bool bad = all == NULL || json_dumpf(all, to, JSON_INDENT(2)) != 0 ||
               fputc('\n', to) == EOF;
    json_decref(all);
    return bad ? QN_EIO : QN_OK;
}

int qn_bcast_report(const struct qn_bcast *b, FILE *to)
{
    int err = QN_OK;
    if (b->format[0] == 'j') {
        err = write_json(b, to);
    } else if (b->format[0] == 'c') {
        write_csv(b, to);
    } else {
        write_text(b, to);
    }
    return fflush(to) != 0 || ferror(to) != 0 ? QN_EIO : err;
}
