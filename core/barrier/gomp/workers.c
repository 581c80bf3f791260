/*
 * What libgomp starts is told by its function, which lies in libgomp.
 *
 * Where libgomp calls another pthread_create than this one (a plugin brought
 * both into a program that has neither), no worker knows its creator, and the
 * creator knows that (`known`): GOMP's barriers stay.
 */
#include "core/barrier/gomp/workers.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/assert.h"

typedef void *thread_fn(void *arg);
typedef int create_fn(pthread_t *thread, const pthread_attr_t *attr,
                      thread_fn *fn, void *arg);

__attribute__((visibility("default"))) create_fn pthread_create;

_Thread_local struct qn_team_master qn_team_own;
_Thread_local struct qn_team_master *qn_team_creator;

static create_fn *next_create;
static uintptr_t libgomp, libgomp_end; /* its addresses */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What a worker gets. */
struct start {
    thread_fn *fn;
    void *arg;
    struct qn_team_master *creator;
};

static int find_libgomp(struct dl_phdr_info *object, size_t size, void *arg)
{
    const uintptr_t known = *(const uintptr_t *)arg;
    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        const uintptr_t from = object->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && known - from < p->p_memsz) {
            libgomp = from;
            libgomp_end = from + p->p_memsz;
            return 1;
        }
    }
    return 0;
}

static void find_next(void)
{
    const void *create = dlsym(RTLD_NEXT, "pthread_create");
    /* A function of it that this library does not replace. */
    const uintptr_t known = (uintptr_t)dlsym(RTLD_NEXT, "omp_get_level");
    QN_ASSERT(create != NULL && known != 0);
    memcpy(&next_create, &create, sizeof create);
    (void)dl_iterate_phdr(find_libgomp, (void *)&known);
}

/* Early: a thread may be started while another one loads a library. */
__attribute__((constructor)) static void find_early(void)
{
    (void)pthread_once(&once, find_next);
}

static void *run_worker(void *arg)
{
    const struct start s = *(struct start *)arg;
    qn_alloc_free(&qn_alloc_malloc, arg);
    qn_team_creator = s.creator;
    return s.fn(s.arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, thread_fn *fn,
                   void *arg)
{
    (void)pthread_once(&once, find_next);
    if ((uintptr_t)fn - libgomp >= libgomp_end - libgomp) {
        return next_create(thread, attr, fn, arg);
    }
    struct start *s = qn_alloc_zeroed(&qn_alloc_malloc, sizeof *s);
    if (s == NULL) {
        return EAGAIN;
    }
    *s = (struct start){.fn = fn, .arg = arg, .creator = &qn_team_own};
    const int rc = next_create(thread, attr, run_worker, s);
    if (rc != 0) {
        qn_alloc_free(&qn_alloc_malloc, s);
    } else {
        /* Its workers read it in a region: libgomp publishes it. */
        qn_team_own.known = true;
    }
    return rc;
}
