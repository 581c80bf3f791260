/*
 * Workers join, meet at a barrier, and operate until a word says stop. The
 * caller sleeps meanwhile, so it takes no core from them.
 *
 * Checks. Results of additions at one thread grow, and the count is what all
 * have added. A value names its thread and its number there. What one thread
 * takes from a queue has growing numbers of each other thread; and in all, what
 * was put is what was taken.
 */
#include "loadgen/sync/round.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"

#define NUMBER_BITS 24 /* of a value; the thread has the 8 above */
#define NUMBER_MASK ((UINT32_C(1) << NUMBER_BITS) - 1)

struct worker;

struct shared {
    const struct qn_sync_round_opts *o;
    struct qn_subject *s;
    pthread_barrier_t start;
    qn_a32 stop; /* written by the caller */
    struct worker *worker;
};

struct worker {
    alignas(QN_CACHELINE) struct shared *r;
    uint32_t index;
    uint64_t seed;
    uint64_t operations, failed;
    uint64_t put_sum, take_sum; /* of values */
    bool wrong;                 /* an order */
    int rc;
    uint64_t last; /* result of an addition, + 1 */
    uint32_t
        taken[QN_SYNC_ROUND_THREADS_MAX]; /* number of each thread's last */
    struct qn_histogram *ns;
    struct qn_subject_stats stats;
    struct qn_subject_client client;
};

/* A turn is a load and a store, as of a variable in memory. */
static void pause_for(struct worker *w)
{
    const uint64_t turns =
        qn_random_below(&w->seed, (uint64_t)w->r->o->pause_max + 1);
    qn_a32 i;
    qn_store(&i, 0, QN_RELAXED); /* relaxed, as below: it is this thread's */
    while (qn_load(&i, QN_RELAXED) < turns) {
        qn_store(&i, qn_load(&i, QN_RELAXED) + 1, QN_RELAXED);
    }
}

static uint64_t operate(struct worker *w, enum qn_subject_op op, uint64_t value)
{
    struct qn_subject *s = w->r->s;
    w->operations++;
    if (w->ns == NULL) {
        return qn_subject_operate(s, &w->client, op, value);
    }
    const qn_time_t from = qn_clock_now();
    const uint64_t result = qn_subject_operate(s, &w->client, op, value);
    qn_histogram_record(w->ns, qn_clock_now() - from);
    return result;
}

static void add(struct worker *w)
{
    const uint64_t was = operate(w, QN_SUBJECT_ADD, 0);
    w->wrong = w->wrong || was < w->last;
    w->last = was + 1;
}

static void put(struct worker *w)
{
    const uint64_t number = (w->operations / 2 + 1) & NUMBER_MASK;
    const uint64_t value = (uint64_t)w->index << NUMBER_BITS | number;
    if (operate(w, QN_SUBJECT_PUT, value) != QN_SUBJECT_DONE) {
        w->failed++;
        return;
    }
    w->put_sum += value;
}

static void take(struct worker *w)
{
    const uint64_t value = operate(w, QN_SUBJECT_TAKE, 0);
    if (value > QN_SUBJECT_VALUES || value >> NUMBER_BITS >= w->r->o->threads) {
        w->failed++;
        return;
    }
    w->take_sum += value;
    if (w->r->s->type->kind == QN_SUBJECT_QUEUE) {
        uint32_t *last = &w->taken[value >> NUMBER_BITS];
        const uint32_t number = (uint32_t)value & NUMBER_MASK;
        /* Numbers return to 0 after 2^24 of them. */
        w->wrong = w->wrong || ((number - *last) & NUMBER_MASK) == 0 ||
                   ((number - *last) & NUMBER_MASK) > NUMBER_MASK / 2;
        *last = number;
    }
}

static void operate_until_stop(struct worker *w)
{
    const bool counter = w->r->s->type->kind == QN_SUBJECT_COUNTER;
    /* relaxed: the word alone matters. */
    while (qn_load(&w->r->stop, QN_RELAXED) == 0) {
        pause_for(w);
        if (counter) {
            add(w);
            continue;
        }
        put(w);
        pause_for(w);
        take(w);
    }
}

