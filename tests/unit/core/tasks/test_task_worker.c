/* Workers: order, bounds, congestion, wake-ups and end. */
#include <pthread.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/tasks/task_worker.h"
#include "tests/support/test.h"

static struct qn_task_team *team(struct qn_task_team_opts o)
{
    struct qn_task_team *t;
    cr_assert_eq(qn_task_team_create(&t, &o), QN_OK);
    return t;
}

Test(task_worker, options_out_of_range_are_refused)
{
    static const struct qn_task_team_opts wrong[] = {
        {.workers = 0, .slots = 4, .local = 4, .sends = 4},
        {.workers = QN_TASK_WORKERS_MAX + 1,
         .slots = 4,
         .local = 4,
         .sends = 4},
        {.workers = 1, .slots = 3, .local = 4, .sends = 4},
        {.workers = 1, .slots = 4, .local = 0, .sends = 4},
        {.workers = 1, .slots = 4, .local = QN_TASK_LOCAL_MAX + 1, .sends = 4},
        {.workers = 1, .slots = 4, .local = 4, .sends = 0},
        {.workers = 1, .slots = 4, .local = 4, .sends = QN_TASK_SENDS_MAX + 1},
    };
    struct qn_task_team *t;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(wrong); i++) {
        cr_assert_eq(qn_task_team_create(&t, &wrong[i]), QN_EINVAL, "%u", i);
    }
    t = team((struct qn_task_team_opts){.workers = QN_TASK_WORKERS_MAX,
                                        .slots = 2,
                                        .local = 1,
                                        .sends = QN_TASK_SENDS_MAX});
    qn_task_team_destroy(t);
    qn_task_team_destroy(NULL);
}

/* ---- order ---- */

static uint8_t ran[16];
static uint32_t runs;

static void note(struct qn_task_worker *w, const struct qn_task *task)
{
    (void)w;
    ran[runs++] = task->payload[0];
}

static void run_of_five(bool fifo)
{
    struct qn_task_team *t = team((struct qn_task_team_opts){
        .workers = 2, .slots = 4, .local = 5, .sends = 4, .fifo = fifo});
    struct qn_task_worker *w = qn_task_worker_of(t, 0);
    runs = 0;
    for (uint8_t i = 0; i < 4; i++) {
        struct qn_task task = {.run = note, .payload = {i}};
        cr_assert(qn_task_can_send(w));
        qn_task_send(qn_task_worker_of(t, 1), 0, &task);
    }
    while (runs < 4) {
        cr_assert(qn_task_step(w));
    }
    cr_assert_not(qn_task_step(w));
    qn_task_team_destroy(t);
}

Test(task_worker, the_newest_task_runs_first_or_the_oldest)
{
    run_of_five(false);
    cr_assert_eq(memcmp(ran, (uint8_t[]){3, 2, 1, 0}, 4), 0);
    run_of_five(true);
    cr_assert_eq(memcmp(ran, (uint8_t[]){0, 1, 2, 3}, 4), 0);
}

Test(task_worker, a_full_deque_refuses_and_leaves_arrivals_in_the_queue)
{
    struct qn_task_team *t = team((struct qn_task_team_opts){
        .workers = 1, .slots = 4, .local = 3, .sends = 4});
    struct qn_task_worker *w = qn_task_worker_of(t, 0);
    struct qn_task task = {.run = note};
    runs = 0;
    for (uint8_t i = 0; i < 4; i++) {
        qn_task_send(w, 0, &task);
    }
    cr_assert(qn_task_step(w)); /* three were moved, and one of them run */
    cr_assert(qn_task_spawn(w, &task));
    cr_assert_not(qn_task_spawn(w, &task));
    while (qn_task_step(w)) {
    }
    cr_assert_eq(runs, 5);
    qn_task_team_destroy(t);
}

/* ---- congestion ---- */

#define SENDS 3u
#define GOAL  3000u

static uint32_t arrived[2], sent[2];

