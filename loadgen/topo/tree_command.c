/*
 * `quoin tree`: what its command line means.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/target.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/topo/tree_internal.h"

static int take_algo(const struct qn_option *o, const char *text)
{
    struct qn_tree_command *c = o->to;
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

/* The format of that name; NULL: there is none. */
static const char *format_named(const char *name)
{
    static const char *const formats[] = {"text", "csv", "json", "dot", "svg"};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(formats); i++) {
        if (strcmp(formats[i], name) == 0) {
            return formats[i];
        }
    }
    return NULL;
}

static int take_format(const struct qn_option *o, const char *text)
{
    const char *format = format_named(text);
    if (format == NULL) {
        return QN_EINVAL;
    }
    *(const char **)o->to = format;
    return QN_OK;
}

/* Without --format, the name of --output says which. */
static bool find_format(struct qn_tree_command *c)
{
    const char *ending =
        qn_target_is_stdout(c->output) ? "" : qn_target_ending(c->output);
    if (c->format == NULL) {
        bool text = ending[0] == '\0' || strcmp(ending, "txt") == 0;
        c->format = format_named(text ? "text" : ending);
    }
    if (c->format == NULL) {
        fprintf(stderr,
                "quoin tree: --output: %s: no format has this ending; use "
                ".txt, .csv, .json, .dot or .svg, or say --format\n",
                c->output);
    }
    return c->format != NULL;
}

/* ---- which option goes with what ---- */

enum {
    WAY_TABLE = 1, /* text or json: the plan beside the others */
    WAY_AUTO = 2,  /* csv, dot, svg or in words: one topology, planned */
    WAY_MAP = 4,   /* likewise, a ring whose map is searched for */
    WAY_GROUP = 8, /* likewise, by a rule that knows groups of cores */
    WAY_RULE = 16, /* likewise, by another rule, or a file */
    WAY_COMPARE = 32,
    WAY_SURVEY = 64,
};

#define WAY_ONE     (WAY_AUTO | WAY_MAP | WAY_GROUP | WAY_RULE)
#define WAY_PLAN    (WAY_TABLE | WAY_ONE)
#define WAY_MACHINE (WAY_PLAN | WAY_COMPARE)
#define WAY_MANY    (WAY_TABLE | WAY_COMPARE | WAY_SURVEY)

static const struct qn_option_way rule[] = {
    {"machine", WAY_MACHINE},
    {"op", WAY_PLAN},
    {"algo", WAY_PLAN},
    {"cores", WAY_MACHINE},
    {"root", WAY_MACHINE},
    {"level", WAY_MANY | WAY_GROUP},
    {"seed", WAY_MANY | WAY_AUTO | WAY_MAP},
    {"moves", WAY_MANY | WAY_AUTO | WAY_MAP},
    {"one-tree", WAY_TABLE | WAY_AUTO | WAY_SURVEY},
    {"robust", WAY_MANY | WAY_AUTO},
    {"explain", WAY_PLAN},
    {"compare", WAY_COMPARE},
    {"up-file", WAY_PLAN},
    {"sizes", WAY_SURVEY},
    {"threads", WAY_SURVEY},
};

/* `called` [cap] is filled: what the way is called in a refusal. */
static unsigned way_of(const struct qn_tree_command *c, char *called,
                       size_t cap)
{
    static const unsigned one[] = {[QN_CONTENDER_PLANNED] = WAY_AUTO,
                                   [QN_CONTENDER_MAPPED] = WAY_MAP,
                                   [QN_CONTENDER_GROUPED] = WAY_GROUP,
                                   [QN_CONTENDER_FIXED] = WAY_RULE};
    bool table = !c->explain && strchr("tj", c->format[0]) != NULL;
    if (c->survey != NULL || c->compare || table) {
        (void)snprintf(called, cap, "%s",
                       c->survey != NULL ? "--survey"
                       : c->compare      ? "--compare"
                                         : "a plan of one machine");
        return c->survey != NULL ? WAY_SURVEY
               : c->compare      ? WAY_COMPARE
                                 : WAY_TABLE;
    }
    const char *algo = c->algos > 0 ? c->algo[0] : "auto";
    (void)snprintf(called, cap, "--algo %s", algo);
    return one[qn_contender_kind(algo)];
}

