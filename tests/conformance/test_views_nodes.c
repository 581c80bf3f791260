/*
 * A sequence between real threads and real processes, of which one or two end
 * without a word in the middle (board.h). The living make a new view and go on;
 * in the end they have delivered the same, and all that they have submitted.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/coll/sequenced_broadcast.h"
#include "tests/conformance/board.h"

#define NODES_MAX   BOARD_NODES_MAX
#define TARGET      60u /* submissions of each node */
#define LOG_MAX     (NODES_MAX * TARGET)
#define BYTES_MAX   200u
#define LONG_TARGET 4u /* the same, if they have up to QN_SEQUENCE_LEN_MAX */
#define POINTS      5u /* where a node may end */

enum point { IN_DELIVERY, SUBMITTED, POLLED, LEFT, ENTERED };

struct log_board {
    struct board b;
    /* Written by one node each, read when all have ended. */
    uint32_t delivered[NODES_MAX];
    uint32_t log[NODES_MAX][LOG_MAX]; /* source, number */
};

struct plan {
    struct log_board *board;
    uint32_t n;
    bool processes;
    bool is_ring; /* the first view */
    uint32_t target, bytes_max;
    struct {
        enum point point;
        uint32_t at; /* the how-manieth time there; 0: it does not end */
    } end[NODES_MAX];
};

struct node {
    struct board_node at;
    const struct plan *plan;
    struct qn_qp *qp[QN_NODES_MAX], *request[QN_NODES_MAX];
    struct qn_sequenced_broadcast *b;
    struct qn_wiring *wiring;
    uint32_t passed[POINTS];
    uint32_t submitted;
    uint8_t *msg; /* [bytes_max] */
};

static uint32_t length_of(const struct node *n, uint32_t word)
{
    const uint32_t longest = n->plan->bytes_max;
    return longest == BYTES_MAX ? 4 + word % (longest - 4)
           : word % 2 == 0      ? longest
                                : 4 + word * 2654435761u % (longest - 4);
}

static uint8_t byte_of(uint32_t word, uint32_t i)
{
    return (uint8_t)(word * 31 + (word >> 16) + i + i / 251);
}

static void pass(struct node *n, enum point p)
{
    const qn_node_t self = n->at.end->self;
    if (n->plan->end[self].point == p &&
        ++n->passed[p] == n->plan->end[self].at) {
        board_end_here(&n->at);
    }
}

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct node *n = ctx;
    struct log_board *b = n->plan->board;
    const qn_node_t self = n->at.end->self;
    uint32_t word;
    memcpy(&word, msg, sizeof word);
    QN_ASSERT(number == b->delivered[self] + 1);
    QN_ASSERT(len == length_of(n, word));
    for (uint32_t i = sizeof word; i < len; i++) {
        QN_ASSERT(((const uint8_t *)msg)[i] == byte_of(word, i));
    }
    pass(n, IN_DELIVERY);
    b->log[self][b->delivered[self]++] = word;
}

/* ---- views ---- */

/* A tree or a ring in turn, of the living, the root first. */
static int wire(struct node *n, const struct qn_view *view)
{
    qn_node_t node[NODES_MAX];
    uint32_t count = 1;
    struct qn_diamond_ring *r;
    struct qn_tree t;
    node[0] = view->root;
    for (qn_node_t v = 0; v < n->plan->n; v++) {
        if (v != view->root && qn_view_has(view, v)) {
            node[count++] = v;
        }
    }
    if ((view->number % 2 == 0) == n->plan->is_ring) {
        int rc = qn_tree_build(&t, "binary", node, count);
        const struct qn_wiring_opts o = {.kind = QN_WIRING_ACKNOWLEDGED,
                                         .down = &t,
                                         .up = &t,
                                         .self = n->at.end->self};
        return rc == QN_OK ? qn_wiring_tree(&n->wiring, &o) : rc;
    }
    const struct qn_diamond_ring_opts ring = {.n = count, .k = 2};
    int rc = qn_diamond_ring_create(&r, &ring);
    if (rc == QN_OK) {
        const struct qn_wiring_ring_opts o = {
            .ring = r, .node = node, .self = n->at.end->self};
        rc = qn_wiring_ring(&n->wiring, &o);
        qn_diamond_ring_destroy(r);
    }
    return rc;
}

