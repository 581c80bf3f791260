#include "outbox_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

struct qn_outbox_opts outbox_opts(bool shared)
{
    return (struct qn_outbox_opts){.node = 1,
                                   .nodes = 3,
                                   .incarnation = 7,
                                   .lane_bytes = LANE,
                                   .numa_node = -1,
                                   .shared = shared};
}

struct qn_outbox *outbox_make(bool shared)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts w = outbox_opts(shared);
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    return o;
}

/* Our own posix_fallocate stands before the library's, to run out of memory on
 * demand. */
int outbox_refuse;

int posix_fallocate(int fd, off_t offset, off_t len)
{
    if (outbox_refuse != 0) {
        int err = outbox_refuse;
        outbox_refuse = err == EINTR ? 0 : err;
        return err;
    }
    return fallocate(fd, 0, offset, len) == 0 ? 0 : errno;
}

size_t outbox_allocated(const struct qn_outbox *o)
{
    struct stat st;
    cr_assert_eq(fstat(qn_outbox_fd(o), &st), 0);
    return (size_t)st.st_blocks * 512;
}

int outbox_ways_to_write(int fd, size_t bytes)
{
    int ways = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR);
    for (int i = 0; i < 2; i++) {
        int with = i == 0 ? fd : again;
        ways |= mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, with,
                     0) != MAP_FAILED;
        void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, with, 0);
        ways |= 2 * (mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0);
        ways |= 4 * (pwrite(with, "x", 1, 0) >= 0);
        ways |= 8 * (ftruncate(with, 0) == 0);
        ways |= 16 * (ftruncate(with, (off_t)bytes * 2) == 0);
        ways |=
            32 * (fallocate(with, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                            4096) == 0);
        ways |= 64 * (madvise(at, bytes, MADV_REMOVE) == 0);
    }
    return ways;
}
