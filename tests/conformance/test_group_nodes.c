/*
 * Broadcast between real threads and real processes: numbered and plain ones
 * of all lengths, through rings so small that room runs out all the time.
 * Every node sleeps when it has nothing to do, so a lost wake-up is a hang,
 * which the timeout turns into a failure.
 */
#include <stdio.h>

#include "core/group/group.h"
#include "tests/conformance/mesh_of.h"

#define NUMBERED 150u
#define PLAIN    UINT32_MAX

struct work {
    const struct qn_tree *tree;
    struct qn_mesh_end *end;
    struct qn_context *context;
    uint32_t sent;      /* root: numbered broadcasts */
    uint32_t tries;     /* root: turns, for plain ones in between */
    uint32_t delivered; /* numbered ones */
    bool wrong;
};

static uint32_t size_of(uint32_t number)
{
    static const uint32_t sizes[] = {4, 48, 49, 200, 4, 56, 3000, 5};
    return number % 40 == 39 ? QN_MSG_MAX - QN_ACKED_EXTRA : sizes[number % 8];
}

/* The first four bytes are the number, the rest follows from it. */
static void fill(uint8_t *buf, uint32_t len, uint32_t number)
{
    pattern(buf, len, number);
    memcpy(buf, &number, sizeof number);
}

static void deliver(void *ctx, const void *msg, size_t len)
{
    static _Thread_local uint8_t copy[QN_MSG_MAX];
    static _Thread_local uint8_t want[QN_MSG_MAX];
    struct work *w = ctx;
    uint32_t number = 0;
    memcpy(copy, msg, len);
    memcpy(&number, copy, sizeof number);
    fill(want, (uint32_t)len, number);
    bool next =
        number == PLAIN || (number == w->delivered && len == size_of(number));
    if (!next || memcmp(copy, want, len) != 0) {
        fprintf(stderr, "node %u: got %u (%zu bytes) instead of %u\n",
                w->end->self, number, len, w->delivered);
        w->wrong = true;
    }
    w->delivered += number != PLAIN;
}

/* One numbered broadcast if the window and the room allow it; now and then a
 * plain one, which may be dropped. */
static bool send_next(struct work *w)
{
    static uint8_t buf[QN_MSG_MAX];
    uint64_t number;
    if (w->sent == NUMBERED) {
        return false;
    }
    if (w->tries++ % 3 == 0) {
        uint32_t len = 4 + w->tries % 300;
        fill(buf, len, PLAIN);
        qn_context_bcast(w->context, &(struct qn_slice){buf, len}, 1, NULL);
    }
    fill(buf, size_of(w->sent), w->sent);
    const struct qn_slice part = {buf, size_of(w->sent)};
    if (qn_context_bcast_acked(w->context, &part, 1, &number) != QN_OK) {
        return false;
    }
    w->sent++;
    return true;
}

static bool try_send(struct work *w)
{
    return w->end->self == w->tree->root && send_next(w);
}

/* @return true if nothing is left to do here. */
static bool done(struct work *w)
{
    return w->wrong || (!qn_context_flush(w->context) &&
                        qn_context_acked(w->context) == NUMBERED);
}

/* The sequence of core/group/group.h, pending: it is what is tested. */
static int serve(struct work *w)
{
    int rc = QN_OK;
    while (!done(w) && rc == QN_OK) {
        bool sent = try_send(w);
        if (qn_context_poll(w->context, 64) > 0 || sent) {
            continue;
        }
        qn_doorbell_arm(&w->end->doorbell);
        qn_context_flush(w->context);
        if (!qn_context_pending(w->context) && !try_send(w)) {
            rc = qn_doorbell_wait(&w->end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w->end->doorbell);
    }
    return rc;
}

static int node(struct qn_mesh_end *end, void *arg)
{
    struct qn_qp *qp[QN_NODES_MAX] = {0};
    for (qn_node_t i = 0; i < end->nodes; i++) {
        qp[i] = end->qp[i][QN_LANE_TREE];
    }
    struct work w = {.tree = arg, .end = end};
    const struct qn_context_opts o = {.self = end->self,
                                      .tree = arg,
                                      .qp = qp,
                                      .deliver = deliver,
                                      .ctx = &w,
                                      .acked = true};
    if (qn_context_create(&w.context, &o) != QN_OK) {
        return 1;
    }
    int rc = serve(&w);
    qn_context_destroy(w.context);
    bool all = end->self == w.tree->root || w.delivered == NUMBERED;
    return rc != QN_OK || w.wrong || !all;
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

Test(group_threads, a_root_and_one_child_on_the_smallest_ring, .timeout = 60)
{
    run("sequential", 2, 16, false);
}

Test(group_threads, five_below_each_other_on_the_smallest_ring, .timeout = 60)
{
    run("binary", 5, 16, false);
}

Test(group_threads, nine_on_the_usual_ring, .timeout = 60)
{
    run("binary", 9, QN_CELLS_DEFAULT, false);
}

Test(group_threads, sixteen_on_a_small_ring, .timeout = 90)
{
    run("binary", 16, 64, false);
}

Test(group_processes, five_in_sequence_on_the_smallest_ring, .timeout = 60)
{
    run("sequential", 5, 16, true);
}

Test(group_processes, nine_below_each_other_on_the_smallest_ring, .timeout = 60)
{
    run("binary", 9, 16, true);
}