/* How each way can be written. */
static bool format_fits(const struct qn_tree_command *c, unsigned way)
{
    bool no_graph = strchr("jd", c->format[0]) != NULL;
    const char *line = NULL;
    if (way == WAY_SURVEY && no_graph) {
        line = "--survey is written as text, csv or svg";
    } else if (way == WAY_COMPARE && no_graph) {
        line = "--compare is written as text, csv or svg";
    } else if (c->explain && c->format[0] != 't') {
        line = "--explain is text; leave out --format, or name a .txt";
    } else if (c->algos > 1 && (way & WAY_ONE) != 0) {
        line = c->explain
                   ? "--explain takes one --algo"
                   : "--format csv, dot and svg show one topology: one --algo";
    }
    if (line != NULL) {
        fprintf(stderr, "quoin tree: %s\n", line);
    }
    return line == NULL;
}

static bool options_fit(const struct qn_tree_command *c,
                        const struct qn_options *o, const bool *given)
{
    char called[QN_CONTENDER_NAME];
    unsigned way = way_of(c, called, sizeof called);
    return qn_options_fit(o, given, rule, QN_ARRAY_COUNT(rule), way, called) &&
           format_fits(c, way);
}

int qn_tree_command(int argc, char **argv)
{
    struct qn_tree_command *c = calloc(1, sizeof *c);
    if (c == NULL) {
        fprintf(stderr, "quoin tree: %s\n", qn_strerror(QN_ENOMEM));
        return 1;
    }
    *c = (struct qn_tree_command){.root = QN_TREE_ROOT_NONE,
                                  .seed = 1,
                                  .q = 1,
                                  .threads = (uint64_t)get_nprocs()};
    const struct qn_option table[] = {
        QN_OPTION_HEADING("One machine"),
        {"machine", "WHAT", qn_option_string, &c->machine, QN_TREE_MACHINES, 0,
         0},
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
        {"seed", "N", qn_option_count, &c->seed, "of searches (1)", 0, 0},
        {"moves", "N", qn_option_count, &c->moves,
         "that a search looks at; by default some 50 ms of them", 1, 0},
        {"one-tree", NULL, qn_option_flag, &c->one_tree,
         "auto: the same tree in both directions", 0, 0},
        {"robust", NULL, qn_option_flag, &c->robust,
         "auto: prefer what stays good when costs are 10 % off", 0, 0},
        {"explain", NULL, qn_option_flag, &c->explain,
         "in words: when each core has it, whom it serves, why so", 0, 0},
        {"compare", NULL, qn_option_flag, &c->compare,
         "latency against throughput: trees and rings of every arity", 0, 0},
        {"format", "NAME", take_format, &c->format,
         "text, csv, json, dot or svg; else by the name of --output", 0, 0},
        {"output", "FILE", qn_option_string, &c->output,
         "or -o: where to; -, or none: standard output", 0, 0},
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
        "cluster\nbad bad2, tree:k=N, ring:k=N[,full][,companion][,map=MAP], "
        "FILE.csv[,up=FILE.csv],\nFILE.json. MAP is FILE, identity, latency or "
        "busy; the last two are "
        "searched for.",
        table, QN_ARRAY_COUNT(table)};
    int status = 0;
    bool given[QN_ARRAY_COUNT(table)];
    if (qn_options_parse_given(&o, argc, argv, &status, given)) {
        status = 2;
        if (find_format(c) && options_fit(c, &o, given)) {
            status = qn_tree_run(c);
        }
    }
    free(c);
    return status;
}
