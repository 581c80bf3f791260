#include "tests/process/host/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

void say(const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    QN_ASSERT(n > 0 && n < (int)sizeof line);
    const ssize_t wrote = write(STDOUT_FILENO, line, (size_t)n);
    QN_ASSERT(wrote == n); /* a pipe with room */
}

void say_wrong(const char *what, int err)
{
    dprintf(STDERR_FILENO, "host %d: %s: %s\n", (int)getpid(), what,
            err < 0 ? qn_strerror(err) : "wrong");
    _exit(1);
}
