#include "tests/support/replay.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "replay: "

static char line[256];

/* As it was raised the signal ends the process when this returns. */
static void on_signal(int number)
{
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    written += write(STDERR_FILENO, "\n", 1);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

void replay_by(const char *format, ...)
{
    const size_t prefix = strlen(PREFIX);
    va_list args;
    va_start(args, format);
    memcpy(line, PREFIX, prefix);
    vsnprintf(line + prefix, sizeof line - prefix, format, args);
    va_end(args);
    signal(SIGABRT, on_signal);
    signal(SIGSEGV, on_signal);
}

const char *replay_line(void)
{
    return line;
}
