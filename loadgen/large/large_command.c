/*
 * quoin bench coll: large collectives by name, beside memcpy, over groups of
 * threads and of processes.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/node.h"
#include "core/place/place.h"
#include "core/place/quota.h"
#include "loadgen/base/list.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/bench/nodes.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/large/large_bench.h"
#include "loadgen/large/large_group.h"
#include "loadgen/large/large_plot.h"
#include "loadgen/machine/measure_progress.h"

#define LIST_MAX  16u
/* Of a member, about: an input and an output, its part of both at the root of a
 * scatter and a gather, and what a tree takes between. */
#define BUFFERS   6u
#define LATE_MOST 0.9

static const char *const program = "quoin bench coll";

struct bench {
    /* options */
    const char *variants, *sizes, *members, *machine, *plot;
    uint64_t turns;
    double seconds, late;
    bool threads_only, processes_only, isolated, quick;
    /* what they say */
    uint64_t size[LIST_MAX], group[LIST_MAX];
    uint32_t size_count, group_count, rows;
    struct qn_large_row row[QN_LARGE_ROWS_MAX];
    /* the machine */
    struct qn_places places;
    struct qn_machine *prices;    /* owned; NULL: none were named */
    struct qn_large_group g;      /* that runs */
    struct qn_large_times *times; /* shared with children */
    struct qn_large_plot picture;
};

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION("variant", "NAME,...", qn_option_string, AT(variants),
              "variants: auto (default: what qn_large_run takes, of each "
              "operation), all, or names such as "
              "broadcast/pull/binomial+flat/fixed"),
    QN_OPTION("machine", "WHAT", qn_option_string, AT(machine),
              "auto takes what is predicted to take least with the prices of "
              "this machine: live (measured now), or a file or folder as in "
              "quoin tree"),
    QN_OPTION("size", "BYTES,...", qn_option_string, AT(sizes),
              "sizes (64ki,1mi,16mi), multiples of 4: of a broadcast, of a "
              "reduced vector, of each member's part"),
    QN_OPTION("members", "N,...", qn_option_string, AT(members),
              "members of each group (2,4)"),
    QN_OPTION("threads", NULL, qn_option_flag, AT(threads_only),
              "threads only"),
    QN_OPTION("processes", NULL, qn_option_flag, AT(processes_only),
              "processes only"),
    QN_OPTION("isolated", NULL, qn_option_flag, AT(isolated),
              "members do not write each other's memory: no push"),
    QN_OPTION_COUNT("turns", "N", AT(turns), "maximum of turns (20)", 1,
                    QN_LARGE_TURNS_MAX),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds),
              "seconds for the turns of one group (10), but two turns at least "
              "are run"),
    QN_OPTION("late", "PART", qn_option_part, AT(late),
              "the last member of a group sleeps between operations, PART of "
              "the time, at most 0.9 (0)"),
    QN_OPTION("plot", "FILE.svg", qn_option_string, AT(plot),
              "draw the speed of each variant over the size"),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "one operation per row, to test that the benchmark works"),
};

static int fail(const char *line, const char *name, size_t len)
{
    fprintf(stderr, "%s: '%.*s': %s\n", program, (int)len, name, line);
    return 2;
}

/* @return 0, or 2 after a line. */
static int take_list(const char *text, uint64_t least, uint64_t most,
                     uint64_t *to, uint32_t *count)
{
    *count = qn_parse_counts(text, least, most, to, LIST_MAX);
    if (*count == 0) {
        fprintf(stderr,
                "%s: '%s' is no list of at most %u numbers from %llu to %llu\n",
                program, text, LIST_MAX, (unsigned long long)least,
                (unsigned long long)most);
    }
    return *count > 0 ? 0 : 2;
}

static bool is_automatic(const struct bench *b)
{
    return strcmp(b->variants, "auto") == 0;
}

static void add_row(struct bench *b, const char *name,
                    const struct qn_large_variant *v, uint64_t bytes)
{
    if (b->rows < QN_LARGE_ROWS_MAX &&
        (!b->isolated || v == NULL || v->direction == QN_LARGE_PULL)) {
        b->row[b->rows++] = (struct qn_large_row){name, v, bytes};
    }
}

