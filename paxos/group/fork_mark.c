#include "paxos/group/fork_mark.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/err.h"

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int qn_fork_mark_make(struct qn_fork_mark *m)
{
    void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return QN_ENOMEM;
    }
    if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
        munmap(page, page_bytes());
        return QN_ENOSYS;
    }
    m->page = page;
    qn_store(m->page, 1, QN_RELAXED); /* no child reads it before fork */
    return QN_OK;
}

void qn_fork_mark_drop(struct qn_fork_mark *m)
{
    if (m->page != NULL) {
        munmap(m->page, page_bytes());
        m->page = NULL;
    }
}
