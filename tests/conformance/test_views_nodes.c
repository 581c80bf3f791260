/*
 * A sequence between real threads and real processes, of which one or two end
 * without a word in the middle: by SIGKILL, or by pthread_exit. The living make
 * a new view and go on; in the end they have delivered the same, and all that
 * they have submitted.
 *
 * What a supervisor does (it says which nodes live, asks for reports, and tells
 * the next view) is a board in shared memory: the living node with the lowest
 * number decides, and the node that ends says so itself, at the last moment.
 * Every change of the board rings all doorbells, and nodes sleep without a
 * deadline: a lost wake-up is a hang.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/coll/sequenced_broadcast.h"
#include "tests/conformance/mesh_of.h"

#define NODES_MAX 8u
#define TARGET    60u /* submissions of each node */
#define LOG_MAX   (NODES_MAX * TARGET)
#define BYTES_MAX 200u
#define POINTS    5u /* where a node may end */
#define ATTEMPTS  8u

enum point { IN_DELIVERY, SUBMITTED, POLLED, LEFT, ENTERED };

struct slot {
    qn_a32 is_there; /* release -> acquire: the rest */
    union {
        struct qn_view_report report;
        struct qn_view view;
    } of;
};

struct board {
    qn_a32 ended[NODES_MAX]; /* by node */
    qn_a32 done[NODES_MAX];
    qn_a32 attempt; /* the view that is being decided, or the present one */
    struct slot report[ATTEMPTS][NODES_MAX];
    struct slot view[ATTEMPTS];
    /* Written by one node each, read when all have ended. */
    uint32_t delivered[NODES_MAX];
    uint32_t log[NODES_MAX][LOG_MAX]; /* source, number */
};

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
    const struct plan *plan;
    struct board *board;
    struct qn_mesh_end *end;
    struct qn_qp *qp[QN_NODES_MAX], *request[QN_NODES_MAX];
    struct qn_sequenced_broadcast *b;
    struct qn_wiring *wiring;
    uint32_t attempt; /* this node's */
    uint32_t passed[POINTS];
    uint32_t submitted;
    bool told[NODES_MAX];
    bool in_view;
    struct qn_mesh_end left_behind;
    struct node *next;
};

/* What threads leave behind that end without a word: it is not freed, as it is
 * not where a process is killed. */
static struct node *abandoned;

static bool lives(const struct board *b, qn_node_t v)
{
    return qn_load(&b->ended[v], QN_ACQUIRE) == 0;
}

static void ring_all(struct node *n)
{
    for (qn_node_t v = 0; v < n->plan->n; v++) {
        if (v != n->end->self) {
            qn_doorbell_ring(&n->end->ringer[v]);
        }
    }
}

static void end_here(struct node *n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    qn_store(&n->board->ended[n->end->self], 1, QN_RELEASE);
    ring_all(n);
    if (n->plan->processes) {
        (void)raise(SIGKILL);
    }
    pthread_mutex_lock(&lock);
    n->left_behind = *n->end;
    n->next = abandoned;
    abandoned = n;
    pthread_mutex_unlock(&lock);
    pthread_exit(NULL);
}

static void pass(struct node *n, enum point p)
{
    const qn_node_t self = n->end->self;
    if (n->plan->end[self].point == p &&
        ++n->passed[p] == n->plan->end[self].at) {
        end_here(n);
    }
}

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct node *n = ctx;
    struct board *b = n->board;
    const qn_node_t self = n->end->self;
    uint32_t word;
    memcpy(&word, msg, sizeof word);
    QN_ASSERT(number == b->delivered[self] + 1);
    QN_ASSERT(len == 4 + word % (BYTES_MAX - 4));
    pass(n, IN_DELIVERY);
    b->log[self][b->delivered[self]++] = word;
}

/* ---- views ---- */

