/*
 * Ratios are averaged as logarithms, first over the sizes of a machine, then
 * over machines, so that a large machine has the weight of one machine.
 */
#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/topo/static_trees.h"
#include "loadgen/topo/model/sweep.h"

bool qn_sweep_is_static(const struct qn_sweep *s, uint32_t topo)
{
    for (uint32_t i = 0; qn_static_name_at(i) != NULL; i++) {
        if (strcmp(qn_static_name_at(i), s->topo[topo]) == 0) {
            return true;
        }
    }
    return false;
}

static bool counts(const struct qn_sweep *s, const struct qn_sweep_group *g,
                   uint32_t machine, uint32_t size)
{
    uint32_t want = size == UINT32_MAX ? s->machine[g->machine]->n
                    : size == 0        ? g->size
                                       : size;
    return (machine == UINT32_MAX || g->machine == machine) && g->size == want;
}

/* The ratio to average: `topo`, or the best static tree, over `than`. */
struct ratio {
    uint32_t topo; /* UINT32_MAX: the best static tree */
    uint32_t than;
    uint32_t goal;
};

static double ratio_of(const struct qn_sweep *s, const struct qn_sweep_group *g,
                       const struct ratio *r)
{
    double best = INFINITY;
    if (r->topo != UINT32_MAX) {
        best = g->cost[r->topo][r->goal];
    }
    for (uint32_t t = 0; r->topo == UINT32_MAX && t < s->topos; t++) {
        if (qn_sweep_is_static(s, t)) {
            best = QN_MIN(best, g->cost[t][r->goal]);
        }
    }
    return best / g->cost[r->than][r->goal];
}

static double mean(const struct qn_sweep *s, const struct ratio *r,
                   uint32_t machine, uint32_t size)
{
    double all = 0;
    uint32_t machines = 0;
    for (uint32_t m = 0; m < s->machines; m++) {
        double sum = 0;
        uint32_t count = 0;
        for (uint32_t i = 0; i < s->groups; i++) {
            const struct qn_sweep_group *g = &s->group[i];
            double x = counts(s, g, machine, size) && g->machine == m
                           ? ratio_of(s, g, r)
                           : NAN;
            if (isfinite(x) && x > 0) {
                sum += log(x);
                count++;
            }
        }
        all += count > 0 ? sum / count : 0;
        machines += count > 0;
    }
    return machines > 0 ? exp(all / machines) : NAN;
}

double qn_sweep_times(const struct qn_sweep *s, uint32_t topo, uint32_t goal,
                      uint32_t machine, uint32_t size)
{
    const struct ratio r = {topo, QN_SWEEP_AUTO, goal};
    return mean(s, &r, machine, size);
}

double qn_sweep_gain(const struct qn_sweep *s, uint32_t than, uint32_t goal,
                     uint32_t size)
{
    const struct ratio r = {UINT32_MAX, than, goal};
    return mean(s, &r, UINT32_MAX, size);
}

/* ---- text ---- */

static void write_number(double x, FILE *to)
{
    if (isnan(x)) {
        fprintf(to, " %10s", "-");
    } else {
        fprintf(to, " %10.3f", x);
    }
}

static void write_columns(const char *first, FILE *to)
{
    fprintf(to, "%-18s", first);
    for (uint32_t g = 0; g < QN_SWEEP_GOALS; g++) {
        fprintf(to, " %10s", qn_goal_name(g));
    }
    fputs("\n", to);
}

static void write_means(const struct qn_sweep *s, const char *title,
                        uint32_t size, FILE *to)
{
    fprintf(to, "\n%s: times the cost of auto, geometric mean\n", title);
    write_columns("topology", to);
    for (uint32_t t = 0; t < s->topos; t++) {
        fprintf(to, "%-18s", s->topo[t]);
        for (uint32_t g = 0; g < QN_SWEEP_GOALS; g++) {
            write_number(qn_sweep_times(s, t, g, UINT32_MAX, size), to);
        }
        fputs("\n", to);
    }
    for (uint32_t than = 0; than < QN_SWEEP_OTHERS; than++) {
        fprintf(to, "%-18s", than == 0 ? "best static" : "  over first core");
        for (uint32_t g = 0; g < QN_SWEEP_GOALS; g++) {
            write_number(qn_sweep_gain(s, than, g, size), to);
        }
        fputs("\n", to);
    }
}

