/*
 * Every lock under threads and processes: a counter without any order of its
 * own, which ThreadSanitizer watches, on all cores and on one, with clients
 * that come and go, and with signal handlers that sleep anywhere.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/core/sync/lock/lock_of.h"

#define THREADS   16u
#define ROUNDS    800u
#define PROCESSES 3u

struct world {
    const struct qn_lock_type *type;
    void *memory;
    uint64_t counter; /* under the lock */
    pthread_barrier_t all;
    qn_a32 ended;     /* threads */
    bool come_and_go; /* join and leave in each round */
    bool one_core;
};

struct worker {
    struct world *w;
    uint32_t number;
    uint64_t done;
    pthread_t thread;
};

static bool is_try(uint32_t round)
{
    return round % 8 == 7;
}

/* @return whether it has the lock. */
static bool enter(struct qn_lock_client *c, uint32_t round)
{
    if (is_try(round)) {
        return qn_lock_try_acquire(c);
    }
    if (c->type->timed && round % 8 == 6) {
        return qn_lock_acquire_until(c, qn_clock_now() + QN_US) == QN_OK;
    }
    qn_lock_acquire(c);
    return true;
}

static void join(struct world *w, struct qn_lock_client *c)
{
    while (qn_lock_join(w->type, w->memory, NULL, c) != QN_OK) {
        sched_yield();
    }
}

static void *work(void *arg)
{
    struct worker *me = arg;
    struct world *w = me->w;
    struct qn_lock_client c;
    pthread_barrier_wait(&w->all);
    join(w, &c);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (enter(&c, i + me->number)) {
            w->counter++;
            me->done++;
            if (i % 16 == 0) {
                sched_yield(); /* so that others arrive meanwhile */
            }
            qn_lock_release(&c);
        }
        if (w->come_and_go) {
            qn_lock_leave(&c);
            join(w, &c);
        }
    }
    qn_lock_leave(&c);
    /* relaxed: pthread_join makes the rest visible. */
    qn_fetch_add(&w->ended, 1, QN_RELAXED);
    return NULL;
}

static void start(struct world *w, struct worker *worker)
{
    cpu_set_t one;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_barrier_init(&w->all, NULL, THREADS);
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    if (w->one_core) {
        pthread_attr_setaffinity_np(&attr, sizeof one, &one);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.w = w, .number = i};
        cr_assert_eq(pthread_create(&worker[i].thread, &attr, work, &worker[i]),
                     0);
    }
    pthread_attr_destroy(&attr);
}

static void finish(struct world *w, struct worker *worker)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(worker[i].thread, NULL);
        done += worker[i].done;
    }
    cr_expect_eq(w->counter, done, "%s: %llu of %llu", w->type->name,
                 (unsigned long long)w->counter, (unsigned long long)done);
    pthread_barrier_destroy(&w->all);
    cr_expect_geq(done, THREADS * (ROUNDS / 8 * 6));
    free(w->memory);
}

static void run_each(bool come_and_go, bool one_core)
{
    for (uint32_t i = 0; qn_lock_types[i] != NULL; i++) {
        struct world w = {.type = qn_lock_types[i],
                          .come_and_go = come_and_go,
                          .one_core = one_core};
        struct worker worker[THREADS];
        if (lock_without_words(w.type)) {
            w.memory = lock_of(w.type, come_and_go ? THREADS / 2 : THREADS);
            start(&w, worker);
            finish(&w, worker);
        }
    }
}

Test(lock_threads, one_holder_at_a_time, .timeout = 100)
{
    run_each(false, false);
}

Test(lock_threads, one_holder_at_a_time_on_one_core, .timeout = 100)
{
    run_each(false, true);
}

Test(lock_threads, clients_come_and_go, .timeout = 100)
{
    run_each(true, false);
}

/* ---- handlers that sleep ---- */

static void sleep_in_handler(int sig)
{
    const struct timespec t = {.tv_nsec = 20000};
    (void)sig;
    nanosleep(&t, NULL);
}

/* Signal each thread in turn, and take the lock in between, until all have
 * ended: they are joined later, so they may still be signalled. */
static uint32_t signal_until_ended(struct world *w, struct worker *worker)
{
    struct qn_lock_client c;
    uint32_t signals = 0;
    join(w, &c);
    while (qn_load(&w->ended, QN_RELAXED) < THREADS) {
        pthread_kill(worker[signals++ % THREADS].thread, SIGUSR1);
        qn_lock_acquire(&c);
        qn_lock_release(&c);
    }
    qn_lock_leave(&c);
    return signals;
}

Test(lock_threads, handlers_may_sleep_anywhere, .timeout = 100)
{
    const struct sigaction sa = {.sa_handler = sleep_in_handler};
    cr_assert_eq(sigaction(SIGUSR1, &sa, NULL), 0);
    for (uint32_t i = 0; qn_lock_types[i] != NULL; i++) {
        struct world w = {.type = qn_lock_types[i]};
        struct worker worker[THREADS];
        if (lock_without_words(w.type)) {
            w.memory = lock_of(w.type, THREADS + 1);
            start(&w, worker);
            cr_expect_gt(signal_until_ended(&w, worker), 0);
            finish(&w, worker);
        }
    }
}

/* ---- processes ---- */

struct mapped {
    alignas(QN_CACHELINE) uint64_t counter; /* under the lock */
    alignas(QN_CACHELINE) unsigned char lock[8192];
};

static struct mapped *map(int fd)
{
    void *at = mmap(NULL, sizeof(struct mapped), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
    cr_assert_neq(at, MAP_FAILED);
    return at;
}

static int count_as_process(const struct qn_lock_type *type, struct mapped *m)
{
    struct qn_lock_client c;
    if (qn_lock_join(type, m->lock, NULL, &c) != QN_OK) {
        return 1;
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        qn_lock_acquire(&c);
        m->counter++;
        qn_lock_release(&c);
    }
    qn_lock_leave(&c);
    return 0;
}

static void count_in_processes(const struct qn_lock_type *type)
{
    const struct qn_lock_opts o = {.clients = PROCESSES};
    struct mapped *m[PROCESSES];
    pid_t child[PROCESSES];
    int fd = memfd_create("lock", MFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, sizeof(struct mapped)), 0);
    cr_assert_leq(qn_lock_bytes(type, &o), sizeof m[0]->lock);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        m[i] = map(fd); /* each at an address of its own */
    }
    cr_assert_eq(qn_lock_format(type, m[0]->lock, &o), QN_OK);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        cr_assert_geq(child[i], 0);
        if (child[i] == 0) {
            _exit(count_as_process(type, m[i]));
        }
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int status = -1;
        cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
        cr_expect_eq(status, 0, "%s", type->name);
    }
    cr_expect_eq(m[0]->counter, PROCESSES * ROUNDS, "%s: %llu", type->name,
                 (unsigned long long)m[0]->counter);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        munmap(m[i], sizeof(struct mapped));
    }
    close(fd);
}

Test(lock_threads, processes_share_a_lock_at_different_addresses,
     .timeout = 100)
{
    for (uint32_t i = 0; qn_lock_types[i] != NULL; i++) {
        if (lock_without_words(qn_lock_types[i])) {
            count_in_processes(qn_lock_types[i]);
        }
    }
}