static void pin(const struct qn_sync_round_opts *o, uint32_t index)
{
    if (o->places != NULL) {
        const struct qn_place at = qn_places_of(o->places, index, QN_BIND_CORE);
        (void)qn_place_pin(o->places, &at);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct qn_subject *s = w->r->s;
    pin(w->r->o, w->index);
    w->rc = qn_subject_join(s, &w->client);
    (void)pthread_barrier_wait(&w->r->start);
    if (w->rc == QN_OK) {
        operate_until_stop(w);
        if (s->type->stats != NULL) {
            s->type->stats(s, &w->client, &w->stats);
        }
        qn_subject_leave(s, &w->client);
    }
    return NULL;
}

static void *serve(void *arg)
{
    struct shared *r = arg;
    pin(r->o, r->o->threads);
    (void)r->s->type->serve(r->s);
    return NULL;
}

static void count(struct qn_sync_round *out, const struct worker *w)
{
    out->operations += w->operations;
    out->failed += w->failed;
    out->least = QN_MIN(out->least, w->operations);
    out->most = QN_MAX(out->most, w->operations);
    out->stats.batches += w->stats.batches;
    out->stats.served += w->stats.served;
    out->stats.cas += w->stats.cas;
    out->stats.cas_failed += w->stats.cas_failed;
    out->stats.parks += w->stats.parks;
    out->stats.wakes += w->stats.wakes;
    out->stats.yields += w->stats.yields;
    out->stats.changes += w->stats.changes;
}

/* What is left in the subject? Workers have left, the server serves. */
static bool nothing_lost(struct shared *r, const struct qn_sync_round *out)
{
    struct qn_subject *s = r->s;
    struct qn_subject_client *c = &r->worker[0].client;
    uint64_t sum = 0;
    if (qn_subject_join(s, c) != QN_OK) {
        return false; /* a place was lost */
    }
    uint64_t value;
    if (s->type->kind == QN_SUBJECT_COUNTER) {
        sum = qn_subject_operate(s, c, QN_SUBJECT_ADD, 0) - out->operations;
    } else {
        while ((value = qn_subject_operate(s, c, QN_SUBJECT_TAKE, 0)) !=
               QN_SUBJECT_NOTHING) {
            sum -= value;
        }
        for (uint32_t i = 0; i < r->o->threads; i++) {
            sum += r->worker[i].put_sum - r->worker[i].take_sum;
        }
    }
    qn_subject_leave(s, c);
    return sum == 0;
}

/* All threads are in the barrier or on their way to it. */
static void measure(struct shared *r, struct qn_sync_round *out)
{
    const struct timespec pause = {.tv_sec = (time_t)(r->o->duration / QN_S),
                                   .tv_nsec = (long)(r->o->duration % QN_S)};
    (void)pthread_barrier_wait(&r->start);
    const qn_time_t from = qn_clock_now();
    (void)nanosleep(&pause, NULL);
    qn_store(&r->stop, 1, QN_RELAXED); /* relaxed: as its loads */
    out->elapsed_ns = qn_clock_now() - from;
}

static int run_workers(struct shared *r, struct qn_sync_round *out)
{
    pthread_t thread[QN_SYNC_ROUND_THREADS_MAX], server;
    const bool served = qn_subject_served(r->s);
    int rc = QN_OK;
    if (served && pthread_create(&server, NULL, serve, r) != 0) {
        return QN_EAGAIN;
    }
    for (uint32_t i = 0; i < r->o->threads; i++) {
        struct worker *w = &r->worker[i];
        w->r = r;
        w->index = i;
        w->seed = qn_random_split(r->o->seed, i);
        if (pthread_create(&thread[i], NULL, work, w) != 0) {
            abort(); /* those that are there wait for this one */
        }
    }
    measure(r, out);
    for (uint32_t i = 0; i < r->o->threads; i++) {
        (void)pthread_join(thread[i], NULL);
        struct worker *w = &r->worker[i];
        count(out, w);
        rc = rc != QN_OK      ? rc
             : w->rc != QN_OK ? w->rc
             : w->wrong       ? QN_ECORRUPT
                              : QN_OK;
    }
    if (rc == QN_OK && !nothing_lost(r, out)) {
        rc = QN_ECORRUPT;
    }
    if (served) {
        r->s->type->stop(r->s);
        (void)pthread_join(server, NULL);
    }
    return rc;
}

/* @return QN_OK; QN_ENOMEM. */
static int make_workers(struct shared *r)
{
    r->worker = qn_subject_memory(r->o->threads * sizeof *r->worker);
    bool good = r->worker != NULL;
    for (uint32_t i = 0; good && r->o->ns != NULL && i < r->o->threads; i++) {
        r->worker[i].ns = calloc(1, sizeof *r->o->ns);
        good = r->worker[i].ns != NULL;
    }
    return good ? QN_OK : QN_ENOMEM;
}

static void destroy_workers(struct shared *r)
{
    for (uint32_t i = 0; r->worker != NULL && i < r->o->threads; i++) {
        struct qn_histogram *ns = r->worker[i].ns;
        if (ns != NULL) {
            qn_histogram_merge(r->o->ns, ns);
        }
        free(ns);
    }
    free(r->worker);
}

int qn_sync_round_run(const struct qn_sync_round_opts *o,
                      struct qn_sync_round *out)
{
    struct qn_subject_opts so = o->o;
    struct shared r = {.o = o};
    so.clients = o->threads + 1; /* and one that looks at what is left */
    so.capacity = 2 * so.clients;
    *out = (struct qn_sync_round){.least = UINT64_MAX};
    int rc = qn_subject_create(&r.s, &o->subject, &so);
    if (rc != QN_OK) {
        return rc;
    }
    rc = make_workers(&r);
    if (rc == QN_OK &&
        pthread_barrier_init(&r.start, NULL, o->threads + 1) == 0) {
        rc = run_workers(&r, out);
        (void)pthread_barrier_destroy(&r.start);
    }
    destroy_workers(&r);
    qn_subject_destroy(r.s);
    return rc;
}
