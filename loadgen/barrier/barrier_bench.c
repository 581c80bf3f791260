/*
 * quoin bench barrier: what does a barrier cost, of the library, of the system,
 * written by hand, of OpenMP and of MPI, in one run?
 *
 * For each number of members, as threads and as processes, teams are started
 * that pass barriers on demand and sleep in between. A round gives each subject
 * about --round-ms; every second one goes the other way round, so that a drift
 * of the machine counts for all. Ratios to the first subject are taken within a
 * round. Before that each subject passes one barrier: if it takes longer than
 * --limit-ms, it is not measured further (threads that spin where they share
 * cores). Then it is checked that each member sees what all did before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/barrier/selection/selection.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/barrier/barrier_table.h"
#include "loadgen/base/list.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/bench/nodes.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/collective/kinds_plot.h"

#define PROGRAM    "quoin bench barrier"
#define GROUPS_MAX 8u
#define ROWS_MAX   (QN_BARRIER_SUBJECTS_MAX + 3)
#define TEAMS      4u
#define CHECKED    20u      /* barriers */
#define FEW        4u       /* of them, to see that it works */
#define COUNT_MOST 1000000u /* barriers of a round */
#define LATE_MOST  0.9
#define PATH_BYTES 4096u

struct bench {
    /* options */
    const char *members, *plot, *machine;
    uint64_t rounds;
    double round_ms, limit_ms, late;
    bool threads_only, processes_only, quick;
    /* what they say */
    uint32_t group[GROUPS_MAX], groups;
    uint32_t cores;
    struct qn_machine *prices; /* owned; without costs if none was named */
    char folder[PATH_BYTES];   /* of quoin and of the rivals */
};

/* The members of one number and kind. */
struct group {
    uint32_t members;
    bool processes;
    struct qn_barrier_subject subject[QN_BARRIER_SUBJECTS_MAX];
    struct qn_barrier_team team[TEAMS]; /* own, of coll, GOMP's or MPI's */
    uint32_t teams;                     /* started */
    struct qn_barrier_row row[ROWS_MAX];
    uint32_t rows;
};

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION("members", "N,...", qn_option_string, AT(members),
              "of each team (2,4,8,16,64)"),
    QN_OPTION("threads", NULL, qn_option_flag, AT(threads_only),
              "threads only"),
    QN_OPTION("processes", NULL, qn_option_flag, AT(processes_only),
              "processes only"),
    QN_OPTION_COUNT("rounds", "N", AT(rounds), "of each subject (21)", 1,
                    QN_MEDIAN_VALUES_MAX),
    QN_OPTION("round-ms", "MS", qn_option_double, AT(round_ms),
              "time of a subject in a round (2)"),
    QN_OPTION("limit-ms", "MS", qn_option_double, AT(limit_ms),
              "a subject whose first barrier takes longer is not measured "
              "further (20)"),
    QN_OPTION("late", "PART", qn_option_part, AT(late),
              "the last member of a team sleeps in front of barriers, PART of "
              "the time, at most 0.9 (0)"),
    QN_OPTION("machine", "FILE", qn_option_string, AT(machine),
              "say which form is the selection by the prices of this machine"),
    QN_OPTION("plot", "FILE", qn_option_string, AT(plot),
              "draw a picture, as SVG"),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "few short rounds, to see that it works"),
};

static int fail(const char *text)
{
    fprintf(stderr, PROGRAM ": %s\n", text);
    return 2;
}

/* ---- teams --------------------------------------------------------------- */

static struct qn_barrier_row *add_row(struct group *g, const char *name)
{
    struct qn_barrier_row *r = &g->row[g->rows++];
    *r = (struct qn_barrier_row){.name = name};
    return r;
}

/* A row of a team that has started, or has not. */
static void add_team(struct group *g, const char *name, int rc,
                     const char *refused)
{
    struct qn_barrier_row *r = add_row(g, name);
    if (rc == QN_OK) {
        r->team = &g->team[g->teams++];
    } else {
        r->refused = refused;
    }
}

