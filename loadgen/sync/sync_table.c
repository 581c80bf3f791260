#include "loadgen/sync/sync_table.h"

#include <math.h>
#include <stdio.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define NAME_BYTES  64
#define SHARE_BYTES 40

double qn_sync_round_rate(const struct qn_sync_round *round)
{
    return (double)round->operations * 1e9 / (double)round->elapsed_ns;
}

void qn_sync_row_add(struct qn_sync_row *r, const struct qn_sync_round *round,
                     const struct qn_sync_beside *beside)
{
    const double rate = qn_sync_round_rate(round);
    const uint64_t least = QN_MAX(round->least, 1u);
    r->rate[r->rounds] = rate;
    r->ratio[r->rounds] = rate / beside->yardstick;
    r->kept[r->rounds] = rate / beside->first;
    r->fairness[r->rounds] = (double)round->most / (double)least;
    r->stalled[r->rounds] = round->stalled;
    r->rounds++;
    r->operations += round->all;
    qn_subject_stats_add(&r->stats, &round->stats);
}

void qn_sync_table_head(uint32_t first)
{
    fprintf(stderr,
            "subject                      Mops/s  of fetch-add (95 %%)    "
            "of the best other (95 %%) "
            "of %3u threads max/min ops/batch  cas/op changes parks/kop "
            "stalled   p50 ns    p99.9   p99.99        max\n",
            first);
}

/* With the family in front. */
static void full_name(char name[NAME_BYTES], const struct qn_subject_name *n)
{
    (void)snprintf(name, NAME_BYTES, "%s/%s", n->type->family, n->name);
}

static json_t *interval(const struct qn_median *m)
{
    return json_pack("{s:f,s:f,s:f}", "median", m->median, "low", m->low,
                     "high", m->high);
}

/* null: there is no other. */
static json_t *of_best(const struct qn_sync_row *r, const struct qn_median *m)
{
    char name[NAME_BYTES];
    if (r->best == NULL) {
        return json_null();
    }
    json_t *all = interval(m);
    full_name(name, &r->best->subject);
    json_object_set_new(all, "subject", json_string(name));
    return all;
}

/* 0 where there was none. */
static double per(uint64_t what, uint64_t of)
{
    return of == 0 ? 0 : (double)what / (double)of;
}

/* null: no operation was timed. */
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
    if (h->max == 0) {
        return json_null();
    }
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

/* Medians of a row's rounds. */
struct medians {
    struct qn_median rate, ratio, share, kept, fairness, stalled;
};

static json_t *object_of(const struct qn_sync_row *r, const char *name,
                         const struct medians *m, json_t *ns)
{
    const struct qn_subject_stats *s = &r->stats;
    return json_pack(
        "{s:s,s:i,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:o}",
        "subject", name, "rounds", (int)r->rounds, "operations",
        (json_int_t)r->operations, "per_second", interval(&m->rate), "ratio",
        interval(&m->ratio), "of_best_other", of_best(r, &m->share),
        "of_first_threads", interval(&m->kept), "max_over_min",
        interval(&m->fairness), "stalled",
        isnan(m->stalled.median) ? json_null() : json_real(m->stalled.median),
        "operations_per_batch", per(s->served, s->batches), "cas_per_operation",
        per(s->cas, r->operations), "cas_failed_per_operation",
        per(s->cas_failed, r->operations), "parks_per_operation",
        per(s->parks, r->operations), "wakes_per_operation",
        per(s->wakes, r->operations), "yields_per_operation",
        per(s->yields, r->operations), "changes", (json_int_t)s->changes, "ns",
        ns);
}

static json_t *refused(const struct qn_sync_row *r, const char *name)
{
    const char *why = r->refused == QN_EINVAL
                          ? "not with these options, or there are too few "
                            "cores or queues of words"
                          : qn_strerror(r->refused);
    fprintf(stderr, "%-26s not here: %s\n", name, why);
    return json_pack("{s:s,s:s}", "subject", name, "refused", why);
}

static struct qn_median median_share(struct qn_sync_row *r)
{
    const struct qn_median none = {0};
    return r->best != NULL ? qn_median_of(r->share, r->rounds) : none;
}

json_t *qn_sync_table_row(struct qn_sync_row *r)
{
    char name[NAME_BYTES];
    full_name(name, &r->subject);
    if (r->refused != QN_OK) {
        return refused(r, name);
    }
    const struct medians m = {.rate = qn_median_of(r->rate, r->rounds),
                              .ratio = qn_median_of(r->ratio, r->rounds),
                              .share = median_share(r),
                              .kept = qn_median_of(r->kept, r->rounds),
                              .fairness = qn_median_of(r->fairness, r->rounds),
                              .stalled = qn_median_of(r->stalled, r->rounds)};
    const struct qn_subject_stats *s = &r->stats;
    json_t *ns = latency(r->ns);
    char stalled[16] = "-";
    if (!isnan(m.stalled.median)) {
        snprintf(stalled, sizeof stalled, "%.2f", m.stalled.median);
    }
    char share[SHARE_BYTES] = "-";
    if (r->best != NULL) {
        (void)snprintf(share, sizeof share, "%.3f (%.3f to %.3f)",
                       m.share.median, m.share.low, m.share.high);
    }
    fprintf(
        stderr,
        "%-26s %8.2f  %.3f (%.3f to %.3f) %24s %14.3f %7.2f %9.1f %7.3f %7llu "
        "%9.3f %7s %8lld %8lld %8lld %10lld\n",
        name, m.rate.median / 1e6, m.ratio.median, m.ratio.low, m.ratio.high,
        share, m.kept.median, m.fairness.median, per(s->served, s->batches),
        per(s->cas, r->operations), (unsigned long long)s->changes,
        per(s->parks * 1000, r->operations), stalled, ns_of(ns, "p50"),
        ns_of(ns, "p999"), ns_of(ns, "p9999"), ns_of(ns, "max"));
    return object_of(r, name, &m, ns);
}
