/*
 * Sequenced broadcast along trees, between real threads and real processes:
 * messages of all lengths, through rings so small that room runs out all the
 * time. Every node sleeps when it has nothing to do, so a lost wake-up is a
 * hang, which the timeout turns into a failure.
 */
#include <stdio.h>

#include "core/coll/sequenced_broadcast.h"
#include "tests/conformance/mesh_of.h"

enum {
    MESSAGES = 150,
    WINDOW = 64,
    WINDOW_BYTES = 256 * 1024, /* four of the longest */
};

struct work {
    struct qn_mesh_end *end;
    struct qn_sequenced_broadcast *b;
    bool root;
    uint32_t sent; /* root */
    uint32_t delivered;
    bool wrong;
};

static uint32_t size_of(uint32_t number)
{
    static const uint32_t sizes[] = {4, 48, 49, 200, 4, 56, 3000, 5};
    return number % 40 == 39 ? QN_SEQUENCE_LEN_MAX : sizes[number % 8];
}

/* The first four bytes are the number, the rest follows from it. */
static void fill(uint8_t *buf, uint32_t number)
{
    pattern(buf, size_of(number), number);
    memcpy(buf, &number, sizeof number);
}

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    static _Thread_local uint8_t want[QN_MSG_MAX];
    struct work *w = ctx;
    fill(want, ++w->delivered);
    if (number != w->delivered || len != size_of(number) ||
        memcmp(msg, want, len) != 0) {
        fprintf(stderr, "node %u: got %u (%zu bytes) instead of %u\n",
                w->end->self, number, len, w->delivered);
        w->wrong = true;
    }
}

/* @return true if the root has sent something: window and lanes had room. */
static bool send_next(struct work *w)
{
    static _Thread_local uint8_t buf[QN_MSG_MAX];
    if (!w->root || w->sent == MESSAGES) {
        return false;
    }
    fill(buf, w->sent + 1);
    if (qn_sequenced_broadcast_send(w->b, buf, size_of(w->sent + 1), NULL) !=
        QN_OK) {
        return false;
    }
    w->sent++;
    return true;
}

static bool turn(struct work *w)
{
    bool sent = send_next(w);
    return qn_sequenced_broadcast_poll(w->b) || sent;
}

static int serve(struct work *w)
{
    int rc = QN_OK;
    while (!w->wrong && rc == QN_OK &&
           qn_sequenced_broadcast_acked(w->b) < MESSAGES) {
        if (turn(w)) {
            continue;
        }
        qn_doorbell_arm(&w->end->doorbell);
        (void)qn_sequenced_broadcast_flush(w->b);
        if (!qn_sequenced_broadcast_pending(w->b) && !turn(w)) {
            (void)qn_doorbell_wait(&w->end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w->end->doorbell);
        rc = qn_sequenced_broadcast_error(w->b);
    }
    while (!w->wrong && rc == QN_OK && qn_sequenced_broadcast_flush(w->b)) {
        qn_pause();
    }
    return rc;
}

static int node(struct qn_mesh_end *end, void *arg)
{
    struct qn_qp *qp[QN_NODES_MAX] = {0};
    for (qn_node_t i = 0; i < end->nodes; i++) {
        qp[i] = end->qp[i][QN_LANE_TREE];
    }
    struct qn_wiring *wiring;
    const struct qn_wiring_opts tree = {.kind = QN_WIRING_ACKNOWLEDGED,
                                        .down = arg,
                                        .up = arg,
                                        .self = end->self};
    if (qn_wiring_tree(&wiring, &tree) != QN_OK) {
        return 1;
    }
    struct work w = {.end = end, .root = wiring->root};
    const struct qn_sequenced_broadcast_opts o = {.wiring = wiring,
                                                  .qp = qp,
                                                  .window = WINDOW,
                                                  .bytes_max =
                                                      QN_SEQUENCE_LEN_MAX,
                                                  .window_bytes = WINDOW_BYTES,
                                                  .deliver = deliver,
                                                  .ctx = &w};
    int rc = qn_sequenced_broadcast_create(&w.b, &o);
    rc = rc == QN_OK ? serve(&w) : rc;
    qn_sequenced_broadcast_destroy(w.b);
    qn_wiring_destroy(wiring);
    return rc != QN_OK || w.wrong || w.delivered != MESSAGES;
}

static void run(const char *shape, uint32_t n, uint32_t cells, bool processes)
{
    qn_node_t order[QN_NODES_MAX];
    for (qn_node_t i = 0; i < n; i++) {
        order[i] = (i + n / 2) % n;
    }
    struct qn_tree tree;
    cr_assert_eq(qn_tree_build(&tree, shape, order, n), QN_OK);
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        if (!make_mesh(&m, t, n, cells, processes)) {
            continue;
        }
        uint32_t failed = qn_mesh_run(&m, node, &tree);
        qn_mesh_destroy(&m);
        cr_assert_eq(failed, 0, "%s: %u of %u nodes", t->name, failed, n);
    }
}

Test(sequenced_threads, a_root_and_one_child_on_the_smallest_ring,
     .timeout = 60)
{
    run("sequential", 2, 16, false);
}

Test(sequenced_threads, five_below_each_other_on_the_smallest_ring,
     .timeout = 60)
{
    run("binary", 5, 16, false);
}

Test(sequenced_threads, nine_on_the_usual_ring, .timeout = 60)
{
    run("binary", 9, QN_CELLS_DEFAULT, false);
}

Test(sequenced_threads, sixteen_on_a_small_ring, .timeout = 90)
{
    run("binary", 16, 64, false);
}

Test(sequenced_processes, five_in_sequence_on_the_smallest_ring, .timeout = 60)
{
    run("sequential", 5, 16, true);
}

Test(sequenced_processes, nine_below_each_other_on_the_smallest_ring,
     .timeout = 60)
{
    run("binary", 9, 16, true);
}