static void add_gomp(const struct bench *b, struct group *g, const char *name,
                     const char *program)
{
    char path[PATH_BYTES + 32];
    char *argv[] = {path, NULL, NULL, NULL};
    snprintf(path, sizeof path, "%s%s", b->folder, program);
    const int rc =
        access(path, X_OK) != 0
            ? QN_ENOSYS
            : qn_barrier_team_of_program(&g->team[g->teams], g->members, argv);
    add_team(g, name, rc, "its program is not beside quoin, or has failed");
}

static void add_mpi(const struct bench *b, struct group *g)
{
    char path[PATH_BYTES + 32], number[16];
    char *argv[] = {"mpirun",
                    "--allow-run-as-root",
                    "--oversubscribe",
                    "--bind-to",
                    "none",
                    "--mca",
                    "mpi_yield_when_idle",
                    "1",
                    "-n",
                    number,
                    path,
                    NULL,
                    NULL,
                    NULL};
    snprintf(path, sizeof path, "%sbarrier_mpi", b->folder);
    snprintf(number, sizeof number, "%u", g->members);
    const int rc =
        access(path, X_OK) != 0
            ? QN_ENOSYS
            : qn_barrier_team_of_program(&g->team[g->teams], g->members, argv);
    add_team(g, "mpi", rc,
             "barrier_mpi is not beside quoin, or mpirun has failed");
}

/* Children first: their memory is then that of one thread. */
static int start(const struct bench *b, struct group *g)
{
    const uint32_t subjects =
        qn_barrier_subjects(g->subject, g->members, b->cores);
    g->rows = subjects; /* in front; filled below */
    add_team(g, "coll",
             qn_barrier_team_of_coll(&g->team[0], g->members, g->processes),
             "the group has failed");
    if (g->processes) {
        add_mpi(b, g);
    } else {
        add_gomp(b, g, "gomp", "barrier_gomp");
        add_gomp(b, g, "gomp/quoin", "barrier_gomp_quoin");
    }
    struct qn_barrier_team *own = &g->team[g->teams];
    const int rc = qn_barrier_team_start(own, g->subject, subjects, g->members,
                                         b->cores, g->processes);
    if (rc != QN_OK) {
        return rc;
    }
    g->teams++;
    for (uint32_t i = 0; i < subjects; i++) {
        g->row[i] = (struct qn_barrier_row){
            .name = g->subject[i].name, .team = own, .subject = i};
        if (own->refused[i] != QN_OK) {
            g->row[i].team = NULL;
            g->row[i].refused = qn_strerror(own->refused[i]);
        }
    }
    return QN_OK;
}

/* ---- rounds -------------------------------------------------------------- */

static int round_of(struct qn_barrier_row *r, uint64_t count, bool check,
                    double *ns)
{
    const int rc = qn_barrier_team_round(r->team, r->subject, count, check, ns);
    if (rc != QN_OK) {
        fprintf(stderr, PROGRAM ": %s: %s\n", r->name,
                rc == QN_ECORRUPT ? "a member left before all had come"
                                  : "a member has ended");
    }
    return rc;
}

/* How many barriers may a round have? The first subject is always measured. */
static int prepare_row(const struct bench *b, struct qn_barrier_row *r,
                       bool first)
{
    double ns;
    int rc = r->team == NULL ? QN_OK : round_of(r, 1, false, &r->once);
    if (rc != QN_OK || r->team == NULL ||
        (r->once > b->limit_ms * 1e6 && !first)) {
        return rc;
    }
    const double may = b->limit_ms * 1e6 / QN_MAX(r->once, 1.0);
    const double most = b->quick ? FEW : CHECKED;
    const uint64_t few = (uint64_t)QN_MAX(1.0, QN_MIN(may, most));
    rc = round_of(r, few, true, &ns);
    rc = rc == QN_OK ? round_of(r, few, false, &ns) : rc;
    const double count = b->round_ms * 1e6 / QN_MAX(ns, 1.0);
    r->count = (uint64_t)QN_MIN(QN_MAX(count, 1.0), (double)COUNT_MOST);
    return rc;
}

