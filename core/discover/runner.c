/*
 * The runner: threads, steps and passes.
 *
 * One thread per core lives through the whole measurement and sleeps on a
 * condition until its core is in a step; the caller's thread deals out steps
 * and waits. What the threads do is in runner_thread.c.
 *
 * Memory: rounds of all pairs are kept until the end, because the level that
 * counts is only known then. ROUNDS_BYTES bounds them: 140 rounds per pair at
 * 256 cores; 1024 cores have the 9 that are needed, 207 MB.
 */
#include "core/discover/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/cycles.h"
#include "core/discover/round_robin.h"
#include "core/discover/runner_internal.h"

#define ROUNDS_BYTES ((size_t)192 << 20)
#define PASSES_MIN   3u
#define PASS_GAP_NS  (40 * QN_MS) /* least time from pass to pass */
#define PROGRESS_NS  (100 * QN_MS)
/* The run ends this long after opts.seconds, and this much more per step of a
 * pass: another process keeps our cores busy. A step takes 3 to 20 ms. */
#define LATE_S       1.5
#define LATE_STEP_S  0.08
#define SHARE        0.8 /* of the bar, for what is certain */

/* ---- the caller's thread ---- */

static double seconds_since(qn_time_t begin)
{
    return (double)(qn_clock_now() - begin) / 1e9;
}

static bool is_late(const struct qn_runner *r)
{
    return seconds_since(r->begin) >= r->limit_s;
}

static uint32_t count_stable(const struct qn_runner *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->pairs; i++) {
        n += r->pair[i].stable;
    }
    return n;
}

/* How much is over: up to SHARE the passes that are certain, then those over
 * pairs that are not stable. It never falls, whatever is estimated. */
static double part_of(struct qn_runner *r, const struct qn_runner_progress *p)
{
    double all = p->elapsed_s + p->left_s;
    double part = all > 0 ? p->elapsed_s / all : 0;
    part = r->only_unstable ? SHARE + (1 - SHARE) * part : SHARE * part;
    return QN_MAX(r->part, part);
}

static void show(struct qn_runner *r)
{
    qn_time_t now = qn_clock_now();
    if (r->opts->progress == NULL || now - r->shown < PROGRESS_NS) {
        return;
    }
    r->shown = now;
    struct qn_runner_progress p = {.pair_runs = r->pair_runs,
                                   .visits_due =
                                       (uint64_t)PASSES_MIN * r->pairs,
                                   .pairs = r->pairs,
                                   .elapsed_s = seconds_since(r->begin)};
    double spread = QN_MIN(r->opts->spread_s, r->opts->seconds);
    p.left_s = r->limit_s;
    if (r->only_unstable) {
        p.stable = count_stable(r);
        p.left_s = r->opts->seconds - p.elapsed_s;
    } else if (p.pair_runs > 0) {
        double due =
            (double)QN_MAX(p.visits_due, p.pair_runs) - (double)p.pair_runs;
        p.left_s = p.elapsed_s / (double)p.pair_runs * due;
        p.left_s = QN_MAX(p.left_s, spread - p.elapsed_s);
    }
    p.left_s = QN_MIN(p.left_s, r->limit_s - p.elapsed_s);
    p.left_s = QN_MAX(p.left_s, 0.0);
    p.part = r->part = part_of(r, &p);
    if (!r->opts->progress(r->opts->arg, &p)) {
        r->cancelled = true;
        qn_store(&r->stop, 1, QN_RELAXED); /* carries nothing */
    }
}

/* Under the lock: sleep on `done`, for PROGRESS_NS at most. */
static void wait_some(struct qn_runner *r)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)PROGRESS_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait(&r->done, &r->lock, &until);
}

/* Wait until all threads have reported. @return what they said. */
static int wait_for_all(struct qn_runner *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->busy > 0) {
        wait_some(r);
        pthread_mutex_unlock(&r->lock);
        show(r);
        if (is_late(r)) {
            qn_store(&r->stop, 1, QN_RELAXED); /* carries nothing */
        }
        pthread_mutex_lock(&r->lock);
    }
    int rc = r->status;
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static int run_step(struct qn_runner *r, const struct qn_round_robin_pair *pair,
                    uint32_t count)
{
    pthread_mutex_lock(&r->lock);
    r->step++;
    r->busy = 2 * count;
    for (uint32_t i = 0; i < count; i++) {
        struct qn_runner_worker *a = &r->worker[pair[i].a],
                                *b = &r->worker[pair[i].b];
        a->partner = pair[i].b;
        b->partner = pair[i].a;
        a->pair_run = b->pair_run = r->step;
    }
    pthread_cond_broadcast(&r->go);
    pthread_mutex_unlock(&r->lock);
    int rc = wait_for_all(r);
    r->pair_runs += count;
    show(r);
    return rc;
}

