/*
 * quoin bench lock, delegate, queue, stack: what does agreement between threads
 * of one process cost, by which of the library's means?
 *
 * A round gives each subject some time, one after the other, and first the
 * yardstick: a plain counter by fetch-and-add; with several numbers of threads
 * it does so for each. Every second round goes the other way round, so that a
 * drift of the machine counts for all. Ratios are taken within a round.
 * Latencies have rounds of their own: two reads of the clock per operation
 * change the rate.
 */
#include "loadgen/sync/sync_bench.h"

#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/list.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/sync/sync_plot.h"
#include "loadgen/sync/sync_rows.h"

#define ROUND_MS_MAX 60000.0
#define PROBE        5u  /* of a round's time: for the yardstick, alone */
#define QUICK        25u /* likewise: for each subject with --quick */
#define LATENCIES    4u  /* one round of this number is a latency's, or one */
/* Of the yardstick in a round, at most: a plain counter is known sooner. */
#define YARDSTICK    (200 * QN_MS)

struct bench {
    /* options */
    uint64_t rounds, pause, increments, batch, domains, seed;
    double round_ms;
    const char *threads, *only, *machine, *plot;
    bool unpinned, untimed, quick;
    /* what they say */
    const struct qn_sync_host *host;
    const char *command; /* "lock" */
    char program[32];
    qn_time_t duration; /* ns, of a subject in a round */
    uint32_t cores;
    struct qn_sync_run run[QN_SYNC_RUNS_MAX];
    uint32_t runs;
};

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION("threads", "N,...", qn_option_string, AT(threads),
              "that operate (2); of several numbers each is measured"),
    QN_OPTION_COUNT("rounds", "N", AT(rounds),
                    "of each subject (11; with --machine 3)", 1,
                    QN_MEDIAN_VALUES_MAX),
    QN_OPTION("round-ms", "MS", qn_option_double, AT(round_ms),
              "time of a subject in a round (50; with --machine 0.5)"),
    QN_OPTION_COUNT("pause", "TURNS", AT(pause),
                    "longest pause between operations, in turns of a loop (64)",
                    0, 1000000),
    QN_OPTION_COUNT("increments", "N", AT(increments),
                    "of 64 integers, in each operation under a lock or by a "
                    "delegate (0)",
                    0, 100000),
    QN_OPTION_COUNT("batch", "N", AT(batch),
                    "operations that a combiner runs at most (200)", 1,
                    1000000),
    QN_OPTION_COUNT("domains", "N", AT(domains),
                    "of h_synch (1; with --machine its sockets)", 1, 64),
    QN_OPTION("only", "NAMES", qn_option_string, AT(only),
              "subjects, with commas, as auto or counter/auto (all)"),
    QN_OPTION("machine", "FILE", qn_option_string, AT(machine),
              "in virtual time on this machine, as of quoin sim"),
    QN_OPTION("unpinned", NULL, qn_option_flag, AT(unpinned),
              "threads run on any core"),
    QN_OPTION("untimed", NULL, qn_option_flag, AT(untimed),
              "leave out the rounds that time each operation"),
    QN_OPTION_COUNT("seed", "N", AT(seed), "of the pauses (1)", 0, 0),
    QN_OPTION("plot", "FILE.svg", qn_option_string, AT(plot),
              "draw rate and latency over the number of threads"),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "two short rounds, to test that the benchmark works"),
};

static int fail(const struct bench *b, const char *line)
{
    fprintf(stderr, "%s: %s\n", b->program, line);
    return 2;
}

/* ---- options ------------------------------------------------------------- */

static int take_threads(struct bench *b)
{
    uint64_t n[QN_SYNC_RUNS_MAX];
    b->runs = qn_parse_counts(b->threads, 1, QN_SYNC_ROUND_THREADS_MAX, n,
                              QN_SYNC_RUNS_MAX);
    for (uint32_t i = 0; i < b->runs; i++) {
        b->run[i].threads = (uint32_t)n[i];
    }
    return b->runs > 0 ? 0
                       : fail(b, "--threads takes at most 16 numbers from 1 to "
                                 "255, for example 2,4,16");
}

static int take_times(struct bench *b)
{
    if (b->round_ms < 0 || b->round_ms > ROUND_MS_MAX) {
        return fail(b, "--round-ms takes at most 60000");
    }
    b->rounds = b->rounds != 0 ? b->rounds : b->host->rounds;
    b->duration = b->round_ms > 0 ? (qn_time_t)(b->round_ms * (double)QN_MS)
                                  : b->host->duration;
    if (b->quick) {
        b->rounds = 2;
        b->duration = QN_MIN(b->duration, b->host->duration / QUICK);
    }
    b->duration = QN_MAX(b->duration, QN_US);
    return 0;
}

