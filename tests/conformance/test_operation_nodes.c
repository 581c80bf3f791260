/*
 * The programs of loadgen/operation between real threads: each operation over
 * each shape, with nodes that sleep and with nodes that poll. Every message and
 * result is checked by the programs themselves, which count what is wrong.
 */
#include "core/base/bits.h"
#include "loadgen/bcast/bcast_run.h"
#include "tests/conformance/pair.h"
#include "tests/support/sanitized.h"

static const enum qn_collective operations[] = {
    QN_COLLECTIVE_BROADCAST, QN_COLLECTIVE_ACK, QN_COLLECTIVE_REDUCE,
    QN_COLLECTIVE_BARRIER, QN_COLLECTIVE_2PC};

struct run {
    enum qn_collective op;
    const char *shape;
    uint32_t n;
    bool shared;
    bool pthread;
    uint64_t least;
    uint32_t size; /* barrier: of an all-reduction; 0: a barrier */
    const struct qn_diamond_ring *ring;
    uint32_t sources;
};

static struct qn_bcast_run_opts opts(const struct run *r,
                                     const struct qn_transport *t,
                                     const struct qn_tree *tree)
{
    /* A plain broadcast drops what has no room, and a device's rings may be
     * short: one small message at a time. */
    bool small = t->memory == QN_TRANSPORT_DEVICE;
    return (struct qn_bcast_run_opts){
        .transport = t,
        .operation = {.op = r->op,
                      .tree = tree,
                      .ring = r->ring,
                      .sources = r->sources,
                      .shared = r->shared,
                      .size = r->op == QN_COLLECTIVE_REDUCE    ? 48
                              : r->op == QN_COLLECTIVE_BARRIER ? r->size
                              : small                          ? 32
                                                               : 100,
                      .window = small ? 1 : 4,
                      .least = r->least},
        .pthread = r->pthread};
}

static void run(const struct run *r)
{
    qn_node_t order[QN_NODES_MAX];
    struct qn_tree tree;
    for (qn_node_t i = 0; i < r->n; i++) {
        order[i] = (i + r->n / 2) % r->n;
    }
    cr_assert_eq(qn_tree_build(&tree, r->shape, order, r->n), QN_OK);
    if (r->ring != NULL) {
        cr_assert_eq(qn_operation_ring_members(&tree, r->ring), QN_OK);
    }
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_operation_result result;
        const struct qn_bcast_run_opts o = opts(r, t, &tree);
        cr_assert_eq(
            qn_operation_result_init(&result, &tree, r->op, r->sources), QN_OK);
        cr_assert_eq(qn_bcast_run_measure(&result, &o), QN_OK);
        cr_assert_eq(result.wrong, 0, "%s: %llu of %llu are wrong",
                     qn_collective_name(r->op),
                     (unsigned long long)result.wrong,
                     (unsigned long long)result.sent);
        cr_assert_geq(result.stream, r->least);
        cr_assert_geq(result.sent, result.stream + r->least);
        cr_assert_gt(qn_operation_rate(&result), 0);
        cr_assert(!r->shared || qn_operation_latency(&result, 0.5) > 0);
        qn_operation_result_fini(&result);
    }
}

Test(operation_nodes, each_operation_over_each_shape_with_sleeping_nodes,
     .timeout = 120)
{
    const uint32_t every = QN_UNSANITIZED(1, 4); /* of the pairs */
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(operations); i++) {
        for (uint32_t s = i % every; qn_tree_name_at(s) != NULL; s += every) {
            run(&(struct run){operations[i], qn_tree_name_at(s), 5, true, false,
                              0, 0, NULL, 0});
        }
    }
}

static void run_ring(uint32_t n, uint32_t k, bool full, bool shared,
                     uint32_t sources)
{
    const struct qn_diamond_ring_opts o = {.n = n, .k = k, .full = full};
    struct qn_diamond_ring *ring;
    cr_assert_eq(qn_diamond_ring_create(&ring, &o), QN_OK);
    for (uint32_t id = 0; id < n; id++) { /* the root is node 1 */
        ring->core[id] = (uint16_t)((id + 1) % n);
    }
    run(&(struct run){.op = QN_COLLECTIVE_ACK,
                      .shape = "sequential",
                      .n = n,
                      .shared = shared,
                      .ring = ring,
                      .sources = sources});
    qn_diamond_ring_destroy(ring);
}

Test(operation_nodes, acknowledged_broadcasts_over_rings, .timeout = 120)
{
    run_ring(5, 1, false, true, 0);
    run_ring(5, 2, true, true, 0);
    run_ring(6, 2, true, true, 0); /* two links between two nodes */
    run_ring(2, 2, false, false, 0);
}

