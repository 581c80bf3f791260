/*
 * What the kernel says of processes, with real ones. Nothing waits for a time:
 * a parent looks until what must come has come.
 */
#include "core/place/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "tests/support/test.h"

/* A child that does nothing; its name is the worst one for /proc. */
static pid_t child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "a) T (b");
        for (;;) {
            pause();
        }
    }
    cr_assert_gt(pid, 0);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

Test(process, who_is_stopped_is_told_from_who_sleeps, .timeout = 20)
{
    pid_t pid = child();
    cr_assert_not(qn_process_stopped(pid));
    kill(pid, SIGSTOP);
    while (!qn_process_stopped(pid)) {
        sched_yield();
    }
    kill(pid, SIGCONT);
    while (qn_process_stopped(pid)) {
        sched_yield();
    }
    end(pid);
    cr_assert_not(qn_process_stopped(pid), "nobody is");
    cr_assert_not(qn_process_stopped(getpid()));
}

Test(process, what_it_has_run_grows_while_it_runs, .timeout = 20)
{
    qn_time_t before = qn_process_ran(getpid());
    cr_assert_gt(before, 0);
    while (qn_process_ran(getpid()) < before + QN_MS) {
    }
    cr_assert_eq(qn_process_ran(0), 0, "nobody");
}

/* A thread that waits for a byte, computes, and ends when it is told to. */
struct worker {
    int go[2];
    qn_a32 tid, ends;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    char byte;
    qn_store(&w->tid, (uint32_t)gettid(), QN_SEQ_CST);
    cr_assert_eq(read(w->go[0], &byte, 1), 1);
    while (qn_load(&w->ends, QN_SEQ_CST) == 0) {
    }
    return NULL;
}

/* Seen from another process, and not by what its other threads do. */
static qn_time_t ran_as_seen_by_a_child(int tid)
{
    int said[2];
    qn_time_t ran = 0;
    cr_assert_eq(pipe(said), 0);
    pid_t pid = fork();
    if (pid == 0) {
        ran = qn_process_ran(tid);
        _exit(write(said[1], &ran, sizeof ran) == sizeof ran ? 0 : 1);
    }
    cr_assert_eq(read(said[0], &ran, sizeof ran), sizeof ran);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    close(said[0]);
    close(said[1]);
    return ran;
}

Test(process, what_a_thread_has_run_is_its_own, .timeout = 20)
{
    struct worker w = {0};
    pthread_t thread;
    cr_assert_eq(pipe(w.go), 0);
    cr_assert_eq(pthread_create(&thread, NULL, work, &w), 0);
    int tid = 0;
    while (tid == 0) {
        sched_yield();
        tid = (int)qn_load(&w.tid, QN_SEQ_CST);
    }
    qn_time_t own = qn_process_ran(getpid());
    while (qn_process_ran(getpid()) < own + 100 * QN_MS) {
    }
    qn_time_t before = ran_as_seen_by_a_child(tid);
    cr_assert_gt(before, 0);
    cr_assert_lt(before, 50 * QN_MS, "it slept");
    cr_assert_eq(write(w.go[1], "", 1), 1);
    while (ran_as_seen_by_a_child(tid) < before + 50 * QN_MS) {
    }
    qn_store(&w.ends, 1, QN_SEQ_CST);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    close(w.go[0]);
    close(w.go[1]);
}

/* The slice of the kernel's structure, at its place. */
static uint64_t slice_of(int pid)
{
    uint64_t a[6] = {0}; /* the fourth is sched_runtime, in bytes 24..31 */
    cr_assert_eq(syscall(SYS_sched_getattr, pid, a, sizeof a, 0), 0);
    return a[3];
}

Test(process, a_slice_is_set_of_oneself_and_of_others, .timeout = 20)
{
    pid_t pid = child();
    int err = qn_process_slice(0, QN_SLICE_SERVING);
    cr_assert(err == QN_OK || err == QN_ENOSYS || err == QN_EINVAL);
    if (err == QN_OK && slice_of(0) == QN_SLICE_SERVING) { /* since 6.12 */
        cr_assert_eq(qn_process_slice(pid, QN_SLICE_LONGEST), QN_OK);
        cr_assert_eq(slice_of(pid), QN_SLICE_LONGEST);
        cr_assert_eq(slice_of(0), QN_SLICE_SERVING);
    }
    end(pid);
}

Test(process, policy_and_nice_value_stay, .timeout = 20)
{
    cr_assert_eq(nice(3), 3);
    (void)qn_process_slice(0, QN_SLICE_SERVING);
    cr_assert_eq(nice(0), 3);
    cr_assert_eq(sched_getscheduler(0), SCHED_OTHER);
    const struct sched_param none = {.sched_priority = 0};
    cr_assert_eq(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    cr_assert_lt(qn_process_slice(0, QN_SLICE_SERVING), 0);
    cr_assert_eq(sched_getscheduler(0), SCHED_IDLE);
}

Test(process, nobody_has_no_slice, .timeout = 20)
{
    pid_t pid = child();
    end(pid);
    int err = qn_process_slice(pid, QN_SLICE_SERVING);
    cr_assert(err == QN_ENOENT || err == QN_ENOSYS);
}

Test(process, a_descriptor_of_it_is_readable_when_it_has_ended, .timeout = 20)
{
    pid_t pid = child();
    struct pollfd p = {.fd = qn_process_open(pid), .events = POLLIN};
    cr_assert_geq(p.fd, 0);
    cr_assert(fcntl(p.fd, F_GETFD) & FD_CLOEXEC);
    cr_assert_eq(poll(&p, 1, 0), 0, "it lives");
    cr_assert_not(qn_process_ended(p.fd));
    cr_assert_not(qn_process_ended(-1));
    kill(pid, SIGKILL);
    cr_assert_eq(poll(&p, 1, -1), 1);
    cr_assert(qn_process_ended(p.fd));
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_eq(poll(&p, 1, 0), 1, "for ever");
    cr_assert_eq(qn_process_open(pid), QN_ENOENT);
    close(p.fd);
}
