#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/address.h"
#include "loadgen/client.h"
#include "loadgen/collect.h"
#include "loadgen/options.h"
#include "loadgen/proc.h"
#include "loadgen/quoin.h"
#include "loadgen/report.h"
#include "loadgen/worker.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * `quoin load`: options in, threads out, and a main thread that sleeps but for
 * one line a second.
 *
 * Closed loop: a connection asks again when it was answered. So a server that
 * stalls is asked less, and the stall counts as few slow answers; an open loop
 * that keeps its schedule is the honest measure of response time and comes
 * later, behind the same client and collector. Within those limits: latency
 * runs from the moment a batch is made to the moment its reply is read.
 */

enum {
    ADDRESSES_MAX = 64,
    THREADS_MAX = 256,
    PIDS_MAX = 1024,
    CONNECTIONS_MAX = 60000,
    INTERVALS_MAX = 1000000, /* seconds */
};

struct load {
    /* options */
    const char *to[ADDRESSES_MAX];
    uint32_t to_count;
    const char *mix_text;
    struct qn_workload_opts workload_opts;
    uint64_t connections;
    uint64_t pipeline;
    uint64_t threads;
    uint64_t requests;
    uint64_t seed;
    double seconds;
    double warmup;
    bool preload;
    bool resp3;
    bool json;
    bool verbose;
    pid_t pid[PIDS_MAX];
    uint32_t pid_count;
    /* made of them */
    struct qn_workload workload;
    struct qn_address address[ADDRESSES_MAX];
    char addresses[1024];
    pthread_barrier_t start;
    struct qn_worker_plan plan;
    struct qn_worker *worker[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    /* results */
    uint64_t cpu_before; /* ns */
    uint64_t cpu_after;
    uint64_t own_before;
    uint64_t own_after;
    struct qn_collect_recent recent;
    struct qn_report_interval *interval;
    uint32_t interval_count;
};

/* ---- options ---- */

static int take_to(const struct qn_option *o, const char *text)
{
    struct load *l = o->to;
    if (l->to_count == ADDRESSES_MAX) {
        return QN_EINVAL;
    }
    l->to[l->to_count++] = text;
    return QN_OK;
}

static int add_pid(struct load *l, pid_t pid)
{
    uint64_t ns;
    if (l->pid_count == PIDS_MAX || qn_proc_cpu(pid, &ns) != QN_OK) {
        return QN_EINVAL;
    }
    l->pid[l->pid_count++] = pid;
    return QN_OK;
}

static int parse_pid(const char *text, char **end, pid_t *pid)
{
    long n = strtol(text, end, 10);
    if (*end == text || n < 1 || n > INT32_MAX) {
        return QN_EINVAL;
    }
    *pid = (pid_t)n;
    return QN_OK;
}

static int take_cpu_of(const struct qn_option *o, const char *text)
{
    for (;;) {
        char *end;
        pid_t pid;
        if (parse_pid(text, &end, &pid) != QN_OK ||
            add_pid(o->to, pid) != QN_OK) {
            return QN_EINVAL;
        }
        if (*end == '\0') {
            return QN_OK;
        }
        if (*end != ',') {
            return QN_EINVAL;
        }
        text = end + 1;
    }
}

static int take_cpu_tree(const struct qn_option *o, const char *text)
{
    struct load *l = o->to;
    char *end;
    pid_t pid;
    if (parse_pid(text, &end, &pid) != QN_OK || *end != '\0') {
        return QN_EINVAL;
    }
    int n = qn_proc_tree(pid, l->pid + l->pid_count, PIDS_MAX - l->pid_count);
    if (n < 0) {
        return QN_EINVAL;
    }
    l->pid_count += (uint32_t)n;
    return QN_OK;
}

static int take_mix(const struct qn_option *o, const char *text)
{
    struct load *l = o->to;
    char error[160];
    int err = qn_mix_parse(&l->workload_opts.mix, text, error, sizeof error);
    if (err != QN_OK) {
        fprintf(stderr, "quoin load: --mix: %s\n", error);
        return QN_ENOENT;
    }
    l->mix_text = text;
    return QN_OK;
}

static const char summary[] =
    "Drive a RESP server and say how fast it answers. Closed loop: each\n"
    "connection asks again when its last batch is answered. Keys are "
    "uniformly\n"
    "random; values read are checked. Counts take k, m, g, ki, mi, gi.";

static bool parse_options(struct load *l, int argc, char **argv,
                          int *exit_status)
{
    struct qn_workload_opts *w = &l->workload_opts;
    const struct qn_option table[] = {
        {"to", "ADDR", take_to, l, "HOST:PORT or unix:PATH; repeat for several",
         0, 0},
        {"connections", "N", qn_option_count, &l->connections,
         "dealt to the addresses in turn (50)", 1, CONNECTIONS_MAX},
        {"pipeline", "N", qn_option_count, &l->pipeline,
         "requests per batch and connection (1)", 1, QN_CLIENT_DEPTH_MAX},
        {"mix", "NAME:WEIGHT,...", take_mix, l,
         "of get set incr mset ping (get:80,set:20)", 0, 0},
        {"keys", "N", qn_option_count, &w->keys, "keys in use (1m)", 1,
         QN_KEYS_MAX},
        {"key-size", "N", qn_option_count, &w->key_size, "bytes (16)", 2,
         QN_KEY_SIZE_MAX},
        {"value-size", "N", qn_option_count, &w->value_size, "bytes (16)", 0,
         QN_VALUE_SIZE_MAX},
        {"mset-keys", "N", qn_option_count, &w->mset_keys, "keys per MSET (10)",
         1, QN_MSET_KEYS_MAX},
        {"preload", NULL, qn_option_flag, &l->preload,
         "SET every key before the rest begins", 0, 0},
        {"warmup", "S", qn_option_double, &l->warmup,
         "seconds before the measured ones (0.5)", 0, 0},
        {"seconds", "S", qn_option_double, &l->seconds, "measured (10)", 0, 0},
        {"requests", "N", qn_option_count, &l->requests,
         "measured, instead of --seconds; exactly N are sent", 1, 0},
        {"threads", "N", qn_option_count, &l->threads, "each with a loop (1)",
         1, THREADS_MAX},
        {"seed", "N", qn_option_count, &l->seed,
         "repeats the same requests (random, printed)", 0, 0},
        {"resp3", NULL, qn_option_flag, &l->resp3, "begin with HELLO 3", 0, 0},
        {"cpu-of", "PID,...", take_cpu_of, l,
         "running processes: report their CPU time per operation", 0, 0},
        {"cpu-tree", "PID", take_cpu_tree, l,
         "the same for a running process and its descendants", 0, 0},
        {"json", NULL, qn_option_flag, &l->json,
         "print a JSON object instead of the table", 0, 0},
        {"verbose", NULL, qn_option_flag, &l->verbose,
         "a line each second, also if stderr is no terminal", 0, 0},
    };
    const struct qn_options o = {"quoin load", summary, table,
                                 QN_ARRAY_COUNT(table)};
    return qn_options_parse(&o, argc, argv, exit_status);
}

/* What single options cannot know. */
static int check_options(struct load *l)
{
    const struct qn_workload_opts *w = &l->workload_opts;
    if (l->to_count == 0) {
        fprintf(stderr, "quoin load: name a server: --to HOST:PORT\n");
        return QN_EINVAL;
    }
    uint64_t least = qn_workload_key_size_min(w->keys);
    if (w->key_size < least) {
        fprintf(stderr,
                "quoin load: --keys %" PRIu64 " needs --key-size %" PRIu64
                " or more\n",
                w->keys, least);
        return QN_EINVAL;
    }
    if (l->seconds == 0 && l->requests == 0) {
        fprintf(stderr, "quoin load: --seconds must be more than 0\n");
        return QN_EINVAL;
    }
    l->threads = QN_MIN(l->threads, l->connections);
    for (uint32_t i = 0; i < l->to_count; i++) {
        int err = qn_address_resolve(&l->address[i], l->to[i]);
        if (err != QN_OK) {
            fprintf(stderr,
                    err == QN_ENOENT
                        ? "quoin load: --to %s: no such host\n"
                        : "quoin load: --to %s: neither HOST:PORT nor "
                          "unix:PATH\n",
                    l->to[i]);
            return err;
        }
        size_t used = strlen(l->addresses);
        snprintf(l->addresses + used, sizeof l->addresses - used, "%s%s",
                 i > 0 ? " " : "", l->to[i]);
    }
    return QN_OK;
}

/* ---- before the run ---- */

/* At least one address must answer; the others may come up later. */
static int probe(struct load *l)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < l->to_count; i++) {
        char error[200];
        if (qn_address_probe(&l->address[i], l->resp3, error, sizeof error) ==
            QN_OK) {
            good++;
        } else {
            fprintf(stderr, "quoin load: %s: %s\n", l->to[i], error);
        }
    }
    return good > 0 ? QN_OK : QN_EIO;
}