/* Each task sends three to the other, as long as there are some to send. */
static void multiply(struct qn_task_worker *w, const struct qn_task *task)
{
    uint32_t self = qn_task_worker_number(w);
    (void)task;
    arrived[self]++;
    for (uint32_t i = 0; i < SENDS && sent[self] < GOAL; i++) {
        struct qn_task next = {.run = multiply};
        sent[self]++;
        qn_task_send(w, 1 - self, &next);
    }
}

Test(task_worker, congestion_ends_though_all_queues_are_full)
{
    struct qn_task_team *t = team((struct qn_task_team_opts){
        .workers = 2, .slots = 2, .local = GOAL, .sends = SENDS});
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 2; i++) {
        struct qn_task first = {.run = multiply};
        cr_assert(qn_task_spawn(qn_task_worker_of(t, i), &first));
    }
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < 2; i++) {
            any = qn_task_step(qn_task_worker_of(t, i)) || any;
            refused += !qn_task_can_send(qn_task_worker_of(t, i));
        }
    }
    cr_assert_eq(arrived[0], GOAL + 1);
    cr_assert_eq(arrived[1], GOAL + 1);
    cr_assert_gt(refused, 100, "the backlog was used");
    qn_task_team_destroy(t);
}

/* ---- threads ---- */

#define WORKERS 4u
#define ROUNDS  3000u

/* Once around all workers; the last round ends them. */
static void pass(struct qn_task_worker *w, const struct qn_task *task)
{
    uint32_t hops;
    struct qn_task next = *task;
    memcpy(&hops, task->payload, sizeof hops);
    if (++hops == ROUNDS * WORKERS) {
        qn_task_stop(w);
        return;
    }
    memcpy(next.payload, &hops, sizeof hops);
    qn_task_send(w, (qn_task_worker_number(w) + 1) % WORKERS, &next);
}

static void *run_worker(void *worker)
{
    qn_task_run(worker, 0);
    return NULL;
}

Test(task_worker, sleeping_workers_are_woken, .timeout = 100)
{
    struct qn_task_team *t = team((struct qn_task_team_opts){
        .workers = WORKERS, .slots = 2, .local = 2, .sends = 2});
    struct qn_task first = {.run = pass};
    pthread_t thread[WORKERS];
    qn_task_send(qn_task_worker_of(t, 0), 1, &first);
    for (uint32_t i = 0; i < WORKERS; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, run_worker,
                                    qn_task_worker_of(t, i)),
                     0);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        pthread_join(thread[i], NULL);
    }
    qn_task_team_destroy(t);
}

/* Worker 1 lets worker 0 note. */
static void answer(struct qn_task_worker *w, const struct qn_task *task)
{
    struct qn_task back = *task;
    back.run = note;
    qn_task_send(w, 0, &back);
}

/* In a loop of the caller's own. */
Test(task_worker, one_that_rests_is_woken, .timeout = 100)
{
    struct qn_task_team *t = team((struct qn_task_team_opts){
        .workers = 2, .slots = 2, .local = 2, .sends = 2});
    struct qn_task_worker *w = qn_task_worker_of(t, 0);
    const struct qn_task task = {.run = note};
    runs = 0;
    qn_task_rest(w, qn_clock_now() + QN_MS); /* it ends without a task */
    cr_assert_eq(runs, 0);
    qn_task_send(w, 0, &task);
    qn_task_rest(w, QN_TIME_NEVER); /* it runs what is there */
    cr_assert_eq(runs, 1);
    pthread_t thread;
    cr_assert_eq(
        pthread_create(&thread, NULL, run_worker, qn_task_worker_of(t, 1)), 0);
    const struct qn_task ask = {.run = answer};
    qn_task_send(w, 1, &ask);
    (void)qn_task_step(w); /* rings */
    while (runs < 2) {
        qn_task_rest(w, QN_TIME_NEVER);
    }
    qn_task_stop(w);
    qn_task_rest(w, QN_TIME_NEVER); /* at once */
    pthread_join(thread, NULL);
    qn_task_team_destroy(t);
}