static int run_round(struct group *g, bool backwards)
{
    int rc = QN_OK;
    for (uint32_t i = 0; i < g->rows && rc == QN_OK; i++) {
        struct qn_barrier_row *r = &g->row[backwards ? g->rows - 1 - i : i];
        if (r->count > 0) {
            rc = round_of(r, r->count, false, &r->ns[r->rounds]);
        }
    }
    for (uint32_t i = 0; i < g->rows; i++) {
        struct qn_barrier_row *r = &g->row[i];
        r->ratio[r->rounds] = r->ns[r->rounds] / g->row[0].ns[g->row[0].rounds];
    }
    for (uint32_t i = 0; i < g->rows; i++) {
        g->row[i].rounds++;
    }
    return rc;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The selection by prices, and why. @return false: there are no prices. */
static bool explain(const struct bench *b, uint32_t members, char *text,
                    size_t bytes)
{
    struct qn_barrier_selection c;
    const bool is = qn_barrier_select(&c, b->prices, members) == QN_OK;
    if (is) {
        qn_barrier_selection_explain(&c, text, bytes);
        fprintf(stderr, "selection: %s\n", text);
    }
    return is;
}

/* From here on. */
static void make_late(const struct bench *b, struct group *g)
{
    for (uint32_t i = 0; i < g->teams; i++) {
        g->team[i].control->late = b->late;
    }
}

/* @return NULL: no member was to be late. */
static json_t *late_member(const struct bench *b, const struct group *g)
{
    uint64_t sleeps = 0;
    for (uint32_t i = 0; i < g->teams; i++) {
        sleeps += g->team[i].control->sleeps;
    }
    return b->late > 0
               ? json_pack("{s:i,s:f,s:I}", "member", (int)g->members - 1,
                           "asked", b->late, "sleeps", (json_int_t)sleeps)
               : NULL;
}

static json_t *report_group(const struct bench *b, struct group *g)
{
    const char *kind = g->processes ? "processes" : "threads";
    json_t *subjects = json_array();
    char why[160];
    qn_barrier_table_head(g->members, kind, g->row[0].name);
    const bool chosen = explain(b, g->members, why, sizeof why);
    for (uint32_t i = 0; i < g->rows; i++) {
        struct qn_barrier_row *r = &g->row[i];
        qsort(r->ns, r->rounds, sizeof r->ns[0], by_value);
        qsort(r->ratio, r->rounds, sizeof r->ratio[0], by_value);
        json_array_append_new(subjects, qn_barrier_table_row(r));
    }
    return json_pack("{s:s,s:i,s:s*,s:o*,s:o}", "kind", kind, "members",
                     (int)g->members, "selection", chosen ? why : NULL, "late",
                     late_member(b, g), "subjects", subjects);
}

/* Why a team has not started, and what to do. */
static const char *why_not(int rc)
{
    return rc == QN_EAGAIN
               ? "a thread or process cannot be started: " QN_NODES_ADVICE
           : rc == QN_EIO
               ? "a member has ended or was not ready in two minutes: it may "
                 "lack memory, or the machine is too busy"
               : qn_strerror(rc);
}

static int run_group(const struct bench *b, uint32_t members, bool processes,
                     json_t *to)
{
    static struct group g; /* too large for the stack */
    g.members = members;
    g.processes = processes;
    g.teams = g.rows = 0;
    int rc = start(b, &g);
    if (rc != QN_OK) {
        fprintf(stderr, PROGRAM ": %u members: %s\n", members, why_not(rc));
    }
    for (uint32_t i = 0; i < g.rows && rc == QN_OK; i++) {
        rc = prepare_row(b, &g.row[i], i == 0);
    }
    make_late(b, &g);
    for (uint32_t r = 0; r < b->rounds && rc == QN_OK; r++) {
        rc = run_round(&g, r % 2 != 0);
    }
    if (rc == QN_OK) {
        json_array_append_new(to, report_group(b, &g));
    } else {
        _exit(1); /* teams may wait for ever; children die with this process */
    }
    for (uint32_t i = 0; i < g.teams; i++) {
        qn_barrier_team_end(&g.team[i]);
    }
    return rc;
}

/* ---- the command --------------------------------------------------------- */

static int take_members(struct bench *b)
{
    uint64_t n[GROUPS_MAX];
    b->groups =
        qn_parse_counts(b->members, 2, QN_BARRIER_TEAM_MAX, n, GROUPS_MAX);
    for (uint32_t i = 0; i < b->groups; i++) {
        b->group[i] = (uint32_t)n[i];
    }
    return b->groups > 0
               ? 0
               : fail("--members takes at most 8 numbers from 2 to 64, for "
                      "example 2,4");
}

static int find_folder(struct bench *b)
{
    const ssize_t len =
        readlink("/proc/self/exe", b->folder, sizeof b->folder - 1);
    char *slash = len > 0 ? memrchr(b->folder, '/', (size_t)len) : NULL;
    if (slash == NULL) {
        return fail("cannot find its own folder");
    }
    slash[1] = '\0';
    return 0;
}

static int load_prices(struct bench *b)
{
    struct qn_parse_error bad = {"out of memory"};
    const int rc = b->machine != NULL
                       ? qn_machine_load(&b->prices, b->machine, &bad)
                       : qn_machine_create(&b->prices, b->cores);
    return rc == QN_OK ? 0 : fail(bad.text);
}

static int prepare(struct bench *b)
{
    static struct qn_places places; /* too large for the stack */
    int status = take_members(b);
    if (status == 0 && b->threads_only && b->processes_only) {
        status = fail("choose --threads or --processes, or neither");
    }
    if (status == 0 && b->late > LATE_MOST) {
        status = fail("--late takes at most 0.9");
    }
    if (status == 0 && b->plot != NULL) {
        status =
            qn_output_path_check(PROGRAM, "plot", b->plot, "name a file in it");
    }
    status = status == 0 ? find_folder(b) : status;
    if (status == 0) {
        const int rc = qn_places_discover(&places);
        b->cores = places.count;
        status = rc == QN_OK ? 0 : 1;
        if (rc != QN_OK) {
            fprintf(stderr, PROGRAM ": cannot list the cores: %s\n",
                    qn_strerror(rc));
        }
    }
    return status == 0 ? load_prices(b) : status;
}

static const struct qn_kinds_plot picture = {
    .title = "Barriers, time of each",
    .description = "Time of a barrier over the number of members",
    .members = "members",
    .rows = "subjects",
    .row = "subject",
    .names = 200,
    .height = 550};

static int measure(struct bench *b)
{
    json_t *groups = json_array();
    int rc = QN_OK, status = 0;
    for (int processes = 0; processes <= 1; processes++) {
        if (processes ? b->threads_only : b->processes_only) {
            continue;
        }
        for (uint32_t i = 0; i < b->groups && rc == QN_OK; i++) {
            rc = run_group(b, b->group[i], processes, groups);
        }
    }
    json_t *all =
        json_pack("{s:s,s:i,s:i,s:f,s:s,s:O}", "bench", "barrier", "cores",
                  (int)b->cores, "rounds", (int)b->rounds, "round_ms",
                  b->round_ms, "compiler", __VERSION__, "groups", groups);
    if (json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || puts("") == EOF) {
        fprintf(stderr, PROGRAM ": cannot write the result\n");
        status = 1;
    }
    if (b->plot != NULL &&
        qn_kinds_plot(&picture, groups, b->plot, PROGRAM) != 0) {
        status = 1;
    }
    json_decref(all);
    json_decref(groups);
    qn_machine_destroy(b->prices);
    return status;
}

int qn_bench_barrier(int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    b = (struct bench){
        .members = "2,4,8,16,64", .rounds = 21, .round_ms = 2, .limit_ms = 20};
    const struct qn_options o = {
        PROGRAM,
        "Measure barriers of the library beside those of the system, of OpenMP "
        "and of MPI,\nand simple ones. JSON goes to stdout, a table to stderr.",
        table, QN_ARRAY_COUNT(table), &b};
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (b.quick) {
        b.rounds = 2;
        b.round_ms = 0.1;
    }
    status = prepare(&b);
    return status != 0 ? status : measure(&b);
}
