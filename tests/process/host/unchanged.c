/*
 * Calls that would leave something to be called at exit are counted by the
 * linker (--wrap): those of the libraries that are linked here.
 */
#include "tests/process/host/unchanged.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "tests/process/host/say.h"

struct process {
    struct sigaction action[NSIG];
    long interval_us;
    mode_t umask;
    uint64_t environment; /* a digest of it, */
    char **at;            /* ... and where it is */
    int at_exit;          /* calls of atexit and its like */
};

struct thread {
    sigset_t mask;
    struct robust_list_head *robust;
};

static int at_exit_calls;
static struct process process;
static _Thread_local struct thread thread;

int __real_atexit(void (*fn)(void));
int __wrap_atexit(void (*fn)(void));
int __real_on_exit(void (*fn)(int, void *), void *arg);
int __wrap_on_exit(void (*fn)(int, void *), void *arg);

int __wrap_atexit(void (*fn)(void))
{
    at_exit_calls++;
    return __real_atexit(fn);
}

int __wrap_on_exit(void (*fn)(int, void *), void *arg)
{
    at_exit_calls++;
    return __real_on_exit(fn, arg);
}

static uint64_t environment(void)
{
    uint64_t h = 1;
    for (char **e = environ; *e != NULL; e++) {
        for (const char *c = *e; *c != '\0'; c++) {
            h = (h ^ (uint8_t)*c) * UINT64_C(1099511628211);
        }
        h = h * 3 + 1;
    }
    return h;
}

static void look(struct process *p)
{
    struct itimerval timer;
    memset(p, 0, sizeof *p);
    for (int i = 1; i < NSIG; i++) {
        (void)sigaction(i, NULL, &p->action[i]);
    }
    (void)getitimer(ITIMER_REAL, &timer);
    p->interval_us = timer.it_interval.tv_usec;
    p->umask = umask(0);
    (void)umask(p->umask);
    p->environment = environment();
    p->at = environ;
    p->at_exit = at_exit_calls;
}

static void look_at_thread(struct thread *t)
{
    size_t len;
    memset(t, 0, sizeof *t);
    int err = pthread_sigmask(SIG_BLOCK, NULL, &t->mask);
    QN_ASSERT(err == 0);
    long got = syscall(SYS_get_robust_list, 0, &t->robust, &len);
    QN_ASSERT(got == 0);
}

void unchanged_begin(void)
{
    look(&process);
}

void unchanged_thread_begin(void)
{
    look_at_thread(&thread);
}

static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
    for (int i = 1; i < NSIG; i++) {
        if (sigismember(&a->sa_mask, i) != sigismember(&b->sa_mask, i)) {
            return false;
        }
    }
    return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags;
}

void unchanged_check(void)
{
    static struct process now;
    look(&now);
    for (int i = 1; i < NSIG; i++) {
        if (!same_action(&now.action[i], &process.action[i])) {
            say_wrong("the action of a signal has changed", i);
        }
    }
    if (now.interval_us != process.interval_us || now.umask != process.umask ||
        now.environment != process.environment || now.at != process.at ||
        now.at_exit != process.at_exit) {
        say_wrong("the process is not as it was", 0);
    }
}

void unchanged_thread_check(void)
{
    struct thread now;
    look_at_thread(&now);
    for (int i = 1; i < NSIG; i++) {
        if (sigismember(&now.mask, i) != sigismember(&thread.mask, i)) {
            say_wrong("a signal is blocked, or no more", i);
        }
    }
    if (now.robust != thread.robust) {
        say_wrong("the list of robust mutexes is another one", 0);
    }
}
