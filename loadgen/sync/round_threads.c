/*
 * Rounds on this machine. Workers join, meet at a barrier, and operate until a
 * word says stop. The caller sleeps meanwhile, so it takes no core from them.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/sync/sync_bench.h"
#include "loadgen/sync/worker.h"

static struct {
    bool unpinned;
    struct qn_places places;
} here;

struct shared {
    struct qn_sync_workers all;
    pthread_mutex_t making; /* the caller has it until all threads are made */
    bool made;
    pthread_barrier_t start;
    qn_a32 stop; /* written by the caller */
};

/* A thread's argument. */
struct place {
    struct shared *r;
    uint32_t index;
};

/* A turn is a load and a store, as of a variable in memory. */
static void pause_for(uint64_t turns)
{
    qn_a32 i;
    qn_store(&i, 0, QN_RELAXED); /* relaxed, as below: it is this thread's */
    while (qn_load(&i, QN_RELAXED) < turns) {
        qn_store(&i, qn_load(&i, QN_RELAXED) + 1, QN_RELAXED);
    }
}

static void pin(uint32_t index)
{
    if (!here.unpinned) {
        const struct qn_place at =
            qn_places_of(&here.places, index, QN_BIND_CORE);
        (void)qn_place_pin(&here.places, &at);
    }
}

/* With one thread too few the others would wait in the barrier for ever. */
static bool all_made(struct shared *r)
{
    (void)pthread_mutex_lock(&r->making);
    const bool made = r->made;
    (void)pthread_mutex_unlock(&r->making);
    return made;
}

static void *work(void *arg)
{
    const struct place *p = arg;
    struct shared *r = p->r;
    struct qn_sync_worker *w = &r->all.worker[p->index];
    if (!all_made(r)) {
        return NULL;
    }
    pin(p->index);
    const int rc = qn_sync_worker_join(w);
    (void)pthread_barrier_wait(&r->start);
    /* At least one operation, however late the thread gets a core: there is no
     * rate of 0. relaxed: the word alone matters. */
    bool more = rc == QN_OK;
    while (more) {
        pause_for(qn_sync_worker_pause(w));
        qn_sync_worker_operate(w);
        more = qn_load(&r->stop, QN_RELAXED) == 0;
    }
    qn_sync_worker_leave(w);
    return NULL;
}

static void *serve(void *arg)
{
    struct shared *r = arg;
    pin(r->all.o->threads);
    (void)r->all.s->type->serve(r->all.s);
    return NULL;
}

/* All threads are in the barrier or on their way to it. @return ns. */
static qn_time_t measure(struct shared *r, qn_time_t duration)
{
    const struct timespec pause = {.tv_sec = (time_t)(duration / QN_S),
                                   .tv_nsec = (long)(duration % QN_S)};
    (void)pthread_barrier_wait(&r->start);
    const qn_time_t from = qn_clock_now();
    (void)nanosleep(&pause, NULL);
    qn_store(&r->stop, 1, QN_RELAXED); /* relaxed: as its loads */
    return qn_clock_now() - from;
}

struct threads {
    pthread_t worker[QN_SYNC_ROUND_THREADS_MAX], server;
    struct place place[QN_SYNC_ROUND_THREADS_MAX];
    uint32_t made; /* workers */
    bool served;
};

static void workers_join(const struct threads *t)
{
    for (uint32_t i = 0; i < t->made; i++) {
        (void)pthread_join(t->worker[i], NULL);
    }
}

/* The server last: so none has to be stopped for want of a worker.
 * @return false: none runs. */
static bool threads_make(struct threads *t, struct shared *r)
{
    const uint32_t threads = r->all.o->threads;
    (void)pthread_mutex_lock(&r->making);
    for (; t->made < threads; t->made++) {
        struct place *p = &t->place[t->made];
        *p = (struct place){r, t->made};
        if (pthread_create(&t->worker[t->made], NULL, work, p) != 0) {
            break;
        }
    }
    t->served = qn_subject_served(r->all.s);
    r->made = t->made == threads &&
              (!t->served || pthread_create(&t->server, NULL, serve, r) == 0);
    const bool made = r->made;
    (void)pthread_mutex_unlock(&r->making);
    if (!made) {
        workers_join(t);
    }
    return made;
}

static int run_workers(struct shared *r, struct qn_sync_round *out)
{
    struct threads t = {.made = 0};
    if (!threads_make(&t, r)) {
        return QN_EAGAIN;
    }
    const qn_time_t elapsed = measure(r, r->all.o->duration);
    workers_join(&t);
    const int rc = qn_sync_workers_check(&r->all, &r->all.worker[0], out);
    out->elapsed_ns = elapsed;
    out->stalled = NAN; /* what a thread waits for cannot be seen */
    if (t.served) {
        r->all.s->type->stop(r->all.s);
        (void)pthread_join(t.server, NULL);
    }
    return rc;
}

static int round_run(const struct qn_sync_round_opts *o,
                     struct qn_sync_round *out)
{
    struct shared r = {.all = {.o = o}, .making = PTHREAD_MUTEX_INITIALIZER};
    int rc = qn_sync_workers_create(&r.all, o);
    if (rc != QN_OK) {
        return rc;
    }
    if (pthread_barrier_init(&r.start, NULL, o->threads + 1) == 0) {
        rc = run_workers(&r, out);
        (void)pthread_barrier_destroy(&r.start);
    } else {
        rc = QN_EAGAIN;
    }
    qn_sync_workers_destroy(&r.all);
    return rc;
}

/* A simulated machine is in another program. */
static int open_here(const struct qn_sync_host_opts *o, uint32_t *cores)
{
    if (o->machine != NULL) {
        return qn_sim_execute(o->program, o->argv);
    }
    here.unpinned = o->unpinned;
    const int rc = qn_places_discover(&here.places);
    if (rc != QN_OK) {
        fprintf(stderr, "%s: cannot list the cores: %s\n", o->program,
                qn_strerror(rc));
        return 1;
    }
    *cores = here.places.count;
    return 0;
}

static void close_here(void)
{
}

const struct qn_sync_host qn_sync_threads = {.duration = 50 * QN_MS,
                                             .rounds = 11,
                                             .open = open_here,
                                             .close = close_here,
                                             .round = round_run};

int qn_bench_lock(int argc, char **argv)
{
    return qn_sync_bench(&qn_sync_threads, "lock", argc, argv);
}

int qn_bench_delegate(int argc, char **argv)
{
    return qn_sync_bench(&qn_sync_threads, "delegate", argc, argv);
}

int qn_bench_queue(int argc, char **argv)
{
    return qn_sync_bench(&qn_sync_threads, "queue", argc, argv);
}

int qn_bench_stack(int argc, char **argv)
{
    return qn_sync_bench(&qn_sync_threads, "stack", argc, argv);
}
