/*
 * quoin bench lock, delegate, queue, stack: what does agreement between threads
 * of one process cost, by which of the library's means?
 *
 * A round gives each subject some time, one after the other, and first the
 * yardstick: a plain counter by fetch-and-add. Every second round goes the
 * other way round, so that a drift of the machine counts for all. Ratios are
 * taken within a round. Latencies have rounds of their own: two reads of the
 * clock per operation change the rate.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/sync/sync_table.h"

#define ROWS_MAX 64u
#define PROBE_MS 10u /* of the yardstick, alone, in front of all */
#define LATENCIES                                                              \
    4u /* one round of this number is a latency's, at least one                \
        */

struct bench {
    /* options */
    uint64_t threads, rounds, round_ms, pause, increments, batch, domains, seed;
    const char *only;
    bool unpinned, quick;
    /* what they say */
    const char *command; /* "lock" */
    char program[32];
    struct qn_places places;
    struct qn_sync_row *row[ROWS_MAX]; /* [0]: the yardstick */
    uint32_t rows;
    double probe; /* operations per second */
};

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION_COUNT("threads", "N", AT(threads), "that operate (2)", 1,
                    QN_SYNC_ROUND_THREADS_MAX),
    QN_OPTION_COUNT("rounds", "N", AT(rounds), "of each subject (11)", 1,
                    QN_MEDIAN_VALUES_MAX),
    QN_OPTION_COUNT("round-ms", "MS", AT(round_ms),
                    "time of a subject in a round (50)", 1, 60000),
    QN_OPTION_COUNT("pause", "TURNS", AT(pause),
                    "longest pause between operations, in turns of a loop (64)",
                    0, 1000000),
    QN_OPTION_COUNT("increments", "N", AT(increments),
                    "of 64 integers, in each operation of a counter (0)", 0,
                    100000),
    QN_OPTION_COUNT("batch", "N", AT(batch),
                    "operations that a combiner runs at most (200)", 1,
                    1000000),
    QN_OPTION_COUNT("domains", "N", AT(domains), "of h_synch (1)", 1, 64),
    QN_OPTION("only", "NAMES", qn_option_string, AT(only),
              "subjects, with commas (all)"),
    QN_OPTION("unpinned", NULL, qn_option_flag, AT(unpinned),
              "threads run on any core"),
    QN_OPTION_COUNT("seed", "N", AT(seed), "of the pauses (1)", 0, 0),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "two short rounds, to test that the benchmark works"),
};

/* ---- subjects ------------------------------------------------------------ */

/* Is `name` in a list with commas? NULL lists all. */
static bool listed(const char *list, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t word = strcspn(at, ",");
        if (word == len && memcmp(at, name, len) == 0) {
            return true;
        }
        at += word + (at[word] == ',');
    }
    return list == NULL;
}

static int add_row(struct bench *b, const struct qn_subject_name *n)
{
    struct qn_sync_row *r = calloc(1, sizeof *r);
    struct qn_histogram *ns = calloc(1, sizeof *ns);
    if (r == NULL || ns == NULL || b->rows == ROWS_MAX) {
        free(r);
        free(ns);
        return QN_ENOMEM;
    }
    r->subject = *n;
    r->ns = ns;
    b->row[b->rows++] = r;
    return QN_OK;
}

/* Does a command measure a family? The system's mutex goes with all. */
static bool measures(const struct bench *b, const struct qn_subject_type *t)
{
    const enum qn_subject_kind kind =
        strcmp(b->command, "queue") == 0   ? QN_SUBJECT_QUEUE
        : strcmp(b->command, "stack") == 0 ? QN_SUBJECT_STACK
                                           : QN_SUBJECT_COUNTER;
    return t->kind == kind && (strcmp(t->family, b->command) == 0 ||
                               strcmp(t->family, "mutex") == 0 ||
                               (strcmp(t->family, "counter") == 0 &&
                                strcmp(b->command, "delegate") == 0));
}

static int list_rows(struct bench *b)
{
    const struct qn_subject_name yardstick = {&qn_subject_plain,
                                              qn_subject_plain.name(0)};
    int rc = add_row(b, &yardstick);
    for (uint32_t t = 0; rc == QN_OK && qn_subject_types[t] != NULL; t++) {
        const struct qn_subject_type *type = qn_subject_types[t];
        const char *name;
        for (uint32_t i = 0;
             rc == QN_OK && measures(b, type) && (name = type->name(i)) != NULL;
             i++) {
            if (listed(b->only, name)) {
                rc = add_row(b, &(struct qn_subject_name){type, name});
            }
        }
    }
    return rc;
}

/* Each name of --only must have a row. @return 0; 2 after a line. */
static int check_only(const struct bench *b)
{
    for (const char *at = b->only; at != NULL && *at != '\0';) {
        const size_t len = strcspn(at, ",");
        bool found = len == 0; /* a comma too many */
        for (uint32_t i = 1; i < b->rows; i++) {
            const char *name = b->row[i]->subject.name;
            found = found || (strlen(name) == len && !memcmp(name, at, len));
        }
        if (!found) {
            fprintf(stderr,
                    "%s: --only: there is no %.*s here; leave it out "
                    "to see all\n",
                    b->program, (int)len, at);
            return 2;
        }
        at += len + (at[len] == ',');
    }
    return 0;
}

/* ---- rounds -------------------------------------------------------------- */

