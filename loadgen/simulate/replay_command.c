/*
 * `quoin sim replay GROUP`: the table of groups, and the form of a row.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/large/numacol_replay.h"
#include "loadgen/simulate/locks/locks_check.h"
#include "loadgen/simulate/locks/locks_replay.h"
#include "loadgen/simulate/replay.h"
#include "loadgen/simulate/scc/scc_figures.h"
#include "loadgen/simulate/scc/scc_replay.h"

/* ---- C1 to C6 ---- */

/* Where rows go. */
struct rows {
    const struct qn_replay_opts *o;
    uint32_t rows, missed;
};

static void print_row(void *ctx, const struct qn_replay_row *r)
{
    struct rows *s = ctx;
    s->rows++;
    s->missed += !qn_replay_row_print(r, s->o->to);
}

/* @return the exit status. */
static int failure(int rc, const struct qn_parse_error *e)
{
    if (rc != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n",
                e->text[0] != 0 ? e->text : qn_strerror(rc));
    }
    return rc == QN_OK ? 0 : e->text[0] != 0 ? 2 : 1;
}

/* @return an error of the runs, or of the file. */
static int draw_scc(const char *machine, const char *plot,
                    struct qn_parse_error *e)
{
    FILE *to = qn_output_path_open(plot);
    int rc = to != NULL ? qn_scc_figures(machine, to, e) : QN_EIO;
    if (to != NULL && qn_output_path_close(to) != 0 && rc == QN_OK) {
        rc = QN_EIO;
    }
    return rc;
}

static int replay_scc(const struct qn_replay_opts *o, uint32_t *missed)
{
    struct rows s = {.o = o};
    struct qn_parse_error e = {{0}};
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/scc.json", o->machines[0]);
    int rc = qn_scc_replay(path, print_row, &s, &e);
    *missed = s.missed;
    if (rc == QN_OK && o->plot != NULL) {
        rc = draw_scc(path, o->plot, &e);
    }
    return failure(rc, &e);
}

/* ---- L1 to L10 ---- */

struct locks_rows {
    struct rows all;
    uint32_t differ;
};

static void locks_differ(void *ctx, const struct qn_replay_row *r,
                         uint64_t seed, double jitter)
{
    struct locks_rows *s = ctx;
    s->differ++;
    fprintf(s->all.o->to, "with --seed %" PRIu64 " --jitter %g:\n", seed,
            jitter);
    (void)qn_replay_row_print(r, s->all.o->to);
}

/* @return the exit status. */
static int some_rows(uint32_t rows, const char *only)
{
    if (rows == 0) {
        fprintf(stderr,
                "quoin sim replay: --only %s names no row; choose one of L1 to "
                "L10\n",
                only);
    }
    return rows == 0 ? 2 : 0;
}

/* The exit status says whether verdicts differ, not whether rows hold. */
static int check_locks(struct locks_rows *s,
                       const struct qn_locks_replay_opts *l, uint32_t *missed)
{
    struct qn_parse_error e = {{0}};
    struct qn_locks_check c = {
        .each = print_row, .differs = locks_differ, .ctx = s};
    const int rc = qn_locks_check(&c, l, &e);
    *missed = s->differ;
    if (rc != QN_OK) {
        return failure(rc, &e);
    }
    fprintf(s->all.o->to,
            "%u rows, %u of which do not hold; in %u runs %u verdicts "
            "differ\n",
            c.rows, c.missed, c.runs, s->differ);
    return some_rows(c.rows, l->only);
}

static int replay_locks(const struct qn_replay_opts *o, uint32_t *missed)
{
    struct locks_rows s = {.all = {.o = o}};
    struct qn_parse_error e = {{0}};
    const struct qn_locks_replay_opts l = {.machines = o->machines[0],
                                           .seed = o->seed,
                                           .jitter = o->jitter,
                                           .only = o->only};
    if (o->check_seeds) {
        return check_locks(&s, &l, missed);
    }
    const int status = failure(qn_locks_replay(&l, print_row, &s, &e), &e);
    *missed = s.all.missed;
    return status != 0 ? status : some_rows(s.all.rows, o->only);
}

/* ---- N1 ---- */

static int replay_numacol(const struct qn_replay_opts *o, uint32_t *missed)
{
    struct rows s = {.o = o};
    const struct qn_parse_error none = {{0}};
    const int rc = qn_numacol_replay(false, print_row, &s);
    *missed = s.missed;
    return failure(rc, &none);
}

/* ---- S1 to S3 ---- */

static int replay_smelt(const struct qn_replay_opts *o, uint32_t *missed)
{
    int status = qn_replay_s1(o, missed);
    status = status == 0 ? qn_replay_s2(o, missed) : status;
    return status == 0 ? qn_replay_s3(o, missed) : status;
}

static const struct group {
    const char *id, *title;
    int (*run)(const struct qn_replay_opts *o, uint32_t *missed);
    bool plots;
    bool picks; /* --only */
} group[] = {
    {"S1", "planned trees against every static tree, on all machines",
     qn_replay_s1, false, false},
    {"S2",
     "barriers over planned trees, and on shared lines: dissemination and MCS",
     qn_replay_s2, false, false},
    {"S3",
     "consensus over planned trees: 8, 16 and 28 replicas; growing clients on "
     "8 memory nodes",
     qn_replay_s3, false, false},
    {"smelt", "S1, S2 and S3", replay_smelt, false, false},
    {"rings",
     "acknowledged broadcasts over diamond rings: latency and rate by arity",
     qn_replay_rings, false, true},
    {"locks",
     "locks and delegation on a TILE-Gx, a Xeon and an Opteron, as measured",
     replay_locks, false, true},
    {"numacol", "large collectives on a Superdome of 16 x 8 cores, as measured",
     replay_numacol, false, false},
    {"scc",
     "broadcasts over message buffers of a simulated SCC, as on the hardware",
     replay_scc, true, false},
};

