/*
 * `quoin machine`: open or measure a machine, then write it in some form.
 *
 * What could go wrong with the output is found out before the measurement: a
 * wrong path costs a line, not the seconds of a measurement.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/target.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/machine/describe.h"
#include "loadgen/machine/gather.h"
#include "loadgen/machine/heatmap.h"
#include "loadgen/machine/live.h"
#include "loadgen/machine/source.h"

#define PROGRAM "quoin machine"

enum form { FORM_NONE, FORM_TEXT, FORM_JSON, FORM_CSV, FORM_SVG };

struct command {
    const char *what; /* the machine */
    const char *output;
    enum form form;
    bool measure, gather;
    double seconds;    /* < 0: not given */
    uint64_t parallel; /* PARALLEL_ANY: not given */
};

#define PARALLEL_ANY UINT64_MAX

static int usage(const char *line)
{
    (void)fprintf(stderr, PROGRAM ": %s\n", line);
    return 2;
}

static int take_form(const struct qn_option *o, const char *text)
{
    static const char *const names[] = {"", "text", "json", "csv", "svg"};
    for (uint32_t i = FORM_TEXT; i < QN_ARRAY_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *(enum form *)o->to = (enum form)i;
            return QN_OK;
        }
    }
    return QN_EINVAL;
}

/* What was meant; FORM_NONE: nobody knows. */
static enum form form_of(const struct command *c)
{
    if (c->form != FORM_NONE) {
        return c->form;
    }
    if (qn_target_is_stdout(c->output)) {
        return FORM_TEXT;
    }
    const char *ending = qn_target_ending(c->output);
    return strcmp(ending, "svg") == 0    ? FORM_SVG
           : strcmp(ending, "txt") == 0  ? FORM_TEXT
           : strcmp(ending, "json") == 0 ? FORM_JSON
           : ending[0] != '\0'           ? FORM_NONE
           : c->measure                  ? FORM_JSON
                                         : FORM_TEXT;
}

/* ---- output ---- */

static int write_form(const struct qn_machine *m, enum form form, FILE *to)
{
    return form == FORM_JSON  ? qn_machine_write_json(m, to)
           : form == FORM_SVG ? qn_heatmap_write(m, to)
                              : qn_machine_describe(m, to);
}

static int write_stream(const struct command *c, const struct qn_machine *m,
                        enum form form)
{
    FILE *to = qn_target_open(c->output);
    int err = to != NULL ? write_form(m, form, to) : QN_OK;
    int why = to != NULL ? qn_target_close(to) : errno;
    if (err != QN_OK || why != 0) {
        (void)fprintf(stderr, PROGRAM ": %s: %s\n", qn_target_name(c->output),
                      why != 0 ? strerror(why) : qn_strerror(err));
        return 1;
    }
    return 0;
}

static int write_folder(const struct command *c, const struct qn_machine *m)
{
    struct qn_parse_error parse_error = {""};
    if (mkdir(c->output, 0777) != 0 && errno != EEXIST) {
        (void)fprintf(stderr, PROGRAM ": --output: %s: %s\n", c->output,
                      strerror(errno));
        return 2;
    }
    if (qn_machine_save_csv(m, c->output, &parse_error) != QN_OK) {
        (void)fprintf(stderr, PROGRAM ": %s\n", parse_error.text);
        return 1;
    }
    return 0;
}

/* ---- the command ---- */

static int check_gather(const struct command *c)
{
    struct qn_parse_error parse_error = {""};
    if (c->form != FORM_NONE) {
        return usage("--gather writes every form; leave --format out");
    }
    if (qn_target_is_stdout(c->output)) {
        return usage("--gather needs --output FOLDER, one that is not there "
                     "yet");
    }
    return qn_gather_check(c->output, &parse_error) == QN_OK
               ? 0
               : usage(parse_error.text);
}

/* A folder, or what can become one. */
static int check_folder(const struct command *c)
{
    struct stat st;
    if (qn_target_is_stdout(c->output)) {
        return usage("--format csv needs --output FOLDER");
    }
    if (stat(c->output, &st) == 0 && !S_ISDIR(st.st_mode)) {
        (void)fprintf(stderr,
                      PROGRAM ": --output: %s is no folder, and csv is two "
                              "files; name a folder\n",
                      c->output);
        return 2;
    }
    return 0;
}

