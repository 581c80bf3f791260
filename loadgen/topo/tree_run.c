/*
 * `quoin tree`: loads a machine, plans, and writes the plan as text, table or
 * picture. Everything is computed before anything is written, so an invalid
 * file does not leave an incomplete picture behind.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/tree_io.h"
#include "loadgen/base/output_path.h"
#include "loadgen/machine/measure_progress.h"
#include "loadgen/topo/draw/compare_picture.h"
#include "loadgen/topo/draw/picture.h"
#include "loadgen/topo/draw/sweep_map.h"
#include "loadgen/topo/explain.h"
#include "loadgen/topo/model/compare.h"
#include "loadgen/topo/model/cores.h"
#include "loadgen/topo/model/sweep.h"
#include "loadgen/topo/tree_internal.h"

static int fail(const char *line)
{
    fprintf(stderr, "quoin tree: %s\n", line);
    return 2;
}

/* ---- the machine and its cores ---- */

static int restrict_to(struct qn_tree_command *c, struct qn_machine *all)
{
    struct qn_parse_error parse_error = {""};
    uint32_t index[QN_CORES_MAX], count = 0;
    int err = qn_cores_parse(index, &count, all, c->cores, &parse_error);
    if (err == QN_OK) {
        err = qn_machine_restrict(&c->m, all, index, count);
        (void)snprintf(parse_error.text, sizeof parse_error.text, "--cores: %s",
                       qn_strerror(err));
    }
    qn_machine_destroy(all);
    return err == QN_OK ? 0 : fail(parse_error.text);
}

static int load_machine(struct qn_tree_command *c)
{
    struct qn_machine *all = NULL;
    int status = qn_measure_progress_open(&all, c->machine, "quoin tree");
    if (status != 0) {
        return status;
    }
    if (c->cores != NULL) {
        return restrict_to(c, all);
    }
    c->m = all;
    return 0;
}

static int find_root(struct qn_tree_command *c)
{
    c->job.o.root = QN_ROOT_FREE;
    if (c->root == QN_TREE_ROOT_NONE) {
        return 0;
    }
    uint32_t v = qn_machine_find(c->m, (uint32_t)c->root);
    if (v == c->m->n) {
        fprintf(stderr,
                "quoin tree: --root: core %u is not on this machine or not "
                "in --cores\n",
                (unsigned)c->root);
        return 2;
    }
    c->job.o.root = v;
    return 0;
}

/* ---- what is compared ---- */

static int add(struct qn_tree_command *c, const char *name)
{
    struct qn_parse_error parse_error = {""};
    struct qn_tree_job *j = &c->job;
    for (uint32_t i = 0; i < j->count; i++) {
        if (strcmp(j->rival[i].name, name) == 0) {
            return 0;
        }
    }
    int err = qn_topology_spec_make(&j->rival[j->count], c->m, name, &j->o,
                                    &parse_error);
    if (err != QN_OK) {
        return fail(parse_error.text[0] != '\0' ? parse_error.text
                                                : qn_strerror(err));
    }
    j->cost[j->count] =
        qn_topology_spec_cost(&j->rival[j->count], c->m, j->o.goal, j->o.q);
    j->count++;
    return 0;
}

