/* DR, SDR and BT as tasks: once at each member, acknowledged when all have
 * worked, and in order where that is promised. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/tasks/task_broadcast.h"
#include "core/topo/static_trees.h"
#include "tests/support/test.h"

#define MEMBERS 24u
#define OPS     60u

struct world {
    uint32_t n;
    uint64_t random;
    enum qn_task_broadcast_kind kind;
    const struct qn_wiring *wiring[MEMBERS];
    struct qn_task_team *team;
    struct qn_task_broadcast *broadcast;
    bool steps[MEMBERS];      /* in the middle of a step */
    bool nested;              /* others step while one works */
    uint32_t worked[MEMBERS]; /* operations */
    uint32_t last[MEMBERS];   /* number */
    qn_a32 done_at[OPS + 1];  /* members that have worked on it */
    uint32_t done, done_last; /* operations; number */
    qn_a32 overtakes;         /* works out of order */
};

static uint32_t draw(struct world *w, uint32_t bound)
{
    w->random = w->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(w->random >> 33) % bound;
}

static void step(struct world *w, uint32_t member)
{
    if (!w->steps[member]) {
        w->steps[member] = true;
        (void)qn_task_step(qn_task_worker_of(w->team, member));
        w->steps[member] = false;
    }
}

static void work(void *ctx, uint32_t member, uint32_t number,
                 const void *payload, size_t len)
{
    struct world *w = ctx;
    uint32_t said;
    cr_assert_eq(len, number % (QN_TASK_BROADCAST_BYTES - 4) + 4);
    memcpy(&said, payload, sizeof said);
    cr_assert_eq(said, number);
    if (number != w->last[member] + 1) {
        cr_assert_neq(w->kind, QN_TASK_SDR, "in order");
        qn_fetch_add(&w->overtakes, 1, QN_SEQ_CST);
    }
    w->last[member] = number;
    for (uint32_t i = 0; w->nested && i < 4; i++) {
        step(w, draw(w, w->n)); /* meanwhile */
    }
    w->worked[member]++;
    if (number <= OPS) {
        qn_fetch_add(&w->done_at[number], 1, QN_SEQ_CST);
    }
}

static void done(void *ctx, struct qn_task_worker *root, uint32_t number)
{
    struct world *w = ctx;
    cr_assert_eq(qn_task_worker_number(root), 0);
    cr_assert(number > OPS || qn_load(&w->done_at[number], QN_SEQ_CST) == w->n,
              "all have worked");
    cr_assert(w->kind != QN_TASK_SDR || number == w->done_last + 1);
    w->done_last = number;
    w->done++;
}

static void wire_ring(struct world *w, uint32_t k)
{
    struct qn_diamond_ring *r;
    const struct qn_diamond_ring_opts ring = {
        .n = w->n, .k = k, .companion = w->n > 2 && draw(w, 2) == 0};
    cr_assert_eq(qn_diamond_ring_create(&r, &ring), QN_OK);
    for (qn_node_t i = 0; i < w->n; i++) {
        const struct qn_wiring_ring_opts o = {.ring = r, .self = i};
        struct qn_wiring *made;
        cr_assert_eq(qn_wiring_ring(&made, &o), QN_OK);
        w->wiring[i] = made;
    }
    qn_diamond_ring_destroy(r);
}

static void wire_tree(struct world *w, uint32_t k)
{
    struct qn_tree t;
    qn_node_t order[MEMBERS];
    char name[16];
    for (qn_node_t i = 0; i < w->n; i++) {
        order[i] = i;
    }
    snprintf(name, sizeof name, "tree:k=%u", k);
    cr_assert_eq(qn_tree_build(&t, name, order, w->n), QN_OK);
    for (qn_node_t i = 0; i < w->n; i++) {
        const struct qn_wiring_opts o = {
            .kind = QN_WIRING_ACKNOWLEDGED, .down = &t, .up = &t, .self = i};
        struct qn_wiring *made;
        cr_assert_eq(qn_wiring_tree(&made, &o), QN_OK);
        w->wiring[i] = made;
    }
}