static int check(const struct command *c)
{
    bool measures = c->measure || c->gather;
    enum form form = form_of(c);
    if (measures && strcmp(c->what, "live") != 0) {
        return usage("only this machine can be measured: leave the name out");
    }
    if (!measures && (c->seconds >= 0 || c->parallel != PARALLEL_ANY)) {
        return usage("--seconds and --parallel are of a measurement; say "
                     "--measure, too");
    }
    if (c->gather) {
        return check_gather(c);
    }
    if (form == FORM_NONE) {
        (void)fprintf(stderr,
                      PROGRAM ": --output: %s: no form has this ending; use "
                              ".txt, .json or .svg, or say --format (csv is a "
                              "folder)\n",
                      c->output);
        return 2;
    }
    if (form == FORM_CSV) {
        return check_folder(c);
    }
    return qn_target_check(PROGRAM, "output", c->output,
                           "name a file, or say --format csv");
}

static int open_machine(const struct command *c, struct qn_machine **m)
{
    struct qn_parse_error parse_error = {""};
    struct qn_runner_report report;
    const struct qn_live_opts o = {
        .program = PROGRAM,
        .transport = QN_LIVE_TRANSPORT,
        .seconds = c->seconds >= 0 ? c->seconds : QN_LIVE_SECONDS,
        .spread_s = QN_LIVE_SPREAD_S,
        .parallel = c->parallel != PARALLEL_ANY ? (uint32_t)c->parallel : 0};
    int err = qn_source_open(m, c->what, &parse_error);
    if (err != QN_OK) {
        (void)fprintf(stderr, PROGRAM ": %s\n",
                      parse_error.text[0] != '\0' ? parse_error.text
                                                  : qn_strerror(err));
        return err == QN_ENOMEM ? 1 : 2;
    }
    return c->measure || c->gather ? qn_live_measure(*m, &o, &report) : 0;
}

static int write_machine(const struct command *c, const struct qn_machine *m)
{
    enum form form = form_of(c);
    if (form != FORM_TEXT && !qn_machine_has_costs(m)) {
        return usage("this machine has no costs to write; --measure finds "
                     "those of the machine it runs on");
    }
    if (form == FORM_SVG && m->n == 1) {
        return usage("one core has no pairs that could be drawn");
    }
    return form == FORM_CSV ? write_folder(c, m) : write_stream(c, m, form);
}

static int gather(const struct command *c, const struct qn_machine *m)
{
    struct qn_parse_error parse_error = {""};
    int err = qn_gather_write(m, c->output, &parse_error);
    if (err != QN_OK) {
        (void)fprintf(stderr, PROGRAM ": %s\n",
                      parse_error.text[0] != '\0' ? parse_error.text
                                                  : qn_strerror(err));
        return 1;
    }
    (void)fprintf(
        stderr, PROGRAM ": %s is ready; it holds no names of hosts or users\n",
        c->output);
    return 0;
}

static bool parse(struct command *c, int argc, char **argv, int *status)
{
    const struct qn_option table[] = {
        {"measure", NULL, qn_option_flag, &c->measure,
         "measure what messages cost here, all pairs of cores", 0, 0},
        {"seconds", "S", qn_option_double, &c->seconds,
         "when to leave pairs that do not repeat (8)", 0, 0},
        {"parallel", "N", qn_option_count, &c->parallel,
         "pairs at the same time, at most; 0: all that share no core (0)", 0,
         QN_CORES_MAX},
        {"gather", NULL, qn_option_flag, &c->gather,
         "measure, and put all one needs for a report into --output", 0, 0},
        {"format", "FORM", take_form, &c->form,
         "text, json, csv (a folder) or svg (heat maps); else by the name of "
         "--output",
         0, 0},
        {"output", "PATH", qn_option_string, &c->output,
         "file, or folder for csv and --gather; -, or none: stdout", 0, 0},
    };
    const struct qn_options o = {
        PROGRAM,
        "Show a machine: its cores, and what messages between them cost.\n"
        "`quoin machine MACHINE ...`: " QN_SOURCE_HELP ".\n"
        "The default is live, the machine it runs on.",
        table, QN_ARRAY_COUNT(table)};
    if (argc > 1 && argv[1][0] != '-') {
        c->what = argv[1];
        argc--;
        argv++;
    }
    return qn_options_parse(&o, argc, argv, status);
}

int qn_machine_command(int argc, char **argv)
{
    struct command c = {
        .what = "live", .seconds = -1, .parallel = PARALLEL_ANY};
    struct qn_machine *m = NULL;
    int status = 0;
    if (!parse(&c, argc, argv, &status)) {
        return status;
    }
    status = check(&c);
    if (status == 0) {
        status = open_machine(&c, &m);
    }
    if (status == 0) {
        status = c.gather ? gather(&c, m) : write_machine(&c, m);
    }
    qn_machine_destroy(m);
    return status;
}
