/*
 * Command line of `quoin tree`.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/topo/tree_internal.h"

static int take_algo(const struct qn_option *o, const char *text)
{
    struct qn_tree_command *c = o->to;
    if (c->algos == QN_TREE_ALGOS_MAX) {
        fprintf(stderr, "quoin tree: too many --algo; give at most %u\n",
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

/* The format with that name; NULL: unknown. */
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

/* Without --format, the extension of --output selects the format. */
static bool find_format(struct qn_tree_command *c)
{
    const char *ending = qn_output_path_is_stdout(c->output)
                             ? ""
                             : qn_output_path_ending(c->output);
    if (c->format == NULL) {
        bool text = ending[0] == '\0' || strcmp(ending, "txt") == 0;
        c->format = format_named(text ? "text" : ending);
    }
    if (c->format == NULL) {
        fprintf(stderr,
                "quoin tree: --output: %s: no format has this extension; use "
                ".txt, .csv, .json, .dot or .svg, or give --format\n",
                c->output);
    }
    return c->format != NULL;
}

/* ---- which options can be combined ---- */

enum {
    WAY_TABLE =
        1, /* text or json: a table of the plan and the other topologies */
    WAY_AUTO = 2,  /* csv, dot, svg or --explain: one topology, planned */
    WAY_MAP = 4,   /* one topology: a ring whose map is searched for */
    WAY_GROUP = 8, /* one topology: built by a rule that uses groups of cores */
    WAY_RULE = 16, /* one topology: built by another rule, or from a file */
    WAY_COMPARE = 32,
    WAY_SWEEP = 64,
};

#define WAY_ONE     (WAY_AUTO | WAY_MAP | WAY_GROUP | WAY_RULE)
#define WAY_PLAN    (WAY_TABLE | WAY_ONE)
#define WAY_MACHINE (WAY_PLAN | WAY_COMPARE)
#define WAY_MANY    (WAY_TABLE | WAY_COMPARE | WAY_SWEEP)

static const struct qn_option_way rule[] = {
    {"machine", WAY_MACHINE},
    {"op", WAY_PLAN},
    {"algo", WAY_PLAN},
    {"cores", WAY_MACHINE},
    {"root", WAY_MACHINE},
    {"level", WAY_MANY | WAY_GROUP},
    {"seed", WAY_MANY | WAY_AUTO | WAY_MAP},
    {"moves", WAY_MANY | WAY_AUTO | WAY_MAP},
    {"one-tree", WAY_TABLE | WAY_AUTO | WAY_SWEEP},
    {"robust", WAY_MANY | WAY_AUTO},
    {"explain", WAY_PLAN},
    {"compare", WAY_COMPARE},
    {"up-file", WAY_PLAN},
    {"sizes", WAY_SWEEP},
    {"threads", WAY_SWEEP},
};

/* The mode selected by the options. `called` [cap] is filled with its name for
 * error messages. */
static unsigned way_of(const struct qn_tree_command *c, char *called,
                       size_t cap)
{
    static const unsigned one[] = {[QN_TOPOLOGY_SPEC_PLANNED] = WAY_AUTO,
                                   [QN_TOPOLOGY_SPEC_MAPPED] = WAY_MAP,
                                   [QN_TOPOLOGY_SPEC_GROUPED] = WAY_GROUP,
                                   [QN_TOPOLOGY_SPEC_FIXED] = WAY_RULE};
    bool table = !c->explain && strchr("tj", c->format[0]) != NULL;
    if (c->sweep != NULL || c->compare || table) {
        (void)snprintf(called, cap, "%s",
                       c->sweep != NULL ? "--survey"
                       : c->compare     ? "--compare"
                                        : "a plan of one machine");
        return c->sweep != NULL ? WAY_SWEEP
               : c->compare     ? WAY_COMPARE
                                : WAY_TABLE;
    }
    const char *algo = c->algos > 0 ? c->algo[0] : "auto";
    (void)snprintf(called, cap, "--algo %s", algo);
    return one[qn_topology_spec_kind(algo)];
}

