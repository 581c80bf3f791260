#include "loadgen/commit/commit_table.h"

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

double qn_commit_turn_median(const struct qn_commit_turn *t)
{
    struct qn_commit_shared *s = t->shared;
    qsort(s->ns, s->count, sizeof s->ns[0], by_value);
    const uint32_t middle = s->count / 2;
    return s->ns[middle];
}

void qn_commit_row_add(struct qn_commit_row *r, const struct qn_commit_turn *t,
                       double base)
{
    const struct qn_commit_shared *s = t->shared;
    for (uint32_t i = 0; i < s->count; i++) {
        qn_histogram_record(r->ns, s->ns[i]);
    }
    for (qn_node_t i = 0; i < t->nodes; i++) {
        r->sleeps += s->said[i].sleeps;
        r->cpu_ns += s->said[i].cpu_ns;
    }
    r->commands += s->said[t->proposer].applied;
    r->operations += s->count;
    r->rate[r->turns] = (double)s->count * 1e9 / (double)s->elapsed_ns;
    r->ratio[r->turns] = qn_commit_turn_median(t) / base;
    r->turns++;
}

void qn_commit_table_head(void)
{
    fprintf(stderr,
            "proposer  nodes      form        p50 ns       p90       p99     "
            "p99.9      ops/s  sleeps/op  ratio to bare (95 %%)\n");
}

static json_t *interval(const struct qn_median *m)
{
    return json_pack("{s:f,s:f,s:f}", "median", m->median, "low", m->low,
                     "high", m->high);
}

json_t *qn_commit_table_row(struct qn_commit_row *r)
{
    static const double share[] = {0.5, 0.9, 0.99, 0.999};
    const char *kind = r->processes ? "processes" : "threads";
    const char *proposer = r->follower ? "follower" : "leader";
    const struct qn_median rate = qn_median_of(r->rate, r->turns);
    const struct qn_median ratio = qn_median_of(r->ratio, r->turns);
    const double commands = (double)r->commands;
    json_int_t ns[4];
    for (uint32_t i = 0; i < 4; i++) {
        ns[i] = (json_int_t)qn_histogram_quantile(r->ns, share[i]);
    }
    fprintf(stderr,
            "%-9s %-10s %-8s %9lld %9lld %9lld %9lld %10.0f %10.3f  %.3f (%.3f "
            "to %.3f)\n",
            proposer, kind, r->form->name, ns[0], ns[1], ns[2], ns[3],
            rate.median, (double)r->sleeps / commands, ratio.median, ratio.low,
            ratio.high);
    return json_pack("{s:s,s:s,s:i,s:I,s:{s:I,s:I,s:I,s:I},s:f,s:f,s:f,s:o}",
                     "form", r->form->name, "what", r->form->text, "turns",
                     (int)r->turns, "operations", (json_int_t)r->operations,
                     "ns", "p50", ns[0], "p90", ns[1], "p99", ns[2], "p999",
                     ns[3], "per_second", rate.median, "sleeps_per_command",
                     (double)r->sleeps / commands, "cpu_ns_per_command",
                     (double)r->cpu_ns / commands, "ratio", interval(&ratio));
}
