/*
 * Text formats of `quoin tree`. core/plan/exchange writes trees; rings, which
 * it does not support as graphs, are written here in the same form.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/tree_io.h"
#include "loadgen/topo/tree_internal.h"

static uint32_t os(const struct qn_tree_job *j, uint32_t v)
{
    return j->m->core[v].os;
}

static uint32_t count_labels(const struct qn_machine *m, enum qn_level level)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        uint32_t u = 0;
        while (qn_machine_group(m, level, u) != qn_machine_group(m, level, v)) {
            u++;
        }
        count += u == v;
    }
    return count;
}

static void counted(FILE *to, uint32_t count, const char *what)
{
    fprintf(to, "%u %s%s", count, what, count == 1 ? "" : "s");
}

static void write_head(const struct qn_tree_job *j, FILE *to)
{
    fprintf(to, "%s: ", j->m->name[0] != '\0' ? j->m->name : "machine");
    counted(to, j->m->n, "core");
    fputs(", ", to);
    counted(to, count_labels(j->m, QN_LEVEL_SOCKET), "socket");
    fputs(", ", to);
    counted(to, count_labels(j->m, QN_LEVEL_NODE), "memory node");
    fputs(", ", to);
    counted(to, count_labels(j->m, QN_LEVEL_CACHE), "cache");
    fprintf(to, "\n%s, cycles as predicted (queued factor %g)\n\n", j->goal,
            j->o.q);
}

/* Ranks by cost; topologies that do not support the operation come last. */
static void rank(const struct qn_tree_job *j, uint32_t *order)
{
    for (uint32_t i = 0; i < j->count; i++) {
        uint32_t at = i;
        for (; at > 0; at--) {
            double a = j->cost[order[at - 1]], b = j->cost[i];
            if (!(isnan(a) || b < a) || isnan(b)) {
                break;
            }
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static void write_row(const struct qn_tree_job *j, uint32_t i, FILE *to)
{
    const struct qn_topology_spec *c = &j->rival[i];
    char cycles[32] = "-", times[32] = "-", burst[32] = "-";
    double each = 0;
    if (!isnan(j->cost[i])) {
        (void)snprintf(cycles, sizeof cycles, "%.0f", j->cost[i]);
    }
    if (!isnan(j->cost[i]) && j->cost[0] > 0) {
        (void)snprintf(times, sizeof times, "%.3f", j->cost[i] / j->cost[0]);
    }
    if (qn_topology_spec_burst(c, j->m, j->o.q, &each) == QN_OK) {
        (void)snprintf(burst, sizeof burst, "%.0f", each);
    }
    fprintf(to, "%c %-22s %6u %11s %8s %6u %7u %12s\n", i == 0 ? '*' : ' ',
            c->name, os(j, c->root), cycles, times, qn_topology_spec_depth(c),
            qn_topology_spec_degree(c), burst);
}

static void write_table(const struct qn_tree_job *j, FILE *to)
{
    uint32_t order[QN_TREE_RIVALS];
    rank(j, order);
    fprintf(to, "  %-22s %6s %11s %8s %6s %7s %12s\n", "topology", "root",
            "cycles", "of *", "depth", "degree", "pipeline");
    for (uint32_t i = 0; i < j->count; i++) {
        write_row(j, order[i], to);
    }
    fprintf(to, "  %-22s %6s %11.0f", "lower bound of trees", "", j->bound);
    if (j->cost[0] > 0) {
        fprintf(to, " %8.3f", j->bound / j->cost[0]);
    }
    fputs("\n\n* is the plan. pipeline: cycles per acknowledged broadcast, 128 "
          "in a row.\n",
          to);
}

/* For acknowledged broadcasts a ring may be better than any tree. */
static void write_better_ring(const struct qn_tree_job *j, FILE *to)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < j->count; i++) {
        best =
            j->rival[i].ring != NULL && j->cost[i] < j->cost[best] ? i : best;
    }
    if (j->rival[0].ring != NULL || best == 0) {
        return;
    }
    if (j->o.goal == QN_GOAL_THROUGHPUT) {
        fprintf(to,
                "A ring has more throughput: %s, %.0f cycles of its busiest "
                "core, the plan %.0f.\n",
                j->rival[best].name, j->cost[best], j->cost[0]);
    } else {
        fprintf(to, "A ring is faster: %s, %.0f cycles, the plan %.0f.\n",
                j->rival[best].name, j->cost[best], j->cost[0]);
    }
}

static void write_tree(const struct qn_tree_job *j, const struct qn_shape *s,
                       const char *what, FILE *to)
{
    uint16_t order[QN_CORES_MAX];
    uint32_t n = qn_shape_order(s, order);
    fprintf(to, "\n%s, root %u; %s:\n", what, os(j, s->root),
            strcmp(what, "up") == 0
                ? "each parent with the children that answer to it"
                : "children in the order of sending");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = order[i];
        if (s->count[v] > 0) {
            fprintf(to, "  %u:", os(j, v));
        }
        for (uint32_t k = 0; k < s->count[v]; k++) {
            fprintf(to, " %u", os(j, qn_shape_children(s, v)[k]));
        }
        fputs(s->count[v] > 0 ? "\n" : "", to);
    }
}

static void write_ring(const struct qn_tree_job *j,
                       const struct qn_diamond_ring *r, FILE *to)
{
    fprintf(to,
            "\nring of %u levels, %u rings; successors in the order "
            "of sending:\n",
            r->levels, r->rings);
    for (uint32_t i = 0; i < r->o.n; i++) {
        uint32_t id = i == 0 ? 0 : r->o.n - i;
        fprintf(to, "  %u:", os(j, r->core[id]));
        for (uint32_t e = r->first[id]; e < r->first[id + 1]; e++) {
            fprintf(to, " %u", os(j, r->core[r->next[e]]));
        }
        fputs("\n", to);
    }
}