/* The plan first, then the other named topologies, then the default ones. */
static int add_all(struct qn_tree_command *c)
{
    int status = c->algos == 0 ? add(c, "auto") : 0;
    for (uint32_t i = 0; i < c->algos && status == 0; i++) {
        status = add(c, c->algo[i]);
    }
    if (status == 0 && isnan(c->cost[0])) {
        fprintf(stderr,
                "quoin tree: %s is an acknowledged broadcast; use --op ack or "
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
        const char *name = qn_topology_spec_name_at(i);
        if (name == NULL) {
            break;
        }
        status = add(c, name);
    }
    return status;
}

/* ---- output ---- */

static int write_plan_csv(const struct qn_tree_command *c, FILE *to)
{
    const struct qn_topology_spec *r = &c->rival[0];
    if (r->ring != NULL) {
        return qn_diamond_ring_write_map(c->m, r->ring, to);
    }
    return qn_tree_write_csv(c->m,
                             c->goal == QN_GOAL_REDUCE ? &r->up : &r->down, to);
}

static int write_up_csv(const struct qn_tree_command *c, FILE *to)
{
    return qn_tree_write_csv(c->m, &c->rival[0].up, to);
}

static int write_svg(const struct qn_tree_command *c, FILE *to)
{
    const struct qn_topology_spec *r = &c->rival[0];
    struct qn_timeline *t;
    char note[120];
    int err = qn_topology_spec_timeline(&t, r, c->m, c->goal, c->job.o.q);
    if (err != QN_OK) {
        return err;
    }
    bool rate = c->goal == QN_GOAL_THROUGHPUT || c->goal == QN_GOAL_STREAM;
    (void)snprintf(note, sizeof note, "lower bound %.0f, depth %u%s",
                   c->job.bound, qn_topology_spec_depth(r),
                   r->two_trees ? ", dashed: the other way up" : "");
    struct qn_picture p = {
        c->m, t, r->root, r->name, c->job.goal, note, rate ? c->cost[0] : 0};
    err = qn_picture_write(&p, to);
    free(t);
    return err;
}

static int write_format(const struct qn_tree_command *c, FILE *to)
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

typedef int writer(const struct qn_tree_command *c, FILE *to);

static int output(const struct qn_tree_command *c, const char *path,
                  writer *write)
{
    FILE *to = qn_output_path_open(path);
    if (to == NULL) {
        fprintf(stderr, "quoin tree: cannot write %s: %s\n", path,
                strerror(errno));
        return 2;
    }
    int err = write(c, to);
    int why = qn_output_path_close(to);
    if (err != QN_OK || why != 0) {
        fprintf(stderr, "quoin tree: %s: %s\n", qn_output_path_name(path),
                why != 0 ? strerror(why) : qn_strerror(err));
    }
    return err == QN_OK && why == 0 ? 0 : 1;
}

static int write_compared(const struct qn_tree_command *c, FILE *to)
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

/* The Pareto front of latency and throughput. */
static int compare(struct qn_tree_command *c)
{
    if (c->m->n < 2) {
        return fail("--compare needs at least two cores");
    }
    int err = qn_compare_run(&c->compared, c->m, &c->job.o,
                             isatty(STDERR_FILENO) != 0);
    if (err != QN_OK) {
        return fail(qn_strerror(err));
    }
    int status = output(c, c->output, write_compared);
    qn_compare_destroy(c->compared);
    return status;
}

/* ---- together ---- */

static int check(const struct qn_tree_command *c)
{
    const struct qn_topology_spec *r = &c->rival[0];
    bool csv = strcmp(c->format, "csv") == 0 && !c->explain;
    if (c->up_file != NULL && (!csv || r->ring != NULL)) {
        return fail("--up-file needs --format csv and a tree");
    }
    if (csv && r->two_trees && c->up_file == NULL &&
        c->goal != QN_GOAL_REDUCE) {
        return fail("the plan has another tree on the way up; give --up-file "
                    "FILE, or --one-tree");
    }
    return 0;
}

static int run(struct qn_tree_command *c)
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
        c->job.bound = qn_topology_spec_bound(c->m, c->goal, c->q);
        status = find_root(c);
    }
    if (status == 0 && c->compare) {
        status = compare(c);
    } else {
        status = status == 0 ? add_all(c) : status;
        status = status == 0 ? check(c) : status;
        if (status == 0 && c->up_file != NULL) {
            status = output(c, c->up_file, write_up_csv);
        }
        status = status == 0 ? output(c, c->output, write_format) : status;
    }
    for (uint32_t i = 0; i < c->job.count; i++) {
        qn_topology_spec_fini(&c->rival[i]);
    }
    qn_machine_destroy(c->m);
    return status;
}

/* ---- many machines ---- */

static int write_sweep(const struct qn_tree_command *c, FILE *to)
{
    if (c->format[0] == 's') {
        qn_sweep_write_svg(c->sweep_result, to);
    } else if (c->format[0] == 'c') {
        qn_sweep_write_csv(c->sweep_result, to);
    } else {
        qn_sweep_write_text(c->sweep_result, to);
    }
    return QN_OK;
}

static int run_sweep(struct qn_tree_command *c)
{
    struct qn_parse_error parse_error = {""};
    const struct qn_sweep_opts o = {.folder = c->sweep,
                                    .sizes = c->sizes,
                                    .threads = (uint32_t)c->threads,
                                    .live = isatty(STDERR_FILENO) != 0,
                                    .o = {.level = c->level,
                                          .q = c->q,
                                          .seed = c->seed,
                                          .moves = c->moves,
                                          .one_tree = c->one_tree,
                                          .robust = c->robust}};
    int err = qn_sweep_run(&c->sweep_result, &o, &parse_error);
    if (err != QN_OK) {
        return fail(parse_error.text[0] != '\0' ? parse_error.text
                                                : qn_strerror(err));
    }
    const struct qn_sweep *s = c->sweep_result;
    fprintf(stderr, "quoin tree: %u group%s on %u machine%s took %.1f s\n",
            s->groups, s->groups == 1 ? "" : "s", s->machines,
            s->machines == 1 ? "" : "s", s->seconds);
    int status = output(c, c->output, write_sweep);
    qn_sweep_destroy(c->sweep_result);
    return status;
}

/* @return the exit status, after a line if it is not 0. */
static int try_output_path(const char *option, const char *path)
{
    return qn_output_path_check("quoin tree", option, path, "give a file");
}

int qn_tree_run(struct qn_tree_command *c)
{
    int status = try_output_path("output", c->output);
    status = status == 0 ? try_output_path("up-file", c->up_file) : status;
    if (status == 0 && c->up_file != NULL &&
        strcmp(qn_output_path_name(c->output),
               qn_output_path_name(c->up_file)) == 0) {
        status = fail("--output and --up-file are the same file; give two");
    }
    if (status != 0) {
        return status;
    }
    if (c->sweep != NULL) {
        return run_sweep(c);
    }
    return c->machine != NULL ? run(c)
                              : fail("missing --machine FILE, FOLDER or live");
}