Test(operation_nodes, several_sources_in_one_order, .timeout = 120)
{
    for (uint32_t sources = 3; sources <= 4; sources++) {
        run(&(struct run){.op = QN_COLLECTIVE_ACK,
                          .shape = "binary",
                          .n = 4,
                          .shared = true,
                          .least = QN_UNSANITIZED(300, 30),
                          .sources = sources});
        run_ring(4, 1, false, true, sources);
    }
    run_ring(2, 1, false, false, 2);
}

Test(operation_nodes, each_operation_with_two_polling_nodes, .timeout = 120)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(operations); i++) {
        run(&(struct run){operations[i], "sequential", 2, false, false, 0, 0,
                          NULL, 0});
    }
}

Test(operation_nodes, all_reductions_with_sleeping_and_polling_nodes,
     .timeout = 120)
{
    run(&(struct run){QN_COLLECTIVE_BARRIER, "binary", 5, true, false, 0, 48,
                      NULL, 0});
    run(&(struct run){QN_COLLECTIVE_BARRIER, "binary", 2, false, false, 0, 8,
                      NULL, 0});
}

Test(operation_nodes, as_many_operations_as_are_asked_for, .timeout = 120)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(operations); i++) {
        run(&(struct run){operations[i], "binary", 3, true, false,
                          QN_UNSANITIZED(700, 70), 0, NULL, 0});
    }
}

Test(operation_nodes, the_barrier_of_the_threads_library_beside_ours,
     .timeout = 60)
{
    run(&(struct run){QN_COLLECTIVE_BARRIER, "binary", 4, true, true, 0, 0,
                      NULL, 0});
}

/* A stop before the start: each part ends after what it needs for a result. */
Test(operation_nodes, an_interrupted_run_ends, .timeout = 60)
{
    static const qn_node_t order[] = {0, 1, 2};
    qn_a32 stop = 1;
    struct qn_tree tree;
    cr_assert_eq(qn_tree_build(&tree, "binary", order, 3), QN_OK);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(operations); i++) {
        const struct run r = {operations[i], "binary", 3, true, false, 0, 0,
                              NULL,          0};
        struct qn_operation_result result;
        struct qn_bcast_run_opts o = opts(&r, qn_transport_at(0), &tree);
        o.operation.seconds = 3600;
        o.operation.stop = &stop;
        cr_assert_eq(qn_operation_result_init(&result, &tree, r.op, 0), QN_OK);
        cr_assert_eq(qn_bcast_run_measure(&result, &o), QN_OK);
        cr_assert_eq(result.wrong, 0);
        qn_operation_result_fini(&result);
    }
}

Test(operation_nodes, options_that_no_program_has_are_refused)
{
    static const qn_node_t order[] = {0, 1};
    struct qn_tree tree;
    struct qn_operation *p;
    struct qn_operation_result result = {0};
    cr_assert_eq(qn_tree_build(&tree, "binary", order, 2), QN_OK);
    struct qn_operation_opts o = {
        .op = QN_COLLECTIVE_REDUCE, .tree = &tree, .size = 12};
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL);
    o.size = 56;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL);
    o.op = QN_COLLECTIVE_BARRIER;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL);
    o.op = QN_COLLECTIVE_BROADCAST;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL, "window 0");
    o.window = 64;
    o.size = 4096;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL);
    struct qn_diamond_ring *ring;
    const struct qn_diamond_ring_opts two = {.n = 2, .k = 1};
    cr_assert_eq(qn_diamond_ring_create(&ring, &two), QN_OK);
    o = (struct qn_operation_opts){.op = QN_COLLECTIVE_BROADCAST,
                                   .tree = &tree,
                                   .ring = ring,
                                   .size = 8,
                                   .window = 1};
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL, "no ack");
    o.op = QN_COLLECTIVE_ACK;
    ring->core[0] = 1;
    ring->core[1] = 0;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL, "the root");
    qn_diamond_ring_destroy(ring);
    o.ring = NULL;
    o.sources = 3;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL, "2 nodes");
    o.sources = 2;
    o.op = QN_COLLECTIVE_BROADCAST;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL, "no ack");
    o.sources = 0;
    cr_assert_eq(qn_tree_build(&tree, "binary", order, 1), QN_OK);
    o.op = QN_COLLECTIVE_2PC;
    cr_assert_eq(qn_operation_create(&p, &o, &result), QN_EINVAL, "alone");
}
