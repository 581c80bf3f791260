/*
 * Operations of every kind that end alike, between real threads and real
 * processes, of which one or two end without a word (board.h): between two
 * calls, or while a contribution is combined. Each result must be that of the
 * members of one view, and the living complete the whole program.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/coll/coll.h"
#include "tests/conformance/board.h"
#include "tests/support/alike_program.h"

#define NODES_MAX   BOARD_NODES_MAX
#define OPERATIONS  105u /* of the program */
#define LONG_LENGTH 14u  /* the same, if it has long payloads */
#define WINDOW      4u
#define BYTES_MAX   (NODES_MAX * 8u * (ALIKE_SHORT_MAX + 1))
#define POINTS      6u /* where a node may end */

enum point { COMBINING, STARTED, POLLED, FLUSHED, LEFT, ENTERED };

struct plan {
    struct board *board;
    uint32_t n;
    bool processes;
    uint32_t operations;
    struct alike_program program;
    struct {
        enum point point;
        uint32_t at; /* the how-manieth time there; 0: it does not end */
    } end[NODES_MAX];
};

struct node {
    struct board_node at;
    const struct plan *plan;
    struct qn_qp *qp[QN_NODES_MAX];
    struct qn_coll *c;
    uint32_t passed[POINTS];
    uint32_t ended;      /* operations */
    uint64_t *in, *want; /* [words] */
    uint64_t *out;       /* [WINDOW][words] by number */
};

static _Thread_local struct node *combining; /* the node of this thread */

static void pass(struct node *n, enum point p)
{
    const qn_node_t self = n->at.end->self;
    if (n->plan->end[self].point == p &&
        ++n->passed[p] == n->plan->end[self].at) {
        board_end_here(&n->at);
    }
}

/* ---- the program ---- */

static void add(void *into, const void *from, uint32_t count)
{
    uint64_t *x = into;
    const uint64_t *y = from;
    pass(combining, COMBINING);
    for (uint32_t i = 0; i < count; i++) {
        x[i] += y[i];
    }
}

static const uint64_t none;
static const struct qn_operator adding = {
    .combine = add, .neutral = &none, .bytes = 8, .commutes = true};

static uint32_t words_max(const struct node *n)
{
    return n->plan->program.bytes_max / 8;
}

static uint64_t *out_of(const struct node *n, uint32_t k)
{
    return n->out + k % WINDOW * words_max(n);
}

/* The members of an attempt in order. @return how many. */
static uint32_t members_of(const struct node *n, uint32_t attempt,
                           qn_node_t *member)
{
    const struct board_slot *s = &n->plan->board->view[attempt];
    uint32_t count = 0;
    for (qn_node_t v = 0; v < n->plan->n; v++) {
        if (attempt == 1 || qn_view_has(&s->of.view, v)) {
            member[count++] = v;
        }
    }
    return count;
}

static qn_node_t root_of(const struct node *n, uint32_t attempt)
{
    qn_node_t member[NODES_MAX] = {0};
    const uint32_t count = members_of(n, attempt, member);
    QN_ASSERT(count > 0);
    return member[attempt % count];
}

/* The attempt in which an operation ran that is complete here: of those that
 * came to a view, the last whose view says that it was not done. */
static uint32_t ran_in(const struct node *n, uint32_t k)
{
    uint32_t attempt = n->at.attempt;
    while (attempt > 1 &&
           (qn_load(&n->plan->board->view[attempt].is_there, QN_ACQUIRE) == 0 ||
            n->plan->board->view[attempt].of.view.done >= k)) {
        attempt--;
    }
    return attempt;
}

/* @return its words; 0: this node gets nothing. */
static uint32_t expected(const struct node *n, uint32_t k)
{
    const uint32_t attempt = ran_in(n, k);
    qn_node_t member[NODES_MAX] = {0};
    const struct alike_party party = {.rank = member,
                                      .members = members_of(n, attempt, member),
                                      .root = root_of(n, attempt)};
    return alike_expected(&n->plan->program, k, &party, attempt,
                          n->at.end->self, n->want);
}

