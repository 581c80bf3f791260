/*
 * Collective operations between real threads and real processes, through the
 * smallest rings. Each node has operations in a row, of both kinds, and sleeps
 * when it has nothing to do, so a lost wake-up is a hang, which the timeout
 * turns into a failure.
 *
 * In some runs one node ends in the middle and says so to all on the direct
 * lanes, as a supervisor would: every other node must get QN_EPEERDEAD. A node
 * that is done takes what still comes until all are: a ring may be too small
 * for what a peer has yet to say.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/coll/coll.h"
#include "core/coll/sequenced_broadcast.h"
#include "tests/conformance/mesh_of.h"
#include "tests/support/sanitized.h"

#define OPERATIONS 400u
#define ALL_LIVE   UINT32_MAX

struct plan {
    const struct qn_tree *tree;
    qn_node_t victim;   /* or ALL_LIVE */
    uint32_t victim_at; /* it ends before this operation */
    bool exchange;
};

struct work {
    const struct plan *plan;
    struct qn_mesh_end *end;
    struct qn_coll *c;
    bool told; /* of the victim's end */
};

static enum qn_coll_what kind_of(uint32_t k)
{
    return k % 7 < 4 ? QN_COLL_ALLREDUCE : QN_COLL_REDUCE;
}

static uint64_t contribution(qn_node_t v, uint32_t k)
{
    return (uint64_t)(v + 1) * 65537u * (k + 1);
}

/* The victim has said that it ends. Its queuepairs are used no more. */
static bool hear(struct work *w)
{
    uint8_t byte;
    size_t len;
    qn_node_t victim = w->plan->victim;
    if (victim == ALL_LIVE || victim == w->end->self || w->told ||
        qn_qp_try_recv(w->end->qp[victim][QN_LANE_DIRECT], &byte, 1, &len) !=
            QN_OK) {
        return false;
    }
    w->told = true;
    qn_coll_down(w->c, victim);
    return true;
}