static int run_one(struct bench *b, struct qn_sync_row *r, qn_time_t duration,
                   struct qn_histogram *ns, struct qn_sync_round *out)
{
    const struct qn_sync_round_opts o = {
        .subject = r->subject,
        .o = {.increments = (uint32_t)b->increments,
              .batch = (uint32_t)b->batch,
              .domains = (uint32_t)b->domains},
        .places = b->unpinned ? NULL : &b->places,
        .threads = (uint32_t)b->threads,
        .pause_max = (uint32_t)b->pause,
        .duration = duration,
        .seed = b->seed++,
        .ns = ns};
    int rc = qn_sync_round_run(&o, out);
    if (rc == QN_OK && out->failed > 0) {
        rc = QN_ECORRUPT;
    }
    if (rc != QN_OK) {
        fprintf(stderr, "%s: %s/%s, seed %llu: %s\n", b->program,
                r->subject.type->family, r->subject.name,
                (unsigned long long)o.seed, qn_strerror(rc));
    }
    return rc;
}

static int run_round(struct bench *b, bool reverse)
{
    struct qn_sync_round out[ROWS_MAX];
    for (uint32_t k = 0; k < b->rows; k++) {
        const uint32_t i = reverse ? b->rows - 1 - k : k;
        int rc = run_one(b, b->row[i], b->round_ms * QN_MS, NULL, &out[i]);
        if (rc != QN_OK) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < b->rows; i++) {
        qn_sync_row_add(b->row[i], &out[i], qn_sync_round_rate(&out[0]));
    }
    return QN_OK;
}

static int run_latencies(struct bench *b)
{
    struct qn_sync_round out;
    int rc = QN_OK;
    for (uint64_t k = 0; k < b->rounds / LATENCIES + 1; k++) {
        for (uint32_t i = 0; rc == QN_OK && i < b->rows; i++) {
            rc =
                run_one(b, b->row[i], b->round_ms * QN_MS, b->row[i]->ns, &out);
        }
    }
    return rc;
}

static int run_rounds(struct bench *b)
{
    struct qn_sync_round probe;
    int rc = run_one(b, b->row[0], PROBE_MS * QN_MS, NULL, &probe);
    b->probe = rc == QN_OK ? qn_sync_round_rate(&probe) : 0;
    for (uint64_t k = 0; rc == QN_OK && k < b->rounds; k++) {
        rc = run_round(b, k % 2 == 1);
    }
    return rc == QN_OK ? run_latencies(b) : rc;
}

/* ---- the command --------------------------------------------------------- */

static int report(struct bench *b)
{
    json_t *rows = json_array();
    fprintf(stderr, "%llu threads on %u cores; fetch-add alone: %.2f Mops/s\n",
            (unsigned long long)b->threads, b->places.count, b->probe / 1e6);
    qn_sync_table_head();
    for (uint32_t i = 0; i < b->rows; i++) {
        json_array_append_new(rows, qn_sync_table_row(b->row[i]));
    }
    json_t *all = json_pack(
        "{s:s,s:I,s:i,s:b,s:I,s:I,s:I,s:I,s:I,s:f,s:s,s:o}", "bench",
        b->command, "threads", (json_int_t)b->threads, "cores",
        (int)b->places.count, "pinned", !b->unpinned, "rounds",
        (json_int_t)b->rounds, "round_ms", (json_int_t)b->round_ms, "pause",
        (json_int_t)b->pause, "increments", (json_int_t)b->increments, "batch",
        (json_int_t)b->batch, "probe_per_second", b->probe, "compiler",
        __VERSION__, "subjects", rows);
    int status = 0;
    if (json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || puts("") == EOF ||
        fflush(stdout) != 0) {
        fprintf(stderr, "%s: cannot write the result\n", b->program);
        status = 1;
    }
    json_decref(all);
    return status;
}

static int measure(struct bench *b)
{
    int rc = qn_places_discover(&b->places);
    rc = rc == QN_OK ? list_rows(b) : rc;
    if (rc != QN_OK) {
        fprintf(stderr, "%s: %s\n", b->program, qn_strerror(rc));
        return 1;
    }
    const int status = check_only(b);
    if (status != 0) {
        return status;
    }
    return run_rounds(b) == QN_OK ? report(b) : 1;
}

static void destroy(struct bench *b)
{
    for (uint32_t i = 0; i < b->rows; i++) {
        free(b->row[i]->ns);
        free(b->row[i]);
    }
    b->rows = 0;
}

static int run(const char *command, const char *summary, int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    b = (struct bench){.command = command,
                       .threads = 2,
                       .rounds = 11,
                       .round_ms = 50,
                       .pause = 64,
                       .domains = 1,
                       .seed = 1};
    snprintf(b.program, sizeof b.program, "quoin bench %s", command);
    const struct qn_options o = {b.program, summary, table,
                                 QN_ARRAY_COUNT(table), &b};
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (b.quick) {
        b.rounds = 2;
        b.round_ms = QN_MIN(b.round_ms, 2u);
    }
    status = measure(&b);
    destroy(&b);
    return status;
}

#define SUMMARY(of)                                                            \
    "Measure " of                                                              \
    ", beside a plain counter by fetch-and-add.\nJSON goes to stdout, a "      \
    "table to stderr."

int qn_bench_lock(int argc, char **argv)
{
    return run("lock", SUMMARY("a counter under each lock"), argc, argv);
}

int qn_bench_delegate(int argc, char **argv)
{
    return run("delegate", SUMMARY("a counter by each backend of delegation"),
               argc, argv);
}

int qn_bench_queue(int argc, char **argv)
{
    return run("queue", SUMMARY("each queue, a put and a take in turn"), argc,
               argv);
}

int qn_bench_stack(int argc, char **argv)
{
    return run("stack", SUMMARY("each stack, a put and a take in turn"), argc,
               argv);
}
