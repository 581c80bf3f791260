#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/engine/proc.h"
#include "loadgen/load/load_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/*
 * Options of `quoin load`: one table, one function per kind of value, and what
 * single options cannot know about each other.
 */

enum {
    CONNECTIONS_MAX = 60000,
    OPEN_DEPTH = 64, /* deep enough that a stall queues at the server, where it
                        would with a client of one's own per request */
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

/* One of two words, the first of which is the default. */
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
    if (l->pid_count == QN_LOAD_PIDS_MAX || qn_proc_cpu(pid, &ns) != QN_OK) {
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
    int n = qn_proc_tree(pid, l->pid + l->pid_count,
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

static const char summary[] =
    "Ask a RESP server, check its answers, say how fast it was. N: 5, 5k, 5mi";

static bool parse_options(struct qn_load *l, int argc, char **argv,
                          int *exit_status)
{
    struct qn_workload_opts *w = &l->workload_opts;
    struct qn_recipe *r = &l->recipe;
    struct qn_output *out = &l->output;
    const struct qn_option table[] = {
        QN_OPTION_HEADING("Servers"),
        {"to", "ADDR", take_to, l, "HOST:PORT or unix:PATH; repeat for several",
         0, 0},
        {"read-from", "ADDR", take_read_from, l,
         "reads go there, all else to --to; repeat for several", 0, 0},
        {"spread", "WHAT", take_spread, &l->spread_requests,
         "among addresses: connection (default) or request", 0, 0},
        {"connections", "N", qn_option_count, &l->connections,
         "dealt to the addresses in turn (50)", 1, CONNECTIONS_MAX},
        {"resp3", NULL, qn_option_flag, &l->resp3, "begin with HELLO 3", 0, 0},
        QN_OPTION_HEADING("Requests"),
        {"mix", "NAME:WEIGHT,...", qn_option_string, &r->mix,
         "of " QN_MIX_NAMES, 0, 0},
        {"dist", "NAME", qn_option_string, &r->dist,
         "uniform zipf:0.99 hotspot:80:20 latest sequential", 0, 0},
        {"keys", "N", qn_option_count, &w->keys, "keys in use (1m)", 1,
         QN_KEYS_MAX},
        {"key-size", "N", qn_option_string, &r->key_size,
         "bytes: 16, 16..250 or etc (16)", 0, 0},
        {"value-size", "N", qn_option_string, &r->value_size,
         "bytes: 100, 16..4096, etc, mixed (16; --verify: mixed)", 0, 0},
        {"workload", "NAME", qn_option_string, &r->workload,
         "ycsb-a ycsb-b ycsb-c ycsb-d ycsb-f: mix, dist and sizes", 0, 0},
        {"mset-keys", "N", qn_option_count, &w->mset_keys, "keys per MSET (10)",
         1, QN_MSET_KEYS_MAX},
        {"cas", "FORM", take_cas, l, "how to say it: auto, ifeq or eval", 0, 0},
        {"seed", "N", qn_option_count, &l->seed,
         "repeats the same requests (random, printed)", 0, 0},
        QN_OPTION_HEADING("Load"),
        {"rate", "R", take_rate, l,
         "open loop, requests/s: 50k, or 10k..90k, or 10k,20k", 0, 0},
        {"arrivals", "HOW", take_arrivals, &l->poisson,
         "with --rate: constant (default) or poisson", 0, 0},
        {"pipeline", "N", qn_option_count, &l->pipeline,
         "requests outstanding per connection (1; 64 with --rate)", 1,
         QN_CLIENT_DEPTH_MAX},
        {"preload", NULL, qn_option_flag, &l->preload,
         "SET every key before the rest begins", 0, 0},
        {"warmup", "S", qn_option_double, &l->warmup,
         "seconds before the measured ones (0.5)", 0, 0},
        {"seconds", "S", qn_option_double, &l->seconds, "measured (10)", 0, 0},
        {"requests", "N", qn_option_count, &l->requests,
         "measured, instead of --seconds; exactly N are sent", 1, 0},
        {"repeat", "N", qn_option_count, &l->repeat,
         "warm up and measure so often; median and spread (1)", 1, 1000},
        {"threads", "N", qn_option_count, &l->threads, "each with a loop (1)",
         1, QN_LOAD_THREADS_MAX},
        {"pin", "CPUS", qn_option_string, &l->pin_text,
         "of its threads: auto (default), none or 2,3,...", 0, 0},
        QN_OPTION_HEADING("Results"),
        {"interval", "S", qn_option_double, &l->interval,
         "of these lines and rows, from 0.01 seconds (1)", 0, 0},
        {"json", NULL, qn_option_flag, &out->json,
         "a line of JSON each second, the summary last", 0, 0},
        {"csv", "FILE", qn_option_string, &out->csv,
         "a row per second and kind of operation", 0, 0},
        {"hgrm", "FILE", qn_option_string, &out->hgrm,
         "percentiles for the HdrHistogram plotter", 0, 0},
        {"plot", "FILE", qn_option_string, &out->plot,
         "a picture (SVG): throughput, latency, percentiles", 0, 0},
        {"raw", "FILE", qn_option_string, &out->raw,
         "each answer: kind, response and service time in ns", 0, 0},
        {"verify", NULL, qn_option_flag, &l->verify,
         "judge if all answers were linearizable; status 3: no", 0, 0},
        {"verify-svg", "FILE", qn_option_string, &out->verify_svg,
         "the first violation as a time line", 0, 0},
        {"cpu-of", "PID,...", take_cpu_of, l,
         "running processes: report their CPU time per operation", 0, 0},
        {"cpu-tree", "PID", take_cpu_tree, l,
         "the same for a running process and its descendants", 0, 0},
        {"verbose", NULL, qn_option_flag, &out->live,
         "a line each second, also if stderr is no terminal", 0, 0},
    };
    const struct qn_options o = {"quoin load", summary, table,
                                 QN_ARRAY_COUNT(table)};
    return qn_options_parse(&o, argc, argv, exit_status);
}

/* What single options cannot know. */
static int check_options(struct qn_load *l)
{
    if (l->to_count == 0) {
        fprintf(stderr, "quoin load: name a server: --to HOST:PORT\n");
        return QN_EINVAL;
    }
    if (l->verify && l->recipe.value_size == NULL &&
        l->recipe.workload == NULL) {
        l->recipe.value_size = "mixed";
        l->mixed_by_default = true;
    }
    char error[QN_RECIPE_ERROR_MAX];
    int err =
        qn_recipe_parse(&l->recipe, &l->workload_opts, error, sizeof error);
    if (err != QN_OK) {
        fprintf(stderr, "quoin load: %s\n", error);
        return err;
    }
    if (!(l->interval >= 0.01 && l->interval <= 3600)) {
        fprintf(stderr, "quoin load: --interval must be 0.01 to 3600 (s)\n");
        return QN_EINVAL;
    }
    if (l->seconds == 0 && l->requests == 0) {
        fprintf(stderr, "quoin load: --seconds must be more than 0\n");
        return QN_EINVAL;
    }
    char output_error[QN_OUTPUT_ERROR_MAX];
    if (qn_output_check(&l->output, output_error) != QN_OK) {
        fprintf(stderr, "quoin load: %s\n", output_error);
        return QN_EINVAL;
    }
    return QN_OK;
}

/* What --rate asks of the others. */
static int check_rate(struct qn_load *l)
{
    if (l->rate_text == NULL && l->poisson) {
        fprintf(stderr, "quoin load: --arrivals needs --rate\n");
        return QN_EINVAL;
    }
    if (l->pipeline == 0) {
        l->pipeline = l->rate_text != NULL ? OPEN_DEPTH : 1;
    }
    if (l->rate_text != NULL && l->requests > 0 &&
        !qn_rate_is_constant(&l->rate)) {
        fprintf(stderr,
                "quoin load: --rate %s changes with time: give --seconds, not "
                "--requests\n",
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
        fprintf(stderr, "quoin load: more than %d addresses\n",
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