/* On a simulated machine each thread has a core. */
static int check_cores(const struct bench *b)
{
    for (uint32_t i = 0; i < b->runs && b->host->simulated; i++) {
        if (b->run[i].threads > b->cores) {
            fprintf(stderr, "%s: --threads: %s has %u cores\n", b->program,
                    b->machine, b->cores);
            return 2;
        }
    }
    return 0;
}

static int prepare(struct bench *b, char *const *argv)
{
    int status = take_threads(b);
    status = status == 0 ? take_times(b) : status;
    if (status == 0 && b->plot != NULL) {
        status = qn_output_path_check(b->program, "plot", b->plot,
                                      "name a file in it");
    }
    if (status == 0 && b->machine != NULL && b->unpinned) {
        status = fail(b, "--unpinned: on a simulated machine each thread has a "
                         "core; leave it out");
    }
    const struct qn_sync_host_opts o = {.program = b->program,
                                        .machine = b->machine,
                                        .unpinned = b->unpinned,
                                        .argv = argv};
    status = status == 0 ? b->host->open(&o, &b->cores) : status;
    status = status == 0 ? check_cores(b) : status;
    for (uint32_t i = 0; status == 0 && i < b->runs; i++) {
        if (qn_sync_run_make(&b->run[i], b->command, b->only,
                             b->host->simulated) != QN_OK) {
            fprintf(stderr, "%s: not enough memory\n", b->program);
            status = 1;
        }
    }
    return status == 0 ? qn_sync_run_has(&b->run[0], b->only, b->program)
                       : status;
}

/* ---- rounds -------------------------------------------------------------- */

/* @return QN_OK, also if there is no such subject here. */
static int run_one(struct bench *b, const struct qn_sync_run *run,
                   struct qn_sync_row *r, qn_time_t duration,
                   struct qn_histogram *ns, struct qn_sync_round *out)
{
    const struct qn_sync_round_opts o = {
        .subject = r->subject,
        .o = {.increments = (uint32_t)b->increments,
              .batch = (uint32_t)b->batch,
              .domains = (uint32_t)b->domains},
        .threads = run->threads,
        .pause_max = (uint32_t)b->pause,
        .duration = duration,
        .seed = b->seed++,
        .ns = ns};
    if (b->increments > 0 && r != run->row[0] && !r->subject.type->plain) {
        r->refused = QN_EINVAL; /* it would measure something else */
    }
    if (r->refused != QN_OK) {
        return QN_OK;
    }
    int rc = b->host->round(&o, out);
    if (rc == QN_EINVAL || rc == QN_ENOSYS) {
        r->refused = rc;
        return QN_OK;
    }
    if (rc == QN_OK && out->failed > 0) {
        rc = QN_ECORRUPT;
    }
    if (rc != QN_OK) {
        fprintf(stderr, "%s: %s/%s, %u threads, seed %llu: %s\n", b->program,
                r->subject.type->family, r->subject.name, run->threads,
                (unsigned long long)o.seed,
                rc == QN_EAGAIN ? "not all can be made; ask for fewer --threads"
                                : qn_strerror(rc));
    }
    return rc;
}

static void add_round(struct bench *b,
                      struct qn_sync_round out[][QN_SYNC_ROWS_MAX])
{
    for (uint32_t k = 0; k < b->runs; k++) {
        for (uint32_t i = 0; i < b->run[k].rows; i++) {
            const struct qn_sync_beside beside = {
                .yardstick = qn_sync_round_rate(&out[k][0]),
                .first = qn_sync_round_rate(&out[0][i])};
            if (b->run[k].row[i]->refused == QN_OK) {
                qn_sync_row_add(b->run[k].row[i], &out[k][i], &beside);
            }
        }
    }
}

/* All numbers of threads, with all subjects. */
static int run_round(struct bench *b, bool reverse)
{
    static struct qn_sync_round out[QN_SYNC_RUNS_MAX][QN_SYNC_ROWS_MAX];
    const uint32_t rows = b->run[0].rows;
    for (uint32_t n = 0; n < b->runs * rows; n++) {
        const uint32_t at = reverse ? b->runs * rows - 1 - n : n;
        const struct qn_sync_run *run = &b->run[at / rows];
        const uint32_t i = at % rows;
        const qn_time_t duration =
            i == 0 ? QN_MIN(b->duration, YARDSTICK) : b->duration;
        int rc =
            run_one(b, run, run->row[i], duration, NULL, &out[at / rows][i]);
        if (rc != QN_OK) {
            return rc;
        }
    }
    add_round(b, out);
    return QN_OK;
}

