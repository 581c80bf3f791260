#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/engine/cpu_time.h"
#include "loadgen/load/load_internal.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/*
 * Options of `quoin load`: one table, one function per kind of value, and
 * checks that involve several options.
 */

enum {
    CONNECTIONS_MAX = 60000,
    OPEN_DEPTH = 64, /* deep enough that requests queue at a stalled server, as
                        they would if each request had its own client */
};

static int take_to(const struct qn_option *o, const char *text)
{
    struct qn_load *l = o->to;
    if (l->to_count == QN_LOAD_ADDRESSES_MAX) {
        return QN_EINVAL;
    }
    l->to[l->to_count++] = text;
    return QN_OK;
}

static int take_read_from(const struct qn_option *o, const char *text)
{
    struct qn_load *l = o->to;
    if (l->read_from_count == QN_LOAD_ADDRESSES_MAX) {
        return QN_EINVAL;
    }
    l->read_from[l->read_from_count++] = text;
    return QN_OK;
}

static int take_rate(const struct qn_option *o, const char *text)
{
    struct qn_load *l = o->to;
    l->rate_text = text;
    return qn_rate_parse(&l->rate, text);
}

/* One of two words; the first one is the default. */
static int take_arrivals(const struct qn_option *o, const char *text)
{
    *(bool *)o->to = strcmp(text, "poisson") == 0;
    return *(bool *)o->to || strcmp(text, "constant") == 0 ? QN_OK : QN_EINVAL;
}

static int take_spread(const struct qn_option *o, const char *text)
{
    *(bool *)o->to = strcmp(text, "request") == 0;
    return *(bool *)o->to || strcmp(text, "connection") == 0 ? QN_OK
                                                             : QN_EINVAL;
}