/* A tree, or every second time a ring, of the living, the root first. */
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
    if (view->number % 2 != 0) {
        int rc = qn_tree_build(&t, "binary", node, count);
        const struct qn_wiring_opts o = {.kind = QN_WIRING_ACKNOWLEDGED,
                                         .down = &t,
                                         .up = &t,
                                         .self = n->end->self};
        return rc == QN_OK ? qn_wiring_tree(&n->wiring, &o) : rc;
    }
    const struct qn_diamond_ring_opts ring = {.n = count, .k = 2};
    int rc = qn_diamond_ring_create(&r, &ring);
    if (rc == QN_OK) {
        const struct qn_wiring_ring_opts o = {
            .ring = r, .node = node, .self = n->end->self};
        rc = qn_wiring_ring(&n->wiring, &o);
        qn_diamond_ring_destroy(r);
    }
    return rc;
}

static int first_view(struct node *n)
{
    struct qn_sequenced_views_opts views = {.self = n->end->self,
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
                                                  .bytes_max = BYTES_MAX,
                                                  .views = &views,
                                                  .deliver = deliver,
                                                  .ctx = n};
    n->attempt = 1;
    n->in_view = true;
    return rc == QN_OK ? qn_sequenced_broadcast_create(&n->b, &o) : rc;
}

static void hear_of_deaths(struct node *n)
{
    for (qn_node_t v = 0; v < n->plan->n; v++) {
        if (v != n->end->self && !n->told[v] && !lives(n->board, v)) {
            n->told[v] = true;
            (void)qn_sequenced_broadcast_poll(n->b); /* what it has sent */
            qn_sequenced_broadcast_down(n->b, v);
            qn_mesh_down(n->end, v);
            QN_ASSERT(!n->in_view ||
                      qn_sequenced_broadcast_error(n->b) == QN_EPEERDEAD);
        }
    }
}

static bool decides(const struct node *n)
{
    qn_node_t v = 0;
    while (!lives(n->board, v)) {
        v++;
    }
    return v == n->end->self;
}

/* A death that no attempt knows of begins one. */
static void begin_attempt(struct node *n)
{
    uint32_t dead = 0;
    for (qn_node_t v = 0; v < n->plan->n; v++) {
        dead += n->told[v];
    }
    const uint32_t attempt = qn_load(&n->board->attempt, QN_ACQUIRE);
    if (attempt < dead + 1) {
        qn_store(&n->board->attempt, dead + 1, QN_RELEASE);
        ring_all(n);
    }
}

static void decide(struct node *n)
{
    struct qn_view_report report[NODES_MAX];
    struct slot *out = &n->board->view[n->attempt % ATTEMPTS];
    uint32_t count = 0;
    for (qn_node_t v = 0; v < n->plan->n; v++) {
        struct slot *s = &n->board->report[n->attempt % ATTEMPTS][v];
        if (n->told[v]) {
            continue;
        }
        if (qn_load(&s->is_there, QN_ACQUIRE) == 0) {
            return;
        }
        report[count++] = s->of.report;
    }
    int rc = qn_view_decide(&out->of.view, (uint16_t)n->attempt, report, count);
    QN_ASSERT(rc == QN_OK);
    qn_store(&out->is_there, 1, QN_RELEASE);
    ring_all(n);
}

static void leave(struct node *n, uint32_t attempt)
{
    struct slot *s = &n->board->report[attempt % ATTEMPTS][n->end->self];
    n->attempt = attempt;
    n->in_view = false;
    qn_sequenced_broadcast_leave(n->b, &s->of.report);
    pass(n, LEFT);
    qn_store(&s->is_there, 1, QN_RELEASE);
    ring_all(n);
}

static void enter(struct node *n, const struct slot *s)
{
    struct qn_wiring *old = n->wiring;
    n->in_view = true;
    int rc = wire(n, &s->of.view);
    QN_ASSERT(rc == QN_OK);
    rc = qn_sequenced_broadcast_enter(n->b, &s->of.view, n->wiring, n->qp,
                                      n->request);
    QN_ASSERT(rc == QN_OK);
    qn_wiring_destroy(old);
    pass(n, ENTERED);
}