static bool is_wanted(void *arg, uint32_t a, uint32_t b)
{
    const struct qn_runner *r = arg;
    return !r->only_unstable || !r->pair[qn_runner_index(r, a, b)].stable;
}

static int run_pass(struct qn_runner *r)
{
    struct qn_round_robin *s = malloc(sizeof *s);
    struct qn_round_robin_pair *pair = malloc((r->m->n / 2 + 1) * sizeof *pair);
    uint32_t limit = r->opts->parallel;
    limit = limit == 0 ? r->m->n / 2 : QN_MIN(limit, r->m->n / 2);
    int rc = s != NULL && pair != NULL ? QN_OK : QN_ENOMEM;
    if (rc == QN_OK) {
        qn_round_robin_init(s, r->m, limit);
    }
    while (rc == QN_OK) {
        uint32_t count = qn_round_robin_next(s, pair, is_wanted, r);
        if (count == 0) {
            break;
        }
        rc = run_step(r, pair, count);
        rc = rc == QN_OK && r->cancelled ? QN_EAGAIN : rc;
    }
    free(s);
    free(pair);
    return rc;
}

/* @return whether every pair has a result that is stable, or can get no
 *  better. */
static bool judge_all(struct qn_runner *r)
{
    bool all = true;
    for (uint32_t i = 0; i < r->pairs; i++) {
        struct qn_runner_pair *p = &r->pair[i];
        struct qn_measured it;
        if (p->stable || p->rounds == 0) {
            all = all && p->stable;
            continue;
        }
        qn_runner_judge(r, i, &it);
        p->stable = it.stable;
        all = all && (it.stable || p->rounds == r->rounds_max);
    }
    return all;
}

/* Passes of a small machine are so short that all would see one level. */
static void pause_until(struct qn_runner *r, qn_time_t due)
{
    while (qn_clock_now() < due && !r->cancelled) {
        qn_time_t now = qn_clock_now();
        qn_time_t left = due > now ? QN_MIN(due - now, PROGRESS_NS) : 0;
        struct timespec t = {.tv_sec = 0, .tv_nsec = (long)left};
        if (left == PROGRESS_NS) {
            t = (struct timespec){.tv_sec = 0, .tv_nsec = 99999999};
        }
        (void)nanosleep(&t, NULL);
        show(r);
    }
}

static bool has_all_rounds(const struct qn_runner *r)
{
    uint32_t i = 0;
    while (i < r->pairs && r->pair[i].rounds > 0) {
        i++;
    }
    return i == r->pairs;
}

static int run_passes(struct qn_runner *r)
{
    double spread = QN_MIN(r->opts->spread_s, r->opts->seconds);
    for (uint32_t pass = 0;; pass++) {
        qn_time_t begin = qn_clock_now();
        int rc = run_pass(r);
        if (rc == QN_EAGAIN && !r->cancelled && has_all_rounds(r)) {
            return QN_OK; /* late: what there is has to do */
        }
        if (rc != QN_OK) {
            return rc;
        }
        double elapsed = seconds_since(r->begin);
        if (pass + 1 >= PASSES_MIN && elapsed >= spread) {
            r->only_unstable = true;
            if (judge_all(r) || elapsed >= r->opts->seconds) {
                return QN_OK;
            }
        }
        if (is_late(r)) {
            return QN_OK; /* cores that others keep busy: it is what it is */
        }
        pause_until(r, begin + PASS_GAP_NS);
        if (r->cancelled) {
            return QN_EAGAIN;
        }
    }
}

/* ---- beginning and end ---- */

