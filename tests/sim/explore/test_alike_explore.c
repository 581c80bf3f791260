/*
 * Operations that end alike (core/coll/coll.h) under every schedule of three
 * nodes over queuepairs of UMP, of which one may be killed in front of any
 * operation on memory.
 *
 * In a run the nodes make one acknowledged broadcast and one commit, or one
 * barrier, and sleep when they have nothing to do. When nothing moves any more,
 * the two that live make the next view of what they find in their lanes; then
 * their ends are compared, and they do again what is void.
 *
 * Or the nodes have left a view already, in which some have completed the
 * broadcast, or none has. Then a run begins with their entering the next view,
 * in every order, before and behind messages of those that have entered.
 *
 * QN_EXPLORE_DEVIATIONS: another bound. With 1, all take about two minutes;
 * QN_SHOW_RUNS prints how many runs there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/coll.h"
#include "core/sim/explore/explore.h"
#include "tests/support/test.h"
#include "transports/ump/ump.h"

#define NODES       3u
#define OPERATIONS  2u /* at most */
#define CELLS       16u
#define UNWRITTEN   UINT64_C(77)
#define ROUNDS      200u /* in which the living come to an end */
/* Bytes. An end has room for two messages, which each run clears. */
#define MESSAGE_MAX 512u

struct node {
    struct qn_doorbell_line line;
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer; /* rings this node */
    struct qn_qp *qp[NODES];
    struct qn_coll *c;
    uint64_t in[OPERATIONS + 1], out[OPERATIONS + 1]; /* by number */
    bool seen[OPERATIONS + 1]; /* that it was complete, while others lived */
};

static struct {
    const char *shape;
    enum qn_coll_what second;
    uint32_t operations;
    uint32_t turned; /* nodes that take a turn in the view before; 0: there is
                        none */
    struct qn_view view;      /* the one to enter */
    void *lane[NODES][NODES]; /* from, to */
    struct node node[NODES];
} world;

/* ---- before a run ---- */

static void open_pair(qn_node_t a, qn_node_t b)
{
    const qn_node_t end[2] = {a, b};
    for (uint32_t i = 0; i < 2; i++) {
        const qn_node_t self = end[i], peer = end[1 - i];
        const struct qn_qp_opts o = {.tx = world.lane[self][peer],
                                     .rx = world.lane[peer][self],
                                     .cells = CELLS,
                                     .msg_max = MESSAGE_MAX,
                                     .self = self,
                                     .peer = peer,
                                     .self_inc = 10 + self,
                                     .peer_inc = 10 + peer,
                                     .doorbell = &world.node[self].doorbell,
                                     .ringer = &world.node[peer].ringer};
        if (qn_ump.open(&world.node[self].qp[peer], &o) != QN_OK) {
            abort();
        }
    }
}

static void make_node(qn_node_t v, const struct qn_tree *t)
{
    struct node *n = &world.node[v];
    const struct qn_coll_opts o = {.self = v,
                                   .down = t,
                                   .qp = n->qp,
                                   .doorbell = &n->doorbell,
                                   .alike = true,
                                   .view = 1};
    if (qn_coll_create(&n->c, &o) != QN_OK) {
        abort();
    }
    for (uint32_t k = 1; k <= world.operations; k++) {
        n->in[k] = k == 1 ? 1000 : 1; /* a payload, and a vote */
        n->out[k] = UNWRITTEN;
    }
}

static void setup(void *ctx)
{
    static const qn_node_t order[NODES] = {0, 1, 2};
    struct qn_tree t;
    (void)ctx;
    memset(world.node, 0, sizeof world.node);
    for (qn_node_t v = 0; v < NODES; v++) {
        struct node *n = &world.node[v];
        qn_doorbell_init(&n->doorbell, &n->line, -1);
        qn_doorbell_handle_init(&n->ringer, &n->line, -1);
        for (qn_node_t w = 0; w < NODES; w++) {
            memset(world.lane[v][w], 0, qn_ump.lane_bytes(CELLS));
        }
    }
    for (qn_node_t v = 0; v < NODES; v++) {
        for (qn_node_t w = 0; w < v; w++) {
            open_pair(v, w);
        }
    }
    if (qn_tree_build(&t, world.shape, order, NODES) != QN_OK) {
        abort();
    }
    for (qn_node_t v = 0; v < NODES; v++) {
        make_node(v, &t);
    }
}

