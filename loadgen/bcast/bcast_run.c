/*
 * A node's thread opens its end of the mesh and runs its program on the lanes:
 * the tree lanes carry the operation, the direct lanes requests to the root.
 */
#include "loadgen/bcast/bcast_run.h"

#include <pthread.h>

#include "core/base/err.h"
#include "loadgen/bench/mesh.h"

static int run_node(struct qn_mesh_end *mesh, void *arg)
{
    struct qn_qp *tree[QN_NODES_MAX] = {NULL}, *direct[QN_NODES_MAX] = {NULL};
    for (qn_node_t i = 0; i < mesh->nodes; i++) {
        tree[i] = mesh->qp[i][QN_LANE_TREE];
        direct[i] = mesh->qp[i][QN_LANE_DIRECT];
    }
    const struct qn_operation_end end = {.self = mesh->self,
                                         .tree_qp = tree,
                                         .direct_qp = direct,
                                         .doorbell = &mesh->doorbell,
                                         .ringer = mesh->ringer};
    return qn_operation_node(arg, &end);
}

static int run_all(struct qn_operation_result *r,
                   const struct qn_bcast_run_opts *o,
                   const struct qn_operation_opts *operation)
{
    struct qn_operation *p;
    struct qn_mesh m;
    int rc = qn_operation_create(&p, operation, r);
    if (rc != QN_OK) {
        return rc;
    }
    const struct qn_mesh_opts mesh = {.transport = o->transport,
                                      .nodes = operation->tree->n,
                                      .cells = qn_operation_cells(operation),
                                      .read_only = true,
                                      .core = o->core};
    rc = qn_mesh_create(&m, &mesh);
    if (rc == QN_OK) {
        rc = qn_mesh_run(&m, run_node, p) == 0 ? QN_OK : QN_EIO;
        qn_mesh_destroy(&m);
    }
    if (rc == QN_OK) {
        qn_operation_sum(p);
    }
    qn_operation_destroy(p);
    return rc;
}

static void wait_pthread(void *ctx)
{
    (void)pthread_barrier_wait(ctx); /* fails only on misuse */
}

int qn_bcast_run_measure(struct qn_operation_result *r,
                         const struct qn_bcast_run_opts *o)
{
    struct qn_operation_opts operation = o->operation;
    pthread_barrier_t barrier;
    if (!o->pthread) {
        return run_all(r, o, &operation);
    }
    if (pthread_barrier_init(&barrier, NULL, operation.tree->n) != 0) {
        return QN_ENOMEM;
    }
    operation.other = wait_pthread;
    operation.other_ctx = &barrier;
    int rc = run_all(r, o, &operation);
    pthread_barrier_destroy(&barrier);
    return rc;
}
