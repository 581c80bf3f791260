/*
 * `quoin tree`: a machine, a plan, and the same plan in words, tables and
 * pictures. Everything is computed before anything is written, so a wrong file
 * leaves no half of a picture behind.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/nearest.h"
#include "core/topo/exchange.h"
#include "loadgen/machine/live.h"
#include "loadgen/options.h"
#include "loadgen/quoin.h"
#include "loadgen/topo/compare.h"
#include "loadgen/topo/cores.h"
#include "loadgen/topo/explain.h"
#include "loadgen/topo/picture.h"
#include "loadgen/topo/survey.h"
#include "loadgen/topo/tree_internal.h"

struct command {
    const char *machine, *cores, *format, *output, *up_file;
    const char *algo[QN_TREE_ALGOS_MAX];
    uint32_t algos;
    enum qn_goal goal;
    enum qn_level level;
    uint64_t root, seed, moves;
    double q;
    bool explain, compare, one_tree, robust;
    struct qn_compare *compared;
    const char *survey, *sizes;
    uint64_t threads;
    struct qn_survey *survey_result;
    struct qn_machine *m;
    struct qn_tree_job job;
    struct qn_contender rival[QN_TREE_RIVALS];
    double cost[QN_TREE_RIVALS];
};

#define ROOT_NONE UINT64_MAX

static int take_algo(const struct qn_option *o, const char *text)
{
    struct command *c = o->to;
    if (c->algos == QN_TREE_ALGOS_MAX) {
        fprintf(stderr, "quoin tree: at most %u times --algo\n",
                QN_TREE_ALGOS_MAX);
        return QN_ERANGE;
    }
    c->algo[c->algos++] = text;
    return QN_OK;
}

static int take_op(const struct qn_option *o, const char *text)
{
    for (uint32_t i = 0; qn_goal_name(i) != NULL; i++) {
        if (strcmp(qn_goal_name(i), text) == 0) {
            *(enum qn_goal *)o->to = (enum qn_goal)i;
            return QN_OK;
        }
    }
    return QN_EINVAL;
}

static int take_level(const struct qn_option *o, const char *text)
{
    for (uint32_t i = 0; qn_level_name(i) != NULL; i++) {
        if (strcmp(qn_level_name(i), text) == 0) {
            *(enum qn_level *)o->to = (enum qn_level)i;
            return QN_OK;
        }
    }
    return QN_EINVAL;
}

static int take_factor(const struct qn_option *o, const char *text)
{
    double q;
    const struct qn_option plain = {.to = &q};
    if (qn_option_double(&plain, text) != QN_OK || q > 1) {
        return QN_EINVAL;
    }
    *(double *)o->to = q;
    return QN_OK;
}

static int take_format(const struct qn_option *o, const char *text)
{
    static const char *const formats[] = {"text", "csv", "json", "dot", "svg"};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(formats); i++) {
        if (strcmp(formats[i], text) == 0) {
            *(const char **)o->to = formats[i];
            return QN_OK;
        }
    }
    return QN_EINVAL;
}

static int fail(const char *line)
{
    fprintf(stderr, "quoin tree: %s\n", line);
    return 2;
}

/* ---- the machine and its cores ---- */

static int load_machine(struct command *c)
{
    struct qn_fault fault = {""};
    struct qn_machine *all = NULL;
    uint32_t index[QN_CORES_MAX], count = 0;
    int status = qn_live_open(&all, c->machine, "quoin tree");
    if (status != 0 || c->cores == NULL) {
        c->m = all;
        return status;
    }
    int err = qn_cores_parse(index, &count, all, c->cores, &fault);
    if (err == QN_OK) {
        err = qn_machine_restrict(&c->m, all, index, count);
        (void)snprintf(fault.text, sizeof fault.text, "--cores: %s",
                       qn_strerror(err));
    }
    qn_machine_destroy(all);
    return err == QN_OK ? 0 : fail(fault.text);
}

static int find_root(struct command *c)
{
    c->job.o.root = QN_ROOT_FREE;
    if (c->root == ROOT_NONE) {
        return 0;
    }
    uint32_t v = qn_machine_find(c->m, (uint32_t)c->root);
    if (v == c->m->n) {
        fprintf(stderr,
                "quoin tree: --root: core %u is not on this machine or not "
                "among --cores\n",
                (unsigned)c->root);
        return 2;
    }
    c->job.o.root = v;
    return 0;
}

