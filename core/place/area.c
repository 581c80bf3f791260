#include "core/place/area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/memfd_internal.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t to_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static int create_private(struct qn_area *a)
{
    void *at = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    a->memory = at == MAP_FAILED ? NULL : at;
    return at == MAP_FAILED ? QN_ENOMEM : QN_OK;
}

static int create_shared(struct qn_area *a, const char *name)
{
    int fd = qn_memfd_open(name, a->bytes);
    if (fd < 0) {
        return fd;
    }
    a->fd = fd;
    int err = qn_memfd_fill(fd, 0, a->bytes);
    if (err == QN_OK) {
        err = qn_memfd_seal(fd, SEALS);
    }
    if (err == QN_OK) {
        err = qn_memfd_map(&a->memory, fd, a->bytes, PROT_READ | PROT_WRITE);
    }
    return err;
}

int qn_area_create(struct qn_area *out, const char *name, size_t bytes,
                   bool shared)
{
    *out = QN_AREA_NONE;
    if (bytes == 0 || bytes > QN_AREA_BYTES_MAX) {
        return QN_EINVAL;
    }
    out->bytes = to_pages(bytes);
    int err = shared ? create_shared(out, name) : create_private(out);
    if (err != QN_OK) {
        qn_area_destroy(out);
    }
    return err;
}

int qn_area_map(struct qn_area *out, int fd, size_t bytes)
{
    *out = QN_AREA_NONE;
    size_t whole = to_pages(bytes);
    int err = qn_memfd_check(fd, whole, SEALS);
    if (err == QN_OK) {
        err = qn_memfd_map(&out->memory, fd, whole, PROT_READ | PROT_WRITE);
    }
    if (err == QN_OK) {
        out->bytes = whole;
    }
    return err;
}

void qn_area_keep_from_children(const struct qn_area *a)
{
    if (a->memory != NULL) {
        (void)madvise(a->memory, a->bytes, MADV_DONTFORK);
    }
}

void qn_area_destroy(struct qn_area *a)
{
    if (a->memory != NULL) {
        munmap(a->memory, a->bytes);
    }
    if (a->fd >= 0) {
        close(a->fd);
    }
    *a = QN_AREA_NONE;
}
