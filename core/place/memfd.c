#include "core/place/memfd_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"

/* To grow beyond the limit would be a signal (SIGXFSZ), which ends a host. */
static bool is_allowed(size_t bytes)
{
    struct rlimit l;
    return getrlimit(RLIMIT_FSIZE, &l) != 0 || l.rlim_cur == RLIM_INFINITY ||
           l.rlim_cur >= bytes;
}

int qn_memfd_open(const char *name, size_t bytes)
{
    if (!is_allowed(bytes)) {
        return QN_ENOMEM;
    }
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return errno == EMFILE || errno == ENFILE ? QN_EMFILE
               : errno == ENOMEM                  ? QN_ENOMEM
                                                  : QN_ENOSYS;
    }
    if (ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        return QN_ENOMEM;
    }
    return fd;
}

int qn_memfd_fill(int fd, size_t from, size_t bytes)
{
    int err;
    sigset_t all, before;
    sigfillset(&all);
    /* A signal makes it start over (Linux before 6.9): one that comes often
     * would do so for ever. */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    do {
        err = posix_fallocate(fd, (off_t)from, (off_t)bytes);
    } while (err == EINTR);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* ENOSPC, ENOMEM and EFBIG (a file size limit) are all the same news. */
    return err == 0 ? QN_OK : QN_ENOMEM;
}

int qn_memfd_seal(int fd, int seals)
{
    return fcntl(fd, F_ADD_SEALS, seals) == 0 ? QN_OK : QN_ENOSYS;
}

int qn_memfd_check(int fd, size_t bytes, int seals)
{
    int have = fcntl(fd, F_GET_SEALS);
    if (have < 0 || (have & seals) != seals) {
        return QN_EPERM;
    }
    struct stat st;
    if (fstat(fd, &st) != 0 || (size_t)st.st_size != bytes) {
        return QN_ECORRUPT;
    }
    return QN_OK;
}

int qn_memfd_map(void **out, int fd, size_t bytes, int prot)
{
    void *at = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return errno == EPERM || errno == EACCES ? QN_EPERM : QN_ENOMEM;
    }
    *out = at;
    return QN_OK;
}
