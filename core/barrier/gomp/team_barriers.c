/*
 * A table by size, in memory of the thread that begins the teams: two such
 * threads share nothing. A forked child has a copy of it, in which no member
 * waits.
 */
#include "core/barrier/gomp/team_barriers.h"

#include <pthread.h>

#include "core/base/alloc.h"
#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "core/base/err.h"

struct seat {
    alignas(QN_CACHELINE) struct qn_barrier_member me;
};

struct team_barrier {
    struct seat *seat; /* [size] owned; each is used by that thread */
    void *memory;      /* owned; of the barrier */
};

struct qn_team_barriers {
    uint32_t cores;
    pthread_mutex_t making;               /* one thread makes a barrier */
    qn_a64 of_size[QN_GOMP_TEAM_MAX + 1]; /* address of a struct team_barrier;
                                             0: not made yet */
};

/* There was no memory for it. */
static struct team_barrier none;

/* The key ends the barriers with their thread. A region that a later destructor
 * runs gets new ones, which the key ends in the next round of destructors. */
static pthread_key_t key;
static bool has_key; /* false: the program has taken all of them */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void barrier_free(struct team_barrier *b)
{
    if (b != NULL && b != &none) {
        qn_alloc_free_lines(&qn_alloc_malloc, b->memory);
        qn_alloc_free_lines(&qn_alloc_malloc, b->seat);
        qn_alloc_free(&qn_alloc_malloc, b);
    }
}

/* acquire -> the store of make. */
static struct team_barrier *made(const struct qn_team_barriers *t,
                                 uint32_t size)
{
    const uint64_t address = qn_load(&t->of_size[size], QN_ACQUIRE);
    return (struct team_barrier *)(uintptr_t)address;
}

static void end(void *arg)
{
    struct qn_team_master *m = arg;
    for (uint32_t size = 0; size <= QN_GOMP_TEAM_MAX; size++) {
        barrier_free(made(m->barriers, size));
    }
    (void)pthread_mutex_destroy(&m->barriers->making);
    qn_alloc_free(&qn_alloc_malloc, m->barriers);
    m->barriers = NULL;
    m->ours = false;
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, end) == 0;
}

bool qn_team_barriers_make(struct qn_team_master *m, uint32_t cores)
{
    if (m->barriers != NULL) {
        return true;
    }
    (void)pthread_once(&key_once, make_key);
    m->barriers =
        has_key ? qn_alloc_zeroed(&qn_alloc_malloc, sizeof *m->barriers) : NULL;
    if (m->barriers == NULL) {
        return false;
    }
    m->barriers->cores = cores;
    (void)pthread_mutex_init(&m->barriers->making, NULL);
    if (pthread_setspecific(key, m) != 0) {
        end(m);
    }
    return m->barriers != NULL;
}

static struct team_barrier *barrier_make(uint32_t size, uint32_t cores)
{
    const struct qn_barrier_opts o = {.members = size, .cores = cores};
    const size_t bytes = qn_barrier_bytes(&o);
    struct team_barrier *b = qn_alloc_zeroed(&qn_alloc_malloc, sizeof *b);
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
    return b;
}

/* All members are told of the one that the first one has made, or of `none`. */
static struct team_barrier *make(struct qn_team_barriers *t, uint32_t size)
{
    (void)pthread_mutex_lock(&t->making);
    struct team_barrier *b = made(t, size);
    if (b == NULL) {
        b = barrier_make(size, t->cores);
        b = b != NULL ? b : &none;
        /* release -> made. */
        qn_store(&t->of_size[size], (uintptr_t)b, QN_RELEASE);
    }
    (void)pthread_mutex_unlock(&t->making);
    return b;
}

struct qn_barrier_member *qn_team_barriers_seat(const struct qn_team_master *m,
                                                uint32_t size, uint32_t number)
{
    if (size < 2 || size > QN_GOMP_TEAM_MAX) {
        return NULL;
    }
    const struct team_barrier *b = made(m->barriers, size);
    if (b == NULL) {
        b = make(m->barriers, size);
    }
    return b->seat == NULL ? NULL : &b->seat[number].me;
}