static int start(struct node *n)
{
    const uint32_t k = qn_coll_last(n->c) + 1;
    const struct qn_coll_call call = {
        .what = k == 1 ? QN_COLL_ACKNOWLEDGED : world.second,
        .op = &qn_sum_u64,
        .in = &n->in[k],
        .out = &n->out[k],
        .count = k == 1                              ? 8
                 : world.second == QN_COLL_ALLREDUCE ? 1
                                                     : 0};
    return qn_coll_start(n->c, &call, NULL);
}

/* A view in which the broadcast goes down a part of the chain of nodes; the
 * last node completes it. Then all leave. */
static void leave_before(void)
{
    struct qn_view_report report[NODES];
    for (qn_node_t v = 0; v < NODES; v++) {
        if (start(&world.node[v]) != QN_OK) {
            abort();
        }
    }
    for (qn_node_t v = 0; v < world.turned; v++) {
        (void)qn_coll_poll(world.node[v].c);
        (void)qn_coll_flush(world.node[v].c);
    }
    for (qn_node_t v = 0; v < NODES; v++) {
        struct node *n = &world.node[v];
        n->seen[1] = qn_coll_state(n->c, 1) == QN_OK;
        if (qn_coll_leave(n->c, &report[v]) != QN_OK) {
            abort();
        }
    }
    if (qn_view_decide(&world.view, 2, report, NODES) != QN_OK ||
        world.view.done != (world.turned == NODES)) {
        abort();
    }
}

static void setup_between(void *ctx)
{
    setup(ctx);
    leave_before();
}

static void teardown(void *ctx)
{
    (void)ctx;
    for (qn_node_t v = 0; v < NODES; v++) {
        qn_coll_destroy(world.node[v].c);
        for (qn_node_t w = 0; w < NODES; w++) {
            qn_qp_close(world.node[v].qp[w]);
        }
    }
}

/* ---- a run ---- */

/* The root is one that lacks what is handed on. */
static void enter_next(struct node *n)
{
    static const qn_node_t order[NODES] = {1, 2, 0};
    struct qn_tree t;
    const struct qn_coll_view_opts o = {.down = &t, .qp = n->qp};
    if (qn_tree_build(&t, world.shape, order, NODES) != QN_OK ||
        qn_coll_enter(n->c, &world.view, &o) != QN_OK) {
        qn_sim_fail("a member does not enter");
    }
}