static void raise_descriptor_limit(uint64_t connections)
{
    struct rlimit limit;
    rlim_t want = (rlim_t)connections + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < want) {
        limit.rlim_cur = QN_MIN(want, limit.rlim_max);
        setrlimit(RLIMIT_NOFILE, &limit); /* a connection says what is left */
    }
}

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
static void catch_interrupt(struct load *l, bool on)
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

static int make_plan(struct load *l)
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

/* ---- the run, seen by the main thread ---- */

static uint64_t own_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * QN_S + (uint64_t)t.tv_nsec;
}

/* A process that has ended counts for nothing more. */
static uint64_t server_cpu(const struct load *l)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < l->pid_count; i++) {
        uint64_t ns = 0;
        (void)qn_proc_cpu(l->pid[i], &ns);
        sum += ns;
    }
    return sum;
}

static void live(const struct load *l, const char *what, qn_time_t from,
                 const struct qn_report_interval *interval)
{
    if (l->verbose) {
        qn_report_live(stderr, what, (double)(l->recent.last - from) / 1e9,
                       interval);
    }
}

/* @return QN_OK, QN_EIO if not all keys are stored. */
static int watch_preload(struct load *l)
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
static void take_interval(struct load *l, qn_time_t *before)
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

static void watch_measure(struct load *l)
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

