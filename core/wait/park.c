#include "core/wait/park.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

static struct timespec timespec_of(qn_time_t t)
{
    return (struct timespec){.tv_sec = (time_t)(t / QN_S),
                             .tv_nsec = (long)(t % QN_S)};
}

int qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline)
{
    /* WAIT_BITSET: the only form with an absolute, monotonic deadline. Not
     * FUTEX_PRIVATE: the line may lie in memory shared by processes. */
    struct timespec at = timespec_of(deadline);
    long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen,
                     deadline == QN_TIME_NEVER ? NULL : &at, NULL,
                     FUTEX_BITSET_MATCH_ANY);
    if (r == 0) {
        return QN_OK;
    }
    QN_ASSERT(errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
    return errno == ETIMEDOUT ? QN_ETIMEDOUT : QN_OK;
}

void qn_unpark_word(qn_a32 *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void qn_unpark_one(qn_a32 *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int qn_park_fd(int fd, qn_time_t deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec left = {0};
    if (deadline != QN_TIME_NEVER) {
        qn_time_t now = qn_clock_now();
        left = timespec_of(deadline > now ? deadline - now : 0);
    }
    int n = ppoll(&p, 1, deadline == QN_TIME_NEVER ? NULL : &left, NULL);
    QN_ASSERT(n >= 0 || errno == EINTR || errno == ENOMEM);
    return n == 0 ? QN_ETIMEDOUT : QN_OK;
}

void qn_unpark_fd(int fd)
{
    /* A full counter (EAGAIN) is readable: as good as written. */
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    QN_ASSERT(n == sizeof one || errno == EAGAIN || errno == EINTR);
}

void qn_park_drain(int fd)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);
    QN_ASSERT(n == sizeof count || errno == EAGAIN || errno == EINTR);
}

void qn_park_yield(void)
{
    (void)sched_yield(); /* cannot fail on Linux */
}

uint32_t qn_park_cores(void)
{
    cpu_set_t set;
    /* It fails where the kernel's mask is longer: more than 1024 cores. */
    return sched_getaffinity(0, sizeof set, &set) == 0
               ? (uint32_t)CPU_COUNT(&set)
               : CPU_SETSIZE;
}
