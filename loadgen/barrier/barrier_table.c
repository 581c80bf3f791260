#include "loadgen/barrier/barrier_table.h"

#include <stdio.h>

void qn_barrier_table_head(uint32_t members, const char *kind,
                           const char *first)
{
    char title[40];
    snprintf(title, sizeof title, "%u %s", members, kind);
    fprintf(stderr, "%-32s %10s  of %s (95 %%)\n", title, "us", first);
}

static json_t *interval(const struct qn_median *m)
{
    return json_pack("{s:f,s:f,s:f}", "median", m->median, "low", m->low,
                     "high", m->high);
}

json_t *qn_barrier_table_row(struct qn_barrier_row *r)
{
    if (r->count == 0 && r->refused != NULL) {
        fprintf(stderr, "%-32s %10s  %s\n", r->name, "-", r->refused);
        return json_pack("{s:s,s:s}", "subject", r->name, "refused",
                         r->refused);
    }
    if (r->count == 0) {
        fprintf(stderr, "%-32s %10.0f  measured once: it takes too long\n",
                r->name, r->once / 1e3);
        return json_pack("{s:s,s:f}", "subject", r->name, "ns_once", r->once);
    }
    const struct qn_median ns = qn_median_of(r->ns, r->rounds);
    const struct qn_median ratio = qn_median_of(r->ratio, r->rounds);
    fprintf(stderr, "%-32s %10.3f  %.3f (%.3f to %.3f)\n", r->name,
            ns.median / 1e3, ratio.median, ratio.low, ratio.high);
    return json_pack("{s:s,s:I,s:i,s:o,s:o}", "subject", r->name, "count",
                     (json_int_t)r->count, "rounds", (int)r->rounds, "ns",
                     interval(&ns), "ratio", interval(&ratio));
}