/* ---- what is compared ---- */

static int add(struct command *c, const char *name)
{
    struct qn_fault fault = {""};
    struct qn_tree_job *j = &c->job;
    for (uint32_t i = 0; i < j->count; i++) {
        if (strcmp(j->rival[i].name, name) == 0) {
            return 0;
        }
    }
    int err = qn_contender_make(&j->rival[j->count], c->m, name, &j->o, &fault);
    if (err != QN_OK) {
        return fail(fault.text[0] != '\0' ? fault.text : qn_strerror(err));
    }
    j->cost[j->count] =
        qn_contender_cost(&j->rival[j->count], c->m, j->o.goal, j->o.q);
    j->count++;
    return 0;
}

/* The plan first, then what else was named, then the usual ones. */
static int add_all(struct command *c)
{
    int status = c->algos == 0 ? add(c, "auto") : 0;
    for (uint32_t i = 0; i < c->algos && status == 0; i++) {
        status = add(c, c->algo[i]);
    }
    if (status == 0 && isnan(c->cost[0])) {
        fprintf(stderr,
                "quoin tree: %s is an acknowledged broadcast; --op ack or "
                "throughput, not %s\n",
                c->rival[0].name, c->job.goal);
        return 2;
    }
    bool table =
        strcmp(c->format, "text") == 0 || strcmp(c->format, "json") == 0;
    if (status == 0 && table && !c->explain) {
        status = add(c, "auto");
    }
    for (uint32_t i = 0; status == 0 && table && !c->explain; i++) {
        const char *name = qn_contender_name_at(i);
        if (name == NULL) {
            break;
        }
        status = add(c, name);
    }
    return status;
}

/* ---- output ---- */

static int write_csv(const struct command *c, const struct qn_shape *s,
                     const char *path)
{
    FILE *f = fopen(path, "w");
    int err = f != NULL ? qn_tree_write_csv(c->m, s, f) : QN_EIO;
    if (f != NULL && fclose(f) != 0) {
        err = QN_EIO;
    }
    if (err != QN_OK) {
        fprintf(stderr, "quoin tree: cannot write %s: %s\n", path,
                strerror(errno));
    }
    return err;
}

static int write_plan_csv(const struct command *c, FILE *to)
{
    const struct qn_contender *r = &c->rival[0];
    if (r->ring != NULL) {
        return qn_ring_write_map(c->m, r->ring, to);
    }
    if (c->up_file != NULL) {
        int err = write_csv(c, &r->up, c->up_file);
        if (err != QN_OK) {
            return err;
        }
    }
    return qn_tree_write_csv(c->m,
                             c->goal == QN_GOAL_REDUCE ? &r->up : &r->down, to);
}

static int write_svg(const struct command *c, FILE *to)
{
    const struct qn_contender *r = &c->rival[0];
    struct qn_timeline *t;
    char note[120];
    int err = qn_contender_timeline(&t, r, c->m, c->goal, c->job.o.q);
    if (err != QN_OK) {
        return err;
    }
    bool rate = c->goal == QN_GOAL_THROUGHPUT || c->goal == QN_GOAL_STREAM;
    (void)snprintf(note, sizeof note, "%s%.0f%s, depth %u%s",
                   rate ? "busiest core " : "lower bound ",
                   rate ? c->cost[0] : c->job.bound,
                   rate ? " per operation" : "", qn_contender_depth(r),
                   r->two_trees ? ", dashed: the other way up" : "");
    struct qn_picture p = {c->m, t, r->root, r->name, c->job.goal, note};
    err = qn_picture_write(&p, to);
    free(t);
    return err;
}

static int write_format(const struct command *c, FILE *to)
{
    if (c->explain) {
        return qn_tree_explain(&c->rival[0], c->m, c->goal, c->job.o.q, to);
    }
    switch (c->format[0]) {
    case 'c':
        return write_plan_csv(c, to);
    case 'j':
        return qn_tree_write_plan_json(&c->job, to);
    case 'd':
        return qn_tree_write_plan_dot(&c->job, to);
    case 's':
        return write_svg(c, to);
    default:
        qn_tree_write_text(&c->job, to);
        return QN_OK;
    }
}

typedef int writer(const struct command *c, FILE *to);