static int add_pid(struct qn_load *l, pid_t pid)
{
    uint64_t ns;
    if (l->pid_count == QN_LOAD_PIDS_MAX ||
        qn_cpu_time_read(pid, &ns) != QN_OK) {
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
    struct qn_load *l = o->to;
    char *end;
    pid_t pid;
    if (parse_pid(text, &end, &pid) != QN_OK || *end != '\0') {
        return QN_EINVAL;
    }
    int n = qn_cpu_time_tree(pid, l->pid + l->pid_count,
                             QN_LOAD_PIDS_MAX - l->pid_count);
    if (n < 0) {
        return QN_EINVAL;
    }
    l->pid_count += (uint32_t)n;
    return QN_OK;
}

static int take_cas(const struct qn_option *o, const char *text)
{
    struct qn_load *l = o->to;
    l->cas_given = strcmp(text, "auto") != 0;
    if (strcmp(text, "eval") == 0) {
        l->workload_opts.cas = QN_CAS_EVAL;
    } else if (l->cas_given && strcmp(text, "ifeq") != 0) {
        return QN_EINVAL;
    }
    return QN_OK;
}

#define AT(member) offsetof(struct qn_load, member)

static const struct qn_option table[] = {
    QN_OPTION_HEADING("Servers"),
    QN_OPTION("to", "ADDR", take_to, 0,
              "server: HOST:PORT or unix:PATH; may be repeated"),
    QN_OPTION("read-from", "ADDR", take_read_from, 0,
              "server for reads (all else: --to); may be repeated"),
    QN_OPTION("spread", "WHAT", take_spread, AT(spread_requests),
              "over the addresses: connection (default) or request"),
    QN_OPTION_COUNT("connections", "N", AT(connections),
                    "in total, assigned to the addresses in turn (50)", 1,
                    CONNECTIONS_MAX),
    QN_OPTION("resp3", NULL, qn_option_flag, AT(resp3),
              "begin each connection with HELLO 3"),
    QN_OPTION_HEADING("Requests"),
    QN_OPTION("mix", "NAME:WEIGHT,...", qn_option_string, AT(spec.mix),
              "from " QN_MIX_NAMES),
    QN_OPTION("dist", "NAME", qn_option_string, AT(spec.dist),
              "keys: uniform zipf:0.99 hotspot:80:20 latest sequential"),
    QN_OPTION_COUNT("keys", "N", AT(workload_opts.keys), "number of keys (1m)",
                    1, QN_KEYS_MAX),
    QN_OPTION("key-size", "N", qn_option_string, AT(spec.key_size),
              "bytes: 16, 16..250 or etc (16)"),
    QN_OPTION("value-size", "N", qn_option_string, AT(spec.value_size),
              "bytes: 100, 16..4096, etc, mixed (16; --verify: mixed)"),
    QN_OPTION("workload", "NAME", qn_option_string, AT(spec.workload),
              "mix, dist and sizes of ycsb-a, -b, -c, -d or -f"),
    QN_OPTION_COUNT("mset-keys", "N", AT(workload_opts.mset_keys),
                    "keys per MSET (10)", 1, QN_MSET_KEYS_MAX),
    QN_OPTION("cas", "FORM", take_cas, 0,
              "form of compare-and-set: auto, ifeq or eval"),
    QN_OPTION_COUNT("seed", "N", AT(seed),
                    "the same seed repeats the requests (random, printed)", 0,
                    0),
    QN_OPTION_HEADING("Load"),
    QN_OPTION("rate", "R", take_rate, 0,
              "open loop, requests/s: 50k, or 10k..90k, or 10k,20k"),
    QN_OPTION("arrivals", "HOW", take_arrivals, AT(poisson),
              "with --rate: constant (default) or poisson"),
    QN_OPTION_COUNT("pipeline", "N", AT(pipeline),
                    "outstanding requests per connection (1; 64 with --rate)",
                    1, QN_CLIENT_DEPTH_MAX),
    QN_OPTION("preload", NULL, qn_option_flag, AT(preload),
              "SET every key before the warm-up"),
    QN_OPTION("warmup", "S", qn_option_double, AT(warmup),
              "seconds of warm-up, not measured (0.5)"),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds),
              "measured seconds (10)"),
    QN_OPTION_COUNT("requests", "N", AT(requests),
                    "measured requests, instead of --seconds; exactly N", 1, 0),
    QN_OPTION_COUNT("repeat", "N", AT(repeat),
                    "number of warm-ups and measurements; median, spread (1)",
                    1, 1000),
    QN_OPTION_COUNT("threads", "N", AT(threads),
                    "threads, each with an event loop (1)", 1,
                    QN_LOAD_THREADS_MAX),
    QN_OPTION("pin", "CPUS", qn_option_string, AT(pin_text),
              "CPUs of the threads: auto (default), none or 2,3,..."),
    QN_OPTION_HEADING("Results"),
    QN_OPTION("interval", "S", qn_option_double, AT(interval),
              "seconds per line and row, at least 0.01 (1)"),
    QN_OPTION("json", NULL, qn_option_flag, AT(output.json),
              "one line of JSON per second, then a summary"),
    QN_OPTION("csv", "FILE", qn_option_string, AT(output.csv),
              "one row per second and kind of operation"),
    QN_OPTION("hgrm", "FILE", qn_option_string, AT(output.hgrm),
              "percentiles for the HdrHistogram plotter"),
    QN_OPTION("plot", "FILE", qn_option_string, AT(output.plot),
              "SVG plot of throughput, latency and percentiles"),
    QN_OPTION("raw", "FILE", qn_option_string, AT(output.raw),
              "each reply: kind, response and service time in ns"),
    QN_OPTION("verify", NULL, qn_option_flag, AT(verify),
              "check that all replies are linearizable; status 3: no"),
    QN_OPTION("verify-svg", "FILE", qn_option_string, AT(output.verify_svg),
              "SVG timeline of the first violation"),
    QN_OPTION("cpu-of", "PID,...", take_cpu_of, 0,
              "report CPU time per operation of these processes"),
    QN_OPTION("cpu-tree", "PID", take_cpu_tree, 0,
              "the same for a process and its descendants"),
    QN_OPTION("verbose", NULL, qn_option_flag, AT(output.live),
              "one line per second, also if stderr is not a terminal"),
};

static bool parse_options(struct qn_load *l, int argc, char **argv,
                          int *exit_status)
{
    const struct qn_options o = {"quoin load",
                                 "Load a RESP server, check its replies, "
                                 "report its speed. N: 5, 5k, 5mi",
                                 table, QN_ARRAY_COUNT(table), l};
    return qn_options_parse(&o, argc, argv, exit_status);
}

