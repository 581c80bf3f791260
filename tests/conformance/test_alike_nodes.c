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

#define NODES_MAX  BOARD_NODES_MAX
#define OPERATIONS 105u /* of the program */
#define WINDOW     4u
#define WORDS_MAX  12u /* of a member's part */
#define BYTES_MAX  (NODES_MAX * 8u * (WORDS_MAX + 1))
#define POINTS     6u /* where a node may end */

enum point { COMBINING, STARTED, POLLED, FLUSHED, LEFT, ENTERED };

struct plan {
    struct board *board;
    uint32_t n;
    bool processes;
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
    uint32_t ended; /* operations */
    uint64_t out[WINDOW][NODES_MAX * WORDS_MAX];
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

/* Does not commute. */
static void append(void *into, const void *from, uint32_t count)
{
    uint64_t *x = into;
    const uint64_t *y = from;
    for (uint32_t i = 0; i < count; i++) {
        x[i] = x[i] * 31 + y[i];
    }
}

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
static const struct qn_operator appending = {.combine = append,
                                             .neutral = &none,
                                             .bytes = 8},
                                adding = {.combine = add,
                                          .neutral = &none,
                                          .bytes = 8,
                                          .commutes = true};

static enum qn_coll_what what_of(uint32_t k)
{
    return (enum qn_coll_what)(k % (QN_COLL_SCATTER + 1));
}

static uint32_t words_of(uint32_t k)
{
    return what_of(k) == QN_COLL_COMMIT ? 1 : k * 5 % (WORDS_MAX + 1);
}

static uint64_t word_of(uint32_t k, qn_node_t v, uint32_t attempt, uint32_t i)
{
    const uint64_t x =
        (((uint64_t)k * 64 + v) * 64 + attempt + 1) * 1000003u * (i + 1);
    return what_of(k) == QN_COLL_COMMIT ? (x >> 7) % 8 != 0 : x;
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

static uint64_t combined(uint32_t k, uint64_t so_far, uint64_t word)
{
    return what_of(k) == QN_COLL_COMMIT ? (so_far & word)
           : k % 2 == 0                 ? so_far + word
                                        : so_far * 31 + word;
}

/* @return its words; 0: this node gets nothing. */
static uint32_t expected(const struct node *n, uint32_t k, uint64_t *out)
{
    const uint32_t attempt = ran_in(n, k), words = words_of(k);
    const qn_node_t root = root_of(n, attempt), self = n->at.end->self;
    const enum qn_coll_what what = what_of(k);
    qn_node_t member[NODES_MAX] = {0};
    const uint32_t count = members_of(n, attempt, member);
    if ((what == QN_COLL_REDUCE || what == QN_COLL_GATHER) && self != root) {
        return 0;
    }
    for (uint32_t i = 0; i < words; i++) {
        out[i] = word_of(k, root, attempt, i);
    }
    for (uint32_t rank = 0; rank < count; rank++) {
        for (uint32_t i = 0; i < words; i++) {
            const uint64_t word = word_of(k, member[rank], attempt, i);
            if (what == QN_COLL_GATHER) {
                out[rank * words + i] = word;
            } else if (what == QN_COLL_SCATTER && member[rank] == self) {
                out[i] = word_of(k, root, attempt, rank * words + i);
            } else if (what == QN_COLL_REDUCE || what == QN_COLL_ALLREDUCE ||
                       what == QN_COLL_COMMIT) {
                out[i] = rank == 0 ? word : combined(k, out[i], word);
            }
        }
    }
    return what == QN_COLL_GATHER ? words * count : words;
}

static bool start_some(struct node *n)
{
    const uint32_t before = qn_coll_last(n->c);
    int rc = QN_OK;
    while (qn_coll_last(n->c) < OPERATIONS && rc == QN_OK) {
        const uint32_t k = qn_coll_last(n->c) + 1;
        const enum qn_coll_what what = what_of(k);
        uint64_t in[NODES_MAX * WORDS_MAX];
        for (uint32_t i = 0; i < QN_ARRAY_COUNT(in); i++) {
            in[i] = word_of(k, n->at.end->self, n->at.attempt, i);
        }
        const bool bytes = what != QN_COLL_REDUCE && what != QN_COLL_ALLREDUCE;
        const struct qn_coll_call call = {
            .what = what,
            .op = k % 2 == 0 ? &adding : &appending,
            .in = in,
            .out = n->out[k % WINDOW],
            .count = bytes ? 8 * words_of(k) : words_of(k)};
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
        uint64_t want[NODES_MAX * WORDS_MAX];
        const uint32_t words = expected(n, ++n->ended, want);
        for (uint32_t i = 0; i < words; i++) {
            QN_ASSERT(n->out[n->ended % WINDOW][i] == want[i]);
        }
    }
    if (n->ended == OPERATIONS) {
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
                                   .bytes_max = BYTES_MAX,
                                   .view = 1,
                                   .alike = true};
    n->at.attempt = 1;
    n->at.in_view = true;
    combining = n;
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
        failed = n->ended != OPERATIONS;
    }
    qn_coll_destroy(n->c);
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

/* Each point with the first root, and with another node; then two at a time. */
static void run(uint32_t n, bool processes)
{
    static const uint32_t at[POINTS] = {6, 21, 50, 40, 1, 1};
    for (uint32_t i = 0; i < 2 * POINTS; i++) {
        struct plan plan = {.n = n, .processes = processes};
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

Test(alike_threads, operations_end_alike_wherever_a_thread_ends, .timeout = 90)
{
    run(5, false);
}

Test(alike_processes, operations_end_alike_wherever_a_process_is_killed,
     .timeout = 90)
{
    run(4, true);
}
