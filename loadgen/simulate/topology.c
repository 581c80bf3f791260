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

#define GAP_FACTOR 2.0 /* times the prediction, between two operations */
#define GAP_LEAST  1000u
#define LOOK_NS    400.0 /* most for a look at a line of another node */

/* Cycles of library calls whose lines are in the caller's cache, less their
 * accesses, which the machine prices: `quoin bench calls`. Those of the driver
 * and its protocol: three drivers in one thread, docs/measurements.md. */
static const double software_cycles[QN_MARKS] = {
    [QN_MARK_SEND] = 1,   [QN_MARK_RECEIVE] = 1, [QN_MARK_FLUSH] = 4,
    [QN_MARK_POLL] = 19,  [QN_MARK_PASS] = 19,   [QN_MARK_TURN] = 300,
    [QN_MARK_STEP] = 400,
};

/* By operation: the prediction that its times are compared with. */
static const enum qn_collective predicted[QN_VIRTUALS] = {
    QN_COLLECTIVE_BROADCAST, QN_COLLECTIVE_ACK, QN_COLLECTIVE_REDUCE,
    QN_COLLECTIVE_BARRIER,   QN_COLLECTIVE_ACK, QN_COLLECTIVE_BARRIER,
    QN_COLLECTIVE_2PC};

void qn_simulate_software(double *mark_cycles)
{
    memcpy(mark_cycles, software_cycles, sizeof software_cycles);
}

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

int qn_simulate_prices(const struct qn_simulate *s, struct qn_prices **prices)
{
    static uint32_t core[QN_CORES_MAX];
    struct qn_coherent_opts c = {.clock_ghz = s->ghz, .bare = s->bare};
    qn_simulate_terms_take(&c, &s->terms);
    for (uint32_t i = 0; i < s->m->n; i++) {
        core[i] = s->is_tiled ? s->m->core[i].os : i;
    }
    if (!s->is_tiled && s->software) {
        qn_simulate_software(c.mark_cycles);
    }
    int err = s->is_tiled ? qn_tiled_prices(prices, &s->tiled, core, s->m->n)
                          : qn_coherent_create(prices, s->m, core, s->m->n, &c);
    for (uint32_t i = 0; err == QN_OK && s->is_tiled && i < QN_MARKS; i++) {
        double ps = s->software ? software_cycles[i] * 1000 / s->ghz : 0;
        (*prices)->mark[i] = (qn_ps_t)ps;
    }
    return err;
}

/* From one start to the next, when operations are run one by one. */
static uint64_t gap_ns(const struct qn_simulate *s, double predicted_ns)
{
    return (uint64_t)(GAP_FACTOR * predicted_ns * (1 + (double)s->size / 16)) +
           GAP_LEAST;
}

/* What runs: a tree, or a ring and the tree that has its members. */
struct way {
    struct qn_tree tree;
    const struct qn_diamond_ring *ring;
};

static int run_alone(struct qn_simulate *s, const struct way *way,
                     struct qn_prices *prices, struct qn_simulate_row *row,
                     struct qn_trace *trace)
{
    struct qn_virtual_result r;
    const struct qn_virtual_opts o = {
        .op = s->op,
        .transport = s->transport,
        .tree = &way->tree,
        .ring = way->ring,
        .prices = prices,
        .size = (uint32_t)s->size,
        .count = (uint32_t)s->count,
        .warm = s->warm,
        .gap_ns = gap_ns(s, row->predicted_ns),
        .seed = s->seed,
        .jitter = s->jitter,
        .fault = s->fault,
        .faults = s->faults,
        .trace = trace,
    };
    int err = qn_virtual_run(&r, &o);
    if (err != QN_OK) {
        return err;
    }
    if (r.count > 0) {
        const uint64_t middle = r.count / 2,
                       high = r.count * UINT64_C(99) / 100;
        row->median_ns = (double)r.took[middle] / 1000;
        row->p99_ns = (double)r.took[high] / 1000;
    }
    row->operations = r.count;
    row->wrong = r.wrong;
    row->incomplete = r.incomplete;
    row->run = r.run;
    r.run = (struct qn_timed_result){0}; /* it is the row's now */
    qn_virtual_result_free(&r);
    return QN_OK;
}

/* Least of what `quoin bench` would count; a killed node ends the run. */
static int run_as_bench(struct qn_simulate *s, const struct way *way,
                        struct qn_prices *prices, struct qn_simulate_row *row)
{
    struct qn_bench_run m;
    const double operations = 24.0 * s->m->n + 4 * (double)s->count + 1000;
    const double each =
        (double)gap_ns(s, row->predicted_ns) + LOOK_NS * s->m->n;
    const struct qn_bench_run_opts o = {
        .op = predicted[s->op],
        .transport = s->transport,
        .tree = &way->tree,
        .ring = way->ring,
        .prices = prices,
        .size = s->op == QN_VIRTUAL_BARRIER ? 0 : (uint32_t)s->size,
        .window = (uint32_t)s->window,
        .sources = (uint32_t)s->sources,
        .count = s->count,
        .until_ns = (uint64_t)(operations * each),
        .seed = s->seed,
        .jitter = s->jitter,
        .fault = s->fault,
        .faults = s->faults,
    };
    int err = qn_bench_run_do(&m, &o);
    if (err != QN_OK) {
        return err;
    }
    if (!m.incomplete) {
        row->median_ns = (double)qn_operation_latency(&m.result, 0.5);
        row->p99_ns = (double)qn_operation_latency(&m.result, 0.99);
        row->rate = qn_operation_rate(&m.result);
    }
    row->operations = m.incomplete ? 0 : m.result.sent;
    row->wrong = m.result.wrong;
    row->incomplete = m.incomplete;
    row->run = m.run;
    m.run = (struct qn_timed_result){0}; /* it is the row's now */
    qn_bench_run_free(&m);
    return QN_OK;
}