/* Checks that the mode supports the output format. */
static bool format_fits(const struct qn_tree_command *c, unsigned way)
{
    bool no_graph = strchr("jd", c->format[0]) != NULL;
    const char *line = NULL;
    if (way == WAY_SWEEP && no_graph) {
        line = "--survey has no such format; use text, csv or svg";
    } else if (way == WAY_COMPARE && no_graph) {
        line = "--compare has no such format; use text, csv or svg";
    } else if (c->explain && c->format[0] != 't') {
        line = "--explain is text; leave out --format, or give a .txt file";
    } else if (c->algos > 1 && (way & WAY_ONE) != 0) {
        line = c->explain ? "--explain shows one topology; give one --algo"
                          : "--format csv, dot and svg show one topology; give "
                            "one --algo";
    }
    if (line != NULL) {
        fprintf(stderr, "quoin tree: %s\n", line);
    }
    return line == NULL;
}

static bool options_fit(const struct qn_tree_command *c,
                        const struct qn_options *o, const bool *given)
{
    char called[QN_TOPOLOGY_SPEC_NAME];
    unsigned way = way_of(c, called, sizeof called);
    return qn_options_fit(o, given, rule, QN_ARRAY_COUNT(rule), way, called) &&
           format_fits(c, way);
}

#define AT(member) offsetof(struct qn_tree_command, member)

static const struct qn_option table[] = {
    QN_OPTION_HEADING("One machine"),
    QN_OPTION("machine", "WHAT", qn_option_string, AT(machine),
              QN_TREE_MACHINES),
    QN_OPTION("op", "NAME", take_op, AT(goal),
              "broadcast (default), reduce, barrier, ack, 2pc, throughput, "
              "stream"),
    QN_OPTION("algo", "NAME", take_algo, 0,
              "auto (default) or another topology; repeat to compare several"),
    QN_OPTION("cores", "LIST", qn_option_string, AT(cores),
              "only these cores, by number: 0-7,16"),
    QN_OPTION_COUNT("root", "N", AT(root),
                    "core at the root (chosen by each topology)", 0,
                    QN_CORE_NUMBER_MAX),
    QN_OPTION("level", "NAME", take_level, AT(level),
              "groups of cluster and adaptive: node (default), cache, socket"),
    QN_OPTION("queued", "FACTOR", take_factor, AT(q),
              "cost of receiving a queued message, 0 to 1 (1)"),
    QN_OPTION_COUNT("seed", "N", AT(seed), "seed of searches (1)", 0, 0),
    QN_OPTION_COUNT("moves", "N", AT(moves),
                    "moves of each search (as many as take about 50 ms)", 1, 0),
    QN_OPTION("one-tree", NULL, qn_option_flag, AT(one_tree),
              "auto: the same tree in both directions"),
    QN_OPTION("robust", NULL, qn_option_flag, AT(robust),
              "auto: prefer trees that stay good if costs are 10 % off"),
    QN_OPTION("explain", NULL, qn_option_flag, AT(explain),
              "explain in words: when each core has the message, which cores "
              "it sends to, and why"),
    QN_OPTION("compare", NULL, qn_option_flag, AT(compare),
              "latency against throughput: trees and rings of every arity"),
    QN_OPTION("format", "NAME", take_format, AT(format),
              "text, csv, json, dot or svg; default: by the extension of "
              "--output"),
    QN_OPTION("output", "FILE", qn_option_string, AT(output),
              "output file, also -o; - is standard output (default)"),
    QN_OPTION("up-file", "FILE", qn_option_string, AT(up_file),
              "csv: file for the tree of the way up, if it differs"),
    QN_OPTION_HEADING("Many machines"),
    QN_OPTION("survey", "FOLDER", qn_option_string, AT(sweep),
              "sweep machines x topologies x operations x group sizes"),
    QN_OPTION("sizes", "LIST", qn_option_string, AT(sizes),
              "group sizes: 2,4,8-16, or full for whole machines (all from 2)"),
    QN_OPTION_COUNT("threads", "N", AT(threads),
                    "threads that plan (one per CPU)", 1, 64),
};

static const char summary[] =
    "Plan broadcast trees on a machine, and predict their costs.\n"
    "Topologies: auto adaptive binary sequential fibonacci mst mst2 cluster\n"
    "bad bad2, tree:k=N, ring:k=N[,full][,companion][,map=MAP], "
    "FILE.csv[,up=FILE.csv],\nFILE.json. MAP is FILE, identity, latency or "
    "busy; the last two are searched for.";

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
    const struct qn_options o = {"quoin tree", summary, table,
                                 QN_ARRAY_COUNT(table), c};
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
