/*
 * What a failed check says: the expression, for a comparison the values of both
 * sides, and the test's own text.
 */
#include "tests/support/test.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX 1024

/* Adds the test's own text, which begins with a blank. */
static void report(bool fatal, const char *file, int line,
                   char text[static TEXT_MAX], const char *fmt, va_list args)
{
    size_t len = strlen(text);
    if (fmt[1] != '\0' && len < TEXT_MAX - 1) {
        text[len++] = ':';
        vsnprintf(text + len, TEXT_MAX - len, fmt, args);
    }
    qn_test_report(fatal, file, line, text);
}

void qn_test_failed(bool fatal, const char *file, int line, const char *expr,
                    const char *fmt, ...)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof text, "%s", expr);
    va_list args;
    va_start(args, fmt);
    report(fatal, file, line, text, fmt, args);
    va_end(args);
}

void qn_test_differ(bool fatal, const char *file, int line, const char *expr,
                    long long a, long long b, const char *fmt, ...)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof text, "%s (%lld, %lld)", expr, a, b);
    va_list args;
    va_start(args, fmt);
    report(fatal, file, line, text, fmt, args);
    va_end(args);
}