/* The sequence of core/coll/coll.h, pending: it is what is tested. */
static int await(struct work *w)
{
    int rc;
    while ((rc = qn_coll_poll(w->c)) == QN_EAGAIN) {
        qn_coll_flush(w->c);
        qn_doorbell_arm(&w->end->doorbell);
        qn_coll_flush(w->c);
        if (!hear(w) && !qn_coll_pending(w->c)) {
            (void)qn_doorbell_wait(&w->end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w->end->doorbell);
    }
    while (qn_coll_flush(w->c)) { /* FAIL without room: at most for a while */
    }
    return rc;
}

/* @return QN_OK, QN_EPEERDEAD, or QN_ECORRUPT for a wrong result. */
static int operate(struct work *w, uint32_t k)
{
    const struct qn_tree *t = w->plan->tree;
    uint64_t word[2] = {contribution(w->end->self, k), w->end->self};
    uint64_t sum = 0, self_sum = 0;
    uint64_t got[2];
    const struct qn_coll_call call = {.what = kind_of(k),
                                      .op = &qn_sum_u64,
                                      .in = word,
                                      .out = got,
                                      .count = 2};
    int rc = qn_coll_start(w->c, &call, NULL);
    rc = rc == QN_OK ? await(w) : rc;
    if (rc != QN_OK ||
        (kind_of(k) == QN_COLL_REDUCE && w->end->self != t->root)) {
        return rc;
    }
    for (qn_node_t v = 0; v < t->n; v++) {
        sum += contribution(v, k);
        self_sum += v;
    }
    return got[0] == sum && got[1] == self_sum ? QN_OK : QN_ECORRUPT;
}

static void end_early(struct work *w)
{
    uint8_t byte = 0;
    for (qn_node_t v = 0; v < w->end->nodes; v++) {
        if (v != w->end->self) {
            struct qn_qp *qp = w->end->qp[v][QN_LANE_DIRECT];
            (void)qn_qp_send(qp, &byte, 1, QN_TIME_NEVER);
        }
    }
}

/* Drop all that comes on one lane of a peer. @return how much. */
static uint32_t take_all(struct work *w, qn_node_t peer, enum qn_lane lane)
{
    const void *msg;
    size_t len;
    uint32_t n = 0;
    struct qn_qp *qp = w->end->qp[peer][lane];
    for (; qn_qp_peek(qp, &msg, &len) == QN_OK; n++) {
        qn_qp_release(qp);
    }
    (void)qn_qp_flush(qp);
    return n;
}

/* Say that this node is done, and go on reading until all have said so. */
static void leave(struct work *w)
{
    uint32_t said = 0;
    uint32_t others = w->end->nodes - 1 - (w->plan->victim != ALL_LIVE);
    bool told[QN_NODES_MAX] = {false};
    uint32_t to_tell = others;
    while (said < others || to_tell > 0) {
        for (qn_node_t v = 0; v < w->end->nodes; v++) {
            if (v == w->end->self || v == w->plan->victim) {
                continue;
            }
            struct qn_qp *qp = w->end->qp[v][QN_LANE_DIRECT];
            if (!told[v] && qn_qp_try_send(qp, "", 1) == QN_OK) {
                told[v] = true;
                to_tell--;
            }
            said += take_all(w, v, QN_LANE_DIRECT);
            (void)take_all(w, v, QN_LANE_TREE);
        }
        sched_yield();
    }
}

static int operate_all(struct work *w)
{
    const struct plan *plan = w->plan;
    bool dies = w->end->self == plan->victim;
    int rc = QN_OK;
    for (uint32_t k = 0; k < OPERATIONS && rc == QN_OK; k++) {
        if (dies && k == plan->victim_at) {
            end_early(w);
            return 0;
        }
        rc = operate(w, k);
    }
    leave(w);
    int want = plan->victim == ALL_LIVE ? QN_OK : QN_EPEERDEAD;
    if (rc != want) {
        fprintf(stderr, "node %u: %s\n", w->end->self, qn_strerror(rc));
    }
    return rc != want;
}

static int node(struct qn_mesh_end *end, void *arg)
{
    const struct plan *plan = arg;
    struct qn_qp *qp[QN_NODES_MAX] = {0};
    struct work w = {.plan = plan, .end = end};
    for (qn_node_t i = 0; i < end->nodes; i++) {
        qp[i] = end->qp[i][QN_LANE_TREE];
    }
    const struct qn_coll_opts o = {.self = end->self,
                                   .down = plan->tree,
                                   .qp = qp,
                                   .view = 7,
                                   .exchange = plan->exchange};
    int failed = qn_coll_create(&w.c, &o) != QN_OK;
    failed = failed ? 1 : operate_all(&w);
    qn_coll_destroy(w.c);
    return failed;
}

struct run_opts {
    const char *shape;
    uint32_t n;
    bool processes;
    qn_node_t victim;
    uint32_t victim_at;
    bool exchange;
};

static void run(const struct run_opts *o)
{
    qn_node_t order[QN_NODES_MAX];
    struct qn_tree tree;
    for (qn_node_t i = 0; i < o->n; i++) {
        order[i] = (i + o->n / 2) % o->n;
    }
    cr_assert_eq(qn_tree_build(&tree, o->shape, order, o->n), QN_OK);
    struct plan plan = {&tree, o->victim, o->victim_at, o->exchange};
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        if (!make_mesh(&m, t, o->n, 16, o->processes)) {
            continue;
        }
        uint32_t failed = qn_mesh_run(&m, node, &plan);
        qn_mesh_destroy(&m);
        cr_assert_eq(failed, 0, "%s: %u of %u nodes", t->name, failed, o->n);
    }
}

/* ---- all operations, several under way, waited for by sleeping ---- */

#define ROUNDS    QN_UNSANITIZED(60u, 20u)
#define AHEAD     4u /* operations of a round */
#define ANY_BYTES 5000u

struct tree_pair {
    struct qn_tree down, up;
    bool exchange; /* what is reduced goes over neither */
};

/* What the root sends in a round, and what the nodes get back. */
struct round_buffers {
    uint8_t sent[ANY_BYTES], got[ANY_BYTES];
    uint64_t word[2], sum[2], vote, all;
    double part, total;
};

static int start_round(struct qn_coll *c, const struct qn_mesh_end *end,
                       uint32_t k, struct round_buffers *b, uint32_t *number)
{
    QN_ASSERT(end->nodes > 0);
    const struct qn_coll_call calls[AHEAD] = {
        {.what = k % 2 == 0 ? QN_COLL_BROADCAST : QN_COLL_ACKNOWLEDGED,
         .in = b->sent,
         .out = b->got,
         .count = k * 251 % ANY_BYTES},
        {.what = QN_COLL_ALLREDUCE,
         .op = &qn_sum_u64,
         .in = b->word,
         .out = b->sum,
         .count = 2},
        {.what = QN_COLL_COMMIT, .in = &b->vote, .out = &b->all},
        {.what = QN_COLL_ALLREDUCE,
         .op = &qn_sum_f64,
         .in = &b->part,
         .out = &b->total,
         .count = 1}};
    int rc = QN_OK;
    memset(b->sent, (int)k, sizeof b->sent);
    b->word[0] = contribution(end->self, k);
    b->word[1] = end->self;
    b->vote = end->self != k % (2 * end->nodes);
    b->part = 1.0 / (end->self + 3 + k);
    for (uint32_t i = 0; i < AHEAD && rc == QN_OK; i++) {
        rc = qn_coll_start(c, &calls[i], &number[i]);
    }
    return rc;
}