static int output(const struct command *c, writer *write)
{
    FILE *to = c->output != NULL ? fopen(c->output, "w") : stdout;
    if (to == NULL) {
        fprintf(stderr, "quoin tree: cannot write %s: %s\n", c->output,
                strerror(errno));
        return 2;
    }
    int err = write(c, to);
    bool bad = ferror(to) != 0;
    bad = (c->output != NULL ? fclose(to) : fflush(to)) != 0 || bad;
    if (err != QN_OK || bad) {
        fprintf(stderr, "quoin tree: %s: %s\n",
                c->output != NULL ? c->output : "standard output",
                bad ? strerror(errno) : qn_strerror(err));
    }
    return err == QN_OK && !bad ? 0 : 1;
}

static int write_compared(const struct command *c, FILE *to)
{
    if (c->format[0] == 's') {
        qn_compare_write_svg(c->compared, to);
    } else if (c->format[0] == 'c') {
        qn_compare_write_csv(c->compared, to);
    } else {
        qn_compare_write_text(c->compared, to);
    }
    return QN_OK;
}

/* The front of latency and throughput. */
static int compare(struct command *c)
{
    if (c->format[0] == 'j' || c->format[0] == 'd') {
        return fail("--compare is written as text, csv or svg");
    }
    if (c->m->n < 2) {
        return fail("--compare needs two cores at least");
    }
    int err = qn_compare_run(&c->compared, c->m, &c->job.o);
    if (err != QN_OK) {
        return fail(qn_strerror(err));
    }
    int status = output(c, write_compared);
    qn_compare_destroy(c->compared);
    return status;
}

/* ---- together ---- */

static int check(const struct command *c)
{
    const struct qn_contender *r = &c->rival[0];
    bool csv = strcmp(c->format, "csv") == 0 && !c->explain;
    if (c->up_file != NULL && (!csv || r->ring != NULL)) {
        return fail("--up-file goes with --format csv and a tree");
    }
    if (csv && r->two_trees && c->up_file == NULL &&
        c->goal != QN_GOAL_REDUCE) {
        return fail("the plan has another tree on the way up; name a file for "
                    "it by --up-file, or ask for --one-tree");
    }
    return 0;
}

static int run(struct command *c)
{
    int status = load_machine(c);
    if (status == 0) {
        c->job.m = c->m;
        c->job.rival = c->rival;
        c->job.cost = c->cost;
        c->job.goal = qn_goal_name(c->goal);
        c->job.o.goal = c->goal;
        c->job.o.level = c->level;
        c->job.o.q = c->q;
        c->job.o.seed = c->seed;
        c->job.o.moves = c->moves;
        c->job.o.one_tree = c->one_tree;
        c->job.o.robust = c->robust;
        c->job.bound = qn_contender_bound(c->m, c->goal, c->q);
        status = find_root(c);
    }
    if (status == 0 && c->compare) {
        status = compare(c);
    } else {
        status = status == 0 ? add_all(c) : status;
        status = status == 0 ? check(c) : status;
        status = status == 0 ? output(c, write_format) : status;
    }
    for (uint32_t i = 0; i < c->job.count; i++) {
        qn_contender_fini(&c->rival[i]);
    }
    qn_machine_destroy(c->m);
    return status;
}

/* ---- many machines ---- */

static int write_survey(const struct command *c, FILE *to)
{
    if (c->format[0] == 's') {
        qn_survey_write_svg(c->survey_result, to);
    } else if (c->format[0] == 'c') {
        qn_survey_write_csv(c->survey_result, to);
    } else {
        qn_survey_write_text(c->survey_result, to);
    }
    return QN_OK;
}

static int run_survey(struct command *c)
{
    struct qn_fault fault = {""};
    const struct qn_survey_opts o = {.folder = c->survey,
                                     .sizes = c->sizes,
                                     .threads = (uint32_t)c->threads,
                                     .live = isatty(STDERR_FILENO) != 0,
                                     .o = {.level = c->level,
                                           .q = c->q,
                                           .seed = c->seed,
                                           .moves = c->moves,
                                           .one_tree = c->one_tree,
                                           .robust = c->robust}};
    if (c->format[0] == 'j' || c->format[0] == 'd') {
        return fail("--survey is written as text, csv or svg");
    }
    int err = qn_survey_run(&c->survey_result, &o, &fault);
    if (err != QN_OK) {
        return fail(fault.text[0] != '\0' ? fault.text : qn_strerror(err));
    }
    fprintf(stderr, "quoin tree: %u groups on %u machines took %.1f s\n",
            c->survey_result->groups, c->survey_result->machines,
            c->survey_result->seconds);
    int status = output(c, write_survey);
    qn_survey_destroy(c->survey_result);
    return status;
}

