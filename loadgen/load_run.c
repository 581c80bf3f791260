#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/load_internal.h"
#include "loadgen/proc.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * The run, seen by the main thread: it starts the workers, says when they
 * measure, and sleeps but for one line a second.
 */

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
        .address_count = l->address_count,
        .reader_count = l->read_from_count,
        .spread_requests = l->spread_requests,
        .rate = l->rate_text != NULL ? &l->rate : NULL,
        .poisson = l->poisson,
        .cpu = l->cpu,
        .threads = (uint32_t)l->threads,
        .connections = (uint32_t)l->connections,
        .pipeline = (uint32_t)l->pipeline,
        .requests = l->requests,
        .seed = l->seed,
        .resp3 = l->resp3,
        .preload = l->preload,
        .start = &l->start,
    };
    l->recent = calloc(1, sizeof *l->recent);
    l->sum = calloc(1, sizeof *l->sum);
    if (l->recent == NULL || l->sum == NULL ||
        qn_workload_init(&l->workload, &l->workload_opts) != QN_OK ||
        qn_collect_create(&p->preloaded, p->threads) != QN_OK ||
        qn_collect_create(&p->measured, p->threads) != QN_OK ||
        qn_silence_create(&p->silence, &l->workload_opts.mix,
                          p->address_count) != QN_OK) {
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

/* What was handed in since `*before`, which moves on; 0 stands for the first
 * hand-in, `start` too. @return false if no time has passed. */
static bool take_second(struct qn_load *l, struct qn_collect *c,
                        qn_time_t start, qn_time_t *before,
                        struct qn_report_second *s)
{
    struct qn_collect_recent *r = l->recent;
    qn_collect_take(c, r);
    qn_time_t begin = *before != 0 ? *before : r->first;
    if (r->last <= begin) {
        return false;
    }
    start = start != 0 ? start : r->first;
    *s = (struct qn_report_second){.at = (double)(r->last - start) / 1e9};
    qn_report_second(s, &r->stats, (double)(r->last - begin) / 1e9, l->sum);
    *before = r->last;
    return true;
}

/* @return QN_OK, QN_EIO if not all keys are stored. */
static int watch_preload(struct qn_load *l)
{
    qn_time_t from = qn_clock_now();
    qn_time_t before = from;
    bool done = false;
    for (uint64_t second = 1; !done; second++) {
        done = qn_collect_wait(l->plan.preloaded,
                               from + second * QN_S + 50 * QN_MS);
        struct qn_report_second s;
        if (take_second(l, l->plan.preloaded, from, &before, &s) &&
            l->preload && l->output.live) {
            qn_report_live(stderr, "preload", &s);
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

static void take_measured(struct qn_load *l, qn_time_t *before)
{
    struct qn_report_second s;
    if (take_second(l, l->plan.measured, 0, before, &s)) {
        qn_output_second(&l->output, &s);
    }
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
            take_measured(l, &before);
        }
    }
    l->cpu_after = server_cpu(l);
    l->own_after = own_cpu();
    qn_collect_wait(c, QN_TIME_NEVER / 2);
    take_measured(l, &before);
}

/* All workers wait meanwhile. */
static void set_times(struct qn_load *l)
{
    struct qn_worker_plan *p = &l->plan;
    bool timed = l->requests == 0;
    p->warm_from = qn_clock_now();
    p->measure_from = p->warm_from + (qn_time_t)(l->warmup * 1e9);
    p->measure_to =
        timed ? p->measure_from + (qn_time_t)(l->seconds * 1e9) : QN_TIME_NEVER;
    if (p->rate != NULL) {
        qn_rate_fit(&l->rate, timed ? l->warmup : 0,
                    timed ? l->seconds : INFINITY);
    }
    qn_silence_begin(p->silence, p->measure_from, p->measure_to);
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
    set_times(l);
    pthread_barrier_wait(&l->start);
    watch_measure(l);
    catch_interrupt(l, false);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(l->thread[i], NULL);
    }
    qn_silence_end(l->plan.silence, l->recent->last);
    return err;
}

void qn_load_clean_up(struct qn_load *l)
{
    for (uint32_t i = 0; i < l->threads; i++) {
        qn_worker_destroy(l->worker[i]);
    }
    qn_collect_destroy(l->plan.measured);
    qn_collect_destroy(l->plan.preloaded);
    qn_silence_destroy(l->plan.silence);
    qn_workload_fini(&l->workload);
    qn_output_close(&l->output);
    free(l->recent);
    free(l->sum);
}
