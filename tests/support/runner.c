/*
 * The small runner: each test runs in a forked child, so that a crash, a
 * sanitizer report or a leak found at exit fails only that test. The parent
 * only forks and waits; the child ends with exit(), so that the exit codes of
 * LeakSanitizer and ThreadSanitizer reach the parent. The process exits 1 when
 * a test failed, or none ran. `--filter PATTERN` selects tests as Criterion's
 * runner does: those whose "suite/name" is matched as a whole, with *, ?, [a-z]
 * and @(one|other).
 */
#include "tests/support/test.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct qn_test *tests;
static bool failed;

void qn_test_register(struct qn_test *t)
{
    t->next = tests;
    tests = t;
}

void qn_test_report(bool fatal, const char *file, int line, const char *text)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    failed = true;
    if (fatal) {
        fflush(NULL);
        _exit(1);
    }
}

static int child(const struct qn_test *t)
{
    alarm(t->timeout > 0 ? (unsigned)(t->timeout * 4) + 1 : 60);
    if (t->init != NULL) {
        t->init();
    }
    t->run();
    if (t->fini != NULL) {
        t->fini();
    }
    return failed ? 1 : 0;
}

static bool run(const struct qn_test *t)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        exit(child(t));
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork or wait");
        return false;
    }
    if (t->signal != 0) {
        return WIFSIGNALED(status) && WTERMSIG(status) == t->signal;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
        return false;
    }
    return WEXITSTATUS(status) == t->exit_code;
}

/* Nodes that are processes have one thread each, and ThreadSanitizer does not
 * see what another process does: no race is found there. */
static bool finds_nothing(const struct qn_test *t)
{
#ifdef __SANITIZE_THREAD__
    static const char between[] = "_processes";
    size_t len = strlen(t->suite);
    return len >= sizeof between &&
           strcmp(t->suite + len + 1 - sizeof between, between) == 0;
#else
    (void)t;
    return false;
#endif
}

/* NULL: no argument, all tests. */
static const char *filter_of(int argc, char **argv)
{
    static const char option[] = "--filter=";
    const size_t len = sizeof option - 1;
    if (argc == 1) {
        return NULL;
    }
    if (argc == 2 && strncmp(argv[1], option, len) == 0) {
        return argv[1] + len;
    }
    if (argc == 3 && strncmp(argv[1], option, len - 1) == 0 &&
        argv[1][len - 1] == '\0') {
        return argv[2];
    }
    fprintf(stderr, "usage: %s [--filter SUITE/TEST]\n", argv[0]);
    exit(2);
}

int main(int argc, char **argv)
{
    const char *filter = filter_of(argc, argv);
    int good = 0;
    int bad = 0;
    int left_out = 0;
    for (struct qn_test *t = tests; t != NULL; t = t->next) {
        char name[256];
        snprintf(name, sizeof name, "%s/%s", t->suite, t->name);
        if (filter != NULL && fnmatch(filter, name, FNM_EXTMATCH) != 0) {
            continue;
        }
        if (finds_nothing(t)) {
            left_out++;
        } else if (run(t)) {
            good++;
        } else {
            fprintf(stderr, "FAILED %s\n", name);
            bad++;
        }
    }
    if (good + bad == 0) {
        fprintf(stderr, "%s: no test %s%s\n", argv[0],
                left_out > 0 ? "can find anything under this sanitizer: "
                             : "is matched by ",
                filter != NULL ? filter : "*");
    }
    printf("%d passed, %d failed\n", good, bad);
    return bad != 0 || good == 0;
}
