/*
 * The caller is the watch, and what sends signals and stops servers. It joins
 * no object while workers are there.
 */
#include "tests/conformance/sync/stress.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/verify/object/object_history.h"

/* 41 clients send a core more words than it has room for. */
enum {
    THREADS_MAX = 41,
    CLIENTS_MAX = THREADS_MAX + 1,
    SERVERS = 3,
    STALL = 3
};

#define TICK_NS    (100 * QN_US) /* of the caller, between two signals */
#define SLOW_EVERY 8             /* additions of a slow thread */
#define LONGEST    4096u /* batch of treiber; no combiner ends one so long */
#define NUMBERS    20    /* bits of a value; the thread is above */

/* What a thread does, for the report of a hang. */
enum state { JOINS, OPERATES, LEAVES, ENDED, STATES };

struct drawn {
    struct qn_subject_opts o;
    uint32_t threads, cores;
    uint32_t leave_every; /* operations; 0: at the end */
    uint32_t each;        /* operations of a thread */
    uint32_t signals;     /* 0: none; 1: to any thread; 2: to the first one,
                             which is slow; STALL: one, to the first one */
    uint32_t stop_every;  /* ticks, of the server */
    uint32_t window;      /* additions of a thread at a server on their way; 0:
                             calls only */
};

struct run;

struct worker {
    struct run *r;
    pthread_t thread;
    uint32_t index;
    uint64_t seed;
    qn_a32 state;    /* written by the worker, read by the caller */
    qn_a64 finished; /* operations; the same */
    struct qn_object_record *record; /* [each] */
    size_t records, submitted;       /* finished, begun */
    uint64_t last;                   /* result of an addition, + 1 */
    bool disorder;                   /* a later one was not greater */
    uint64_t put, taken;
    int rc;
    struct qn_subject_client client;
};

struct run {
    struct drawn d;
    struct qn_subject *s;
    uint64_t seed;
    bool stalled; /* the first one, once */
    qn_a32 ended; /* workers */
    qn_a32 quit;  /* servers end; written by the caller */
    struct worker worker[THREADS_MAX];
};

/* ---- the seed ------------------------------------------------------------ */

static uint32_t one_of(uint64_t *seed, const uint32_t *values, uint32_t n)
{
    return values[qn_random_below(seed, n)];
}

#define ONE_OF(seed, ...)                                                      \
    one_of(seed, (const uint32_t[]){__VA_ARGS__},                              \
           QN_ARRAY_COUNT(((const uint32_t[]){__VA_ARGS__})))

static const struct qn_lock_type *draw_lock(uint64_t *seed)
{
    uint32_t n = 0;
    while (qn_lock_types[n] != NULL) {
        n++;
    }
    return qn_lock_types[qn_random_below(seed, (uint64_t)n + 1)]; /* or NULL */
}

static uint32_t cores_here(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    (void)sched_getaffinity(0, sizeof cores, &cores);
    return (uint32_t)QN_MAX(CPU_COUNT(&cores), 1);
}

static struct drawn draw(const struct stress_plan *p)
{
    uint64_t seed = qn_random_split(p->seed, 0);
    struct drawn d = {.threads = ONE_OF(&seed, 1, 2, 2, 3, 3, 4, 4, 8, 16, 41),
                      .cores = ONE_OF(&seed, 1, 2, 2),
                      .leave_every = ONE_OF(&seed, 0, 1, 5, 50),
                      /* By turns, so that few seeds have each. */
                      .signals = (uint32_t)(p->seed % 3),
                      .stop_every = ONE_OF(&seed, 0, 3, 30),
                      .window = ONE_OF(&seed, 0, 1, 3, 8)};
    if (p->own_cores) {
        d.threads = d.cores = QN_MIN(cores_here(), 2u);
    }
    if (p->one_stalls) {
        d.threads = QN_MAX(d.threads, 2u);
        d.signals = STALL;
    }
    d.each = QN_MAX(p->operations / d.threads, 1u);
    d.o = (struct qn_subject_opts){.clients = d.threads,
                                   .capacity = ONE_OF(&seed, 1, 2, 7, 1000),
                                   .ring = ONE_OF(&seed, 2, 4, 64, 0),
                                   .increments = ONE_OF(&seed, 0, 3),
                                   .batch = ONE_OF(&seed, 0, 1, 2, LONGEST),
                                   .domains = ONE_OF(&seed, 1, 2, 3),
                                   .tries = ONE_OF(&seed, 0, 1),
                                   .change_every = ONE_OF(&seed, 10, 10, 0),
                                   .split = ONE_OF(&seed, 0, 1),
                                   .own_cores = p->own_cores,
                                   .sleep_every = ONE_OF(&seed, 0, 20, 200)};
    if (d.leave_every != 0 && qn_random_below(&seed, 3) == 0 &&
        !p->one_stalls) {
        d.o.clients = (d.threads + 1) / 2; /* the others wait for a place */
    }
    if (p->smallest) {
        d.o.ring = 2;
        d.o.batch = 1;
    }
    d.o.domains = QN_MIN(d.o.domains, d.o.clients); /* a place for each */
    d.o.server = (struct qn_server_opts){
        .pause_ns = 500,
        .stride = (uint8_t)ONE_OF(&seed, 1, 2),
        .pause = (uint8_t)qn_random_below(&seed, QN_SERVER_NONE + 1),
        .group_replies = ONE_OF(&seed, 0, 1),
        .only_server_uses_data = ONE_OF(&seed, 0, 1)};
    d.o.lock = draw_lock(&seed);
    d.o.lock = p->lock != NULL ? qn_lock_find(p->lock) : d.o.lock;
    d.o.only_operations_use_data = p->own_cores && ONE_OF(&seed, 0, 1);
    return d;
}

