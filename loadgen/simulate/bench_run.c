/*
 * Two nets: the tree's edges, and for requests the edges from the root to all
 * others. The programs end by themselves: a virtual second is long, so the
 * least number of operations decides.
 */
#include "loadgen/simulate/bench_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "loadgen/simulate/net/edges.h"

#define REQUEST_CELLS 128u

static struct {
    const struct qn_bench_run_opts *o;
    struct qn_operation *operation;
    struct qn_edges_device device;
    struct qn_edges_net tree, direct;
    uint32_t complete; /* nodes that came to their end */
} measured;

static void node(void *ctx, uint32_t self)
{
    (void)ctx;
    const struct qn_operation_end end = {.self = self,
                                         .tree_qp = measured.tree.qp[self],
                                         .direct_qp = measured.direct.qp[self]};
    measured.complete += qn_operation_node(measured.operation, &end) == QN_OK;
}

/* Requests to the root. */
static bool has_direct(const struct qn_bench_run_opts *o)
{
    return o->op == QN_COLLECTIVE_BROADCAST || o->sources > 0;
}

/* The root and all others. */
static int open_direct(const struct qn_bench_run_opts *o)
{
    static struct qn_tree star;
    static qn_node_t order[QN_MEMBERS_MAX];
    uint32_t count = 0;
    order[count++] = o->tree->root;
    for (qn_node_t v = 0; v < o->tree->n; v++) {
        if (v != o->tree->root) {
            order[count++] = v;
        }
    }
    int err = qn_tree_build(&star, "sequential", order, count);
    return err != QN_OK ? err
                        : qn_edges_net_open(&measured.direct,
                                            &(struct qn_edges_opts){
                                                .transport = o->transport,
                                                .device = &measured.device,
                                                .lane = QN_LANE_DIRECT,
                                                .tree = &star,
                                                .cells = REQUEST_CELLS});
}

static int run(struct qn_bench_run *m, const struct qn_bench_run_opts *o)
{
    const struct qn_timed_opts t = {.nodes = o->tree->n,
                                    .prices = o->prices,
                                    .main = node,
                                    .seed = o->seed,
                                    .jitter = o->jitter,
                                    .until_ns = o->until_ns,
                                    .fault = o->fault,
                                    .faults = o->faults};
    int err = qn_timed_run(&t, &m->run);
    if (err == QN_OK) {
        m->incomplete = measured.complete < o->tree->n;
        if (!m->incomplete) {
            qn_operation_sum(measured.operation);
        }
    }
    return err;
}

int qn_bench_run_do(struct qn_bench_run *m, const struct qn_bench_run_opts *o)
{
    const struct qn_operation_opts operation = {
        .op = o->op,
        .tree = o->tree,
        .ring = o->ring,
        .size = o->size,
        .window = o->window,
        .sources = o->sources,
        .seconds = 1e-9,
        .least = o->count,
    };
    memset(&measured, 0, sizeof measured);
    *m = (struct qn_bench_run){0};
    measured.o = o;
    int err = qn_operation_result_init(&m->result, o->tree, o->op, o->sources);
    if (err == QN_OK) {
        err = qn_operation_create(&measured.operation, &operation, &m->result);
    }
    if (err == QN_OK) {
        err = qn_edges_device_open(&measured.device, o->transport, o->tree->n);
    }
    if (err == QN_OK) {
        err = qn_edges_net_open(
            &measured.tree,
            &(struct qn_edges_opts){.transport = o->transport,
                                    .device = &measured.device,
                                    .lane = QN_LANE_TREE,
                                    .tree = o->ring == NULL ? o->tree : NULL,
                                    .ring = o->ring,
                                    .cells = qn_operation_cells(&operation)});
    }
    if (err == QN_OK && has_direct(o)) {
        err = open_direct(o);
    } else if (err == QN_OK) {
        measured.direct = measured.tree; /* not used */
    }
    if (err == QN_OK) {
        err = run(m, o);
    }
    qn_edges_net_close(&measured.tree);
    if (has_direct(o)) {
        qn_edges_net_close(&measured.direct);
    }
    qn_edges_device_close(&measured.device);
    qn_operation_destroy(measured.operation);
    if (err != QN_OK) {
        qn_bench_run_free(m);
    }
    return err;
}

void qn_bench_run_free(struct qn_bench_run *m)
{
    qn_operation_result_fini(&m->result);
    qn_timed_result_free(&m->run);
    *m = (struct qn_bench_run){0};
}