/* What is handed on comes first: the window is 1. */
static int start_number(struct node *n, uint32_t k)
{
    int rc = QN_OK;
    while (qn_coll_last(n->c) < k && (rc = start(n)) == QN_EAGAIN) {
        (void)qn_coll_poll(n->c);
        const bool moved = qn_coll_moved(n->c);
        qn_doorbell_arm(&n->doorbell);
        (void)qn_coll_flush(n->c);
        if (!moved && !qn_coll_pending(n->c)) {
            (void)qn_doorbell_wait(&n->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&n->doorbell);
    }
    return rc;
}

static void run_node(qn_node_t v)
{
    struct node *n = &world.node[v];
    if (world.turned > 0) {
        enter_next(n);
    }
    for (uint32_t k = 1; k <= world.operations; k++) {
        if (start_number(n, k) != QN_OK ||
            qn_coll_wait(n->c, k, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("an operation fails though no member was told");
        }
        n->seen[k] = true;
    }
    while (qn_coll_flush(n->c)) {
        qn_pause();
    }
}

static void run_0(void *ctx)
{
    (void)ctx;
    run_node(0);
}

static void run_1(void *ctx)
{
    (void)ctx;
    run_node(1);
}

static void run_2(void *ctx)
{
    (void)ctx;
    run_node(2);
}

/* ---- after a run ---- */

static uint64_t expected(uint32_t k, uint32_t members)
{
    return k == 1 ? 1000 : world.second == QN_COLL_ALLREDUCE ? members : 1;
}

static void turn_all(const qn_node_t *living, uint32_t rounds)
{
    for (uint32_t i = 0; i < 2 * rounds; i++) {
        struct qn_coll *c = world.node[living[i % 2]].c;
        (void)qn_coll_poll(c);
        (void)qn_coll_flush(c);
    }
}

static const char *next_view(qn_node_t dead, const qn_node_t *living,
                             struct qn_view *view)
{
    struct qn_view_report report[2];
    struct qn_tree t;
    for (uint32_t i = 0; i < 2; i++) {
        struct node *n = &world.node[living[i]];
        qn_qp_down(n->qp[dead]);
        qn_coll_down(n->c, dead);
        if (qn_coll_barrier(n->c, NULL) != QN_EPEERDEAD) {
            return "a member that was told goes on";
        }
        if (qn_coll_leave(n->c, &report[i]) != QN_OK) {
            return "a member does not leave";
        }
    }
    if (qn_view_decide(view, 3, report, 2) != QN_OK ||
        qn_tree_build(&t, "binary", living, 2) != QN_OK) {
        return "no view";
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct node *n = &world.node[living[i]];
        const struct qn_coll_view_opts o = {.down = &t, .qp = n->qp};
        if (qn_coll_enter(n->c, view, &o) != QN_OK) {
            return "a member does not enter";
        }
    }
    return NULL;
}

static const char *check_ends(const qn_node_t *living,
                              const struct qn_view *view)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct node *n = &world.node[living[i]];
        for (uint32_t k = 1; k <= world.operations; k++) {
            const bool started = qn_coll_last(n->c) >= k;
            const int rc = qn_coll_state(n->c, k);
            if (n->seen[k] && k > view->done) {
                return "what was complete is void";
            }
            if (k > view->done && (rc != QN_EPEERDEAD || started)) {
                return "what is void is not at all";
            }
            if (k > view->done && n->out[k] != UNWRITTEN) {
                return "what is void has an output";
            }
            if (k <= view->done && started &&
                (rc != QN_OK || n->out[k] != expected(k, NODES))) {
                return "what was complete is not at all";
            }
        }
    }
    return NULL;
}

/* What is void, and what one has not started, is done in the new view. */
static const char *go_on(const qn_node_t *living, const struct qn_view *view)
{
    for (uint32_t i = 0; i < 4 * world.operations; i++) {
        for (uint32_t j = 0; j < 2; j++) {
            struct node *n = &world.node[living[j]];
            if (qn_coll_last(n->c) < world.operations && start(n) != QN_OK &&
                i == 4 * world.operations - 1) {
                return "an operation does not start in the new view";
            }
        }
        turn_all(living, 10);
    }
    for (uint32_t k = 1; k <= world.operations; k++) {
        for (uint32_t j = 0; j < 2; j++) {
            struct node *n = &world.node[living[j]];
            if (qn_coll_state(n->c, k) != QN_OK ||
                n->out[k] != expected(k, k <= view->done ? NODES : 2)) {
                return "an operation is not done in the new view";
            }
        }
    }
    return NULL;
}

static const char *check(void *ctx)
{
    qn_node_t dead = NODES, living[NODES];
    uint32_t count = 0;
    struct qn_view view;
    (void)ctx;
    for (qn_node_t v = 0; v < NODES; v++) {
        if (qn_sim_end_of(v) == QN_SIM_KILLED) {
            dead = v;
        } else {
            living[count++] = v;
        }
    }
    if (dead == NODES) {
        for (qn_node_t v = 0; v < NODES; v++) {
            for (uint32_t k = 1; k <= world.operations; k++) {
                if (!world.node[v].seen[k] ||
                    world.node[v].out[k] != expected(k, NODES)) {
                    return "it does not end, or wrongly";
                }
            }
        }
        return NULL;
    }
    const char *fault = next_view(dead, living, &view);
    if (fault != NULL) {
        return fault;
    }
    turn_all(living, ROUNDS);
    fault = check_ends(living, &view);
    return fault != NULL ? fault : go_on(living, &view);
}

