#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "kvs/main/logger.h"
#include "tests/support/test.h"

enum { PIPE = 4096, READ = 1 << 20 };

static int from; /* what was standard error can be read here */

static void log_to_pipe(void)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_geq(fcntl(ends[1], F_SETPIPE_SZ, PIPE), PIPE);
    cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    from = ends[0];
    qn_logger_init(QN_LOG_INFO);
}

/* Lines that can be told apart, 100 bytes each and more. */
static void log_lines(int first, int count)
{
    for (int i = first; i < first + count; i++) {
        qn_log(QN_LOG_INFO, "line %05d %0100d", i, 0);
    }
}

/* Until it says `last`; ends it. */
static char *read_until(const char *last)
{
    char *text = calloc(1, READ);
    size_t len = 0;
    cr_assert_not_null(text);
    while (strstr(text, last) == NULL) {
        ssize_t got = read(from, text + len, READ - 1 - len);
        cr_assert_gt(got, 0, "%s", text);
        len += (size_t)got;
    }
    return text;
}

/* @return how many lines there are of 0, 1, 2, ... in this order. */
static int in_order(const char *text)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, ": line ")) != NULL; at++) {
        cr_assert_eq(atoi(at + 7), n, "%s", text);
        n++;
    }
    return n;
}

Test(logger, a_line_says_when_who_and_how_bad)
{
    log_to_pipe();
    qn_log(QN_LOG_DEBUG, "not wanted");
    qn_log(QN_LOG_WARN, "%s", "wanted");
    char *text = read_until("\n");
    cr_expect_str_eq(text + strlen("00:00:00.000"), " quoind warn: wanted\n");
    cr_expect(text[2] == ':' && text[5] == ':' && text[8] == '.');
    free(text);
}

/* Nobody reads: whoever logs goes on, and in the end it is known what is
 * missing. */
Test(logger, who_logs_waits_for_nobody)
{
    const int more = 40 + (int)QN_LOGGER_LINES;
    log_to_pipe();
    cr_assert_eq(qn_logger_start(), QN_OK);
    log_lines(0, 2 * more);
    char *text = read_until("lines were dropped");
    int kept = in_order(text), dropped = 0;
    cr_expect_geq(kept, (int)QN_LOGGER_LINES);
    const char *tells = strstr(text, " quoind warn: ");
    cr_assert_not_null(tells);
    cr_expect_eq(sscanf(tells, " quoind warn: %d lines", &dropped), 1);
    cr_expect_eq(kept + dropped, 2 * more, "%d, %d", kept, dropped);
    free(text);
}

/* `lines` and a last one, in a process of its own, which ends behind it. Nobody
 * reads before the last one. @return how many of the lines were read. */
static int logs_and_ends(int lines, enum qn_log_level last)
{
    int logged[2];
    char byte = 0;
    cr_assert_eq(pipe(logged), 0);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        (void)qn_logger_start();
        log_lines(0, lines);
        (void)!write(logged[1], &byte, 1);
        qn_log(last, "the last one");
        if (last != QN_LOG_ERROR) {
            qn_logger_end();
        }
        _exit(0);
    }
    close(STDERR_FILENO); /* so that reading ends with that process */
    cr_assert_eq(read(logged[0], &byte, 1), 1);
    char *text = read_until("the last one\n");
    int kept = in_order(text);
    free(text);
    int status;
    cr_expect_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    return kept;
}

Test(logger, what_waits_at_the_end_is_written)
{
    log_to_pipe();
    cr_expect_eq(logs_and_ends(20, QN_LOG_INFO), 20);
}

Test(logger, an_error_is_written_when_the_call_returns)
{
    log_to_pipe();
    cr_expect_eq(logs_and_ends(20, QN_LOG_ERROR), 20);
}

Test(logger, an_error_is_not_among_the_dropped)
{
    log_to_pipe();
    int kept = logs_and_ends(2 * (int)QN_LOGGER_LINES, QN_LOG_ERROR);
    cr_expect_lt(kept, 2 * (int)QN_LOGGER_LINES); /* or it proves nothing */
}

Test(logger, the_end_does_not_wait_for_ever)
{
    log_to_pipe();
    cr_assert_eq(qn_logger_start(), QN_OK);
    log_lines(0, 100); /* more than the pipe holds */
    qn_logger_end();
    log_lines(100, 1); /* does not stand still either */
    char *text = read_until("line 00100");
    cr_expect_eq(in_order(text), 101);
    free(text);
}
