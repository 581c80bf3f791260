#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/verify/history/text.h"
#include "loadgen/verify/verify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/*
 * `quoin verify`: reads recorded histories and prints a verdict. All files are
 * parts of one history (a key may appear in several files if they share a
 * clock). Call it once per file to check histories separately.
 */

struct command {
    const char *svg;
    uint64_t steps;
    uint64_t explain;
    struct qn_history history;
};

/* Options come first; the first argument that is not an option begins the list
 * of files. */
static int count_options(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2] != '\0') {
        bool flag =
            strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "--version") == 0;
        i += flag || strchr(argv[i], '=') != NULL ? 1 : 2;
    }
    return QN_MIN(i, argc);
}

/* Read one file into the history. Returns 0, or 2 after an error line. */
static int take_file(struct command *c, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "r");
    if (f == NULL) {
        fprintf(stderr, "quoin verify: cannot read %s: %s\n", path,
                strerror(errno));
        return 2;
    }
    struct qn_recorder rec;
    uint64_t line;
    char what[160];
    qn_recorder_init(&rec, UINT64_MAX);
    int err = qn_history_read(f, &rec, &line, what, sizeof what);
    if (err == QN_OK) {
        err = qn_history_take(&c->history, &rec);
    } else {
        fprintf(stderr, "quoin verify: %s:%" PRIu64 ": %s\n", path, line, what);
    }
    qn_recorder_fini(&rec);
    if (!standard) {
        fclose(f);
    }
    return err == QN_OK ? 0 : 2;
}

static int run(struct command *c)
{
    struct qn_verify_result result;
    bool drawn_on_stdout = c->svg != NULL && qn_output_path_is_stdout(c->svg);
    FILE *text = drawn_on_stdout ? stderr : stdout;
    struct qn_verify_opts opts = {.linear = {.steps_max = c->steps},
                                  .report = text,
                                  .svg = c->svg,
                                  .explained_max = (uint32_t)c->explain};
    if (c->history.count == 0) {
        fprintf(stderr, "quoin verify: the files contain no operations\n");
        return 2;
    }
    int err = qn_history_group(&c->history);
    if (err == QN_OK) {
        err = qn_verify(&c->history, &opts, &result);
    }
    if (err != QN_OK) {
        fprintf(stderr, "quoin verify: %s%s%s\n", qn_strerror(err),
                err == QN_EIO && c->svg != NULL ? " on " : "",
                err == QN_EIO && c->svg != NULL ? c->svg : "");
        return 1;
    }
    qn_verify_print(text, &result);
    if (result.svg_written && text == stdout) {
        fprintf(stderr, "quoin verify: violation drawn in %s\n", c->svg);
    }
    return qn_verify_status(&result);
}

#define AT(member) offsetof(struct command, member)

static const struct qn_option table[] = {
    QN_OPTION("svg", "FILE", qn_option_string, AT(svg),
              "draw the first violation as a timeline; - is stdout"),
    QN_OPTION_COUNT("explain", "N", AT(explain),
                    "violations to explain; others are only listed (3)", 0,
                    1000000),
    QN_OPTION_COUNT("steps", "N", AT(steps),
                    "budget per key, in visited operations (100m)", 1, 0),
};

int qn_verify_command(int argc, char **argv)
{
    struct command c = {.steps = QN_LINEAR_STEPS_MAX, .explain = 3};
    const struct qn_options o = {
        "quoin verify",
        "Check recorded histories: `quoin verify [OPTIONS] FILE...`, - is "
        "stdin.\nOne operation per line, `client invoked responded operation "
        "-> answer`,\ntimes in ns; the format is in "
        "loadgen/verify/history/text.h.\n"
        "Exit status: 0 linearizable, 2 invalid file, 3 not linearizable,\n"
        "4 undecided within the budget.",
        table, QN_ARRAY_COUNT(table), &c};
    int options = count_options(argc, argv);
    int status = 0;
    if (!qn_options_parse(&o, options, argv, &status)) {
        return status;
    }
    if (options == argc) {
        fprintf(stderr,
                "quoin verify: missing FILE; see quoin verify --help\n");
        return 2;
    }
    qn_history_init(&c.history);
    for (int i = options; i < argc && status == 0; i++) {
        status = take_file(&c, argv[i]);
    }
    if (status == 0) {
        status = run(&c);
    }
    qn_history_fini(&c.history);
    return status;
}