void stress_describe(const struct stress_plan *p, char *text)
{
    const struct drawn d = draw(p);
    snprintf(text, STRESS_TEXT,
             "%s/%s, seed %llu: %u threads, %u places, %u cores, leave every "
             "%u, signals %u, window %u, capacity %u, batch %u, lock %s%s",
             p->subject.type->family, p->subject.name,
             (unsigned long long)p->seed, d.threads, d.o.clients, d.cores,
             d.leave_every, d.signals, d.window, d.o.capacity, d.o.batch,
             d.o.lock != NULL ? d.o.lock->name : "-",
             d.o.own_cores ? ", own cores" : "");
}

/* ---- workers ------------------------------------------------------------- */

static qn_a32 stalls; /* a thread that is in its handler stays there */

/* Wherever the thread is. */
static void sleep_in_handler(int number)
{
    const struct timespec pause = {.tv_nsec = TICK_NS};
    const int was = errno;
    (void)number;
    do {
        (void)nanosleep(&pause, NULL);
    } while (qn_load(&stalls, QN_RELAXED) != 0); /* relaxed: the word alone */
    errno = was;
}

static void enter(struct worker *w, enum state state)
{
    qn_store(&w->state, state, QN_RELAXED); /* relaxed: for a report */
}

/* All places may be taken: then others leave theirs. */
static void join(struct worker *w)
{
    enter(w, JOINS);
    while ((w->rc = qn_subject_join(w->r->s, &w->client)) == QN_EAGAIN) {
        (void)sched_yield();
    }
    enter(w, OPERATES);
}

static void leave(struct worker *w)
{
    enter(w, LEAVES);
    qn_subject_leave(w->r->s, &w->client);
}

static enum qn_subject_op choose(struct worker *w)
{
    if (w->r->s->type->kind == QN_SUBJECT_COUNTER) {
        return QN_SUBJECT_ADD;
    }
    return qn_random_below(&w->seed, 2) == 0 ? QN_SUBJECT_PUT : QN_SUBJECT_TAKE;
}

static void check_order(struct worker *w, uint64_t was)
{
    w->disorder |= was < w->last;
    w->last = was + 1;
}

/* An operation, and its record: none of a put that found no room. */
static void operate(struct worker *w, enum qn_subject_op op)
{
    struct qn_object_record *r = &w->record[w->records];
    const uint64_t value = (uint64_t)(w->index + 1) << NUMBERS | w->put;
    r->invoked = qn_clock_now();
    const uint64_t result = qn_subject_operate(w->r->s, &w->client, op, value);
    r->responded = qn_clock_now();
    r->value = op == QN_SUBJECT_PUT ? value : result;
    r->kind = op == QN_SUBJECT_ADD           ? QN_OBJECT_ADD
              : op == QN_SUBJECT_PUT         ? QN_OBJECT_PUT
              : result != QN_SUBJECT_NOTHING ? QN_OBJECT_TAKE
                                             : QN_OBJECT_NOTHING;
    const bool full = op == QN_SUBJECT_PUT && result != QN_SUBJECT_DONE;
    w->records += !full;
    w->put += r->kind == QN_OBJECT_PUT && !full;
    w->taken += r->kind == QN_OBJECT_TAKE;
    if (r->kind == QN_OBJECT_ADD) {
        check_order(w, result);
    }
}

