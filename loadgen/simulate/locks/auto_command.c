/*
 * `quoin sim auto`: `auto` beside each backend that it chooses from, under the
 * same load: some threads, or two numbers of threads in turn. A point is one
 * object and one number of threads; all are named by options, so that many can
 * be divided among processes.
 */
#include "loadgen/simulate/locks/auto_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/list.h"
#include "loadgen/base/options.h"
#include "loadgen/simulate/locks/auto_run.h"

#define POINTS_MAX 64u
/* A lock of more threads has a few percent of a combiner, and its failed
 * attempts take minutes of the host. */
#define LOCK_MAX   40u

static const char *const object_name[] = {"counter", "queue", "integers"};
static const char *const backend_name[] = {"auto", "lock", "cc_synch",
                                           "h_synch"};

enum { AUTO, LOCK, CC_SYNCH, H_SYNCH, BACKENDS };

struct command {
    /* options */
    const char *machine, *object, *threads, *backend;
    uint64_t then, phases, every, skip, pause, seed, seeds;
    double jitter;
    /* state */
    struct qn_locks_machine m;
    uint64_t point[POINTS_MAX]; /* threads */
    uint32_t points;
};

#define AT(member) offsetof(struct command, member)

static const struct qn_option table[] = {
    QN_OPTION("machine", "PATH", qn_option_string, AT(machine),
              "folder with prices.json, or a file of a TILE-Gx (required)"),
    QN_OPTION("object", "NAME", qn_option_string, AT(object),
              "counter, queue (ms1) or integers (15 increments); all of them"),
    QN_OPTION("backend", "NAME", qn_option_string, AT(backend),
              "only auto, lock, cc_synch or h_synch (all of them)"),
    QN_OPTION("threads", "N,...", qn_option_string, AT(threads),
              "numbers of threads, a core each (1,2,4,8)"),
    QN_OPTION_COUNT("then", "N", AT(then),
                    "in each second phase N threads call instead (no phases)",
                    1, QN_CORES_MAX),
    QN_OPTION_COUNT("phases", "N", AT(phases), "with --then (4)", 2, 1000),
    QN_OPTION_COUNT("every", "N", AT(every), "operations of a phase (30000)", 1,
                    100000000),
    QN_OPTION_COUNT("skip", "N", AT(skip),
                    "first ones of a phase, which do not count (10000)", 0,
                    100000000),
    QN_OPTION_COUNT("pause", "N", AT(pause),
                    "empty turns of a loop between two calls, at most (64)", 0,
                    1000000),
    QN_OPTION_COUNT("seed", "N", AT(seed), "the first one (1)", 0, UINT32_MAX),
    QN_OPTION_COUNT("seeds", "N", AT(seeds), "the mean of N seeds (1)", 1,
                    1000),
    QN_OPTION("jitter", "PART", qn_option_part, AT(jitter),
              "each price is up to this part more (0.05): without, "
              "threads that take turns stay in step"),
};

static int fail(const char *line)
{
    fprintf(stderr, "quoin sim auto: %s\n", line);
    return 2;
}

/* ---- a point ---- */

/* What a backend has: in even phases, in odd ones, in all. */
struct rates {
    double mops[QN_AUTO_RATES];
    double changes;
};

static int measure(const struct command *c, uint32_t object, uint32_t threads,
                   uint32_t b, struct rates *out)
{
    *out = (struct rates){0};
    for (uint64_t i = 0; i < c->seeds; i++) {
        struct qn_auto_run_result r;
        const struct qn_auto_run_opts o = {
            .machine = &c->m,
            .backend = backend_name[b],
            .load = (enum qn_auto_load)object,
            .threads = {threads, (uint32_t)c->then},
            .phases = c->then > 0 ? (uint32_t)c->phases : 1,
            .every = (uint32_t)c->every,
            .skip = (uint32_t)c->skip,
            .pause = (uint32_t)c->pause,
            .seed = c->seed + i,
            .jitter = c->jitter};
        const int rc = qn_auto_run(&r, &o);
        if (rc != QN_OK || r.wrong) {
            fprintf(stderr, "quoin sim auto: %s, %u threads, seed %llu: %s\n",
                    backend_name[b], threads, (unsigned long long)o.seed,
                    rc != QN_OK ? qn_strerror(rc) : "a result is wrong");
            return 1;
        }
        for (uint32_t k = 0; k < QN_AUTO_RATES; k++) {
            out->mops[k] += r.mops[k] / (double)c->seeds;
        }
        out->changes += (double)r.changes / (double)c->seeds;
    }
    return 0;
}

/* 0: there is none. */
static void print_figure(int width, int decimals, double x)
{
    if (x > 0) {
        printf(" %*.*f", width, decimals, x);
    } else {
        printf(" %*s", width, "-");
    }
}