static void make_lanes(void)
{
    for (qn_node_t v = 0; v < NODES; v++) {
        for (qn_node_t w = 0; w < NODES; w++) {
            world.lane[v][w] =
                aligned_alloc(QN_CACHELINE, qn_ump.lane_bytes(CELLS));
            cr_assert_not_null(world.lane[v][w]);
        }
    }
}

static void free_lanes(void)
{
    for (qn_node_t v = 0; v < NODES; v++) {
        for (qn_node_t w = 0; w < NODES; w++) {
            free(world.lane[v][w]);
        }
    }
}

/* The acknowledged broadcast, and another one if `operations` is 2. */
static void explore_from(uint32_t turned, const char *shape,
                         enum qn_coll_what second, uint32_t operations,
                         uint32_t deviations)
{
    struct qn_explored out;
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    const char *replay = getenv("QN_SIM_REPLAY");
    world.shape = shape;
    world.second = second;
    world.operations = operations;
    world.turned = turned;
    const struct qn_explore_opts o = {
        .nodes = NODES,
        .node = {run_0, run_1, run_2},
        .setup = world.turned > 0 ? setup_between : setup,
        .check = check,
        .teardown = teardown,
        .memory = QN_EXPLORE_TSO,
        .deviations = more != NULL ? (uint32_t)atoi(more) : deviations,
        .kills = 1};
    make_lanes();
    const bool good = replay != NULL ? qn_explore_replay(&o, replay, &out)
                                     : qn_explore(&o, &out);
    free_lanes();
    if (getenv("QN_SHOW_RUNS") != NULL) {
        fprintf(stderr, "%s %d: %llu runs, %llu given up, %llu steps\n", shape,
                (int)second, (unsigned long long)out.runs,
                (unsigned long long)out.pruned, (unsigned long long)out.steps);
    }
    cr_assert(good, "%s, %d: %s; QN_SIM_REPLAY='%s'", shape, (int)second,
              out.fault, out.choices);
    cr_assert(replay != NULL || out.complete);
}

static void explore(const char *shape, enum qn_coll_what second,
                    uint32_t operations, uint32_t deviations)
{
    explore_from(0, shape, second, operations, deviations);
}

Test(alike_explore, a_commit_over_a_chain_ends_alike, .timeout = 3600)
{
    explore("tree:k=1", QN_COLL_COMMIT, 2, 0);
}

Test(alike_explore, a_commit_of_two_children_ends_alike, .timeout = 3600)
{
    explore("sequential", QN_COLL_COMMIT, 2, 0);
}

Test(alike_explore, a_sum_ends_alike, .timeout = 3600)
{
    explore("sequential", QN_COLL_ALLREDUCE, 2, 0);
}

/* The sanitizer has seen all code without a deviation. */
Test(alike_explore, a_broadcast_over_a_chain_ends_alike, .timeout = 3600)
{
#ifdef __SANITIZE_ADDRESS__
    explore("tree:k=1", QN_COLL_COMMIT, 1, 0);
#else
    explore("tree:k=1", QN_COLL_COMMIT, 1, 1);
#endif
}

/* What one has completed is handed on. */
Test(alike_explore, members_enter_a_view_and_hand_on, .timeout = 3600)
{
    explore_from(NODES, "tree:k=1", QN_COLL_COMMIT, 2, 0);
}

/* What none has completed is done again. */
Test(alike_explore, members_enter_a_view_and_do_again, .timeout = 3600)
{
    explore_from(NODES - 1, "tree:k=1", QN_COLL_COMMIT, 2, 0);
}