static bool start_some(struct node *n)
{
    const uint32_t before = qn_coll_last(n->c);
    int rc = QN_OK;
    while (qn_coll_last(n->c) < n->plan->operations && rc == QN_OK) {
        const uint32_t k = qn_coll_last(n->c) + 1;
        const struct qn_coll_call call =
            alike_call(&n->plan->program, k, n->at.end->self, n->at.attempt,
                       n->in, out_of(n, k));
        rc = qn_coll_start(n->c, &call, NULL);
        QN_ASSERT(rc == QN_OK || rc == QN_EAGAIN || rc == QN_EPEERDEAD);
        if (rc == QN_OK) {
            pass(n, STARTED);
            break; /* its output has room only when an older one has ended */
        }
    }
    return qn_coll_last(n->c) != before;
}

static bool look(struct node *n)
{
    const uint32_t before = n->ended;
    while (n->ended < qn_coll_last(n->c) &&
           qn_coll_state(n->c, n->ended + 1) == QN_OK) {
        const uint32_t words = expected(n, ++n->ended);
        QN_ASSERT(words == 0 || memcmp(out_of(n, n->ended), n->want,
                                       words * sizeof *n->want) == 0);
    }
    if (n->ended == n->plan->operations) {
        board_say_done(&n->at);
    }
    return n->ended != before;
}

/* ---- views ---- */

static struct qn_tree tree_of(const struct node *n, uint32_t attempt,
                              const char *shape)
{
    qn_node_t member[NODES_MAX] = {0}, order[NODES_MAX] = {0};
    const uint32_t count = members_of(n, attempt, member);
    QN_ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = member[(attempt + i) % count];
    }
    struct qn_tree t;
    int rc = qn_tree_build(&t, shape, order, count);
    QN_ASSERT(rc == QN_OK);
    return t;
}

static void down(void *ctx, qn_node_t v)
{
    struct node *n = ctx;
    (void)qn_coll_poll(n->c); /* what it has sent */
    look(n);
    qn_coll_down(n->c, v);
    QN_ASSERT(!n->at.in_view || qn_coll_barrier(n->c, NULL) == QN_EPEERDEAD);
}

static void leave(void *ctx, struct qn_view_report *out)
{
    struct node *n = ctx;
    int rc = qn_coll_leave(n->c, out);
    QN_ASSERT(rc == QN_OK);
}

static void left(void *ctx)
{
    pass(ctx, LEFT);
}

static void enter(void *ctx, const struct qn_view *view)
{
    struct node *n = ctx;
    const struct qn_tree to = tree_of(n, n->at.attempt, "binary");
    const struct qn_tree from = tree_of(n, n->at.attempt, "tree:k=1");
    const struct qn_coll_view_opts o = {.down = &to, .up = &from, .qp = n->qp};
    int rc = qn_coll_enter(n->c, view, &o);
    QN_ASSERT(rc == QN_OK);
    QN_ASSERT(qn_coll_last(n->c) <= view->done);
    pass(n, ENTERED);
}

static const struct board_user user = {
    .down = down, .leave = leave, .left = left, .enter = enter};

/* ---- a node ---- */

static int create(struct node *n)
{
    const struct qn_tree to = tree_of(n, 1, "binary");
    const struct qn_tree from = tree_of(n, 1, "tree:k=1");
    const struct qn_coll_opts o = {.self = n->at.end->self,
                                   .down = &to,
                                   .up = &from,
                                   .qp = n->qp,
                                   .window = WINDOW,
                                   .bytes_max = n->plan->program.bytes_max,
                                   .view = 1,
                                   .alike = true};
    n->at.attempt = 1;
    n->at.in_view = true;
    n->in = calloc(words_max(n), sizeof *n->in);
    n->want = calloc(words_max(n), sizeof *n->want);
    n->out = calloc(WINDOW * words_max(n), sizeof *n->out);
    combining = n;
    if (n->in == NULL || n->want == NULL || n->out == NULL) {
        return QN_ENOMEM;
    }
    return qn_coll_create(&n->c, &o);
}