static int first_view(struct node *n)
{
    struct qn_sequenced_views_opts views = {.self = n->at.end->self,
                                            .members = n->plan->n,
                                            .incarnation = 1,
                                            .credit = 4,
                                            .view = {.number = 1},
                                            .request = n->request};
    views.view.member[0] = (UINT64_C(1) << n->plan->n) - 1;
    int rc = wire(n, &views.view);
    const struct qn_sequenced_broadcast_opts o = {.wiring = n->wiring,
                                                  .qp = n->qp,
                                                  .window = 8,
                                                  .bytes_max =
                                                      n->plan->bytes_max,
                                                  .views = &views,
                                                  .deliver = deliver,
                                                  .ctx = n};
    n->at.attempt = 1;
    n->at.in_view = true;
    n->msg = malloc(n->plan->bytes_max);
    rc = n->msg == NULL ? QN_ENOMEM : rc;
    return rc == QN_OK ? qn_sequenced_broadcast_create(&n->b, &o) : rc;
}

static void down(void *ctx, qn_node_t v)
{
    struct node *n = ctx;
    (void)qn_sequenced_broadcast_poll(n->b); /* what it has sent */
    qn_sequenced_broadcast_down(n->b, v);
    QN_ASSERT(!n->at.in_view ||
              qn_sequenced_broadcast_error(n->b) == QN_EPEERDEAD);
}

static void leave(void *ctx, struct qn_view_report *out)
{
    struct node *n = ctx;
    qn_sequenced_broadcast_leave(n->b, out);
}

static void left(void *ctx)
{
    pass(ctx, LEFT);
}

static void enter(void *ctx, const struct qn_view *view)
{
    struct node *n = ctx;
    struct qn_wiring *old = n->wiring;
    int rc = wire(n, view);
    QN_ASSERT(rc == QN_OK);
    rc = qn_sequenced_broadcast_enter(n->b, view, n->wiring, n->qp, n->request);
    QN_ASSERT(rc == QN_OK);
    qn_wiring_destroy(old);
    pass(n, ENTERED);
}

static const struct board_user user = {
    .down = down, .leave = leave, .left = left, .enter = enter};

/* ---- a node ---- */

static bool submit_some(struct node *n)
{
    bool moved = false;
    while (n->submitted < n->plan->target) {
        const uint32_t word = n->at.end->self << 16 | (n->submitted + 1);
        const uint32_t len = length_of(n, word);
        memcpy(n->msg, &word, sizeof word);
        for (uint32_t i = sizeof word; i < len; i++) {
            n->msg[i] = byte_of(word, i);
        }
        if (qn_sequenced_broadcast_submit(n->b, n->msg, len, NULL) != QN_OK) {
            return moved;
        }
        n->submitted++;
        moved = true;
        pass(n, SUBMITTED);
    }
    return moved;
}

static int run_node(struct node *n)
{
    while (!board_all_done(&n->at)) {
        bool moved = board_look(&n->at);
        moved = submit_some(n) || moved;
        moved = qn_sequenced_broadcast_poll(n->b) || moved;
        pass(n, POLLED);
        if (qn_sequenced_broadcast_ended(n->b) == n->plan->target) {
            board_say_done(&n->at);
        }
        qn_doorbell_arm(&n->at.end->doorbell);
        (void)qn_sequenced_broadcast_flush(n->b);
        if (!moved && !board_look(&n->at) && !board_all_done(&n->at) &&
            !qn_sequenced_broadcast_pending(n->b)) {
            (void)qn_doorbell_wait(&n->at.end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&n->at.end->doorbell);
    }
    return 0;
}

static int node(struct qn_mesh_end *end, void *arg)
{
    const struct plan *plan = arg;
    struct node *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return 1;
    }
    *n = (struct node){.at = {.board = &plan->board->b,
                              .end = end,
                              .n = plan->n,
                              .processes = plan->processes,
                              .user = &user,
                              .ctx = n},
                       .plan = plan};
    for (qn_node_t v = 0; v < end->nodes; v++) {
        n->qp[v] = end->qp[v][QN_LANE_TREE];
        n->request[v] = end->qp[v][QN_LANE_DIRECT];
    }
    int failed = first_view(n) != QN_OK || run_node(n) != 0;
    qn_sequenced_broadcast_destroy(n->b);
    qn_wiring_destroy(n->wiring);
    free(n->msg);
    free(n);
    return failed;
}

