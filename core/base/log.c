#include "core/base/log.h"

#include <stddef.h>
#include <stdio.h>

static struct {
    qn_log_fn *fn;
    void *ctx;
    enum qn_log_level lowest;
} sink;

void qn_log_set(qn_log_fn *fn, void *ctx, enum qn_log_level lowest)
{
    sink.fn = fn;
    sink.ctx = ctx;
    sink.lowest = lowest;
}

void qn_log(enum qn_log_level level, const char *fmt, ...)
{
    if (sink.fn == NULL || level < sink.lowest) {
        return;
    }
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    sink.fn(sink.ctx, level, line);
}