static int take_machines(const struct qn_option *o, const char *text)
{
    struct qn_replay_opts *r = o->to;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(r->machines); i++) {
        if (r->machines[i] == NULL) {
            r->machines[i] = text;
            return QN_OK;
        }
    }
    return QN_EINVAL;
}

static const struct qn_option table[] = {
    QN_OPTION("machines", "FOLDER", take_machines, 0,
              "folder of machine files, at most two (machines); S1 also takes "
              "the folder of one machine"),
    QN_OPTION("every", NULL, qn_option_flag,
              offsetof(struct qn_replay_opts, every),
              "every group size; else powers of two and whole machines"),
    QN_OPTION("longer", NULL, qn_option_flag,
              offsetof(struct qn_replay_opts, longer),
              "also with plans of about one second"),
    QN_OPTION("plot", "FILE.svg", qn_option_string,
              offsetof(struct qn_replay_opts, plot),
              "scc: draw the figures that its rows are of"),
    QN_OPTION_COUNT("seed", "N", offsetof(struct qn_replay_opts, seed),
                    "locks: of the pauses and the jitter (1)", 0, UINT32_MAX),
    QN_OPTION("jitter", "PART", qn_option_part,
              offsetof(struct qn_replay_opts, jitter),
              "locks: each price is up to this part more (0)"),
    QN_OPTION("only", "NAME", qn_option_string,
              offsetof(struct qn_replay_opts, only),
              "rings: machines with NAME in their name: Gx, Xeon or Phi; "
              "locks: rows of one figure: L1 to L10"),
    QN_OPTION("check-seeds", NULL, qn_option_flag,
              offsetof(struct qn_replay_opts, check_seeds),
              "locks: also with two more seeds, and with each of the three and "
              "5 % of jitter: is each verdict the same?"),
};

static const struct group *find(const char *id)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(group); i++) {
        if (strcmp(group[i].id, id) == 0) {
            return &group[i];
        }
    }
    return NULL;
}

static int list(FILE *to)
{
    fputs("usage: quoin sim replay GROUP [OPTIONS]\n\n", to);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(group); i++) {
        fprintf(to, "  %-5s %s\n", group[i].id, group[i].title);
    }
    return 0;
}

static bool folders_readable(const struct qn_replay_opts *o)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(o->machines); i++) {
        const char *folder = o->machines[i];
        if (folder != NULL && access(folder, R_OK | X_OK) != 0) {
            fprintf(stderr,
                    "quoin sim replay: cannot read the folder %s; name a "
                    "folder of machine files with --machines\n",
                    folder);
            return false;
        }
    }
    return true;
}

static bool plot_possible(const struct group *g, const struct qn_replay_opts *o)
{
    if (o->plot != NULL && !g->plots) {
        fprintf(stderr,
                "quoin sim replay: %s has no picture; leave --plot out, or "
                "replay scc\n",
                g->id);
        return false;
    }
    return o->plot == NULL ||
           qn_output_path_check("quoin sim replay", "plot", o->plot,
                                "name a file in it") == 0;
}

static bool pick_possible(const struct group *g, const struct qn_replay_opts *o)
{
    if (o->check_seeds && g->run != replay_locks) {
        fprintf(
            stderr,
            "quoin sim replay: %s has no seeds; leave --check-seeds out, or "
            "replay locks\n",
            g->id);
        return false;
    }
    if (o->only != NULL && !g->picks) {
        fprintf(
            stderr,
            "quoin sim replay: %s has no parts; leave --only out, or replay "
            "rings or locks\n",
            g->id);
        return false;
    }
    return true;
}

int qn_replay_command(int argc, char **argv)
{
    struct qn_replay_opts o = {.to = stdout, .seed = 1};
    const struct group *g = argc > 1 ? find(argv[1]) : NULL;
    uint32_t missed = 0;
    int status;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        return list(stdout);
    }
    if (g == NULL) {
        fprintf(stderr, "quoin sim replay: name a group: S1, S2, S3, smelt, "
                        "rings, locks, "
                        "numacol or scc\n");
        return 2;
    }
    const struct qn_options options = {"quoin sim replay", g->title, table,
                                       QN_ARRAY_COUNT(table), &o};
    if (!qn_options_parse(&options, argc - 1, argv + 1, &status)) {
        return status;
    }
    if (o.machines[0] == NULL) {
        o.machines[0] = "machines";
    }
    if (!folders_readable(&o) || !plot_possible(g, &o) ||
        !pick_possible(g, &o)) {
        return 2;
    }
    fprintf(o.to, "%s: %s\n", g->id, g->title);
    fprintf(o.to, "%-4s %-74s %9s    %7s %9s\n", "", "what", "published",
            "limit", "simulated");
    status = g->run(&o, &missed);
    if (status == 0 && !o.check_seeds) {
        fprintf(o.to, "%u rows do not hold\n", missed);
    }
    return status != 0 ? status : missed > 0;
}
