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

/* A row as numbers; NAN: unknown. */
struct results {
    double median_ns, p99_ns;
    double cycles, predicted_ns, latency_ratio;
    double rate, occupancy, bound, rate_ratio;
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
        .median_ns = known((double)qn_bcast_run_latency(&r->d, 0.5)),
        .p99_ns = known((double)qn_bcast_run_latency(&r->d, 0.99)),
        .cycles = r->cycles,
        .predicted_ns = qn_bcast_ns(b, r->cycles),
        .rate = known(qn_bcast_run_rate(&r->d)),
        .occupancy = r->occupancy,
        .bound = 1e9 / qn_bcast_ns(b, r->occupancy),
    };
    f.latency_ratio = f.median_ns / f.predicted_ns;
    f.rate_ratio = f.rate / f.bound;
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
            measured[n++] = (double)qn_bcast_run_latency(&r->d, 0.5);
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

static void write_head(const struct qn_bcast *b, FILE *to)
{
    fprintf(to, "%s, %u nodes on %u cores, root %u, %u bytes, window %u\n",
            b->acked ? "acknowledged broadcast" : "broadcast", b->mapping.nodes,
            b->mapping.cores,
            (unsigned)b->mapping.m->core[b->row[0].plan.root].os,
            (unsigned)b->size, (unsigned)b->window);
    fputs(
        b->acked
            ? "latency: from the root's send until it knows that all have it\n"
            : "latency: from a leaf's request to the root until the leaf has "
              "it; the slowest leaf\n",
        to);
    fprintf(to, "%-12s %9s %9s %9s %9s %6s %10s %10s %6s\n", "topology",
            "median_ns", "p99_ns", "predicted", "cycles", "ratio", "per_second",
            "bound", "ratio");
}

static void write_text(const struct qn_bcast *b, FILE *to)
{
    double correlation = qn_bcast_correlation(b);
    write_head(b, to);
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->row[i].known) {
            struct results f = results_of(b, &b->row[i]);
            fprintf(to, "%-12s", b->row[i].plan.name);
            cell(to, f.median_ns, 9, 0);
            cell(to, f.p99_ns, 9, 0);
            cell(to, f.predicted_ns, 9, 0);
            cell(to, f.cycles, 9, 0);
            cell(to, f.latency_ratio, 6, 2);
            cell(to, f.rate, 10, 0);
            cell(to, f.bound, 10, 0);
            cell(to, f.rate_ratio, 6, 2);
            fputc('\n', to);
        }
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

static void write_csv(const struct qn_bcast *b, FILE *to)
{
    fputs("topology,nodes,cores,median_ns,p99_ns,predicted_ns,predicted_cycles,"
          "latency_ratio,per_second,bound_per_second,occupancy_cycles,"
          "rate_ratio,sent,wrong\n",
          to);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct qn_bcast_row *r = &b->row[i];
        if (r->known) {
            struct results f = results_of(b, r);
            /* The name is quoted, since it may be a file name. */
            fprintf(to, "\"%s\",%u,%u", r->plan.name, b->mapping.nodes,
                    b->mapping.cores);
            field(to, f.median_ns);
            field(to, f.p99_ns);
            field(to, f.predicted_ns);
            field(to, f.cycles);
            field(to, f.latency_ratio);
            field(to, f.rate);
            field(to, f.bound);
            field(to, f.occupancy);
            field(to, f.rate_ratio);
            fprintf(to, ",%llu,%llu\n", (unsigned long long)r->d.sent,
                    (unsigned long long)r->d.wrong);
        }
    }
}

/* ---- JSON ---- */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_json(const struct qn_bcast *b, const struct qn_bcast_row *r)
{
    struct results f = results_of(b, r);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}",
        "topology", r->plan.name, "median_ns", number(f.median_ns), "p99_ns",
        number(f.p99_ns), "predicted_ns", number(f.predicted_ns),
        "predicted_cycles", number(f.cycles), "latency_ratio",
        number(f.latency_ratio), "per_second", number(f.rate),
        "bound_per_second", number(f.bound), "occupancy_cycles",
        number(f.occupancy), "rate_ratio", number(f.rate_ratio), "sent",
        (json_int_t)r->d.sent, "wrong", (json_int_t)r->d.wrong);
}

static int write_json(const struct qn_bcast *b, FILE *to)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->row[i].known) {
            json_array_append_new(rows, row_json(b, &b->row[i]));
        }
    }
    json_t *all = json_pack(
        "{s:s, s:i, s:i, s:b, s:i, s:i, s:i, s:o, s:b, s:o}", "bench",
        b->acked ? "ack" : "broadcast", "nodes", (int)b->mapping.nodes, "cores",
        (int)b->mapping.cores, "cores_shared", b->shared, "root",
        (int)b->mapping.m->core[b->row[0].plan.root].os, "size", (int)b->size,
        "window", (int)b->window, "rank_correlation",
        number(qn_bcast_correlation(b)), "interrupted", b->interrupted,
        "topologies", rows);
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
