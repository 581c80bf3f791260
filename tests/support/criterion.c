/*
 * The runner of the presets without sanitizers: Criterion runs the tests of
 * test.h, each in a process of its own, and is told of each failed check.
 * Its macros and headers stay in here, so that a test compiles fast.
 *
 * Criterion's process for a test is the program started again, whose main()
 * does not run. It is told addresses of functions, and copies of the strings:
 * by these the test is found.
 */
#include "tests/support/test.h"

#include <criterion/abort.h>
#include <criterion/criterion.h>
#include <criterion/event.h>
#include <stdio.h>
#include <stdlib.h>

static struct qn_test *tests;
static size_t count;

void qn_test_register(struct qn_test *t)
{
    t->next = tests;
    tests = t;
    count++;
}

static void run(void)
{
    const struct criterion_test *c = criterion_current_test;
    const struct qn_test *t = tests;
    while (strcmp(t->name, c->name) != 0 ||
           strcmp(t->suite, c->category) != 0) {
        t = t->next;
    }
    criterion_internal_test_setup();
    criterion_internal_test_main(t->run);
    criterion_internal_test_teardown();
}

void qn_test_report(bool fatal, const char *file, int line, const char *text)
{
    struct criterion_assert_stats stats = {
        .message = text, .file = file, .line = (unsigned)line};
    criterion_send_assert(&stats);
    if (fatal) {
        criterion_abort_test();
    }
}

/* What Criterion knows of a test. */
struct entry {
    struct criterion_test test;
    struct criterion_test_extra_data options;
    char id[256];
};

static void fill(struct entry *e, const struct qn_test *t)
{
    snprintf(e->id, sizeof e->id, "%s/%s", t->suite, t->name);
    e->options = (struct criterion_test_extra_data){
        .lang_ = CR_LANG_C,
        .kind_ = CR_TEST_NORMAL,
        .identifier_ = e->id,
        .file_ = t->file,
        .line_ = t->line,
        .init = t->init,
        .fini = t->fini,
        .timeout = t->timeout,
        .signal = t->signal,
        .exit_code = t->exit_code,
    };
    e->test = (struct criterion_test){t->name, t->suite, run, &e->options};
}

int main(int argc, char **argv)
{
    struct criterion_test_set *set = criterion_initialize();
    struct entry *entries = calloc(count, sizeof *entries);
    if (entries == NULL) {
        return 1;
    }
    struct entry *e = entries;
    for (const struct qn_test *t = tests; t != NULL; t = t->next) {
        fill(e, t);
        criterion_register_test(set, &e++->test);
    }
    const bool bad = criterion_handle_args(argc, argv, true) &&
                     criterion_run_all_tests(set) == 0;
    criterion_finalize(set);
    free(entries);
    return bad ? 1 : 0;
}
