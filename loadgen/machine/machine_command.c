/*
 * `quoin machine`: opens or measures a machine, then writes it in one format.
 *
 * Errors of the output are found before the measurement, so that a wrong path
 * costs one line, not the seconds of a measurement.
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
#include "loadgen/base/output_path.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/machine/describe.h"
#include "loadgen/machine/heatmap.h"
#include "loadgen/machine/machine_source.h"
#include "loadgen/machine/measure_progress.h"
#include "loadgen/machine/report_bundle.h"

#define PROGRAM "quoin machine"

enum form { FORM_NONE, FORM_TEXT, FORM_JSON, FORM_CSV, FORM_SVG };

struct command {
    const char *what; /* the machine */
    const char *output;
    enum form form;
    bool measure, bundle;
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

/* The format; FORM_NONE: unknown extension. */
static enum form form_of(const struct command *c)
{
    if (c->form != FORM_NONE) {
        return c->form;
    }
    if (qn_output_path_is_stdout(c->output)) {
        return FORM_TEXT;
    }
    const char *ending = qn_output_path_ending(c->output);
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
    FILE *to = qn_output_path_open(c->output);
    int err = to != NULL ? write_form(m, form, to) : QN_OK;
    int why = to != NULL ? qn_output_path_close(to) : errno;
    if (err != QN_OK || why != 0) {
        (void)fprintf(stderr, PROGRAM ": %s: %s\n",
                      qn_output_path_name(c->output),
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

static int check_bundle(const struct command *c)
{
    struct qn_parse_error parse_error = {""};
    if (c->form != FORM_NONE) {
        return usage("--gather writes all formats; remove --format");
    }
    if (qn_output_path_is_stdout(c->output)) {
        return usage("--gather needs --output FOLDER, a new or empty folder");
    }
    return qn_report_bundle_check(c->output, &parse_error) == QN_OK
               ? 0
               : usage(parse_error.text);
}

/* The output must be a folder, or not exist yet. */
static int check_folder(const struct command *c)
{
    struct stat st;
    if (qn_output_path_is_stdout(c->output)) {
        return usage("--format csv needs --output FOLDER");
    }
    if (stat(c->output, &st) == 0 && !S_ISDIR(st.st_mode)) {
        (void)fprintf(stderr,
                      PROGRAM ": --output: %s is not a folder; csv writes two "
                              "files, so name a folder\n",
                      c->output);
        return 2;
    }
    return 0;
}

static int check(const struct command *c)
{
    bool measures = c->measure || c->bundle;
    enum form form = form_of(c);
    if (measures && strcmp(c->what, "live") != 0) {
        return usage("only this machine can be measured; remove the name");
    }
    if (!measures && (c->seconds >= 0 || c->parallel != PARALLEL_ANY)) {
        return usage("--seconds and --parallel need --measure");
    }
    if (c->bundle) {
        return check_bundle(c);
    }
    if (form == FORM_NONE) {
        (void)fprintf(stderr,
                      PROGRAM
                      ": --output: %s: unknown extension; use .txt, .json "
                      "or .svg, or give --format (csv is a folder)\n",
                      c->output);
        return 2;
    }
    if (form == FORM_CSV) {
        return check_folder(c);
    }
    return qn_output_path_check(PROGRAM, "output", c->output,
                                "name a file, or give --format csv");
}

static int open_machine(const struct command *c, struct qn_machine **m)
{
    struct qn_parse_error parse_error = {""};
    struct qn_runner_report report;
    const struct qn_measure_progress_opts o = {
        .program = PROGRAM,
        .transport = QN_MEASURE_DEFAULT_TRANSPORT,
        .seconds = c->seconds >= 0 ? c->seconds : QN_MEASURE_DEFAULT_SECONDS,
        .spread_s = QN_MEASURE_DEFAULT_SPREAD_S,
        .parallel = c->parallel != PARALLEL_ANY ? (uint32_t)c->parallel : 0};
    int err = qn_machine_source_open(m, c->what, &parse_error);
    if (err != QN_OK) {
        (void)fprintf(stderr, PROGRAM ": %s\n",
                      parse_error.text[0] != '\0' ? parse_error.text
                                                  : qn_strerror(err));
        return err == QN_ENOMEM ? 1 : 2;
    }
    return c->measure || c->bundle ? qn_measure_progress_run(*m, &o, &report)
                                   : 0;
}

static int write_machine(const struct command *c, const struct qn_machine *m)
{
    enum form form = form_of(c);
    if (form != FORM_TEXT && !qn_machine_has_costs(m)) {
        return usage("this machine has no costs to write; --measure measures "
                     "those of the machine it runs on");
    }
    if (form == FORM_SVG && m->n == 1) {
        return usage(
            "a machine of one core has no pairs to draw; use another format");
    }
    return form == FORM_CSV ? write_folder(c, m) : write_stream(c, m, form);
}

static int write_bundle(const struct command *c, const struct qn_machine *m)
{
    struct qn_parse_error parse_error = {""};
    int err = qn_report_bundle_write(m, c->output, &parse_error);
    if (err != QN_OK) {
        (void)fprintf(stderr, PROGRAM ": %s\n",
                      parse_error.text[0] != '\0' ? parse_error.text
                                                  : qn_strerror(err));
        return 1;
    }
    (void)fprintf(stderr,
                  PROGRAM
                  ": %s is complete; it contains no names of hosts or users\n",
                  c->output);
    return 0;
}

#define AT(member) offsetof(struct command, member)

static const struct qn_option table[] = {
    QN_OPTION("measure", NULL, qn_option_flag, AT(measure),
              "measure the cost of messages here, for all pairs of cores"),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds),
              "time limit for pairs that do not repeat (8)"),
    QN_OPTION_COUNT("parallel", "N", AT(parallel),
                    "maximum of pairs measured at the same time; 0: all that "
                    "share no core (0)",
                    0, QN_CORES_MAX),
    QN_OPTION("gather", NULL, qn_option_flag, AT(bundle),
              "measure, and write all files of a report into --output"),
    QN_OPTION("format", "FORM", take_form, AT(form),
              "text, json, csv (a folder) or svg (heat maps); default: by the "
              "extension of --output"),
    QN_OPTION("output", "PATH", qn_option_string, AT(output),
              "file, or folder for csv and --gather; - is stdout (default)"),
};

static bool parse(struct command *c, int argc, char **argv, int *status)
{
    const struct qn_options o = {
        PROGRAM,
        "Show a machine: its cores, and the costs of messages between them.\n"
        "`quoin machine MACHINE ...`: " QN_MACHINE_SOURCE_HELP ".\n"
        "The default is live, the machine it runs on.",
        table, QN_ARRAY_COUNT(table), c};
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
        status = c.bundle ? write_bundle(&c, m) : write_machine(&c, m);
    }
    qn_machine_destroy(m);
    return status;
}
