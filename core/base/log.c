#include "core/base/log.h"

#include <stddef.h>
#include <stdio.h>

static struct {
    struct qn_log_sink to;
    enum qn_log_level lowest;
} process;

void qn_log_set(qn_log_fn *fn, void *ctx, enum qn_log_level lowest)
{
    process.to = (struct qn_log_sink){fn, ctx};
    process.lowest = lowest;
}

static void write_line(const struct qn_log_sink *to, enum qn_log_level level,
                       const char *fmt, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, fmt, args);
    to->fn(to->ctx, level, line);
}

/* The process's log, if it wants such lines; else NULL. */
static const struct qn_log_sink *of_process(enum qn_log_level level)
{
    return process.to.fn != NULL && level >= process.lowest ? &process.to
                                                            : NULL;
}

void qn_log(enum qn_log_level level, const char *fmt, ...)
{
    const struct qn_log_sink *to = of_process(level);
    va_list args;
    if (to != NULL) {
        va_start(args, fmt);
        write_line(to, level, fmt, args);
        va_end(args);
    }
}

void qn_log_to(const struct qn_log_sink *to, enum qn_log_level level,
               const char *fmt, ...)
{
    va_list args;
    to = to->fn != NULL ? to : of_process(level);
    if (to != NULL) {
        va_start(args, fmt);
        write_line(to, level, fmt, args);
        va_end(args);
    }
}