/* The oldest addition on its way. A slow thread lets it wait. */
static void collect(struct worker *w)
{
    struct qn_object_record *r = &w->record[w->records++];
    if (w->r->d.signals == 2 && w->index == 0 && w->records % SLOW_EVERY == 0) {
        sleep_in_handler(0);
    }
    const int rc = w->r->s->type->collect(w->r->s, &w->client, &r->value);
    w->rc = w->rc == QN_OK ? rc : w->rc;
    r->responded = qn_clock_now();
    r->kind = QN_OBJECT_ADD;
    check_order(w, r->value);
}

/* An addition more on its way; as many as may be are not collected. */
static void submit(struct worker *w)
{
    w->record[w->submitted].invoked = qn_clock_now();
    w->rc = w->r->s->type->submit(w->r->s, &w->client);
    w->submitted += w->rc == QN_OK;
    if (w->submitted - w->records == w->r->d.window) {
        collect(w);
    }
}

static void collect_all(struct worker *w)
{
    while (w->records < w->submitted) {
        collect(w);
    }
}

/* Are additions submitted, not called? */
static bool submits(const struct worker *w)
{
    return w->r->d.window != 0 && w->r->s->type->submit != NULL &&
           qn_subject_served(w->r->s);
}

/* A thread that stalls while it ends has locks of the C library or of a
 * sanitizer, which threads that begin wait for. */
static void stall_no_more(void)
{
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &s, NULL);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    const uint32_t every = w->r->d.leave_every;
    join(w);
    for (uint32_t i = 0; i < w->r->d.each && w->rc == QN_OK; i++) {
        if (submits(w)) {
            submit(w);
        } else {
            operate(w, choose(w));
        }
        qn_store(&w->finished, i + 1, QN_RELAXED); /* relaxed: for the watch */
        if (every != 0 && i % every == every - 1) {
            collect_all(w);
            leave(w);
            join(w);
        }
    }
    if (w->rc == QN_OK) {
        collect_all(w);
        leave(w);
    }
    stall_no_more();
    enter(w, ENDED);
    /* release -> the caller's load: the records. */
    (void)qn_fetch_add(&w->r->ended, 1, QN_RELEASE);
    return NULL;
}

/* Serve, until stopped for good. Two of these take turns. */
static void *serve(void *arg)
{
    const struct timespec pause = {.tv_nsec = TICK_NS};
    struct run *r = arg;
    /* relaxed: the word alone matters. */
    while (qn_load(&r->quit, QN_RELAXED) == 0) {
        if (r->s->type->serve(r->s) != QN_OK) {
            (void)nanosleep(&pause, NULL); /* the other server serves */
        }
    }
    return NULL;
}

/* ---- the caller ---------------------------------------------------------- */

static uint64_t finished(const struct run *r)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->d.threads; i++) {
        sum += qn_load(&r->worker[i].finished, QN_RELAXED); /* as its stores */
    }
    return sum;
}

static qn_time_t hang_ns(const struct stress_plan *p)
{
    return (p->hang_s != 0 ? p->hang_s : STRESS_HANG_S) * QN_S;
}

static void hang(const struct run *r, const struct stress_plan *p)
{
    static const char *const text[STATES] = {"joins", "operates", "leaves",
                                             "has ended"};
    char name[STRESS_TEXT];
    stress_describe(p, name);
    fprintf(stderr, "no operation ends, or no server: %s\n", name);
    for (uint32_t i = 0; i < r->d.threads; i++) {
        const struct worker *w = &r->worker[i];
        fprintf(stderr, "  thread %u %s, after %llu operations\n", i,
                text[qn_load(&w->state, QN_RELAXED)],
                (unsigned long long)qn_load(&w->finished, QN_RELAXED));
    }
    abort();
}

/* From its first operation on, until all others have ended. */
static void stall_first(struct run *r)
{
    /* relaxed, all: words alone; as the stores. */
    const bool alone = qn_load(&r->ended, QN_RELAXED) + 1 >= r->d.threads;
    if (!r->stalled && qn_load(&r->worker[0].finished, QN_RELAXED) != 0) {
        r->stalled = true;
        qn_store(&stalls, 1, QN_RELAXED);
        (void)pthread_kill(r->worker[0].thread, SIGUSR1);
    }
    if (alone) {
        qn_store(&stalls, 0, QN_RELAXED);
    }
}