/* ---- what must be ---- */

static void check(const struct plan *plan, const char *name)
{
    const struct log_board *b = plan->board;
    qn_node_t most = 0;
    for (qn_node_t v = 0; v < plan->n; v++) {
        most = board_lives(&b->b, v) && (!board_lives(&b->b, most) ||
                                         b->delivered[v] > b->delivered[most])
                   ? v
                   : most;
    }
    uint32_t last[NODES_MAX] = {0};
    for (uint32_t i = 0; i < b->delivered[most]; i++) {
        const uint32_t word = b->log[most][i], source = word >> 16;
        cr_assert_lt(source, plan->n);
        cr_assert_eq(word & 0xffff, ++last[source], "%s: in order, and once",
                     name);
    }
    for (qn_node_t v = 0; v < plan->n; v++) {
        if (board_lives(&b->b, v)) {
            cr_assert_eq(last[v], plan->target, "%s: all of source %u", name,
                         v);
            cr_assert_eq(memcmp(b->log[v], b->log[most],
                                b->delivered[v] * sizeof(uint32_t)),
                         0, "%s: nodes %u and %u", name, v, most);
        }
    }
}

static void run_on(const struct qn_transport *t, struct plan *plan)
{
    struct qn_mesh m;
    uint32_t dead = 0, planned = 0;
    if (!make_mesh(&m, t, plan->n, 16, plan->processes)) {
        return;
    }
    plan->board = board_map(sizeof *plan->board);
    cr_assert_not_null(plan->board);
    uint32_t failed = qn_mesh_run(&m, node, plan);
    for (qn_node_t v = 0; v < plan->n; v++) {
        dead += !board_lives(&plan->board->b, v);
        planned += plan->end[v].at > 0;
    }
    cr_assert_eq(dead, planned, "%s", t->name);
    cr_assert_eq(failed, plan->processes ? dead : 0, "%s", t->name);
    check(plan, t->name);
    qn_mesh_destroy(&m);
    munmap(plan->board, sizeof *plan->board);
}

/* Each point with the root, and with another node; then two at a time. */
static void run(uint32_t n, bool processes)
{
    static const uint32_t at[POINTS] = {37, 20, 50, 1, 1};
    for (uint32_t i = 0; i < 2 * POINTS; i++) {
        struct plan plan = {.n = n,
                            .processes = processes,
                            .target = TARGET,
                            .bytes_max = BYTES_MAX};
        const enum point p = (enum point)(i % POINTS);
        const qn_node_t victim = i < POINTS ? 0 : 1 + i % (n - 1);
        plan.end[victim].point = p;
        plan.end[victim].at = at[p];
        if (p == LEFT || p == ENTERED) { /* another one ends first */
            const qn_node_t first = (victim + 1) % n;
            plan.end[first].point = SUBMITTED;
            plan.end[first].at = 9;
        }
        FOR_EACH_TRANSPORT(t)
        {
            run_on(t, &plan);
        }
    }
}

/* Messages of up to 64 KiB through lanes of 16 cells, over a ring: the root
 * ends, or another node. */
static void run_long(uint32_t n, bool processes)
{
    static const uint32_t at[] = {
        [IN_DELIVERY] = 5, [SUBMITTED] = 3, [POLLED] = 200};
    for (uint32_t p = IN_DELIVERY; p <= POLLED; p++) {
        struct plan plan = {.n = n,
                            .processes = processes,
                            .is_ring = true,
                            .target = LONG_TARGET,
                            .bytes_max = QN_SEQUENCE_LEN_MAX};
        plan.end[p].point = (enum point)p;
        plan.end[p].at = at[p];
        FOR_EACH_TRANSPORT(t)
        {
            run_on(t, &plan);
        }
    }
}

Test(views_threads, the_living_go_on_wherever_a_thread_ends, .timeout = 90)
{
    run(5, false);
}

Test(views_processes, the_living_go_on_wherever_a_process_is_killed,
     .timeout = 90)
{
    run(4, true);
}

Test(views_threads, the_living_go_on_with_long_messages_over_a_ring,
     .timeout = 90)
{
    run_long(4, false);
}

Test(views_processes, the_living_go_on_with_long_messages_over_a_ring,
     .timeout = 90)
{
    run_long(4, true);
}
