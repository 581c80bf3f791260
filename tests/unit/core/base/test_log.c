/* Where lines go: to the process's callback, or to that of an object. */
#include "core/base/log.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

struct heard {
    unsigned lines;
    enum qn_log_level level;
    char last[2048];
};

static struct heard process, object;

static void hear(void *ctx, enum qn_log_level level, const char *line)
{
    struct heard *h = ctx;
    h->lines++;
    h->level = level;
    snprintf(h->last, sizeof h->last, "%s", line);
}

static void begin(void)
{
    process = object = (struct heard){0};
    qn_log_set(hear, &process, QN_LOG_INFO);
}

static void end(void)
{
    qn_log_set(NULL, NULL, QN_LOG_DEBUG);
}

#define CASE(name) Test(log, name, .init = begin, .fini = end)

static const struct qn_log_sink none;
static const struct qn_log_sink to_object = {hear, &object};

CASE(a_process_hears_what_is_not_below_its_level)
{
    qn_log(QN_LOG_DEBUG, "%d", 1);
    cr_assert_eq(process.lines, 0);
    qn_log(QN_LOG_WARN, "%d and %s", 2, "more");
    cr_assert_eq(process.lines, 1);
    cr_assert_eq(process.level, QN_LOG_WARN);
    cr_assert_str_eq(process.last, "2 and more");
}

CASE(without_a_callback_lines_are_dropped)
{
    end();
    qn_log(QN_LOG_ERROR, "line");
    qn_log_to(&none, QN_LOG_ERROR, "line");
    cr_assert_eq(process.lines, 0);
}

CASE(an_object_hears_all_of_its_own_and_the_process_none_of_it)
{
    qn_log_to(&to_object, QN_LOG_DEBUG, "line %d", 3);
    cr_assert_eq(object.lines, 1);
    cr_assert_eq(object.level, QN_LOG_DEBUG);
    cr_assert_str_eq(object.last, "line 3");
    cr_assert_eq(process.lines, 0);
}

CASE(an_object_without_a_callback_speaks_as_its_process)
{
    qn_log_to(&none, QN_LOG_DEBUG, "line");
    cr_assert_eq(process.lines, 0);
    qn_log_to(&none, QN_LOG_INFO, "line");
    cr_assert_eq(process.lines, 1);
}

CASE(a_line_is_cut)
{
    qn_log_to(&to_object, QN_LOG_INFO, "%2000d", 1);
    cr_assert_eq(strlen(object.last), 1023);
}