static void print_row(const char *object, const char *threads, uint32_t k,
                      const struct rates r[BACKENDS])
{
    double best = 0;
    printf("%-8s %9s", object, threads);
    for (uint32_t b = 0; b < BACKENDS; b++) {
        best = b == AUTO ? 0 : QN_MAX(best, r[b].mops[k]);
        print_figure(9, 2, r[b].mops[k]);
    }
    print_figure(6, 2, best > 0 ? r[AUTO].mops[k] / best : 0);
    printf(" %8.1f\n", r[AUTO].changes);
    fflush(stdout);
}

static bool runs(const struct command *c, uint32_t b, uint32_t threads)
{
    if (c->backend != NULL) {
        return strcmp(c->backend, backend_name[b]) == 0;
    }
    return b == LOCK      ? threads <= LOCK_MAX
           : b == H_SYNCH ? !c->m.is_tiled /* one domain */
                          : true;
}

static int run_point(const struct command *c, uint32_t object, uint32_t threads)
{
    struct rates r[BACKENDS] = {{{0}, 0}};
    const uint32_t most = QN_MAX(threads, (uint32_t)c->then);
    for (uint32_t b = 0; b < BACKENDS; b++) {
        const int status =
            runs(c, b, most) ? measure(c, object, threads, b, &r[b]) : 0;
        if (status != 0) {
            return status;
        }
    }
    char text[32];
    (void)snprintf(text, sizeof text, "%u", threads);
    print_row(object_name[object], text, QN_AUTO_EVEN, r);
    if (c->then > 0) {
        (void)snprintf(text, sizeof text, "%u", (uint32_t)c->then);
        print_row(object_name[object], text, QN_AUTO_ODD, r);
        (void)snprintf(text, sizeof text, "%u, %u", threads, (uint32_t)c->then);
        print_row(object_name[object], text, QN_AUTO_ALL, r);
    }
    return 0;
}

static int run(const struct command *c)
{
    int status = 0;
    printf("million operations per second\n"
           "%-8s %9s %9s %9s %9s %9s %6s %8s\n",
           "object", "threads", backend_name[AUTO], backend_name[LOCK],
           backend_name[CC_SYNCH], backend_name[H_SYNCH], "share", "changes");
    for (uint32_t o = 0; o < QN_AUTO_LOADS; o++) {
        if (c->object != NULL && strcmp(c->object, object_name[o]) != 0) {
            continue;
        }
        for (uint32_t i = 0; i < c->points && status == 0; i++) {
            status = run_point(c, o, (uint32_t)c->point[i]);
        }
    }
    return status;
}

/* ---- options ---- */

static int take_threads(struct command *c)
{
    c->points =
        qn_parse_counts(c->threads, 1, c->m.cores, c->point, POINTS_MAX);
    return c->points > 0
               ? 0
               : fail("--threads takes at most 64 numbers from 1 to the cores "
                      "of the machine, for example 1,2,4,8");
}

/* NULL: all of them. */
static bool is_one_of(const char *text, const char *const *name, uint32_t n)
{
    bool known = text == NULL;
    for (uint32_t i = 0; i < n && !known; i++) {
        known = strcmp(text, name[i]) == 0;
    }
    return known;
}

static int check(struct command *c)
{
    if (!is_one_of(c->object, object_name, QN_AUTO_LOADS)) {
        return fail("--object is counter, queue or integers");
    }
    if (!is_one_of(c->backend, backend_name, BACKENDS)) {
        return fail("--backend is auto, lock, cc_synch or h_synch");
    }
    if (c->skip >= c->every) {
        return fail("--skip leaves no operation of a phase; raise --every");
    }
    if (c->then > c->m.cores) {
        return fail("--then: the machine has fewer cores");
    }
    return take_threads(c);
}

int qn_auto_command(int argc, char **argv)
{
    struct command c = {.threads = "1,2,4,8",
                        .phases = 4,
                        .every = 30000,
                        .skip = 10000,
                        .pause = 64,
                        .seed = 1,
                        .seeds = 1,
                        .jitter = 0.05};
    const struct qn_options o = {
        "quoin sim auto",
        "Share an object by delegation on a described machine, in virtual "
        "time: how close\nis auto to the best backend that it chooses from?",
        table, QN_ARRAY_COUNT(table), &c};
    struct qn_parse_error e = {{0}};
    int status;
    if (!qn_options_parse_needing(&o, argc, argv, &status, "machine",
                                  "machines/westmere_8x10x2")) {
        return status;
    }
    const int rc = qn_locks_machine_load(&c.m, c.machine, &e);
    if (rc != QN_OK) {
        return fail(e.text[0] != '\0' ? e.text : qn_strerror(rc));
    }
    status = check(&c);
    status = status == 0 ? run(&c) : status;
    qn_locks_machine_free(&c.m);
    return status;
}