static void tick(struct run *r, uint32_t number)
{
    const struct timespec pause = {.tv_nsec = TICK_NS};
    struct qn_subject *s = r->s;
    if (r->d.signals == STALL) {
        stall_first(r);
    }
    (void)nanosleep(&pause, NULL);
    if (r->d.signals == 1 || r->d.signals == 2) {
        const uint64_t i =
            r->d.signals == 2 ? 0 : qn_random_below(&r->seed, r->d.threads);
        (void)pthread_kill(r->worker[i].thread, SIGUSR1);
    }
    if (qn_subject_served(s) && r->d.stop_every != 0 &&
        number % r->d.stop_every == 0) {
        s->type->stop(s);
    }
}

/* Until all workers have ended. */
static void watch(struct run *r, const struct stress_plan *p)
{
    uint64_t before = 0;
    qn_time_t since = qn_clock_now();
    /* acquire -> work: the records. */
    for (uint32_t i = 1; qn_load(&r->ended, QN_ACQUIRE) < r->d.threads; i++) {
        const uint64_t now = finished(r);
        tick(r, i);
        if (now != before) {
            before = now;
            since = qn_clock_now();
        } else if (qn_clock_now() - since > hang_ns(p)) {
            hang(r, p);
        }
    }
}

/* Threads that are made from now on run on that number of this one's cores. */
static cpu_set_t confine(uint32_t cores)
{
    cpu_set_t was, some;
    CPU_ZERO(&some);
    CPU_ZERO(&was);
    (void)sched_getaffinity(0, sizeof was, &was);
    for (size_t i = 0; i < CPU_SETSIZE && cores > 0; i++) {
        if (CPU_ISSET(i, &was)) {
            CPU_SET(i, &some);
            cores--;
        }
    }
    (void)sched_setaffinity(0, sizeof some, &some);
    return was;
}

/* A thread of which others depend. */
static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    if (pthread_create(thread, NULL, run, arg) != 0) {
        abort();
    }
}

static const char *run_workers(struct run *r, const struct stress_plan *p)
{
    const char *wrong = NULL;
    const cpu_set_t was = confine(r->d.cores);
    for (uint32_t i = 0; i < r->d.threads; i++) {
        start(&r->worker[i].thread, work, &r->worker[i]);
    }
    watch(r, p);
    for (uint32_t i = 0; i < r->d.threads; i++) {
        (void)pthread_join(r->worker[i].thread, NULL);
        if (r->worker[i].rc != QN_OK) {
            wrong = qn_strerror(r->worker[i].rc);
        } else if (r->worker[i].disorder) {
            wrong = "results of one thread do not grow";
        }
    }
    (void)sched_setaffinity(0, sizeof was, &was);
    return wrong;
}

/* ---- what is left -------------------------------------------------------- */

/* Take what is left. @param r  [room] Filled. @return records. */
static size_t drain(struct run *run, struct qn_subject_client *c,
                    struct qn_object_record *r, size_t room)
{
    size_t n = 0;
    while (n < room) {
        r[n].invoked = qn_clock_now();
        r[n].value = qn_subject_operate(run->s, c, QN_SUBJECT_TAKE, 0);
        r[n].responded = qn_clock_now();
        const bool nothing = r[n].value == QN_SUBJECT_NOTHING;
        r[n++].kind = nothing ? QN_OBJECT_NOTHING : QN_OBJECT_TAKE;
        if (nothing) {
            break;
        }
    }
    return n;
}

static const char *check_history(struct run *r)
{
    struct qn_subject *s = r->s;
    const size_t room = 2 * (size_t)r->d.threads * r->d.each + 1;
    struct qn_object_record *all = calloc(room, sizeof *all);
    struct qn_object_verdict v = {.fault = QN_OBJECT_NO_FAULT};
    const enum qn_subject_kind kind = s->type->kind;
    struct qn_subject_client *c = &r->worker[0].client;
    uint64_t left = 0;
    size_t n = 0;
    int rc = all != NULL ? qn_subject_join(s, c) : QN_ENOMEM;
    if (rc != QN_OK) {
        free(all);
        return qn_strerror(rc);
    }
    for (uint32_t i = 0; i < r->d.threads; i++) {
        for (size_t k = 0; k < r->worker[i].records; k++) {
            all[n++] = r->worker[i].record[k];
        }
        left += r->worker[i].put - r->worker[i].taken;
    }
    const size_t drained =
        kind == QN_SUBJECT_COUNTER ? 0 : drain(r, c, all + n, room - n);
    qn_subject_leave(s, c);
    n += drained;
    rc = kind == QN_SUBJECT_COUNTER ? qn_counter_history_check(all, n, 0, &v)
         : kind == QN_SUBJECT_QUEUE ? qn_queue_history_check(all, n, &v)
                                    : qn_stack_history_check(all, n, &v);
    free(all);
    return rc != QN_OK                           ? qn_strerror(rc)
           : v.fault != QN_OBJECT_NO_FAULT       ? qn_object_fault_text(v.fault)
           : drained != 0 && drained != left + 1 ? "a value is lost"
                                                 : NULL;
}