static bool is_alone(const struct qn_simulate *s)
{
    return s->alone || s->op == QN_VIRTUAL_CHANNEL;
}

static int run_way(struct qn_simulate *s, const struct way *way,
                   struct qn_simulate_row *row)
{
    struct qn_prices *prices;
    int err = qn_simulate_prices(s, &prices);
    if (err != QN_OK) {
        return err;
    }
    clock_t before = clock();
    err = is_alone(s) ? run_alone(s, way, prices, row, NULL)
                      : run_as_bench(s, way, prices, row);
    s->host_s += (double)(clock() - before) / CLOCKS_PER_SEC;
    qn_prices_destroy(prices);
    return err;
}

/* Run the first topology once more, one operation at a time, and draw the
 * last. */
static int draw(struct qn_simulate *s, const struct way *way)
{
    struct qn_simulate_row row = s->row[0];
    struct qn_prices *prices;
    struct qn_trace trace;
    int err = qn_simulate_prices(s, &prices);
    if (err != QN_OK) {
        return err;
    }
    qn_trace_init(&trace);
    row.run = (struct qn_timed_result){0};
    err = run_alone(s, way, prices, &row, &trace);
    if (err == QN_OK) {
        write_pictures(s, &trace);
    }
    qn_timed_result_free(&row.run);
    qn_trace_fini(&trace);
    qn_prices_destroy(prices);
    return err;
}

static void predict(const struct qn_simulate *s,
                    const struct qn_topology_spec *plan,
                    struct qn_simulate_row *row)
{
    const struct qn_shape *shape = &plan->down;
    bool requested = s->op == QN_VIRTUAL_BROADCAST && !is_alone(s);
    bool acks = s->op == QN_VIRTUAL_ACK;
    double q = qn_simulate_queued(s), cycles, busy;
    if (plan->ring != NULL) {
        cycles = qn_topology_spec_cost(plan, s->m, QN_GOAL_ACK, q);
        busy = qn_diamond_ring_occupancy(s->m, plan->ring);
    } else {
        cycles = requested
                     ? qn_predict_published(s->m, shape, predicted[s->op], q)
                     : qn_predict(s->m, shape, predicted[s->op], q);
        busy = qn_predict_occupancy(s->m, shape, acks, NULL);
    }
    row->predicted_ns = cycles / s->ghz;
    row->bound = 1e9 * s->ghz / busy;
    row->median_ns = (double)NAN;
    row->p99_ns = (double)NAN;
    row->rate = (double)NAN;
}

enum qn_goal qn_simulate_goal(enum qn_virtual op)
{
    return (enum qn_goal)predicted[op]; /* the values are the same */
}

double qn_simulate_queued(const struct qn_simulate *s)
{
    if (s->is_tiled) {
        return s->m->facts.queued_factor;
    }
    return s->terms.queued > 0 ? s->terms.queued : 1;
}

/* Node i runs on the core of index i. */
static int find_way(struct way *way, const struct qn_simulate *s,
                    const struct qn_topology_spec *plan)
{
    static qn_node_t node[QN_CORES_MAX];
    for (uint32_t i = 0; i < s->m->n; i++) {
        node[i] = i;
    }
    way->ring = plan->ring;
    return plan->ring != NULL
               ? qn_operation_ring_members(&way->tree, plan->ring)
               : qn_tree_place(&way->tree, &plan->down, node);
}

int qn_simulate_add(struct qn_simulate *s, const char *name,
                    struct qn_topology_spec_opts *o)
{
    static struct way way;
    struct qn_topology_spec plan;
    struct qn_parse_error parse_error = {""};
    if (strncmp(name, "ring", 4) == 0 && s->op != QN_VIRTUAL_ACK) {
        return qn_simulate_fail(
            s, "rings carry acknowledged broadcasts only (quoin sim ack); name "
               "trees");
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
    predict(s, &plan, row);
    o->root = plan.root; /* the other topologies use it, too */
    err = find_way(&way, s, &plan);
    err = err == QN_OK ? run_way(s, &way, row) : err;
    if (err == QN_OK && s->rows == 0 && (s->plot != NULL || s->trace != NULL)) {
        err = draw(s, &way);
    }
    qn_topology_spec_fini(&plan);
    /* Messages of a device go another way; those of several sources, too. */
    if (s->transport->device != NULL || s->sources > 0) {
        row->predicted_ns = row->bound = (double)NAN;
    }
    if (err != QN_OK) {
        return qn_simulate_fail(s, qn_strerror(err));
    }
    s->rows++;
    return 0;
}