/* Checks that involve several options. */
static int check_options(struct qn_load *l)
{
    if (l->to_count == 0) {
        fprintf(stderr,
                "quoin load: missing --to HOST:PORT (address of a server)\n");
        return QN_EINVAL;
    }
    if (l->verify && l->spec.value_size == NULL && l->spec.workload == NULL) {
        l->spec.value_size = "mixed";
        l->mixed_by_default = true;
    }
    char error[QN_WORKLOAD_SPEC_ERROR_MAX];
    int err = qn_workload_spec_parse(&l->spec, &l->workload_opts, error,
                                     sizeof error);
    if (err != QN_OK) {
        fprintf(stderr, "quoin load: %s\n", error);
        return err;
    }
    if (!(l->interval >= 0.01 && l->interval <= 3600)) {
        fprintf(stderr, "quoin load: --interval must be 0.01 to 3600 s\n");
        return QN_EINVAL;
    }
    if (l->seconds == 0 && l->requests == 0) {
        fprintf(
            stderr,
            "quoin load: --seconds must be more than 0; or give --requests\n");
        return QN_EINVAL;
    }
    char output_error[QN_OUTPUT_ERROR_MAX];
    if (qn_output_check(&l->output, output_error) != QN_OK) {
        fprintf(stderr, "quoin load: %s\n", output_error);
        return QN_EINVAL;
    }
    return QN_OK;
}

/* Checks of other options with --rate. */
static int check_rate(struct qn_load *l)
{
    if (l->rate_text == NULL && l->poisson) {
        fprintf(stderr, "quoin load: --arrivals poisson needs --rate\n");
        return QN_EINVAL;
    }
    if (l->pipeline == 0) {
        l->pipeline = l->rate_text != NULL ? OPEN_DEPTH : 1;
    }
    if (l->rate_text != NULL && l->requests > 0 &&
        !qn_rate_is_constant(&l->rate)) {
        fprintf(
            stderr,
            "quoin load: --rate %s changes with time; use --seconds instead "
            "of --requests\n",
            l->rate_text);
        return QN_EINVAL;
    }
    return QN_OK;
}

static int resolve(struct qn_load *l, const char *option, const char *text)
{
    int err = qn_address_resolve(&l->address[l->address_count], text);
    if (err != QN_OK) {
        fprintf(stderr, "quoin load: --%s %s: %s\n", option, text,
                qn_address_refusal(err));
        return err;
    }
    size_t used = strlen(l->addresses);
    snprintf(l->addresses + used, sizeof l->addresses - used, "%s%s",
             l->address_count > 0 ? " " : "", text);
    l->address_count++;
    return QN_OK;
}

static int resolve_all(struct qn_load *l)
{
    if (l->to_count + l->read_from_count > QN_LOAD_ADDRESSES_MAX) {
        fprintf(stderr, "quoin load: too many addresses; give at most %d\n",
                QN_LOAD_ADDRESSES_MAX);
        return QN_EINVAL;
    }
    int err = QN_OK;
    for (uint32_t i = 0; i < l->to_count && err == QN_OK; i++) {
        err = resolve(l, "to", l->to[i]);
    }
    for (uint32_t i = 0; i < l->read_from_count && err == QN_OK; i++) {
        err = resolve(l, "read-from", l->read_from[i]);
    }
    return err;
}

bool qn_load_options(struct qn_load *l, int argc, char **argv, int *exit_status)
{
    *l = (struct qn_load){
        .workload_opts = {.keys = 1000000, .mset_keys = 10},
        .connections = 50,
        .pin_text = "auto",
        .threads = 1,
        .repeat = 1,
        .seconds = 10,
        .interval = 1,
        .warmup = 0.5,
    };
    if (getrandom(&l->seed, sizeof l->seed, 0) != sizeof l->seed) {
        l->seed = qn_clock_now();
    }
    l->output.live = isatty(STDERR_FILENO) == 1;
    if (!parse_options(l, argc, argv, exit_status)) {
        return false;
    }
    *exit_status = 2;
    l->threads = QN_MIN(l->threads, l->connections);
    return check_options(l) == QN_OK && check_rate(l) == QN_OK &&
           qn_load_check_verify(l) == QN_OK && qn_load_pin(l) == QN_OK &&
           resolve_all(l) == QN_OK;
}
