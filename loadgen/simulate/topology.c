/*
 * One topology: planned, predicted, run.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/coherent.h"
#include "core/topo/predict.h"
#include "loadgen/base/output_path.h"
#include "loadgen/simulate/command.h"
#include "transports/registry.h"

#define GAP_FACTOR 2.0 /* times the prediction, between two operations */
#define GAP_LEAST  1000u

/* Cycles of library calls whose lines are in the caller's cache, less their
 * accesses, which the machine prices: `quoin bench calls`. */
static const double software_cycles[QN_MARKS] = {
    [QN_MARK_SEND] = 1,  [QN_MARK_RECEIVE] = 1, [QN_MARK_FLUSH] = 4,
    [QN_MARK_POLL] = 19, [QN_MARK_PASS] = 19,
};

static void write_pictures(struct qn_simulate *s, const struct qn_trace *t)
{
    uint32_t name[QN_CORES_MAX];
    for (uint32_t v = 0; v < s->m->n; v++) {
        name[v] = s->m->core[v].os;
    }
    FILE *to = s->plot != NULL ? qn_output_path_open(s->plot) : NULL;
    if (to != NULL) {
        char title[256];
        snprintf(title, sizeof title, "%s over %s, %u nodes of %s",
                 qn_virtual_name(s->op), s->row[0].name, s->m->n, s->m->name);
        qn_trace_svg(t, s->m->n, name, title, to);
        (void)qn_output_path_close(to);
    }
    to = s->trace != NULL ? qn_output_path_open(s->trace) : NULL;
    if (to != NULL) {
        (void)qn_trace_json(t, s->m->n, name, to);
        (void)qn_output_path_close(to);
    }
}

static int run_tree(struct qn_simulate *s, const struct qn_tree *tree,
                    struct qn_simulate_row *row)
{
    static uint32_t core[QN_CORES_MAX];
    struct qn_coherent_opts c = {.clock_ghz = s->ghz, .bare = s->bare};
    struct qn_prices *prices = NULL;
    struct qn_trace trace;
    bool traced = s->rows == 0 && (s->plot != NULL || s->trace != NULL);
    for (uint32_t i = 0; i < s->m->n; i++) {
        core[i] = i;
    }
    if (s->software) {
        memcpy(c.mark_cycles, software_cycles, sizeof c.mark_cycles);
    }
    int err = qn_coherent_create(&prices, s->m, core, s->m->n, &c);
    if (err != QN_OK) {
        return err;
    }
    qn_trace_init(&trace);
    const struct qn_virtual_opts o = {
        .op = s->op,
        .transport = qn_transport_at(0),
        .tree = tree,
        .prices = prices,
        .size = (uint32_t)s->size,
        .count = (uint32_t)s->count,
        .gap_ns = (uint64_t)(GAP_FACTOR * row->predicted_ns *
                             (1 + (double)s->size / 16)) +
                  GAP_LEAST,
        .seed = s->seed,
        .jitter = s->jitter,
        .fault = s->fault,
        .faults = s->faults,
        .trace = traced ? &trace : NULL,
    };
    clock_t before = clock();
    err = qn_virtual_run(&row->result, &o);
    s->host_s += (double)(clock() - before) / CLOCKS_PER_SEC;
    if (err == QN_OK && traced) {
        write_pictures(s, &trace);
    }
    qn_trace_fini(&trace);
    qn_prices_destroy(prices);
    return err;
}

static void summarize(struct qn_simulate_row *row)
{
    const struct qn_virtual_result *r = &row->result;
    row->median_ns = (double)NAN;
    row->p99_ns = (double)NAN;
    if (r->count > 0) {
        row->median_ns = (double)r->took[r->count / 2] / 1000;
        row->p99_ns = (double)r->took[(uint64_t)r->count * 99 / 100] / 1000;
    }
}

/* By operation: the prediction that its times are compared with. */
static const enum qn_collective predicted[QN_VIRTUALS] = {
    QN_COLLECTIVE_BROADCAST, QN_COLLECTIVE_ACK, QN_COLLECTIVE_REDUCE,
    QN_COLLECTIVE_BARRIER, QN_COLLECTIVE_ACK};

enum qn_goal qn_simulate_goal(enum qn_virtual op)
{
    return (enum qn_goal)predicted[op]; /* the values are the same */
}

int qn_simulate_add(struct qn_simulate *s, const char *name,
                    struct qn_topology_spec_opts *o)
{
    static struct qn_tree tree;
    static qn_node_t node[QN_CORES_MAX];
    struct qn_topology_spec plan;
    struct qn_parse_error parse_error = {""};
    if (strncmp(name, "ring", 4) == 0) {
        return qn_simulate_fail(
            s, "rings are only predicted yet (quoin tree); name trees");
    }
    if (s->rows == QN_SIMULATE_ROWS) {
        return qn_simulate_fail(s, "too many topologies; give at most 64");
    }
    int err = qn_topology_spec_make(&plan, s->m, name, o, &parse_error);
    if (err != QN_OK) {
        return qn_simulate_fail(s, parse_error.text[0] != '\0'
                                       ? parse_error.text
                                       : qn_strerror(err));
    }
    struct qn_simulate_row *row = &s->row[s->rows];
    snprintf(row->name, sizeof row->name, "%s", plan.name);
    for (uint32_t i = 0; i < s->m->n; i++) {
        node[i] = i;
    }
    row->predicted_ns =
        qn_predict(s->m, &plan.down, predicted[s->op], 1) / s->ghz;
    o->root = plan.root; /* the other topologies use it, too */
    err = qn_tree_place(&tree, &plan.down, node);
    err = err == QN_OK ? run_tree(s, &tree, row) : err;
    qn_topology_spec_fini(&plan);
    if (err != QN_OK) {
        return qn_simulate_fail(s, qn_strerror(err));
    }
    summarize(row);
    s->rows++;
    return 0;
}