static int run_latencies(struct bench *b)
{
    struct qn_sync_round out;
    int rc = QN_OK;
    for (uint32_t k = 0; k < b->runs; k++) {
        const struct qn_sync_run *run = &b->run[k];
        for (uint32_t i = 0; rc == QN_OK && i < run->rows; i++) {
            rc = run_one(b, run, run->row[i], b->duration, run->row[i]->ns,
                         &out);
        }
    }
    return rc;
}

static int run_rounds(struct bench *b)
{
    int rc = QN_OK;
    for (uint32_t k = 0; rc == QN_OK && k < b->runs; k++) {
        struct qn_sync_run *run = &b->run[k];
        struct qn_sync_round probe;
        rc = run_one(b, run, run->row[0], b->duration / PROBE, NULL, &probe);
        run->probe = rc == QN_OK ? qn_sync_round_rate(&probe) : 0;
    }
    for (uint64_t k = 0; rc == QN_OK && k < b->rounds; k++) {
        rc = run_round(b, k % 2 == 1);
    }
    const uint64_t timed = b->untimed ? 0 : b->rounds / LATENCIES + 1;
    for (uint64_t k = 0; rc == QN_OK && k < timed; k++) {
        rc = run_latencies(b);
    }
    return rc;
}

/* ---- the report ---------------------------------------------------------- */

static json_t *report_run(const struct bench *b, struct qn_sync_run *run)
{
    json_t *rows = json_array();
    fprintf(
        stderr, "%u threads on %u cores%s%s; fetch-add alone: %.2f Mops/s\n",
        run->threads, b->cores, b->host->simulated ? " in virtual time, " : "",
        b->host->simulated ? b->machine : "", run->probe / 1e6);
    qn_sync_run_compare(run);
    qn_sync_table_head(b->run[0].threads);
    for (uint32_t i = 0; i < run->rows; i++) {
        json_array_append_new(rows, qn_sync_table_row(run->row[i]));
    }
    return json_pack("{s:i,s:f,s:o}", "threads", (int)run->threads,
                     "probe_per_second", run->probe, "subjects", rows);
}

static json_t *report_all(struct bench *b)
{
    json_t *runs = json_array();
    for (uint32_t k = 0; k < b->runs; k++) {
        json_array_append_new(runs, report_run(b, &b->run[k]));
    }
    return json_pack("{s:s,s:s?,s:i,s:b,s:I,s:f,s:I,s:I,s:I,s:s,s:o}", "bench",
                     b->command, "machine", b->machine, "cores", (int)b->cores,
                     "pinned", !b->unpinned, "rounds", (json_int_t)b->rounds,
                     "round_ms", (double)b->duration / (double)QN_MS, "pause",
                     (json_int_t)b->pause, "increments",
                     (json_int_t)b->increments, "batch", (json_int_t)b->batch,
                     "compiler", __VERSION__, "runs", runs);
}

static int report(struct bench *b)
{
    json_t *all = report_all(b);
    int status = 0;
    if (json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || puts("") == EOF ||
        fflush(stdout) != 0) {
        fprintf(stderr, "%s: cannot write the result\n", b->program);
        status = 1;
    }
    if (status == 0 && b->plot != NULL) {
        status = qn_sync_plot(all, b->plot, b->program);
    }
    json_decref(all);
    return status;
}

/* ---- the command --------------------------------------------------------- */

static const char *summary_of(const char *command)
{
    static const struct {
        const char *command, *summary;
    } all[] = {
        {"lock", "Measure a counter under each lock"},
        {"delegate", "Measure a counter by each backend of delegation"},
        {"queue", "Measure each queue, a put and a take in turn"},
        {"stack", "Measure each stack, a put and a take in turn"},
    };
    static char text[200];
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        if (strcmp(all[i].command, command) == 0) {
            snprintf(text, sizeof text,
                     "%s, beside a plain counter by fetch-and-add.\nJSON goes "
                     "to stdout, a table to stderr.",
                     all[i].summary);
        }
    }
    return text;
}

int qn_sync_bench(const struct qn_sync_host *host, const char *command,
                  int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    b = (struct bench){.host = host,
                       .command = command,
                       .threads = "2",
                       .pause = 64,
                       .seed = 1};
    snprintf(b.program, sizeof b.program, "quoin bench %s", command);
    const struct qn_options o = {b.program, summary_of(command), table,
                                 QN_ARRAY_COUNT(table), &b};
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    status = prepare(&b, argv);
    if (status == 0) {
        status = run_rounds(&b) == QN_OK ? report(&b) : 1;
    }
    for (uint32_t i = 0; i < b.runs; i++) {
        qn_sync_run_free(&b.run[i]);
    }
    host->close();
    return status;
}