/* Groups in which one of the rows [from, end) is better than `auto`. */
static uint32_t count_better(const struct qn_sweep *s, uint32_t from,
                             uint32_t end)
{
    uint32_t better = 0;
    for (uint32_t i = 0; i < s->groups; i++) {
        const struct qn_sweep_group *g = &s->group[i];
        bool lost = false;
        for (uint32_t t = from; t < end; t++) {
            bool ring = strncmp(s->topo[t], "ring:", 5) == 0;
            for (uint32_t k = 0; k < QN_SWEEP_GOALS && !ring; k++) {
                lost |= g->cost[t][k] < g->cost[0][k] * (1 - 1e-9);
            }
        }
        better += lost;
    }
    return better;
}

static void write_better(const struct qn_sweep *s, FILE *to)
{
    fprintf(to,
            "\nGroups in which auto is worse than a static or the adaptive "
            "tree: %u of %u;\nthan auto from the first core: %u.\n",
            count_better(s, QN_SWEEP_OTHERS, s->topos), s->groups,
            count_better(s, QN_SWEEP_AUTO_FIRST, QN_SWEEP_OTHERS));
}

static void write_machine(const struct qn_sweep *s, uint32_t machine, FILE *to)
{
    const struct qn_sweep_group *g = NULL;
    for (uint32_t i = 0; i < s->groups; i++) {
        if (s->group[i].machine == machine) {
            g = &s->group[i]; /* the last is the largest */
        }
    }
    if (g == NULL) {
        return;
    }
    fprintf(to, "\n%s, %u of %u cores: cycles\n", s->machine[machine]->name,
            g->size, s->machine[machine]->n);
    write_columns("topology", to);
    for (uint32_t t = 0; t < s->topos; t++) {
        fprintf(to, "%-18s", s->topo[t]);
        for (uint32_t k = 0; k < QN_SWEEP_GOALS; k++) {
            if (isnan(g->cost[t][k])) {
                fprintf(to, " %10s", "-");
            } else {
                fprintf(to, " %10.0f", g->cost[t][k]);
            }
        }
        fputs("\n", to);
    }
}

void qn_sweep_write_text(const struct qn_sweep *s, FILE *to)
{
    fprintf(to,
            "%u machine%s, %u group%s, %u topologies, %u operations: %.1f s on "
            "%u thread%s\n",
            s->machines, s->machines == 1 ? "" : "s", s->groups,
            s->groups == 1 ? "" : "s", s->topos, QN_SWEEP_GOALS, s->seconds,
            s->threads, s->threads == 1 ? "" : "s");
    write_means(s, "Groups of all sizes", 0, to);
    write_means(s, "Whole machines", UINT32_MAX, to);
    write_better(s, to);
    for (uint32_t i = 0; i < s->machines; i++) {
        write_machine(s, i, to);
    }
}

/* ---- CSV ---- */

/* Names with special characters are quoted. */
static void write_name(const char *name, FILE *to)
{
    if (strpbrk(name, ",\"\n\r") == NULL) {
        fputs(name, to);
        return;
    }
    fputc('"', to);
    for (; *name != '\0'; name++) {
        fputs(*name == '"' ? "\"" : "", to);
        fputc(*name, to);
    }
    fputc('"', to);
}

void qn_sweep_write_csv(const struct qn_sweep *s, FILE *to)
{
    fputs("machine,cores,size,topology,op,cycles,times_auto\n", to);
    for (uint32_t i = 0; i < s->groups; i++) {
        const struct qn_sweep_group *g = &s->group[i];
        for (uint32_t t = 0; t < s->topos; t++) {
            for (uint32_t k = 0; k < QN_SWEEP_GOALS; k++) {
                if (isnan(g->cost[t][k])) {
                    continue;
                }
                write_name(s->machine[g->machine]->name, to);
                fprintf(to, ",%u,%u,", s->machine[g->machine]->n, g->size);
                write_name(s->topo[t], to);
                fprintf(to, ",%s,%.15g,%.6f\n", qn_goal_name(k), g->cost[t][k],
                        g->cost[t][k] / g->cost[0][k]);
            }
        }
    }
}