/* @return the number of wrong results. */
static int check_round(const struct qn_mesh_end *end, uint32_t k,
                       const struct round_buffers *b)
{
    uint64_t sum = 0, self_sum = 0;
    double total = 0;
    for (qn_node_t v = 0; v < end->nodes; v++) {
        sum += contribution(v, k);
        self_sum += v;
        total = v == 0 ? 1.0 / (3 + k) : total + 1.0 / (v + 3 + k);
    }
    QN_ASSERT(end->nodes > 0);
    uint64_t total_bits, got_bits;
    memcpy(&total_bits, &total, sizeof total);
    memcpy(&got_bits, &b->total, sizeof total);
    const uint32_t bytes = k * 251 % ANY_BYTES;
    const bool all = k % (2 * end->nodes) >= end->nodes;
    return (bytes > 0 && memcmp(b->sent, b->got, bytes) != 0) +
           (b->sum[0] != sum) + (b->sum[1] != self_sum) + (b->all != all) +
           (got_bits != total_bits);
}

static int wait_for_all(struct qn_mesh_end *end, void *arg)
{
    const struct tree_pair *pair = arg;
    struct qn_qp *qp[QN_NODES_MAX] = {0};
    struct round_buffers *b = calloc(1, sizeof *b);
    struct qn_coll *c = NULL;
    for (qn_node_t i = 0; i < end->nodes; i++) {
        qp[i] = end->qp[i][QN_LANE_TREE];
    }
    const struct qn_coll_opts o = {.self = end->self,
                                   .down = &pair->down,
                                   .up = &pair->up,
                                   .qp = qp,
                                   .doorbell = &end->doorbell,
                                   .window = AHEAD,
                                   .bytes_max = ANY_BYTES,
                                   .view = 7,
                                   .exchange = pair->exchange};
    int failed = b == NULL || qn_coll_create(&c, &o) != QN_OK;
    for (uint32_t k = 0; k < ROUNDS && failed == 0; k++) {
        uint32_t number[AHEAD];
        failed += start_round(c, end, k, b, number) != QN_OK;
        for (uint32_t i = AHEAD; i-- > 0 && failed == 0;) {
            failed += qn_coll_wait(c, number[i], QN_TIME_NEVER) != QN_OK;
        }
        failed += failed == 0 ? check_round(end, k, b) : 0;
    }
    while (failed == 0 && qn_coll_flush(c)) { /* the last message of all */
        qn_pause();
    }
    qn_coll_destroy(c);
    free(b);
    return failed;
}

/* A tree down and another one up, with the root in the middle. */
static void run_pair(uint32_t n, bool processes, bool exchange)
{
    qn_node_t order[QN_NODES_MAX] = {0};
    struct tree_pair pair = {.exchange = exchange};
    for (qn_node_t i = 0; i < n; i++) {
        order[i] = (i + n / 2) % n;
    }
    cr_assert_eq(qn_tree_build(&pair.down, "binary", order, n), QN_OK);
    for (qn_node_t i = 1; i < n; i++) {
        order[i] = (n / 2 + n - i) % n;
    }
    cr_assert_eq(qn_tree_build(&pair.up, "tree:k=3", order, n), QN_OK);
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        if (!make_mesh(&m, t, n, 16, processes)) {
            continue;
        }
        uint32_t failed = qn_mesh_run(&m, wait_for_all, &pair);
        qn_mesh_destroy(&m);
        cr_assert_eq(failed, 0, "%s: %u of %u nodes", t->name, failed, n);
    }
}

Test(coll_threads, all_operations_wait_over_a_pair_of_trees, .timeout = 60)
{
    run_pair(2, false, false);
    run_pair(7, false, false);
}

Test(coll_processes, all_operations_wait_over_a_pair_of_trees, .timeout = 60)
{
    run_pair(5, true, false);
}

Test(coll_threads, reductions_are_exchanged_and_others_go_over_trees,
     .timeout = 60)
{
    run_pair(2, false, true);
    run_pair(6, false, true);
}

Test(coll_processes, reductions_are_exchanged_and_others_go_over_trees,
     .timeout = 60)
{
    run_pair(4, true, true);
}

/* ---- several contexts, each on a lane of its own ---- */