static int add_named(struct bench *b, uint64_t bytes)
{
    const char *at = b->variants, *word;
    size_t len;
    while (qn_list_next(&at, &word, &len)) {
        char one[64];
        snprintf(one, sizeof one, "%.*s", (int)QN_MIN(len, sizeof one - 1),
                 word);
        const struct qn_large_variant *v = qn_large_variant_find(one);
        if (v == NULL || (b->isolated && v->direction == QN_LARGE_PUSH)) {
            return fail(v == NULL ? "there is no such variant; see the manual, "
                                    "docs/collectives.md"
                                  : "members that are isolated do not push",
                        one, strlen(one));
        }
        add_row(b, v->name, v, bytes);
    }
    return 0;
}

/* The rows of one size: memcpy first. */
static int add_rows(struct bench *b, uint64_t bytes)
{
    const struct qn_large_variant *v;
    add_row(b, "memcpy", NULL, bytes);
    if (is_automatic(b)) {
        for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
            v = qn_large_group_variant(&b->g, (enum qn_large_operation)op,
                                       bytes);
            add_row(b, v->name, v, bytes);
        }
        return 0;
    }
    if (strcmp(b->variants, "all") == 0) {
        for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
            add_row(b, v->name, v, bytes);
        }
        return 0;
    }
    return add_named(b, bytes);
}

/* Bytes that the machine has and the control group leaves. */
static uint64_t available(void)
{
    const uint64_t machine = qn_quota_machine_memory();
    return QN_MIN(machine != 0 ? machine : QN_QUOTA_NONE, qn_quota_memory());
}

/* @return 0, or 2 after a line: the largest group has no room. */
static int check_memory(const struct bench *b)
{
    uint64_t size = 0, members = 0;
    for (uint32_t i = 0; i < b->size_count; i++) {
        size = QN_MAX(size, b->size[i]);
    }
    for (uint32_t i = 0; i < b->group_count; i++) {
        members = QN_MAX(members, b->group[i]);
    }
    const uint64_t may = available(), need = BUFFERS * size * members;
    if (need <= may) {
        return 0;
    }
    fprintf(stderr,
            "%s: %" PRIu64 " members and %" PRIu64 " bytes take about %" PRIu64
            " MiB, and %" PRIu64 " MiB are available; take fewer, or less\n",
            program, members, size, need >> 20, may >> 20);
    return 2;
}

/* The rows of all sizes, for the group that is there. @return 0, or 2 after a
 * line. */
static int make_rows(struct bench *b)
{
    int status = 0;
    b->rows = 0;
    for (uint32_t i = 0; status == 0 && i < b->size_count; i++) {
        status = b->size[i] % 4 == 0 ? add_rows(b, b->size[i])
                                     : fail("sizes are multiples of 4",
                                            b->sizes, strlen(b->sizes));
    }
    if (status == 0 && b->rows == QN_LARGE_ROWS_MAX) {
        status = fail("too many variants for this number of sizes", b->variants,
                      strlen(b->variants));
    }
    return status;
}

static int check_options(struct bench *b)
{
    int status =
        take_list(b->sizes, 4, (uint64_t)64 << 20, b->size, &b->size_count);
    if (status == 0) {
        status =
            take_list(b->members, 2, QN_NODES_MAX, b->group, &b->group_count);
    }
    b->g = (struct qn_large_group){.members = 2}; /* names fit any */
    status = status == 0 ? make_rows(b) : status;
    if (status == 0 && b->threads_only && b->processes_only) {
        status = fail("it excludes --processes", "--threads", 9);
    }
    if (status == 0 && b->late > LATE_MOST) {
        status = fail("it takes at most 0.9", "--late", 6);
    }
    if (status == 0 && b->machine != NULL && !is_automatic(b)) {
        status = fail("prices decide what auto takes; leave --variant out",
                      "--machine", 9);
    }
    if (status == 0 && b->plot != NULL) {
        status =
            qn_output_path_check(program, "plot", b->plot, "name a file in it");
    }
    return status == 0 ? check_memory(b) : status;
}

/* The bandwidths that the machine does not name, as a list. */
static json_t *assumed(const struct qn_machine *m)
{
    json_t *names = json_array();
    for (uint32_t i = 0; i < QN_BANDWIDTHS; i++) {
        if (!(m->facts.bandwidth[i] > 0)) {
            json_array_append_new(names, json_string(qn_bandwidth_name(i)));
        }
    }
    return names;
}

static void tell_assumed(const struct qn_machine *m)
{
    json_t *names = assumed(m);
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        fprintf(stderr, "%s%s", i == 0 ? "assumed, not measured: " : ", ",
                json_string_value(name));
    }
    if (i > 0) {
        fputs(" (docs/simulator.md, large collectives)\n", stderr);
    }
    json_decref(names);
}

