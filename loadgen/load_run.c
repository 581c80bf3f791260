#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/load_internal.h"
#include "loadgen/proc.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * The run, seen by the main thread: it starts the workers, says when they
 * measure, and sleeps but for one line a second.
 */

enum { INTERVALS_MAX = 1000000 /* seconds */ };

/* What a signal handler can reach. */
static struct {
    struct qn_worker **worker;
    uint32_t count;
} interruptible;

static void on_interrupt(int signo)
{
    (void)signo;
    for (uint32_t i = 0; i < interruptible.count; i++) {
        qn_worker_stop(interruptible.worker[i]);
    }
}

/* The first Ctrl-C ends the run and prints what there is, the second kills. */
static void catch_interrupt(struct qn_load *l, bool on)
{
    interruptible.worker = l->worker;
    interruptible.count = on ? (uint32_t)l->threads : 0;
    struct sigaction act = {.sa_handler = on ? on_interrupt : SIG_DFL,
                            .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

static void *thread_main(void *worker)
{
    qn_worker_run(worker);
    return NULL;
}

int qn_load_prepare(struct qn_load *l)
{
    struct qn_worker_plan *p = &l->plan;
    *p = (struct qn_worker_plan){
        .workload = &l->workload,
        .address = l->address,
        .address_count = l->to_count,
        .threads = (uint32_t)l->threads,
        .connections = (uint32_t)l->connections,
        .pipeline = (uint32_t)l->pipeline,
        .requests = l->requests,
        .seed = l->seed,
        .resp3 = l->resp3,
        .preload = l->preload,
        .start = &l->start,
    };
    if (qn_workload_init(&l->workload, &l->workload_opts) != QN_OK ||
        qn_collect_create(&p->preloaded, p->threads) != QN_OK ||
        qn_collect_create(&p->measured, p->threads) != QN_OK) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < p->threads; i++) {
        int err = qn_worker_create(&l->worker[i], p, i);
        if (err != QN_OK) {
            return err;
        }
    }
    pthread_barrier_init(&l->start, NULL, p->threads + 1);
    return QN_OK;
}

static uint64_t own_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * QN_S + (uint64_t)t.tv_nsec;
}

/* A process that has ended counts for nothing more. */
static uint64_t server_cpu(const struct qn_load *l)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < l->pid_count; i++) {
        uint64_t ns = 0;
        (void)qn_proc_cpu(l->pid[i], &ns);
        sum += ns;
    }
    return sum;
}

static void live(const struct qn_load *l, const char *what, qn_time_t from,
                 const struct qn_report_interval *interval)
{
    if (l->verbose) {
        qn_report_live(stderr, what, (double)(l->recent.last - from) / 1e9,
                       interval);
    }
}

/* @return QN_OK, QN_EIO if not all keys are stored. */
static int watch_preload(struct qn_load *l)
{
    qn_time_t from = qn_clock_now();
    qn_time_t before = from;
    for (uint64_t second = 1;; second++) {
        bool done = qn_collect_wait(l->plan.preloaded,
                                    from + second * QN_S + 50 * QN_MS);
        qn_collect_take(l->plan.preloaded, &l->recent);
        struct qn_report_interval v = qn_report_interval(
            &l->recent.ops, (double)(l->recent.last - before) / 1e9);
        if (l->preload && v.ops + v.errors > 0) {
            live(l, "preload", from, &v);
        }
        before = l->recent.last;
        if (done) {
            break;
        }
    }
    const struct qn_op_stats *set =
        &qn_collect_total(l->plan.preloaded)->op[QN_OP_SET];
    if (l->preload && set->ops != l->workload_opts.keys) {
        const char *why = qn_collect_total(l->plan.preloaded)->first_error;
        fprintf(stderr,
                "quoin load: preload: %" PRIu64 " of %" PRIu64
                " keys stored; %s\n",
                set->ops, l->workload_opts.keys,
                why[0] != '\0' ? why : "interrupted or unanswered");
        return QN_EIO;
    }
    return QN_OK;
}

/* One more interval, if anything happened since the last one. */
static void take_interval(struct qn_load *l, qn_time_t *before)
{
    qn_collect_take(l->plan.measured, &l->recent);
    qn_time_t from = QN_MAX(*before, l->recent.first);
    if (l->recent.last <= from || l->interval_count == INTERVALS_MAX) {
        return;
    }
    struct qn_report_interval v = qn_report_interval(
        &l->recent.ops, (double)(l->recent.last - from) / 1e9);
    if (l->interval_count % 1024 == 0) {
        size_t cap = l->interval_count + 1024;
        void *grown = realloc(l->interval, cap * sizeof v);
        if (grown == NULL) {
            return; /* the totals do not need it */
        }
        l->interval = grown;
    }
    l->interval[l->interval_count++] = v;
    live(l, "", l->recent.first, &v);
    *before = l->recent.last;
}

static void watch_measure(struct qn_load *l)
{
    struct qn_collect *c = l->plan.measured;
    qn_time_t from = l->plan.measure_from;
    qn_collect_wait(c, from);
    l->cpu_before = server_cpu(l);
    l->own_before = own_cpu();
    qn_time_t before = 0;
    qn_time_t next = from;
    bool done = false;
    while (!done && next < l->plan.measure_to) {
        next += QN_S;
        done =
            qn_collect_wait(c, QN_MIN(next + 50 * QN_MS, l->plan.measure_to));
        if (!done && next < l->plan.measure_to) {
            take_interval(l, &before);
        }
    }
    l->cpu_after = server_cpu(l);
    l->own_after = own_cpu();
    qn_collect_wait(c, QN_TIME_NEVER / 2);
    take_interval(l, &before);
}

int qn_load_run(struct qn_load *l)
{
    uint32_t started = 0;
    for (; started < l->threads; started++) {
        if (pthread_create(&l->thread[started], NULL, thread_main,
                           l->worker[started]) != 0) {
            /* The others wait for it: there is nothing to unwind to. */
            fprintf(stderr, "quoin load: cannot start a thread: %s\n",
                    strerror(errno));
            exit(1);
        }
    }
    catch_interrupt(l, true);
    int err = watch_preload(l);
    if (err != QN_OK) {
        on_interrupt(0);
    }
    l->plan.measure_from = qn_clock_now() + (qn_time_t)(l->warmup * 1e9);
    l->plan.measure_to =
        l->requests > 0 ? QN_TIME_NEVER
                        : l->plan.measure_from + (qn_time_t)(l->seconds * 1e9);
    pthread_barrier_wait(&l->start);
    watch_measure(l);
    catch_interrupt(l, false);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(l->thread[i], NULL);
    }
    return err;
}

void qn_load_clean_up(struct qn_load *l)
{
    for (uint32_t i = 0; i < l->threads; i++) {
        qn_worker_destroy(l->worker[i]);
    }
    qn_collect_destroy(l->plan.measured);
    qn_collect_destroy(l->plan.preloaded);
    qn_workload_fini(&l->workload);
    free(l->interval);
}
