#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/engine/cpu_time.h"
#include "loadgen/load/load_internal.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * The run as seen by the main thread: it starts the workers, sets the times of
 * the measurement, and wakes up once per interval to print.
 */

/* State of the signal handler. */
static struct {
    struct qn_worker **worker;
    uint32_t count;
    qn_a32 interrupted;
} interruptible;

static bool was_interrupted(void)
{
    return qn_load(&interruptible.interrupted, QN_RELAXED) != 0;
}

static void stop_workers(void)
{
    for (uint32_t i = 0; i < interruptible.count; i++) {
        qn_worker_stop(interruptible.worker[i]);
    }
}

static void on_interrupt(int signo)
{
    (void)signo;
    /* relaxed: read by the same thread, or by another one after it was
     * woken. */
    qn_store(&interruptible.interrupted, 1, QN_RELAXED);
    stop_workers();
}

/* The first Ctrl-C ends the run and prints the results so far, the second one
 * kills the process. */
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

static void make_plan(struct qn_load *l)
{
    l->plan = (struct qn_worker_plan){
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
        .interval = (qn_time_t)(l->interval * 1e9),
        .seed = l->seed,
        .raw = qn_output_raw(&l->output),
        .recorder = l->verify ? l->recorder : NULL,
        .operations_max = QN_LOAD_VERIFY_MAX,
        .resp3 = l->resp3,
        .preload = l->preload,
        .start = &l->start,
    };
}

int qn_load_prepare(struct qn_load *l)
{
    char error[QN_OUTPUT_ERROR_MAX];
    if (qn_output_begin(&l->output, error) != QN_OK) {
        fprintf(stderr, "quoin load: %s\n", error);
        return QN_EIO;
    }
    make_plan(l);
    l->recent = calloc(1, sizeof *l->recent);
    l->sum = calloc(1, sizeof *l->sum);
    l->total = calloc(1, sizeof *l->total);
    l->run = calloc(l->repeat, sizeof *l->run);
    if (l->recent == NULL || l->sum == NULL || l->total == NULL ||
        l->run == NULL ||
        qn_workload_init(&l->workload, &l->workload_opts) != QN_OK ||
        qn_unavailability_create(&l->plan.unavailability, &l->workload_opts.mix,
                                 l->plan.address_count) != QN_OK) {
        return QN_ENOMEM;
    }
    return QN_OK;
}

/* Allocate what one run needs; end_run frees it, also after a failure. */
static int begin_run(struct qn_load *l)
{
    struct qn_worker_plan *p = &l->plan;
    if (qn_stats_sink_create(&p->preloaded, p->threads) != QN_OK ||
        qn_stats_sink_create(&p->warmed, p->threads) != QN_OK ||
        qn_stats_sink_create(&p->measured, p->threads) != QN_OK) {
        return QN_ENOMEM;
    }
    memset(l->recent, 0, sizeof *l->recent);
    pthread_barrier_init(&l->start, NULL, p->threads + 1);
    for (uint32_t i = 0; i < p->threads; i++) {
        int err = qn_worker_create(&l->worker[i], p, i);
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

static void end_run(struct qn_load *l)
{
    struct qn_worker_plan *p = &l->plan;
    for (uint32_t i = 0; i < p->threads; i++) {
        qn_worker_destroy(l->worker[i]);
        l->worker[i] = NULL;
    }
    qn_stats_sink_destroy(p->preloaded);
    qn_stats_sink_destroy(p->warmed);
    qn_stats_sink_destroy(p->measured);
    p->preloaded = NULL;
    p->warmed = NULL;
    p->measured = NULL;
}

static uint64_t own_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * QN_S + (uint64_t)t.tv_nsec;
}

/* A process that has ended counts as 0. */
static uint64_t server_cpu(const struct qn_load *l)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < l->pid_count; i++) {
        uint64_t ns = 0;
        (void)qn_cpu_time_read(l->pid[i], &ns);
        sum += ns;
    }
    return sum;
}