#define CONTEXTS 6u /* on the lanes behind those of consensus */

static_assert(QN_LANES + CONTEXTS == QN_LANES_MAX, "all lanes are used");

/* Context i has node i % n as root. A node works on them in an order of its
 * own, and all contexts are under way before the first is waited for. */
static int run_contexts(struct qn_mesh_end *end, struct qn_coll **c)
{
    uint64_t word, sum[CONTEXTS];
    uint32_t number[CONTEXTS];
    int failed = 0;
    for (uint32_t k = 0; k < ROUNDS && failed == 0; k++) {
        uint64_t want = 0;
        for (qn_node_t v = 0; v < end->nodes; v++) {
            want += contribution(v, k);
        }
        word = contribution(end->self, k);
        for (uint32_t j = 0; j < CONTEXTS; j++) {
            const uint32_t i = (j + end->self) % CONTEXTS;
            const struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE,
                                              .op = &qn_sum_u64,
                                              .in = &word,
                                              .out = &sum[i],
                                              .count = 1};
            failed += qn_coll_start(c[i], &call, &number[i]) != QN_OK;
            (void)qn_coll_test(c[i], number[i]);
        }
        for (uint32_t i = 0; i < CONTEXTS && failed == 0; i++) {
            int rc;
            while ((rc = qn_coll_test(c[i], number[i])) == QN_EAGAIN) {
                for (uint32_t j = i + 1; j < CONTEXTS; j++) {
                    (void)qn_coll_test(c[j], number[j]);
                }
                sched_yield();
            }
            failed += rc != QN_OK || sum[i] != want;
        }
    }
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        while (failed == 0 && qn_coll_flush(c[i])) {
            qn_pause();
        }
    }
    return failed;
}

static int contexts_node(struct qn_mesh_end *end, void *arg)
{
    struct qn_coll *c[CONTEXTS] = {NULL};
    int failed = 0;
    (void)arg;
    for (uint32_t i = 0; i < CONTEXTS && failed == 0; i++) {
        struct qn_qp *qp[QN_NODES_MAX] = {0};
        qn_node_t order[QN_NODES_MAX];
        struct qn_tree t;
        for (qn_node_t v = 0; v < end->nodes; v++) {
            qp[v] = end->qp[v][QN_LANES + i];
            order[v] = (v + i) % end->nodes;
        }
        failed += qn_tree_build(&t, "binary", order, end->nodes) != QN_OK;
        const struct qn_coll_opts o = {
            .self = end->self, .down = &t, .qp = qp, .view = 3};
        failed += qn_coll_create(&c[i], &o) != QN_OK;
    }
    failed = failed == 0 ? run_contexts(end, c) : failed;
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        qn_coll_destroy(c[i]);
    }
    return failed;
}

static void run_all_contexts(uint32_t n, bool processes)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        const struct qn_mesh_opts o = {.transport = t,
                                       .nodes = n,
                                       .cells = 16,
                                       .lanes = QN_LANES_MAX,
                                       .processes = processes};
        if (!has_lanes(t) || (processes && !joins_processes(t))) {
            continue; /* a device has two */
        }
        cr_assert_eq(qn_mesh_create(&m, &o), QN_OK, "%s", t->name);
        uint32_t failed = qn_mesh_run(&m, contexts_node, NULL);
        qn_mesh_destroy(&m);
        cr_assert_eq(failed, 0, "%s: %u of %u nodes", t->name, failed, n);
    }
}

Test(coll_threads, contexts_with_other_roots_run_on_lanes_of_their_own,
     .timeout = 60)
{
    run_all_contexts(5, false);
}

Test(coll_processes, contexts_with_other_roots_run_on_lanes_of_their_own,
     .timeout = 60)
{
    run_all_contexts(3, true);
}

/* ---- a pipeline over a ring ---- */

#define MESSAGES QN_UNSANITIZED(2000u, 300u)

struct ring_node {
    struct qn_sequenced_broadcast *b;
    uint32_t delivered, wrong;
};

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct ring_node *n = ctx;
    uint32_t word;
    memcpy(&word, msg, sizeof word);
    n->delivered++;
    n->wrong +=
        number != n->delivered || word != number || len != 4 + number % 300;
}

static bool turn(struct ring_node *n, const struct qn_wiring *w, uint32_t *sent)
{
    uint8_t msg[304] = {0};
    bool moved = false;
    while (w->root && *sent < MESSAGES) {
        uint32_t next = *sent + 1;
        memcpy(msg, &next, sizeof next);
        if (qn_sequenced_broadcast_send(n->b, msg, 4 + next % 300, NULL) !=
            QN_OK) {
            break;
        }
        ++*sent;
        moved = true;
    }
    return qn_sequenced_broadcast_poll(n->b) || moved;
}

