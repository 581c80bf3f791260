/*
 * What there is to be asked and said about processes (process.h).
 *
 * Stopped is a letter in /proc/PID/stat, behind the name, which is in
 * parentheses and may contain any of these; so the last one is looked for.
 * Where /proc is hidden no process counts as stopped; a peer that waits for a
 * stopped process then finds out by its timeout.
 *
 * The clocks of the kernel name whole processes, and threads of the own one. Of
 * a thread of another process /proc tells, by the ticks of the scheduler: up to
 * 10 ms late.
 *
 * The C library has no function for scheduling attributes, and no structure.
 */
#include "core/place/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/err.h"

/* sched_setattr(2), first version of the structure. */
struct attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime; /* ns; the slice, of what is neither real-time nor
                         idle */
    uint64_t deadline;
    uint64_t period;
};

int qn_process_open(int pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0) {
        return fd;
    }
    return errno == ESRCH || errno == EINVAL    ? QN_ENOENT
           : errno == EMFILE || errno == ENFILE ? QN_EMFILE
                                                : QN_ENOSYS;
}

bool qn_process_ended(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* The beginning of a file of /proc; empty: there is none. */
static void look(int pid, const char *name, char *text, size_t bytes)
{
    char path[48];
    text[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, text, bytes - 1);
        close(fd);
        text[got > 0 ? got : 0] = '\0';
    }
}

/* ns that it has run, ns that it has waited, slices. */
static qn_time_t thread_ran(int tid)
{
    char text[80];
    look(tid, "schedstat", text, sizeof text);
    return strtoull(text, NULL, 10);
}

qn_time_t qn_process_ran(int pid)
{
    clockid_t clock;
    struct timespec t;
    if (pid == 0) {
        return 0;
    }
    if (clock_getcpuclockid(pid, &clock) != 0 ||
        clock_gettime(clock, &t) != 0) {
        return thread_ran(pid);
    }
    return (qn_time_t)t.tv_sec * QN_S + (qn_time_t)t.tv_nsec;
}

bool qn_process_stopped(int pid)
{
    char text[128]; /* id, name of at most 16 bytes, state, ... */
    look(pid, "stat", text, sizeof text);
    const char *end = strrchr(text, ')');
    return end != NULL && (strncmp(end, ") T", 3) == 0 ||
                           strncmp(end, ") t", 3) == 0); /* by a debugger */
}

int qn_process_slice(int pid, qn_time_t slice)
{
    struct attr a;
    if (syscall(SYS_sched_getattr, pid, &a, sizeof a, 0) != 0) {
        return errno == ESRCH ? QN_ENOENT : QN_ENOSYS;
    }
    if (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH) {
        return QN_EINVAL;
    }
    a.runtime = slice;
    if (syscall(SYS_sched_setattr, pid, &a, 0) != 0) {
        return errno == ESRCH ? QN_ENOENT : QN_ENOSYS;
    }
    return QN_OK;
}