/* Take what was handed in since `*before`, and advance it; 0 stands for the
 * first hand-in, likewise for `start`. @return false if no time has passed. */
static bool take_second(struct qn_load *l, struct qn_stats_sink *c,
                        qn_time_t start, qn_time_t *before,
                        struct qn_report_second *s)
{
    struct qn_stats_sink_recent *r = l->recent;
    qn_stats_sink_take(c, r);
    qn_time_t begin = *before != 0 ? *before : r->first;
    if (r->last <= begin) {
        return false;
    }
    start = start != 0 ? start : r->first;
    *s = (struct qn_report_second){.run = l->run_count,
                                   .at = (double)(r->last - start) / 1e9};
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
        done = qn_stats_sink_wait(l->plan.preloaded,
                                  from + second * QN_S + 50 * QN_MS);
        struct qn_report_second s;
        if (take_second(l, l->plan.preloaded, from, &before, &s) &&
            l->plan.preload && l->output.live) {
            qn_report_live(stderr, "preload", &s);
        }
    }
    const struct qn_op_stats *set =
        &qn_stats_sink_total(l->plan.preloaded)->op[QN_OP_SET];
    if (l->plan.preload && set->ops != l->workload_opts.keys) {
        const char *why = qn_stats_sink_total(l->plan.preloaded)->first_error;
        fprintf(
            stderr,
            "quoin load: preload: %" PRIu64 " of %" PRIu64 " keys stored; %s\n",
            set->ops, l->workload_opts.keys,
            why[0] != '\0' ? why : "interrupted, or the server did not answer");
        return QN_EIO;
    }
    return QN_OK;
}

/* Mean rate of the schedule between two times, requests per second. */
static double intended(const struct qn_load *l, qn_time_t from, qn_time_t to)
{
    if (l->plan.rate == NULL || to <= from) {
        return 0;
    }
    double a = ((double)from - (double)l->plan.warm_from) / 1e9;
    double b = ((double)to - (double)l->plan.warm_from) / 1e9;
    return (qn_rate_area(&l->rate, b) - qn_rate_area(&l->rate, a)) / (b - a);
}

static void take_measured(struct qn_load *l, qn_time_t *before)
{
    struct qn_report_second s;
    qn_time_t from = *before;
    if (take_second(l, l->plan.measured, 0, before, &s)) {
        from = from != 0 ? from : l->recent->first;
        s.intended = intended(l, from, *before);
        qn_output_second(&l->output, &s);
    }
}

/* Show the warm-up of the first run; it is not counted. */
static void watch_warmup(struct qn_load *l)
{
    qn_time_t before = 0;
    qn_stats_sink_wait(l->plan.warmed, QN_TIME_NEVER / 2);
    struct qn_report_second s;
    if (l->run_count == 0 && take_second(l, l->plan.warmed, 0, &before, &s) &&
        s.all.ops > 0) {
        l->warmed = s;
        if (l->output.live) {
            qn_report_live(stderr, "warm-up", &s);
        }
    }
    memset(l->recent, 0, sizeof *l->recent);
}

static void watch_measure(struct qn_load *l)
{
    struct qn_stats_sink *c = l->plan.measured;
    uint64_t server = server_cpu(l);
    uint64_t own = own_cpu();
    qn_time_t before = 0;
    qn_time_t next = QN_MAX(l->plan.measure_from, qn_clock_now());
    bool done = false;
    while (!done && next < l->plan.measure_to) {
        next += l->plan.interval;
        done = qn_stats_sink_wait(
            c, QN_MIN(next + 50 * QN_MS, l->plan.measure_to));
        if (!done && next < l->plan.measure_to) {
            take_measured(l, &before);
        }
    }
    l->server_cpu_ns += server_cpu(l) - server;
    l->own_cpu_ns += own_cpu() - own;
    qn_stats_sink_wait(c, QN_TIME_NEVER / 2);
    take_measured(l, &before);
}

