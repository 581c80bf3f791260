/*
 * The programs with which `quoin bench` measures operations (loadgen/operation)
 * on the timed machine, where the truth is known: what they report is what the
 * model predicts, on every machine. So a program that measures something else
 * than it says is found here, and the programs stay fit for both machines.
 *
 * Within 5 % of the prediction. Broadcasts take at least 75 % of theirs,
 * because it adds the dearest request to the latest arrival, which may be those
 * of two leaves.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "core/topo/adaptive.h"
#include "core/topo/predict.h"
#include "core/topo/static_trees.h"
#include "loadgen/operation/operation.h"
#include "loadgen/simulate/net/edges.h"
#include "tests/sim/timed/worlds.h"
#include "tests/support/test.h"
#include "transports/registry.h"

#if defined(__SANITIZE_ADDRESS__) /* which makes each run several times slower \
                                   */
#define NODES 8u
#define USUAL 8u
#else
#define NODES 72u /* at most: more than a word of a set has bits */
#define USUAL 20u /* at most, on all machines but the first so large */
#endif
#define LEAST   40u /* operations of each part */
#define MSG_MAX 256u

static const enum qn_collective operations[] = {
    QN_COLLECTIVE_BROADCAST, QN_COLLECTIVE_ACK, QN_COLLECTIVE_REDUCE,
    QN_COLLECTIVE_BARRIER, QN_COLLECTIVE_2PC};

/* One run. */
static struct {
    const struct qn_machine *m;
    struct qn_shape shape;
    struct qn_tree tree, star; /* edges of the tree, and of requests */
    struct qn_edges_net tree_net, star_net;
    struct qn_operation *operation;
    int rc[NODES];
} world;

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    const struct qn_operation_end end = {.self = node,
                                         .tree_qp = world.tree_net.qp[node],
                                         .direct_qp = world.star_net.qp[node]};
    world.rc[node] = qn_operation_node(world.operation, &end);
}

static void simulate(void)
{
    uint32_t core[NODES];
    const struct qn_coherent_opts bare = {.bare = true};
    struct qn_timed_opts o = {
        .nodes = world.m->n, .main = node_main, .seed = 1};
    struct qn_timed_result run;
    for (uint32_t i = 0; i < o.nodes; i++) {
        core[i] = i;
        world.rc[i] = -1;
    }
    cr_assert_eq(qn_coherent_create(&o.prices, world.m, core, o.nodes, &bare),
                 QN_OK);
    cr_assert_eq(qn_timed_run(&o, &run), QN_OK);
    for (uint32_t i = 0; i < o.nodes; i++) {
        cr_assert_eq(world.rc[i], QN_OK, "node %u", i);
    }
    qn_timed_result_free(&run);
    qn_prices_destroy(o.prices);
}

/* @return the median latency, ns. */
static double measure(enum qn_collective op)
{
    struct qn_operation_result r;
    const struct qn_operation_opts o = {
        .op = op, .tree = &world.tree, .size = 8, .window = 4, .least = LEAST};
    cr_assert_eq(qn_operation_result_init(&r, &world.tree, op, 0), QN_OK);
    cr_assert_eq(qn_operation_create(&world.operation, &o, &r), QN_OK);
    struct qn_edges_opts net = {.transport = qn_transport_at(0),
                                .tree = &world.tree,
                                .cells = qn_operation_cells(&o),
                                .msg_max = MSG_MAX};
    cr_assert_eq(qn_edges_net_open(&world.tree_net, &net), QN_OK);
    net.tree = &world.star;
    cr_assert_eq(qn_edges_net_open(&world.star_net, &net), QN_OK);
    simulate();
    qn_operation_sum(world.operation);
    cr_assert_eq(r.wrong, 0);
    cr_assert_geq(r.stream, LEAST);
    double median = (double)qn_operation_latency(&r, 0.5);
    qn_edges_net_close(&world.tree_net);
    qn_edges_net_close(&world.star_net);
    qn_operation_destroy(world.operation);
    qn_operation_result_fini(&r);
    return median;
}

static void compare(const char *name, enum qn_collective op)
{
    const struct qn_machine *m = world.m;
    bool request = op == QN_COLLECTIVE_BROADCAST;
    double ghz = m->facts.clock_ghz > 0 ? m->facts.clock_ghz : 2;
    double cycles = request ? qn_predict_published(m, &world.shape, op, 1)
                            : qn_predict(m, &world.shape, op, 1);
    double ratio = measure(op) / (cycles / ghz);
    if (getenv("QN_VERBOSE") != NULL) {
        fprintf(stderr, "%-24s %-10s %-9s %.3f\n", m->name, name,
                qn_collective_name(op), ratio);
    }
    cr_assert(ratio >= (request ? 0.75 : 0.95) && ratio <= 1.05,
              "%s, %s, %s: %.3f of the prediction", m->name, name,
              qn_collective_name(op), ratio);
}

static void one_tree(const char *name)
{
    qn_node_t order[NODES];
    for (uint32_t i = 0; i < world.m->n; i++) {
        order[i] = i;
    }
    cr_assert_eq(qn_tree_place(&world.tree, &world.shape, order), QN_OK);
    cr_assert_eq(qn_tree_build(&world.star, "sequential", order, world.m->n),
                 QN_OK);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(operations); i++) {
        compare(name, operations[i]);
    }
}

static void each_machine(const struct qn_machine *all)
{
    static bool large_done;
    uint32_t n = QN_MIN(all->n, large_done ? USUAL : NODES), index[NODES];
    struct qn_machine *m;
    large_done |= n == NODES;
    for (uint32_t i = 0; i < n; i++) {
        index[i] = i * all->n / n;
    }
    cr_assert_eq(qn_machine_restrict(&m, all, index, n), QN_OK);
    world.m = m;
    cr_assert_eq(qn_adaptive_build(&world.shape, m, 0, QN_LEVEL_NODE), QN_OK);
    one_tree("adaptive");
    cr_assert_eq(qn_static_build(&world.shape, m, "binary", 0, QN_LEVEL_NODE),
                 QN_OK);
    one_tree("binary");
    qn_machine_destroy(m);
}

Test(programs, report_what_the_model_predicts_on_every_machine, .timeout = 250)
{
    cr_assert_eq(worlds_each(each_machine), 15);
}
