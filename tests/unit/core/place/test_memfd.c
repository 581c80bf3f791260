/*
 * A host may have a timer that interrupts it each millisecond. Kernels before
 * 6.9 give up an allocation then, and one of some megabytes that begins anew
 * would be given up again: so no signal may come meanwhile.
 */
#include "core/place/memfd_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

enum { BYTES = 1 << 20 };

int __real_posix_fallocate(int fd, off_t from, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t from, off_t bytes);

static bool comes(int number)
{
    sigset_t now;
    cr_assert_eq(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, number) == 0;
}

/* As such a kernel with such a timer. */
int __wrap_posix_fallocate(int fd, off_t from, off_t bytes)
{
    return comes(SIGALRM) ? EINTR : __real_posix_fallocate(fd, from, bytes);
}

Test(memfd, is_filled_though_a_timer_interrupts_all_the_time, .timeout = 10)
{
    struct stat st;
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR1);
    cr_assert_eq(pthread_sigmask(SIG_SETMASK, &own, NULL), 0);
    int fd = qn_memfd_open("test", BYTES);
    cr_assert_geq(fd, 0);
    cr_expect_eq(qn_memfd_fill(fd, 0, BYTES), QN_OK);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_expect_eq(st.st_blocks * 512, BYTES);
    cr_expect(comes(SIGALRM), "as before");
    cr_expect(!comes(SIGUSR1), "as before");
    close(fd);
}