/* Set the times while all workers wait at the barrier. */
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
    qn_unavailability_begin(p->unavailability, p->measure_from, p->measure_to);
}

/* Keep the connections of a finished run; of several runs, the smallest number
 * counts. */
static void keep_opened(struct qn_load *l)
{
    struct qn_report_opened run[QN_LOAD_ADDRESSES_MAX] = {0};
    for (uint32_t i = 0; i < l->threads; i++) {
        const struct qn_worker *w = l->worker[i];
        for (uint32_t k = 0; k < qn_worker_conn_count(w); k++) {
            struct qn_worker_conn c = qn_worker_conn(w, k);
            struct qn_report_opened *o = &run[c.address];
            o->wanted++;
            o->opened += c.opened;
            o->failed |= !c.opened && (c.failed || l->unanswered[c.address]);
        }
    }
    for (uint32_t a = 0; a < l->address_count; a++) {
        struct qn_report_opened *all = &l->opened[a];
        bool failed = all->failed || run[a].failed;
        if (l->run_count == 0 || run[a].opened < all->opened) {
            *all = run[a];
        }
        all->failed = failed;
    }
}

/* Add a finished run to the results. */
static void keep_run(struct qn_load *l)
{
    const struct qn_stats *seen = qn_stats_sink_total(l->plan.measured);
    double seconds = (double)(l->recent->last - l->recent->first) / 1e9;
    struct qn_report_second *run = &l->run[l->run_count];
    *run = (struct qn_report_second){.run = l->run_count};
    qn_report_second(run, seen, seconds, l->sum);
    qn_stats_merge(l->total, seen);
    keep_opened(l);
    l->measured += seconds;
    l->run_count++;
}

static void start_threads(struct qn_load *l)
{
    for (uint32_t i = 0; i < l->threads; i++) {
        if (pthread_create(&l->thread[i], NULL, thread_main, l->worker[i]) !=
            0) {
            /* The other threads wait at the barrier, so there is nothing to
             * unwind. */
            fprintf(stderr, "quoin load: cannot start a thread: %s\n",
                    strerror(errno));
            exit(1);
        }
    }
}

static int run_once(struct qn_load *l)
{
    start_threads(l);
    catch_interrupt(l, true);
    int err = watch_preload(l);
    if (err != QN_OK) {
        stop_workers();
    }
    memset(l->recent, 0, sizeof *l->recent);
    set_times(l);
    pthread_barrier_wait(&l->start);
    watch_warmup(l);
    watch_measure(l);
    catch_interrupt(l, false);
    for (uint32_t i = 0; i < l->threads; i++) {
        pthread_join(l->thread[i], NULL);
    }
    qn_unavailability_end(l->plan.unavailability, l->recent->last);
    if (err == QN_OK) {
        keep_run(l);
    }
    return err;
}

int qn_load_run(struct qn_load *l)
{
    int err = QN_OK;
    const struct qn_rate rate = l->rate;
    while (err == QN_OK && l->run_count < l->repeat && !was_interrupted()) {
        l->plan.preload = l->preload && l->run_count == 0;
        l->rate = rate; /* qn_rate_fit is called for each run */
        err = begin_run(l);
        if (err == QN_OK) {
            err = run_once(l);
        } else {
            fprintf(stderr, "quoin load: %s\n", qn_strerror(err));
        }
        end_run(l);
    }
    return l->run_count > 0 ? QN_OK : err;
}

void qn_load_clean_up(struct qn_load *l)
{
    qn_unavailability_destroy(l->plan.unavailability);
    qn_workload_fini(&l->workload);
    qn_output_close(&l->output);
    free(l->recent);
    free(l->sum);
    free(l->total);
    free(l->run);
    for (uint32_t i = 0; i < l->threads; i++) {
        qn_recorder_fini(&l->recorder[i]);
    }
}