static struct world *world(enum qn_task_broadcast_kind kind, uint32_t n,
                           uint32_t k, uint32_t window, uint64_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    struct qn_task_team_opts o = {.workers = n, .slots = 2};
    *w = (struct world){.n = n, .random = seed, .kind = kind};
    if (kind == QN_TASK_BT) {
        wire_tree(w, k);
    } else {
        wire_ring(w, k);
    }
    for (uint32_t i = 0; i < n; i++) {
        o.local = QN_MAX(o.local, qn_task_broadcast_most(w->wiring[i], window));
        o.sends = QN_MAX(o.sends, w->wiring[i]->links + 1);
    }
    o.fifo = seed % 7 == 0;
    const struct qn_task_broadcast_opts b = {.kind = kind,
                                             .wiring = w->wiring,
                                             .window = window,
                                             .work = work,
                                             .done = done,
                                             .ctx = w};
    cr_assert_eq(qn_task_team_create(&w->team, &o), QN_OK);
    cr_assert_eq(qn_task_broadcast_create(&w->broadcast, w->team, &b), QN_OK);
    return w;
}

static void free_world(struct world *w)
{
    qn_task_broadcast_destroy(w->broadcast);
    qn_task_team_destroy(w->team);
    for (uint32_t i = 0; i < w->n; i++) {
        qn_wiring_destroy((struct qn_wiring *)(uintptr_t)w->wiring[i]);
    }
    free(w);
}

static int start(struct world *w, uint32_t number)
{
    uint8_t payload[QN_TASK_BROADCAST_BYTES] = {0};
    uint32_t got;
    memcpy(payload, &number, sizeof number);
    int rc = qn_task_broadcast_start(
        w->broadcast, qn_task_worker_of(w->team, 0), payload,
        number % (QN_TASK_BROADCAST_BYTES - 4) + 4, &got);
    cr_assert(rc == QN_EAGAIN || (rc == QN_OK && got == number));
    return rc;
}

/* Workers step in any order. @return works out of order. */
static uint32_t run(struct world *w)
{
    uint32_t started = 0;
    w->nested = true;
    for (uint32_t steps = 0; w->done < OPS; steps++) {
        cr_assert_lt(steps, 1000000u);
        w->steps[0] = true;
        while (started < OPS && start(w, started + 1) == QN_OK) {
            started++;
        }
        w->steps[0] = false;
        step(w, draw(w, w->n));
    }
    for (uint32_t i = 0; i < w->n; i++) {
        cr_assert_eq(w->worked[i], OPS, "once at each");
        while (qn_task_step(qn_task_worker_of(w->team, i))) {
        }
    }
    cr_assert_eq(qn_task_broadcast_completed(w->broadcast), OPS);
    uint32_t overtakes = qn_load(&w->overtakes, QN_SEQ_CST);
    free_world(w);
    return overtakes;
}

static uint32_t run_seeds(enum qn_task_broadcast_kind kind)
{
    uint32_t overtakes = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        overtakes += run(world(kind, 1 + (uint32_t)(seed % MEMBERS),
                               1 + (uint32_t)(seed % 4), 1u << seed % 6, seed));
    }
    return overtakes;
}

Test(task_broadcast, a_ring_reaches_all_and_is_acknowledged, .timeout = 60)
{
    cr_assert_gt(run_seeds(QN_TASK_DR), 100, "newest first: out of order");
}

Test(task_broadcast, a_sequenced_ring_works_in_order, .timeout = 60)
{
    cr_assert_eq(run_seeds(QN_TASK_SDR), 0);
}

Test(task_broadcast, a_tree_is_acknowledged_when_all_have_worked, .timeout = 60)
{
    cr_assert_gt(run_seeds(QN_TASK_BT), 100);
}

/* ---- bounds and errors ---- */