/* As many values as it should fit. */
static const char *check_capacity(struct run *r, struct qn_subject_client *c)
{
    struct qn_subject *s = r->s;
    uint32_t in = 0, out = 0;
    while (in < s->o.capacity &&
           qn_subject_operate(s, c, QN_SUBJECT_PUT, in) == QN_SUBJECT_DONE) {
        in++;
    }
    while (qn_subject_operate(s, c, QN_SUBJECT_TAKE, 0) != QN_SUBJECT_NOTHING) {
        out++;
    }
    return in < s->o.capacity ? "there is no room for all values"
           : out != in        ? "not all values come out"
                              : NULL;
}

/* Each place is there and works; another one is not. */
static const char *check_places(struct run *r)
{
    static struct qn_subject_client c[CLIENTS_MAX];
    struct qn_subject *s = r->s;
    const char *wrong = NULL;
    uint32_t n = 0;
    while (n < CLIENTS_MAX && qn_subject_join(s, &c[n]) == QN_OK) {
        n++;
    }
    if (n < s->o.clients) {
        wrong = "a place is lost";
    } else if (n > s->o.clients && n < CLIENTS_MAX) {
        wrong = "a place was given twice";
    }
    for (uint32_t i = 0; i < n && wrong == NULL; i++) {
        if (s->type->kind != QN_SUBJECT_COUNTER) {
            wrong = i == 0 ? check_capacity(r, &c[i]) : NULL;
        } else if (qn_subject_operate(s, &c[i], QN_SUBJECT_ADD, 0) !=
                   (uint64_t)r->d.threads * r->d.each + i) {
            wrong = "an addition is lost";
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        qn_subject_leave(s, &c[i]);
    }
    return wrong;
}

/* ---- a run --------------------------------------------------------------- */

/* @return false: no memory. */
static bool make_workers(struct run *r, const struct stress_plan *p)
{
    for (uint32_t i = 0; i < r->d.threads; i++) {
        struct worker *w = &r->worker[i];
        w->r = r;
        w->index = i;
        w->seed = qn_random_split(p->seed, 1 + i);
        w->record = calloc(r->d.each, sizeof *w->record);
        if (w->record == NULL) {
            return false;
        }
    }
    return true;
}

static void end_servers(struct run *r, const struct stress_plan *p,
                        const pthread_t server[SERVERS])
{
    const qn_time_t since = qn_clock_now();
    qn_store(&r->quit, 1, QN_RELAXED); /* relaxed: as its load */
    for (uint32_t i = 0; i < SERVERS; i++) {
        void *none;
        while (pthread_tryjoin_np(server[i], &none) != 0) {
            r->s->type->stop(r->s); /* another one may have begun since */
            (void)sched_yield();
            if (qn_clock_now() - since > hang_ns(p)) {
                hang(r, p);
            }
        }
    }
}

static const char *run_all(struct run *r, const struct stress_plan *p)
{
    pthread_t server[SERVERS];
    const bool served = qn_subject_served(r->s);
    for (uint32_t i = 0; served && i < SERVERS; i++) {
        start(&server[i], serve, r);
    }
    const char *wrong = run_workers(r, p);
    wrong = wrong == NULL ? check_history(r) : wrong;
    wrong = wrong == NULL ? check_places(r) : wrong;
    if (served) {
        end_servers(r, p, server);
    }
    return wrong;
}

const char *stress_run(const struct stress_plan *p)
{
    const struct sigaction act = {.sa_handler = sleep_in_handler};
    struct run *r = qn_subject_memory(sizeof *r);
    const char *wrong = "no memory";
    (void)sigaction(SIGUSR1, &act, NULL); /* calls are not restarted */
    if (r == NULL) {
        return wrong;
    }
    r->d = draw(p);
    r->seed = qn_random_split(p->seed, THREADS_MAX + 1);
    if (make_workers(r, p)) {
        int rc = qn_subject_create(&r->s, &p->subject, &r->d.o);
        wrong = rc == QN_OK ? run_all(r, p) : qn_strerror(rc);
    }
    qn_subject_destroy(r->s);
    for (uint32_t i = 0; i < r->d.threads; i++) {
        free(r->worker[i].record);
    }
    free(r);
    return wrong;
}