static int dispatch(struct command *c)
{
    if (c->survey != NULL && c->machine != NULL) {
        return fail("--survey or --machine, not both");
    }
    if (c->survey != NULL) {
        return run_survey(c);
    }
    return c->machine != NULL
               ? run(c)
               : fail("which machine? --machine FILE, FOLDER or live");
}

int qn_tree_command(int argc, char **argv)
{
    struct command *c = calloc(1, sizeof *c);
    if (c == NULL) {
        fprintf(stderr, "quoin tree: %s\n", qn_strerror(QN_ENOMEM));
        return 1;
    }
    *c = (struct command){.format = "text",
                          .root = ROOT_NONE,
                          .seed = 1,
                          .q = 1,
                          .threads = (uint64_t)get_nprocs()};
    const struct qn_option table[] = {
        QN_OPTION_HEADING("One machine"),
        {"machine", "PATH", qn_option_string, &c->machine,
         "machine file, folder with numa.csv and pairwise.csv, or live: this "
         "machine, measured at once",
         0, 0},
        {"op", "NAME", take_op, &c->goal,
         "broadcast (default), reduce, barrier, ack, 2pc, throughput, stream",
         0, 0},
        {"algo", "NAME", take_algo, c,
         "auto (default) or another topology; again: compared, too", 0, 0},
        {"cores", "LIST", qn_option_string, &c->cores,
         "only these, by number: 0-7,16", 0, 0},
        {"root", "N", qn_option_count, &c->root,
         "core at the root; else each topology's own", 0, QN_CORE_NUMBER_MAX},
        {"level", "NAME", take_level, &c->level,
         "groups of cluster and adaptive: node (default), cache, socket", 0, 0},
        {"queued", "FACTOR", take_factor, &c->q,
         "cost of receiving a message that was queued, 0 to 1 (1)", 0, 0},
        {"seed", "N", qn_option_count, &c->seed, "of auto's search (1)", 0, 0},
        {"moves", "N", qn_option_count, &c->moves,
         "that auto looks at; by default some 100 ms of them", 1, 0},
        {"one-tree", NULL, qn_option_flag, &c->one_tree,
         "auto: the same tree in both directions", 0, 0},
        {"robust", NULL, qn_option_flag, &c->robust,
         "auto: prefer what stays good when costs are 10 % off", 0, 0},
        {"explain", NULL, qn_option_flag, &c->explain,
         "in words: when each core has it, whom it serves, why so", 0, 0},
        {"compare", NULL, qn_option_flag, &c->compare,
         "latency against throughput: trees and rings of every arity", 0, 0},
        {"format", "NAME", take_format, &c->format,
         "text (default), csv, json, dot or svg", 0, 0},
        {"output", "FILE", qn_option_string, &c->output,
         "or -o: where to, instead of standard output", 0, 0},
        {"up-file", "FILE", qn_option_string, &c->up_file,
         "csv: the tree of the way up, if it is another one", 0, 0},
        QN_OPTION_HEADING("Many machines"),
        {"survey", "FOLDER", qn_option_string, &c->survey,
         "its machines x topologies x operations x group sizes", 0, 0},
        {"sizes", "LIST", qn_option_string, &c->sizes,
         "group sizes, 2,4,8-16, or full: whole machines (all from 2)", 0, 0},
        {"threads", "N", qn_option_count, &c->threads,
         "that plan (one per CPU)", 1, 64},
    };
    const struct qn_options o = {
        "quoin tree",
        "Plan who sends to whom on a machine, and predict what that costs.\n"
        "Topologies: auto adaptive binary sequential fibonacci mst mst2 "
        "cluster\nbad bad2, tree:k=N, ring:k=N[,full][,companion][,map=FILE], "
        "FILE.csv.",
        table, QN_ARRAY_COUNT(table)};
    int status = 0;
    if (qn_options_parse(&o, argc, argv, &status)) {
        status = dispatch(c);
    }
    free(c);
    return status;
}