Test(task_broadcast, what_is_too_long_or_not_of_the_root_is_refused)
{
    struct world *w = world(QN_TASK_SDR, 5, 2, 4, 1);
    uint8_t payload[QN_TASK_BROADCAST_BYTES + 1] = {0};
    cr_assert_eq(qn_task_broadcast_start(w->broadcast,
                                         qn_task_worker_of(w->team, 0), payload,
                                         sizeof payload, NULL),
                 QN_EMSGSIZE);
    cr_assert_eq(qn_task_broadcast_start(w->broadcast,
                                         qn_task_worker_of(w->team, 1), payload,
                                         4, NULL),
                 QN_EPERM);
    free_world(w);
}

/* The root steps only when it has a backlog, so it completes nothing. */
Test(task_broadcast, a_window_bounds_what_is_started)
{
    struct world *w = world(QN_TASK_SDR, 5, 2, 4, 1);
    struct qn_task_worker *root = qn_task_worker_of(w->team, 0);
    uint32_t started = 0;
    for (;;) {
        if (start(w, started + 1) == QN_OK) {
            started++;
        } else if (qn_task_can_send(root)) {
            break;
        }
        for (uint32_t i = qn_task_can_send(root); i < w->n; i++) {
            step(w, i);
        }
    }
    cr_assert_eq(started, 4);
    cr_assert_eq(w->done, 0);
    free_world(w);
}

Test(task_broadcast, a_team_with_too_little_room_is_refused)
{
    struct world *w = world(QN_TASK_DR, 6, 2, 8, 1);
    struct qn_task_team_opts o = *qn_task_team_opts(w->team);
    struct qn_task_broadcast_opts b = {.kind = QN_TASK_DR,
                                       .wiring = w->wiring,
                                       .window = 8,
                                       .work = work,
                                       .ctx = w};
    struct qn_task_team *team;
    struct qn_task_broadcast *none;
    o.local = qn_task_broadcast_most(w->wiring[0], 8) - 1;
    cr_assert_eq(qn_task_team_create(&team, &o), QN_OK);
    cr_assert_eq(qn_task_broadcast_create(&none, team, &b), QN_EINVAL);
    qn_task_team_destroy(team);
    b.window = 3;
    cr_assert_eq(qn_task_broadcast_create(&none, w->team, &b), QN_EINVAL);
    b.window = 8;
    b.kind = QN_TASK_BT; /* a ring is no tree */
    cr_assert_eq(qn_task_broadcast_create(&none, w->team, &b), QN_EINVAL);
    free_world(w);
}

/* ---- threads ---- */

#define THREADS 5u
#define MANY    3000u

static void feed(struct qn_task_worker *w, const struct qn_task *task)
{
    struct world *x = task->ctx;
    uint32_t next = qn_task_broadcast_completed(x->broadcast);
    memcpy(&next, task->payload, sizeof next);
    while (next < MANY && start(x, next + 1) == QN_OK) {
        next++;
    }
    if (x->done == MANY) {
        qn_task_stop(w);
        return;
    }
    struct qn_task again = *task;
    memcpy(again.payload, &next, sizeof next);
    qn_task_send(w, 0, &again); /* behind what has arrived */
}

static void *run_worker(void *worker)
{
    qn_task_run(worker, 0);
    return NULL;
}

static void run_threads(enum qn_task_broadcast_kind kind)
{
    struct world *w = world(kind, THREADS, 2, 8, 3);
    struct qn_task first = {.run = feed, .ctx = w};
    pthread_t thread[THREADS];
    qn_task_send(qn_task_worker_of(w->team, 0), 0, &first);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, run_worker,
                                    qn_task_worker_of(w->team, i)),
                     0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        cr_assert_eq(w->worked[i], MANY);
    }
    free_world(w);
}

Test(task_broadcast, threads_that_sleep_complete_all, .timeout = 100)
{
    for (enum qn_task_broadcast_kind k = QN_TASK_DR; k <= QN_TASK_BT; k++) {
        run_threads(k);
    }
}