/* Prices of each core that has a member of its own. */
static int open_machine(struct bench *b)
{
    int status = qn_measure_progress_open(&b->prices, b->machine, program);
    for (uint32_t i = 0; status == 0 && i < b->group_count; i++) {
        const uint32_t n = (uint32_t)b->group[i];
        for (uint32_t k = 0; k < n && n <= b->places.count; k++) {
            const int cpu = qn_places_of(&b->places, k, QN_BIND_CORE).cpu;
            if (qn_machine_find(b->prices, (uint32_t)cpu) == b->prices->n) {
                fprintf(stderr, "%s: --machine: it has no core %d\n", program,
                        cpu);
                return 2;
            }
        }
    }
    if (status == 0) {
        tell_assumed(b->prices);
    }
    return status;
}

static int prepare(struct bench *b)
{
    int status = check_options(b);
    if (status != 0) {
        return status;
    }
    const int rc = qn_places_discover(&b->places);
    b->times = mmap(NULL, sizeof *b->times, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rc != QN_OK || b->times == MAP_FAILED) {
        fprintf(stderr, "%s: cannot list the cores, or no memory\n", program);
        return 1;
    }
    return b->machine != NULL ? open_machine(b) : 0;
}

/* ---- report ---- */

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

struct figures {
    double p10, median, p90; /* ns */
};

static struct figures figures_of(const struct qn_large_times *t, uint32_t row)
{
    double ns[QN_LARGE_TURNS_MAX];
    for (uint32_t i = 0; i < t->turns; i++) {
        ns[i] = t->ns[i][row];
    }
    qsort(ns, t->turns, sizeof ns[0], by_value);
    return (struct figures){ns[(t->turns - 1) / 10], ns[(t->turns - 1) / 2],
                            ns[(t->turns - 1) * 9 / 10]};
}

/* What memcpy takes for a row's bytes; it comes before the row. */
static double memcpy_ns(const struct bench *b, uint32_t row)
{
    while (b->row[row].variant != NULL) {
        row--;
    }
    return figures_of(b->times, row).median;
}

/* Why auto takes it; "": it was named. */
static void explain(const struct bench *b, const struct qn_large_row *r,
                    char why[QN_LARGE_WHY_MAX])
{
    why[0] = '\0';
    if (is_automatic(b) && r->variant != NULL) {
        qn_large_group_why(&b->g, r->variant->operation, r->bytes, why);
    }
}

/* Of the time, what the late member has slept. */
static double late_part(const struct qn_large_times *t)
{
    return t->ran > 0 ? (double)t->slept / (double)t->ran : 0;
}

/* @return NULL: no member was to be late. */
static json_t *late_member(const struct bench *b)
{
    return b->late > 0
               ? json_pack("{s:i,s:f,s:f,s:i}", "member", (int)b->g.members - 1,
                           "asked", b->late, "part", late_part(b->times),
                           "sleeps", (int)b->times->sleeps)
               : NULL;
}

static void print_head(const struct bench *b, const char *group)
{
    const struct qn_large_times *t = b->times;
    fprintf(stderr, t->turns == 1 ? "%s, one turn" : "%s, medians of %u turns",
            group, t->turns);
    if (b->late > 0) {
        fprintf(stderr, ", member %u late: it slept %.2f of the time",
                b->g.members - 1, late_part(t));
    }
    fprintf(stderr, "\n%-36s %10s %12s %9s %9s %s\n", "variant", "bytes", "ns",
            "MB/s each", "MB/s all", "of memcpy's");
}

static json_t *report(struct bench *b, bool processes)
{
    const char *kind = processes ? "processes" : "threads";
    const uint32_t members = b->g.members;
    char group[32], why[QN_LARGE_WHY_MAX];
    json_t *rows = json_array();
    snprintf(group, sizeof group, "%u %s", members, kind);
    print_head(b, group);
    for (uint32_t i = 0; i < b->rows && b->times->turns > 0; i++) {
        const struct qn_large_row *r = &b->row[i];
        const struct figures f = figures_of(b->times, i);
        const double each = (double)r->bytes / f.median * 1e3;
        const double ratio = memcpy_ns(b, i) / f.median;
        explain(b, r, why);
        fprintf(stderr, "%-36s %10llu %12.0f %9.0f %9.0f %.2f%s%s\n", r->name,
                (unsigned long long)r->bytes, f.median, each,
                each * (members - 1), ratio, why[0] != '\0' ? "  " : "", why);
        json_array_append_new(
            rows,
            json_pack("{s:s,s:I,s:{s:f,s:f,s:f},s:f,s:f,s:f,s:s*}", "variant",
                      r->name, "bytes", (json_int_t)r->bytes, "ns", "median",
                      f.median, "p10", f.p10, "p90", f.p90, "mb_per_s_each",
                      each, "mb_per_s_all", each * (members - 1), "of_memcpy",
                      ratio, "why", why[0] != '\0' ? why : NULL));
        qn_large_plot_add(&b->picture, group, r->name, r->bytes, f.median);
    }
    return json_pack("{s:s,s:i,s:i,s:i,s:o*,s:o}", "kind", kind, "members",
                     (int)members, "turns", (int)b->times->turns, "wrong",
                     (int)qn_load(&b->times->wrong, QN_RELAXED), "late",
                     late_member(b), "rows", rows);
}