/* @return true: something has changed. */
static bool look_at_board(struct node *n)
{
    const uint32_t before = n->attempt;
    const bool was_in_view = n->in_view;
    hear_of_deaths(n);
    if (decides(n)) {
        begin_attempt(n);
    }
    const uint32_t attempt = qn_load(&n->board->attempt, QN_ACQUIRE);
    if (attempt > n->attempt) {
        leave(n, attempt);
    }
    const struct slot *view = &n->board->view[n->attempt % ATTEMPTS];
    if (!n->in_view && decides(n) &&
        qn_load(&view->is_there, QN_ACQUIRE) == 0) {
        decide(n);
    }
    if (!n->in_view && qn_load(&view->is_there, QN_ACQUIRE) != 0) {
        enter(n, view);
    }
    return n->attempt != before || n->in_view != was_in_view;
}

/* ---- a node ---- */

static bool submit_some(struct node *n)
{
    uint8_t msg[BYTES_MAX] = {0};
    bool moved = false;
    while (n->submitted < TARGET) {
        const uint32_t word = n->end->self << 16 | (n->submitted + 1);
        memcpy(msg, &word, sizeof word);
        if (qn_sequenced_broadcast_submit(n->b, msg, 4 + word % (BYTES_MAX - 4),
                                          NULL) != QN_OK) {
            return moved;
        }
        n->submitted++;
        moved = true;
        pass(n, SUBMITTED);
    }
    return moved;
}

static bool all_done(const struct node *n)
{
    bool all = true;
    for (qn_node_t v = 0; v < n->plan->n; v++) {
        all = all && (!lives(n->board, v) ||
                      qn_load(&n->board->done[v], QN_ACQUIRE) != 0);
    }
    return all;
}

static void say_done(struct node *n)
{
    const qn_node_t self = n->end->self;
    if (qn_sequenced_broadcast_ended(n->b) == TARGET &&
        qn_load(&n->board->done[self], QN_RELAXED) == 0) {
        /* release -> acquire in all_done */
        qn_store(&n->board->done[self], 1, QN_RELEASE);
        ring_all(n);
    }
}

static int run_node(struct node *n)
{
    while (!all_done(n)) {
        bool moved = look_at_board(n);
        moved = submit_some(n) || moved;
        moved = qn_sequenced_broadcast_poll(n->b) || moved;
        pass(n, POLLED);
        say_done(n);
        qn_doorbell_arm(&n->end->doorbell);
        (void)qn_sequenced_broadcast_flush(n->b);
        if (!moved && !look_at_board(n) && !all_done(n) &&
            !qn_sequenced_broadcast_pending(n->b)) {
            (void)qn_doorbell_wait(&n->end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&n->end->doorbell);
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
    *n = (struct node){.plan = plan, .board = plan->board, .end = end};
    for (qn_node_t v = 0; v < end->nodes; v++) {
        n->qp[v] = end->qp[v][QN_LANE_TREE];
        n->request[v] = end->qp[v][QN_LANE_DIRECT];
    }
    int failed = first_view(n) != QN_OK || run_node(n) != 0;
    qn_sequenced_broadcast_destroy(n->b);
    qn_wiring_destroy(n->wiring);
    free(n);
    return failed;
}

/* ---- what must be ---- */

static void check(const struct plan *plan, const char *name)
{
    const struct board *b = plan->board;
    qn_node_t most = 0;
    for (qn_node_t v = 0; v < plan->n; v++) {
        most = lives(b, v) &&
                       (!lives(b, most) || b->delivered[v] > b->delivered[most])
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
        if (lives(b, v)) {
            cr_assert_eq(last[v], TARGET, "%s: all of source %u", name, v);
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
    plan->board = mmap(NULL, sizeof *plan->board, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)plan->board, MAP_FAILED);
    qn_store(&plan->board->attempt, 1, QN_RELAXED);
    uint32_t failed = qn_mesh_run(&m, node, plan);
    for (qn_node_t v = 0; v < plan->n; v++) {
        dead += !lives(plan->board, v);
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
        struct plan plan = {.n = n, .processes = processes};
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

Test(views_threads, the_living_go_on_wherever_a_thread_ends, .timeout = 90)
{
    run(5, false);
}

Test(views_processes, the_living_go_on_wherever_a_process_is_killed,
     .timeout = 90)
{
    run(4, true);
}
