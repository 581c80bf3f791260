/*
 * Queues and stacks with more threads than cores: threads that come and go,
 * and stall at any moment, since a signal's handler yields there. They signal
 * each other, so a run has a fixed number of stalls: beside a busy process each
 * yield costs a slice of the scheduler. Each value is taken once; a thread
 * finds the values of each other one in their order; and nothing is lost of the
 * memory.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/sync/object/collection_kinds.h"

#define THREADS   16u
#define ROUNDS    6u   /* a thread leaves and joins again so often */
#define PUTS      120u /* of a thread in a round; values it tries to put */
#define PUTS_LOCK 20u  /* under a lock, which most threads sleep to get */
#define VALUES    (ROUNDS * PUTS)
#define GAP       10u /* values from one signal of a thread to its next */

/* A value is its thread's number and its own, of 16 bits. */
struct world {
    struct collection t;
    pthread_t thread[THREADS];
    qn_a32 taken[THREADS][VALUES]; /* how often */
    qn_a32 put[THREADS][VALUES];
    pthread_barrier_t gate; /* all exist; and none is signalled any more */
};

struct worker {
    struct world *w;
    uint32_t me;
    uint64_t random;
    int64_t last[THREADS]; /* that was taken, of each thread */
};

static uint32_t draw(struct worker *k, uint32_t bound)
{
    k->random = k->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(k->random >> 33) % bound;
}

/* A stall: others that share the core run first. */
static void stall(int number)
{
    (void)number;
    sched_yield();
}

static void take_one(struct worker *k, struct qn_collection_client *c)
{
    uint64_t value;
    struct world *w = k->w;
    if (qn_collection_take(c, &value) != QN_OK) {
        return;
    }
    uint32_t from = (uint32_t)(value >> 16);
    uint32_t number = value & 0xffff;
    cr_assert_lt(from, THREADS);
    cr_assert_lt(number, VALUES);
    cr_assert_eq(qn_fetch_add(&w->taken[from][number], 1, QN_SEQ_CST), 0,
                 "%s: taken twice", collection_text(&w->t.kind));
    if (w->t.q.type->order == QN_FIFO) {
        cr_assert_gt((int64_t)number, k->last[from], "%s: thread %u, %u",
                     collection_text(&w->t.kind), from, number);
        k->last[from] = number;
    }
}

static void *work(void *arg)
{
    struct worker *k = arg;
    struct world *w = k->w;
    uint32_t puts = w->t.kind.lock == NULL ? PUTS : PUTS_LOCK;
    pthread_barrier_wait(&w->gate);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct qn_collection_client c;
        const struct qn_collection_join_opts o = {.domain = k->me & 1};
        cr_assert_eq(qn_collection_join(&w->t.q, &c, &o), QN_OK);
        for (uint32_t i = 0; i < puts; i++) {
            uint32_t number = round * puts + i;
            if (number % GAP == GAP - 1) {
                pthread_kill(w->thread[draw(k, THREADS)], SIGUSR1);
            }
            if (qn_collection_put(&c, (uint64_t)k->me << 16 | number) ==
                QN_OK) {
                qn_store(&w->put[k->me][number], 1, QN_SEQ_CST);
            }
            for (uint32_t n = draw(k, 3); n > 0; n--) {
                take_one(k, &c);
            }
        }
        qn_collection_leave(&c);
    }
    pthread_barrier_wait(&w->gate);
    return NULL;
}

static uint32_t room(struct qn_collection_client *c)
{
    uint32_t count = 0;
    uint64_t value;
    while (qn_collection_put(c, 0) == QN_OK) {
        count++;
    }
    while (qn_collection_take(c, &value) == QN_OK) {
    }
    return count;
}

/* Behind the run: what is left is taken, each value that was put came out, and
 * `capacity` values fit. */
static void settle(struct world *w)
{
    struct qn_collection_client c;
    struct worker last = {.w = w};
    uint32_t rest = w->t.kind.capacity + 10 * THREADS * (w->t.kind.ring + 40);
    cr_assert_eq(qn_collection_join(&w->t.q, &c, NULL), QN_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        last.last[i] = -1;
    }
    for (uint32_t i = 0; i < rest; i++) {
        take_one(&last, &c);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        for (uint32_t k = 0; k < VALUES; k++) {
            cr_assert_eq(qn_load(&w->put[i][k], QN_SEQ_CST),
                         qn_load(&w->taken[i][k], QN_SEQ_CST),
                         "%s: value %u of thread %u",
                         collection_text(&w->t.kind), k, i);
        }
    }
    cr_assert_geq(room(&c), w->t.kind.capacity, "%s",
                  collection_text(&w->t.kind));
    qn_collection_leave(&c);
}

static void run(const struct collection_kind *kind)
{
    struct world *w = calloc(1, sizeof *w);
    struct worker worker[THREADS];
    cr_assert_neq(w, NULL);
    collection_make(&w->t, kind, THREADS);
    cr_assert_eq(pthread_barrier_init(&w->gate, NULL, THREADS + 1), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.w = w, .me = i, .random = i + 1};
        for (uint32_t k = 0; k < THREADS; k++) {
            worker[i].last[k] = -1;
        }
        cr_assert_eq(pthread_create(&w->thread[i], NULL, work, &worker[i]), 0);
    }
    pthread_barrier_wait(&w->gate);
    pthread_barrier_wait(&w->gate);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(w->thread[i], NULL), 0);
    }
    cr_assert_eq(pthread_barrier_destroy(&w->gate), 0);
    settle(w);
    collection_free(&w->t);
    free(w);
}

static void run_all(void)
{
    const struct sigaction on = {.sa_handler = stall, .sa_flags = SA_RESTART};
    cr_assert_eq(sigaction(SIGUSR1, &on, NULL), 0);
    for (uint32_t i = 0; i < COLLECTION_KINDS; i++) {
        run(&collection_kinds[i]);
    }
}

Test(collection_threads, lose_no_value_and_no_memory, .timeout = 100)
{
    run_all();
}

Test(collection_threads, lose_nothing_on_one_core, .timeout = 100)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    run_all();
}
