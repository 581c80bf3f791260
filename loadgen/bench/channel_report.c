#include "loadgen/bench/channel_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"

#define LEVEL_SPREAD 1.3 /* probes within this factor are on one level */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile of v [n]; sorts v. n > 0. */
static double quantile(double *v, uint32_t n, double q)
{
    qsort(v, n, sizeof v[0], by_value);
    return v[(uint32_t)(q * (n - 1) + 0.5)];
}

static uint32_t index_of(const char *name)
{
    uint32_t i = 0;
    while (strcmp(qn_channel_form(i)->name, name) != 0) {
        i++;
    }
    return i;
}

/* Are the probes around forms `a` and `b` of a turn on one level? */
static bool on_one_level(const double *probe, uint32_t a, uint32_t b)
{
    double low = probe[a];
    double high = probe[a];
    for (uint32_t i = QN_MIN(a, b); i <= QN_MAX(a, b) + 1; i++) {
        low = QN_MIN(low, probe[i]);
        high = QN_MAX(high, probe[i]);
    }
    return high <= low * LEVEL_SPREAD;
}

/* A form relative to another one, by payload: above 1 is better for streams
 * (throughput) and worse for round trips (time). */
static double ratio(const struct qn_channel_form *f,
                    const struct qn_channel_form *raw, double ns, double raw_ns)
{
    double per_byte = ns / f->bytes;
    double raw_per_byte = raw_ns / raw->bytes;
    return f->round_trip ? per_byte / raw_per_byte : raw_per_byte / per_byte;
}

static json_t *spread(double *v, uint32_t n)
{
    return json_pack("{s:f,s:f,s:f}", "median", quantile(v, n, 0.5), "p10",
                     quantile(v, n, 0.1), "p90", quantile(v, n, 0.9));
}

static void report_ratio(const struct qn_channel_results *r, uint32_t i,
                         json_t *to)
{
    const struct qn_channel_form *f = qn_channel_form(i);
    uint32_t raw = index_of(f->ratio_to);
    double v[QN_CHANNEL_TURNS_MAX];
    uint32_t n = 0; /* turns that count */
    for (uint32_t t = 0; t < r->turns; t++) {
        if (on_one_level(r->probe[t], raw, i)) {
            v[n++] = ratio(f, qn_channel_form(raw), r->ns[t][i], r->ns[t][raw]);
        }
    }
    json_object_set_new(to, "ratio_to", json_string(f->ratio_to));
    json_object_set_new(to, "ratio_turns", json_integer(n));
    if (n == 0) {
        fprintf(stderr, "   (no turn with probes on one level)");
        return;
    }
    json_object_set_new(to, "ratio", spread(v, n));
    fprintf(stderr, "   %5.2f of %s (%u turns)", quantile(v, n, 0.5),
            f->ratio_to, n);
}

json_t *qn_channel_report_form(const struct qn_channel_results *r, uint32_t i)
{
    const struct qn_channel_form *f = qn_channel_form(i);
    double ns[QN_CHANNEL_TURNS_MAX];
    double probes[2 * QN_CHANNEL_TURNS_MAX];
    uint32_t n = r->turns;
    for (uint32_t t = 0; t < n; t++) {
        ns[t] = r->ns[t][i];
        probes[2 * t] = r->probe[t][i];
        probes[2 * t + 1] = r->probe[t][i + 1];
    }
    double median = quantile(ns, n, 0.5);
    fprintf(stderr, "  %-16s %9.1f ns %9.2f M/s %8.2f GB/s   probes %.0f-%.0f",
            f->name, median, 1e3 / median, f->bytes / median,
            quantile(probes, 2 * n, 0.1), quantile(probes, 2 * n, 0.9));
    json_t *o = json_pack("{s:s,s:s,s:i,s:o,s:o}", "form", f->name, "what",
                          f->text, "bytes", (int)f->bytes, "ns", spread(ns, n),
                          "probe_ns", spread(probes, 2 * n));
    if (f->ratio_to != NULL) {
        report_ratio(r, i, o);
    }
    fputc('\n', stderr);
    return o;
}

json_t *qn_channel_report_pairs(const struct qn_channel_results *r,
                                uint32_t nodes, const char *kind)
{
    double each[QN_NODES_MAX];
    double sum = 0;
    double cpu = 0;
    double messages = 0;
    uint32_t pairs = nodes / 2;
    for (uint32_t i = 0; i < pairs; i++) {
        double s = r->seconds[2 * i];
        each[i] = s > 0 ? (double)r->trips[2 * i] / s : 0;
        sum += each[i];
        messages += 2 * (double)r->trips[2 * i];
        cpu += (double)r->cpu_ns[2 * i] + (double)r->cpu_ns[2 * i + 1];
    }
    cpu = messages > 0 ? cpu / messages : 0;
    double low = quantile(each, pairs, 0);
    double high = quantile(each, pairs, 1);
    fprintf(stderr,
            "  %2u %-9s %9.0f round trips/s, slowest pair %.0f, fastest %.0f, "
            "%.0f ns of CPU per message\n",
            nodes, kind, sum, low, high, cpu);
    return json_pack("{s:i,s:s,s:f,s:f,s:f,s:f}", "endpoints", (int)nodes,
                     "kind", kind, "round_trips_per_s", sum, "slowest_pair",
                     low, "fastest_pair", high, "cpu_ns_per_message", cpu);
}
