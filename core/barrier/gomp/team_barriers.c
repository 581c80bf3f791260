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

/* Regions that a team remembers. A program that runs more of them in turn moves
 * a line per region to each thread, as each region of GOMP's does. */
#define REGIONS 8u

struct team_barrier {
    struct qn_team_region region[REGIONS];
    struct qn_team_seat *seat; /* [size] owned */
    void *memory;              /* owned; of the barrier */
};

struct table {
    struct team_barrier *of_size[QN_GOMP_TEAM_MAX + 1];
};

/* The key ends the table with its thread; the thread finds it here. A region
 * that a later destructor runs gets a new one, which the key ends in the next
 * round of destructors. */
static _Thread_local struct table *table;
static pthread_key_t key;
static bool has_key; /* false: the program has taken all of them */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void barrier_free(struct team_barrier *b)
{
    if (b != NULL) {
        qn_alloc_free_lines(&qn_alloc_malloc, b->memory);
        qn_alloc_free_lines(&qn_alloc_malloc, b->seat);
    }
    qn_alloc_free_lines(&qn_alloc_malloc, b);
}

static void table_free(void *arg)
{
    struct table *t = arg;
    for (uint32_t size = 0; size <= QN_GOMP_TEAM_MAX; size++) {
        barrier_free(t->of_size[size]);
    }
    qn_alloc_free(&qn_alloc_malloc, t);
    table = NULL;
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, table_free) == 0;
}

/* NULL: there is no memory, or no key. */
static struct table *table_make(void)
{
    (void)pthread_once(&key_once, make_key);
    struct table *t =
        has_key ? qn_alloc_zeroed(&qn_alloc_malloc, sizeof *t) : NULL;
    if (t != NULL && pthread_setspecific(key, t) != 0) {
        table_free(t);
        t = NULL;
    }
    return t;
}

static struct team_barrier *barrier_make(uint32_t size, uint32_t cores)
{
    const struct qn_barrier_opts o = {.members = size, .cores = cores};
    const size_t bytes = qn_barrier_bytes(&o);
    struct team_barrier *b = qn_alloc_lines(&qn_alloc_malloc, sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    *b = (struct team_barrier){
        .seat = qn_alloc_lines(&qn_alloc_malloc, size * sizeof *b->seat),
        .memory = qn_alloc_lines(&qn_alloc_malloc, bytes)};
    if (b->seat == NULL || b->memory == NULL ||
        qn_barrier_format(b->memory, bytes, &o) != QN_OK) {
        barrier_free(b);
        return NULL;
    }
    for (uint32_t i = 0; i < size; i++) {
        const int rc = qn_barrier_join(b->memory, i, &b->seat[i].me);
        QN_ASSERT(rc == QN_OK);
    }
    for (uint32_t i = 0; i < REGIONS; i++) {
        b->region[i].size = size;
        b->region[i].seat = b->seat;
    }
    return b;
}

/* No thread reads any of them: the region before has ended. What this thread
 * writes, libgomp publishes with the address. */
static struct qn_team_region *region_of(struct team_barrier *b,
                                        void (*fn)(void *), void *data)
{
    const uintptr_t mixed = (uintptr_t)fn / 16 + (uintptr_t)data / 16;
    struct qn_team_region *r = &b->region[mixed % REGIONS];
    if (r->fn != fn || r->data != data) {
        r->fn = fn;
        r->data = data;
    }
    return r;
}

struct qn_team_region *qn_team_region_of(uint32_t size, void (*fn)(void *),
                                         void *data, int (*cores)(void))
{
    if (table == NULL) {
        table = table_make();
    }
    if (table == NULL || size > QN_GOMP_TEAM_MAX) {
        return NULL;
    }
    struct team_barrier **of = &table->of_size[size];
    if (*of == NULL) {
        *of = barrier_make(size, (uint32_t)cores());
    }
    return *of == NULL ? NULL : region_of(*of, fn, data);
}
