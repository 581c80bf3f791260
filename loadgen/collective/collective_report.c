#include "loadgen/collective/collective_report.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of v [n], which is sorted. n > 0. */
static double quantile(const double *v, uint32_t n, double q)
{
    return v[(uint32_t)(q * (n - 1) + 0.5)];
}

static json_t *report_form(const struct qn_collective_result *r, uint32_t i,
                           uint32_t size)
{
    const struct qn_collective_form *f = qn_collective_form(i);
    const uint32_t bytes = f->bytes == QN_COLLECTIVE_AS_SIZE ? size : f->bytes;
    double ns[QN_COLLECTIVE_TURNS_MAX];
    for (uint32_t t = 0; t < r->turns; t++) {
        ns[t] = r->ns[t][i];
    }
    qsort(ns, r->turns, sizeof ns[0], by_value);
    const double median = quantile(ns, r->turns, 0.5);
    const double p10 = quantile(ns, r->turns, 0.1);
    const double p90 = quantile(ns, r->turns, 0.9);
    fprintf(stderr, "  %-10s %5u bytes %10.0f ns  %10.0f .. %-10.0f\n", f->name,
            bytes, median, p10, p90);
    return json_pack("{s:s,s:s,s:i,s:{s:f,s:f,s:f}}", "operation", f->name,
                     "what", f->text, "bytes", (int)bytes, "ns", "median",
                     median, "p10", p10, "p90", p90);
}

json_t *qn_collective_report(struct qn_collective_result *r,
                             const struct qn_collective_run_opts *o)
{
    const char *kind = o->processes ? "processes" : "threads";
    json_t *operations = json_array();
    uint64_t wrong = 0;
    fprintf(stderr, "%u %s, medians of %u turns, p10 .. p90\n", o->nodes, kind,
            r->turns);
    for (uint32_t i = 0; r->turns > 0 && qn_collective_form(i) != NULL; i++) {
        if ((o->forms >> i & 1) != 0) {
            json_array_append_new(operations,
                                  report_form(r, i, o->collective.size));
        }
    }
    for (uint32_t v = 0; v < o->nodes; v++) {
        wrong += r->wrong[v];
    }
    return json_pack("{s:s,s:i,s:i,s:I,s:o}", "kind", kind, "nodes",
                     (int)o->nodes, "turns", (int)r->turns, "wrong",
                     (json_int_t)wrong, "operations", operations);
}
