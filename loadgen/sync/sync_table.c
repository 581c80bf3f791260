#include "loadgen/sync/sync_table.h"

#include <stdio.h>

#include "core/base/bits.h"

double qn_sync_round_rate(const struct qn_sync_round *round)
{
    return (double)round->operations * 1e9 / (double)round->elapsed_ns;
}

void qn_sync_row_add(struct qn_sync_row *r, const struct qn_sync_round *round,
                     double yardstick)
{
    const struct qn_subject_stats *from = &round->stats;
    const uint64_t least = QN_MAX(round->least, 1u);
    r->rate[r->rounds] = qn_sync_round_rate(round);
    r->ratio[r->rounds] = qn_sync_round_rate(round) / yardstick;
    r->fairness[r->rounds] = (double)round->most / (double)least;
    r->rounds++;
    r->operations += round->operations;
    r->stats.batches += from->batches;
    r->stats.served += from->served;
    r->stats.cas += from->cas;
    r->stats.cas_failed += from->cas_failed;
    r->stats.parks += from->parks;
    r->stats.wakes += from->wakes;
    r->stats.yields += from->yields;
    r->stats.changes += from->changes;
}

void qn_sync_table_head(void)
{
    fprintf(stderr,
            "subject                      Mops/s  of fetch-add (95 %%)       "
            "max/min  ops/batch  cas/op parks/kop   p50 ns    p99.9   p99.99"
            "        max\n");
}

static json_t *interval(const struct qn_median *m)
{
    return json_pack("{s:f,s:f,s:f}", "median", m->median, "low", m->low,
                     "high", m->high);
}

/* 0 where there was none. */
static double per(uint64_t what, uint64_t of)
{
    return of == 0 ? 0 : (double)what / (double)of;
}

static json_t *latency(const struct qn_histogram *h)
{
    static const struct {
        const char *name;
        double share;
    } q[] = {{"p50", 0.5},
             {"p90", 0.9},
             {"p99", 0.99},
             {"p999", 0.999},
             {"p9999", 0.9999}};
    json_t *ns = json_object();
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(q); i++) {
        json_object_set_new(
            ns, q[i].name,
            json_integer((json_int_t)qn_histogram_quantile(h, q[i].share)));
    }
    json_object_set_new(ns, "max", json_integer((json_int_t)h->max));
    return ns;
}

static long long ns_of(const json_t *ns, const char *name)
{
    return json_integer_value(json_object_get(ns, name));
}

json_t *qn_sync_table_row(struct qn_sync_row *r)
{
    char name[64];
    const struct qn_median rate = qn_median_of(r->rate, r->rounds);
    const struct qn_median ratio = qn_median_of(r->ratio, r->rounds);
    const struct qn_median fair = qn_median_of(r->fairness, r->rounds);
    const struct qn_subject_stats *s = &r->stats;
    json_t *ns = latency(r->ns);
    snprintf(name, sizeof name, "%s/%s", r->subject.type->family,
             r->subject.name);
    fprintf(stderr,
            "%-26s %8.2f  %.3f (%.3f to %.3f) %8.2f %10.1f %7.3f %9.3f %8lld "
            "%8lld %8lld %10lld\n",
            name, rate.median / 1e6, ratio.median, ratio.low, ratio.high,
            fair.median, per(s->served, s->batches), per(s->cas, r->operations),
            per(s->parks * 1000, r->operations), ns_of(ns, "p50"),
            ns_of(ns, "p999"), ns_of(ns, "p9999"), ns_of(ns, "max"));
    return json_pack(
        "{s:s,s:i,s:I,s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:o}", "subject",
        name, "rounds", (int)r->rounds, "operations", (json_int_t)r->operations,
        "per_second", interval(&rate), "ratio", interval(&ratio),
        "max_over_min", interval(&fair), "operations_per_batch",
        per(s->served, s->batches), "cas_per_operation",
        per(s->cas, r->operations), "cas_failed_per_operation",
        per(s->cas_failed, r->operations), "parks_per_operation",
        per(s->parks, r->operations), "wakes_per_operation",
        per(s->wakes, r->operations), "yields_per_operation",
        per(s->yields, r->operations), "changes", (json_int_t)s->changes, "ns",
        ns);
}