static int run(struct load *l)
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

static void clean_up(struct load *l)
{
    for (uint32_t i = 0; i < l->threads; i++) {
        qn_worker_destroy(l->worker[i]);
    }
    qn_collect_destroy(l->plan.measured);
    qn_collect_destroy(l->plan.preloaded);
    qn_workload_fini(&l->workload);
    free(l->interval);
}

static int report(const struct load *l)
{
    const struct qn_stats *total = qn_collect_total(l->plan.measured);
    const struct qn_report r = {
        .addresses = l->addresses,
        .mix = l->mix_text,
        .connections = l->connections,
        .pipeline = l->pipeline,
        .threads = l->threads,
        .keys = l->workload_opts.keys,
        .key_size = l->workload_opts.key_size,
        .value_size = l->workload_opts.value_size,
        .seed = l->seed,
        .seconds = (double)(l->recent.last - l->recent.first) / 1e9,
        .own_cpu_ns = l->own_after - l->own_before,
        .server_cpu_ns = l->cpu_after - l->cpu_before,
        .server_count = l->pid_count,
        .interval_count = l->interval_count,
        .interval = l->interval,
        .total = total,
    };
    int err =
        l->json ? qn_report_json(stdout, &r) : qn_report_table(stdout, &r);
    if (err != QN_OK || fflush(stdout) != 0) {
        fprintf(stderr, "quoin load: the report could not be written\n");
        return 1;
    }
    uint64_t ops = 0;
    uint64_t wrong = 0;
    for (int op = 0; op < QN_OP_COUNT; op++) {
        ops += total->op[op].ops;
        wrong += total->op[op].wrong;
    }
    return ops == 0 || wrong > 0;
}

int qn_load(int argc, char **argv)
{
    static struct load l = {
        .mix_text = "get:80,set:20",
        .workload_opts = {.keys = 1000000,
                          .key_size = 16,
                          .value_size = 16,
                          .mset_keys = 10},
        .connections = 50,
        .pipeline = 1,
        .threads = 1,
        .seconds = 10,
        .warmup = 0.5,
    };
    char error[8];
    qn_mix_parse(&l.workload_opts.mix, l.mix_text, error, sizeof error);
    if (getrandom(&l.seed, sizeof l.seed, 0) != sizeof l.seed) {
        l.seed = qn_clock_now();
    }
    l.verbose = isatty(STDERR_FILENO) == 1;
    int status;
    if (!parse_options(&l, argc, argv, &status)) {
        return status;
    }
    if (check_options(&l) != QN_OK) {
        return 2;
    }
    raise_descriptor_limit(l.connections);
    if (probe(&l) != QN_OK) {
        return 1;
    }
    status = 1;
    int err = make_plan(&l);
    if (err != QN_OK) {
        fprintf(stderr, "quoin load: %s\n", qn_strerror(err));
    } else if (run(&l) == QN_OK) {
        status = report(&l);
    }
    clean_up(&l);
    return status;
}