void qn_tree_write_text(const struct qn_tree_job *j, FILE *to)
{
    const struct qn_topology_spec *c = &j->rival[0];
    write_head(j, to);
    write_table(j, to);
    if (c->exact) {
        fputs("The plan is the best tree: proven.\n", to);
    } else if (c->provable) {
        fputs("It has not been proven that the plan is the best tree; --moves "
              "10000000 proves it in most cases, in seconds.\n",
              to);
    }
    write_better_ring(j, to);
    if (c->ring != NULL) {
        write_ring(j, c->ring, to);
    } else if (c->two_trees) {
        write_tree(j, &c->down, "down", to);
        write_tree(j, &c->up, "up", to);
    } else {
        write_tree(j, &c->down, "tree", to);
    }
}

/* ---- JSON ---- */

static void write_string(const char *text, FILE *to)
{
    json_t *s = json_string(text);
    if (s == NULL || json_dumpf(s, to, JSON_ENCODE_ANY) != 0) {
        fputs("null", to);
    }
    json_decref(s);
}

static void write_number(double x, FILE *to)
{
    if (isnan(x)) {
        fputs("null", to);
    } else {
        fprintf(to, "%.15g", x);
    }
}

static void write_rival(const struct qn_tree_job *j, uint32_t i, FILE *to)
{
    const struct qn_topology_spec *c = &j->rival[i];
    double each = NAN;
    (void)qn_topology_spec_burst(c, j->m, j->o.q, &each);
    fputs("\n  {\"name\": ", to);
    write_string(c->name, to);
    fprintf(to, ", \"root\": %u, \"cycles\": ", os(j, c->root));
    write_number(j->cost[i], to);
    fprintf(to, ", \"depth\": %u, \"degree\": %u, \"pipeline_cycles\": ",
            qn_topology_spec_depth(c), qn_topology_spec_degree(c));
    write_number(each, to);
    fputs("}", to);
}

static void write_ring_json(const struct qn_tree_job *j,
                            const struct qn_diamond_ring *r, FILE *to)
{
    fprintf(to, "{\"k\": %u, \"full\": %s, \"companion\": %s, \"core\": [",
            r->o.k, r->o.full ? "true" : "false",
            r->o.companion ? "true" : "false");
    for (uint32_t id = 0; id < r->o.n; id++) {
        fprintf(to, "%s%u", id > 0 ? ", " : "", os(j, r->core[id]));
    }
    fputs("], \"edges\": [", to);
    for (uint32_t id = 0; id < r->o.n; id++) {
        for (uint32_t e = r->first[id]; e < r->first[id + 1]; e++) {
            fprintf(to, "%s[%u, %u]", e > 0 ? ", " : "", os(j, r->core[id]),
                    os(j, r->core[r->next[e]]));
        }
    }
    fputs("]}", to);
}

int qn_tree_write_plan_json(const struct qn_tree_job *j, FILE *to)
{
    const struct qn_topology_spec *c = &j->rival[0];
    int err = QN_OK;
    fputs("{\"format\": \"quoin-plan\", \"version\": 1,\n \"machine\": ", to);
    write_string(j->m->name, to);
    fprintf(to,
            ", \"cores\": %u, \"op\": \"%s\", \"queued_factor\": %.15g,\n"
            " \"bound\": %.15g, \"exact\": %s, \"compared\": [",
            j->m->n, j->goal, j->o.q, j->bound, c->exact ? "true" : "false");
    for (uint32_t i = 0; i < j->count; i++) {
        fputs(i > 0 ? "," : "", to);
        write_rival(j, i, to);
    }
    fputs("],\n", to);
    if (c->ring != NULL) {
        fputs(" \"ring\": ", to);
        write_ring_json(j, c->ring, to);
    } else {
        fputs(" \"down\": ", to);
        err = qn_tree_write_json(j->m, &c->down, to);
        fputs(",\n \"up\": ", to);
        err = err == QN_OK ? qn_tree_write_json(j->m, &c->up, to) : err;
    }
    fputs("}\n", to);
    return ferror(to) ? QN_EIO : err;
}

/* ---- Graphviz ---- */

static void write_ring_dot(const struct qn_tree_job *j,
                           const struct qn_diamond_ring *r, FILE *to)
{
    fprintf(to,
            "digraph ring {\n  node [shape=circle];\n  %u "
            "[shape=doublecircle];\n",
            os(j, r->core[0]));
    for (uint32_t id = 0; id < r->o.n; id++) {
        for (uint32_t e = r->first[id]; e < r->first[id + 1]; e++) {
            fprintf(to, "  %u -> %u [label=\"%u\"];\n", os(j, r->core[id]),
                    os(j, r->core[r->next[e]]), e - r->first[id]);
        }
    }
    fputs("}\n", to);
}

int qn_tree_write_plan_dot(const struct qn_tree_job *j, FILE *to)
{
    const struct qn_topology_spec *c = &j->rival[0];
    if (c->ring != NULL) {
        write_ring_dot(j, c->ring, to);
        return ferror(to) ? QN_EIO : QN_OK;
    }
    int err =
        qn_tree_write_dot(j->m, &c->down, c->two_trees ? "down" : "tree", to);
    if (err == QN_OK && c->two_trees) {
        err = qn_tree_write_dot(j->m, &c->up, "up", to);
    }
    return err;
}