/* Seconds from the beginning after which no pair is waited for any more. */
static double limit_of(const struct qn_runner_opts *o, uint32_t n)
{
    uint32_t each = QN_MAX(n / 2, 1u);
    uint32_t at_once = o->parallel == 0 ? each : QN_MIN(o->parallel, each);
    double steps = qn_round_robin_rounds(n) * ceil((double)each / at_once);
    return o->seconds + LATE_S + LATE_STEP_S * steps;
}

static int prepare(struct qn_runner *r)
{
    uint32_t n = r->m->n;
    r->pairs = n * (n - 1) / 2;
    size_t each = ROUNDS_BYTES / r->pairs / sizeof(struct qn_round);
    r->rounds_max = (uint32_t)QN_MIN(each, (size_t)QN_ROUNDS_MAX);
    r->rounds_max = QN_MAX(r->rounds_max, QN_ROUNDS_MIN);
    r->lane_memory_bytes =
        qn_align_up(sizeof(struct qn_lane_memory) +
                        r->opts->transport->lane_bytes(QN_RUNNER_CELLS),
                    4096);
    r->pair = calloc(r->pairs, sizeof *r->pair);
    r->round = calloc((size_t)r->pairs * r->rounds_max, sizeof *r->round);
    r->scratch = calloc(r->rounds_max, sizeof *r->scratch);
    r->worker = aligned_alloc(QN_CACHELINE, n * sizeof *r->worker);
    if (r->pair == NULL || r->round == NULL || r->scratch == NULL ||
        r->worker == NULL) {
        return QN_ENOMEM;
    }
    memset(r->worker, 0, n * sizeof *r->worker);
    return QN_OK;
}

static int start(struct qn_runner *r)
{
    r->busy = r->m->n;
    for (; r->started < r->m->n; r->started++) {
        struct qn_runner_worker *w = &r->worker[r->started];
        w->r = r;
        w->core = r->started;
        if (pthread_create(&w->thread, NULL, qn_runner_live, w) != 0) {
            pthread_mutex_lock(&r->lock);
            r->busy -= r->m->n - r->started; /* threads that never began */
            pthread_mutex_unlock(&r->lock);
            (void)wait_for_all(r);
            return QN_ENOMEM;
        }
    }
    return wait_for_all(r);
}

static void end(struct qn_runner *r)
{
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_broadcast(&r->go);
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->started; i++) {
        pthread_join(r->worker[i].thread, NULL);
        if (r->worker[i].lane_memory != NULL) {
            (void)munmap(r->worker[i].lane_memory, r->lane_memory_bytes);
        }
    }
    free(r->pair);
    free(r->round);
    free(r->scratch);
    free(r->worker);
    pthread_cond_destroy(&r->go);
    pthread_cond_destroy(&r->done);
    pthread_mutex_destroy(&r->lock);
}

/* A machine without costs and without facts of a measurement. */
static void forget(struct qn_machine *m)
{
    size_t bytes = (size_t)m->n * m->n * sizeof *m->send;
    struct qn_machine_facts *f = &m->facts;
    memset(m->send, 0, bytes);
    memset(m->receive, 0, bytes);
    free(f->round_trip);
    free(f->level);
    free(f->unstable);
    char cpu[sizeof f->cpu];
    memcpy(cpu, f->cpu, sizeof cpu);
    *f = (struct qn_machine_facts){0};
    memcpy(f->cpu, cpu, sizeof cpu);
}

int qn_machine_measure(struct qn_machine *m, const struct qn_runner_opts *opts,
                       struct qn_runner_report *rep)
{
    struct qn_runner r = {.m = m,
                          .opts = opts,
                          .begin = qn_clock_now(),
                          .limit_s = limit_of(opts, m->n)};
    *rep = (struct qn_runner_report){0};
    forget(m);
    if (m->n == 1) {
        return QN_OK;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.go, NULL);
    pthread_cond_init(&r.done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    uint64_t ticks = qn_cycles();
    int rc = prepare(&r);
    rc = rc != QN_OK ? rc : start(&r);
    rc = rc != QN_OK ? rc : run_passes(&r);
    rc = rc != QN_OK ? rc : qn_runner_finish(&r, rep, qn_cycles() - ticks);
    rc = rc == QN_EAGAIN && !r.cancelled ? QN_ETIMEDOUT : rc;
    end(&r);
    if (rc != QN_OK) {
        forget(m);
    }
    return rc;
}
