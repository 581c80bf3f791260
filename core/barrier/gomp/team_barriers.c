/*
 * A table by size, in thread-specific data: a thread that begins teams finds a
 * barrier by one look, and two threads that begin teams at the same time share
 * none. A forked child has a copy of the table, in which no member waits.
 */
#include "core/barrier/gomp/team_barriers.h"

#include <pthread.h>

#include "core/base/alloc.h"
#include "core/base/assert.h"
#include "core/base/err.h"

struct table {
    struct qn_team_barrier *of_size[QN_GOMP_TEAM_MAX + 1];
};

static pthread_key_t key;
static bool has_key; /* false: the program has taken all of them */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void barrier_free(struct qn_team_barrier *b)
{
    if (b != NULL) {
        qn_alloc_free_lines(&qn_alloc_malloc, b->memory);
        qn_alloc_free_lines(&qn_alloc_malloc, b->seat);
    }
    qn_alloc_free(&qn_alloc_malloc, b);
}

static void table_free(void *arg)
{
    struct table *t = arg;
    for (uint32_t size = 0; size <= QN_GOMP_TEAM_MAX; size++) {
        barrier_free(t->of_size[size]);
    }
    qn_alloc_free(&qn_alloc_malloc, t);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, table_free) == 0;
}

/* NULL: there is no memory, or no key. */
static struct table *own_table(void)
{
    (void)pthread_once(&key_once, make_key);
    struct table *t = has_key ? pthread_getspecific(key) : NULL;
    if (t == NULL && has_key) {
        t = qn_alloc_zeroed(&qn_alloc_malloc, sizeof *t);
        if (t != NULL && pthread_setspecific(key, t) != 0) {
            table_free(t);
            t = NULL;
        }
    }
    return t;
}

static struct qn_team_barrier *barrier_make(uint32_t size, uint32_t cores)
{
    const struct qn_barrier_opts o = {.members = size, .cores = cores};
    const size_t bytes = qn_barrier_bytes(&o);
    struct qn_team_barrier *b = qn_alloc_zeroed(&qn_alloc_malloc, sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    b->size = size;
    b->seat = qn_alloc_lines(&qn_alloc_malloc, size * sizeof *b->seat);
    b->memory = qn_alloc_lines(&qn_alloc_malloc, bytes);
    if (b->seat == NULL || b->memory == NULL ||
        qn_barrier_format(b->memory, bytes, &o) != QN_OK) {
        barrier_free(b);
        return NULL;
    }
    for (uint32_t i = 0; i < size; i++) {
        const int rc = qn_barrier_join(b->memory, i, &b->seat[i].me);
        QN_ASSERT(rc == QN_OK);
    }
    return b;
}

struct qn_team_barrier *qn_team_barrier_of(uint32_t size, int (*cores)(void))
{
    struct table *t = size <= QN_GOMP_TEAM_MAX ? own_table() : NULL;
    if (t == NULL) {
        return NULL;
    }
    if (t->of_size[size] == NULL) {
        t->of_size[size] = barrier_make(size, (uint32_t)cores());
    }
    return t->of_size[size];
}