static void run_node(struct node *n)
{
    while (!board_all_done(&n->at)) {
        bool moved = board_look(&n->at);
        moved = start_some(n) || moved;
        (void)qn_coll_poll(n->c);
        moved = qn_coll_moved(n->c) || moved;
        pass(n, POLLED);
        moved = look(n) || moved;
        qn_doorbell_arm(&n->at.end->doorbell);
        (void)qn_coll_flush(n->c);
        pass(n, FLUSHED);
        if (!moved && !board_look(&n->at) && !board_all_done(&n->at) &&
            !qn_coll_pending(n->c)) {
            (void)qn_doorbell_wait(&n->at.end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&n->at.end->doorbell);
    }
}

static int node(struct qn_mesh_end *end, void *arg)
{
    const struct plan *plan = arg;
    struct node *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return 1;
    }
    *n = (struct node){.at = {.board = plan->board,
                              .end = end,
                              .n = plan->n,
                              .processes = plan->processes,
                              .user = &user,
                              .ctx = n},
                       .plan = plan};
    for (qn_node_t v = 0; v < end->nodes; v++) {
        n->qp[v] = end->qp[v][QN_LANE_TREE];
    }
    int failed = create(n) != QN_OK;
    if (failed == 0) {
        run_node(n);
        failed = n->ended != n->plan->operations;
    }
    qn_coll_destroy(n->c);
    free(n->in);
    free(n->want);
    free(n->out);
    free(n);
    return failed;
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
        dead += !board_lives(plan->board, v);
        planned += plan->end[v].at > 0;
    }
    cr_assert_eq(dead, planned, "%s", t->name);
    cr_assert_eq(failed, plan->processes ? dead : 0, "%s", t->name);
    qn_mesh_destroy(&m);
    munmap(plan->board, sizeof *plan->board);
}

static struct plan plan_of(uint32_t n, bool processes, bool is_long)
{
    return (struct plan){
        .n = n,
        .processes = processes,
        .operations = is_long ? LONG_LENGTH : OPERATIONS,
        .program = {.seed = 1,
                    .members = n,
                    .bytes_max = is_long ? QN_COLL_PAYLOAD_MAX : BYTES_MAX,
                    .adding = &adding}};
}

/* Each point with the first root, and with another node; then two at a time. */
static void run(uint32_t n, bool processes)
{
    static const uint32_t at[POINTS] = {6, 21, 50, 40, 1, 1};
    for (uint32_t i = 0; i < 2 * POINTS; i++) {
        struct plan plan = plan_of(n, processes, false);
        const enum point p = (enum point)(i % POINTS);
        const qn_node_t victim = i < POINTS ? 1 : 2 + i % (n - 2);
        plan.end[victim].point = p;
        plan.end[victim].at = at[p];
        if (p == LEFT || p == ENTERED) { /* another one ends first */
            const qn_node_t first = (victim + 1) % n;
            plan.end[first].point = STARTED;
            plan.end[first].at = 9 + 5 * i;
        }
        FOR_EACH_TRANSPORT(t)
        {
            run_on(t, &plan);
        }
    }
}

/* Payloads of up to 64 KiB through lanes of 16 cells: a node that ends between
 * two polls has mostly sent a part of one. */
static void run_long(uint32_t n, bool processes)
{
    static const uint32_t at[] = {
        [COMBINING] = 2, [STARTED] = 4, [POLLED] = 200};
    for (uint32_t p = COMBINING; p <= POLLED; p++) {
        struct plan plan = plan_of(n, processes, true);
        plan.end[1 + p % n].point = (enum point)p;
        plan.end[1 + p % n].at = at[p];
        FOR_EACH_TRANSPORT(t)
        {
            run_on(t, &plan);
        }
    }
}

Test(alike_threads, operations_end_alike_wherever_a_thread_ends, .timeout = 90)
{
    run(5, false);
}

Test(alike_processes, operations_end_alike_wherever_a_process_is_killed,
     .timeout = 90)
{
    run(4, true);
}

Test(alike_threads, long_operations_end_alike_where_a_thread_ends,
     .timeout = 90)
{
    run_long(4, false);
}

Test(alike_processes, long_operations_end_alike_where_a_process_is_killed,
     .timeout = 90)
{
    run_long(4, true);
}