static int ring_node(struct qn_mesh_end *end, void *arg)
{
    struct qn_qp *qp[QN_NODES_MAX] = {0};
    struct qn_wiring *w;
    struct ring_node n = {0};
    uint32_t sent = 0;
    for (qn_node_t i = 0; i < end->nodes; i++) {
        qp[i] = end->qp[i][QN_LANE_TREE];
    }
    const struct qn_wiring_ring_opts ring = {.ring = arg, .self = end->self};
    if (qn_wiring_ring(&w, &ring) != QN_OK) {
        return 1;
    }
    const struct qn_sequenced_broadcast_opts o = {.wiring = w,
                                                  .qp = qp,
                                                  .window = 32,
                                                  .bytes_max = 304,
                                                  .deliver = deliver,
                                                  .ctx = &n};
    int failed = qn_sequenced_broadcast_create(&n.b, &o) != QN_OK;
    while (failed == 0 && qn_sequenced_broadcast_acked(n.b) < MESSAGES) {
        bool moved = turn(&n, w, &sent);
        qn_doorbell_arm(&end->doorbell);
        (void)qn_sequenced_broadcast_flush(n.b);
        if (!moved && !qn_sequenced_broadcast_pending(n.b)) {
            (void)qn_doorbell_wait(&end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&end->doorbell);
        failed = qn_sequenced_broadcast_error(n.b) != QN_OK;
    }
    while (failed == 0 && qn_sequenced_broadcast_flush(n.b)) {
        qn_pause();
    }
    failed += n.delivered != MESSAGES || n.wrong != 0;
    qn_sequenced_broadcast_destroy(n.b);
    qn_wiring_destroy(w);
    return failed;
}

static void run_ring(uint32_t n, uint32_t k, bool companion, bool processes)
{
    struct qn_diamond_ring *r;
    const struct qn_diamond_ring_opts o = {
        .n = n, .k = k, .companion = companion};
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
    FOR_EACH_TRANSPORT(t)
    {
        struct qn_mesh m;
        if (!make_mesh(&m, t, n, 16, processes)) {
            continue;
        }
        uint32_t failed = qn_mesh_run(&m, ring_node, r);
        qn_mesh_destroy(&m);
        cr_assert_eq(failed, 0, "%s: %u of %u nodes", t->name, failed, n);
    }
    qn_diamond_ring_destroy(r);
}

Test(coll_threads, a_ring_delivers_to_all_in_one_order, .timeout = 60)
{
    run_ring(2, 1, false, false);
    run_ring(6, 2, true, false);
}

Test(coll_processes, a_ring_delivers_to_all_in_one_order, .timeout = 60)
{
    run_ring(5, 2, false, true);
}

Test(coll_threads, two_nodes, .timeout = 60)
{
    run(&(struct run_opts){"sequential", 2, false, ALL_LIVE, 0, false});
}

Test(coll_threads, five_children_of_one_root, .timeout = 60)
{
    run(&(struct run_opts){"sequential", 6, false, ALL_LIVE, 0, false});
}

Test(coll_threads, nine_below_each_other, .timeout = 60)
{
    run(&(struct run_opts){"binary", 9, false, ALL_LIVE, 0, false});
}

Test(coll_processes, six_below_each_other, .timeout = 60)
{
    run(&(struct run_opts){"binary", 6, true, ALL_LIVE, 0, false});
}

Test(coll_threads, every_node_of_seven_may_end, .timeout = 90)
{
    for (qn_node_t victim = 0; victim < 7; victim++) {
        run(&(struct run_opts){"binary", 7, false, victim, 40 + victim, false});
    }
}

Test(coll_processes, an_inner_node_and_the_root_may_end, .timeout = 60)
{
    for (qn_node_t victim = 2; victim < 5; victim++) {
        run(&(struct run_opts){"binary", 5, true, victim, 33, false});
    }
}

Test(coll_threads, each_of_four_that_exchange_may_end, .timeout = 60)
{
    for (qn_node_t victim = 0; victim < 4; victim++) {
        run(&(struct run_opts){"binary", 4, false, victim, 40 + victim,
                               .exchange = true});
    }
}

Test(coll_processes, two_of_four_that_exchange_may_end, .timeout = 60)
{
    for (qn_node_t victim = 1; victim < 3; victim++) {
        run(&(struct run_opts){"binary", 4, true, victim, 33,
                               .exchange = true});
    }
}