static int run_over(struct bench *b, bool processes)
{
    const struct qn_spin_opts spin = {.nodes = b->g.members,
                                      .cores = b->places.count,
                                      .quota_milli = b->places.quota_milli};
    const struct qn_large_bench_opts o = {.members = b->g.members,
                                          .core = b->g.core,
                                          .place = b->g.place,
                                          .row = b->row,
                                          .rows = b->rows,
                                          .turns =
                                              b->quick ? 1 : (uint32_t)b->turns,
                                          .seconds = b->seconds,
                                          .late = b->late,
                                          .processes = processes,
                                          .push = !b->isolated,
                                          .quick = b->quick,
                                          .backoff = qn_backoff_of(&spin)};
    memset(b->times, 0, sizeof *b->times);
    return qn_large_bench_run(b->times, &o);
}

static const char *why_not(const struct bench *b, int rc)
{
    return rc != QN_EIO ? qn_strerror(rc)
           : qn_load(&b->times->wrong, QN_RELAXED) != 0
               ? "a result is wrong"
               : "a member has failed, or cannot be started: " QN_NODES_ADVICE;
}

/* @return QN_OK, or an error after a line. */
static int run_group(struct bench *b, uint32_t members, bool processes,
                     json_t *to)
{
    int rc = qn_large_group_make(&b->g, &b->places, b->prices, members,
                                 !b->isolated);
    if (rc == QN_OK) {
        (void)make_rows(b); /* it was good before */
        rc = run_over(b, processes);
    }
    if (rc == QN_OK) {
        json_array_append_new(to, report(b, processes));
        rc = qn_load(&b->times->wrong, QN_RELAXED) == 0 ? QN_OK : QN_EIO;
    }
    if (rc != QN_OK) {
        fprintf(stderr, "%s: %u members: %s\n", program, members,
                why_not(b, rc));
    }
    qn_large_group_fini(&b->g);
    return rc;
}

static int measure(struct bench *b)
{
    json_t *groups = json_array();
    int rc = QN_OK;
    for (int processes = 0; processes <= 1; processes++) {
        if (processes ? b->threads_only : b->processes_only) {
            continue;
        }
        for (uint32_t i = 0; i < b->group_count && rc == QN_OK; i++) {
            rc = run_group(b, (uint32_t)b->group[i], processes, groups);
        }
    }
    json_t *all = json_pack("{s:s,s:i,s:b,s:s*,s:o*,s:s,s:o}", "bench", "coll",
                            "cores", (int)b->places.count, "isolated",
                            b->isolated, "machine", b->machine, "assumed",
                            b->prices != NULL ? assumed(b->prices) : NULL,
                            "compiler", __VERSION__, "groups", groups);
    if (json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || puts("") == EOF) {
        fprintf(stderr, "%s: cannot write the result\n", program);
        rc = QN_EIO;
    }
    if (rc == QN_OK && b->plot != NULL &&
        qn_large_plot_write(&b->picture, program, b->plot, program) != 0) {
        rc = QN_EIO;
    }
    json_decref(all);
    return rc == QN_OK ? 0 : 1;
}

int qn_bench_coll(int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    b = (struct bench){.variants = "auto",
                       .sizes = "64ki,1mi,16mi",
                       .members = "2,4",
                       .turns = 20,
                       .seconds = 10};
    const struct qn_options o = {
        program,
        "Measure large collectives by name, beside as many copies by memcpy. "
        "JSON goes to\nstdout, a table to stderr.",
        table, QN_ARRAY_COUNT(table), &b};
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    status = prepare(&b);
    if (status == 0) {
        status = measure(&b);
        munmap(b.times, sizeof *b.times);
    }
    qn_large_plot_free(&b.picture);
    qn_machine_destroy(b.prices);
    return status;
}
