/*
 * libquoin-gomp.so: the barrier of core/barrier in programs of OpenMP that gcc
 * has compiled.
 *
 *     LD_PRELOAD=libquoin-gomp.so program
 *
 * GOMP_barrier is what compilers call for `barrier`, at the end of a static
 * `for` and of `single`. It takes that function's place. A thread finds its
 * team's barrier by the thread that has begun the team, which is itself or the
 * one that has started it (workers.h), and by the size of the team:
 *
 *     GOMP_parallel(...)            of a thread that begins a team:
 *       decide                        own.ours = no object imports tasks
 *       libgomp's, as it was called
 *         in each thread of the team: ... GOMP_barrier:
 *                                       master = number == 0 ? own : creator
 *                                       wait(master's barrier of that size)
 *       <- libgomp's barrier, which ends the region
 *
 * A region without such a barrier runs as without this library, but for the
 * decision: a few loads of the thread that begins it.
 *
 * Ends of regions and of dynamic loops, and copyprivate, call hidden functions
 * of libgomp, and stay as they are. Each of both kinds is a whole barrier, and
 * all threads of a team pass the same ones in the same order, so they mix.
 *
 * GOMP's barrier stays, in whole regions, so that all members of a team do the
 * same: where a loaded object imports tasks or cancellation (imports.h); in
 * nested regions; in teams of one, of more than QN_GOMP_TEAM_MAX, and where
 * there is no memory for a barrier. The decision is taken outside of regions
 * only: a library that is loaded within one counts from the next one on.
 */
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/barrier/gomp/imports.h"
#include "core/barrier/gomp/team_barriers.h"
#include "core/barrier/gomp/workers.h"
#include "core/base/assert.h"

#define EXPORT __attribute__((visibility("default")))

typedef void region_fn(void *data);
typedef void parallel_fn(region_fn *fn, void *data, unsigned threads,
                         unsigned flags);
typedef unsigned reductions_fn(region_fn *fn, void *data, unsigned threads,
                               unsigned flags);
typedef void start_fn(region_fn *fn, void *data, unsigned threads);
typedef void barrier_fn(void);

EXPORT parallel_fn GOMP_parallel;
EXPORT reductions_fn GOMP_parallel_reductions;
EXPORT start_fn GOMP_parallel_start;
EXPORT barrier_fn GOMP_barrier;

/* What these were without this library. */
static parallel_fn *next_parallel;
static reductions_fn *next_reductions;
static start_fn *next_start;
static barrier_fn *next_barrier;
static pthread_once_t next_once = PTHREAD_ONCE_INIT;

/* ISO C has no cast from an object to a function. */
static void find(const char *name, void *function)
{
    const void *address = dlsym(RTLD_NEXT, name);
    QN_ASSERT(address != NULL); /* libgomp is linked */
    memcpy(function, &address, sizeof address);
}

static void find_all(void)
{
    find("GOMP_parallel", &next_parallel);
    find("GOMP_parallel_reductions", &next_reductions);
    find("GOMP_parallel_start", &next_start);
    find("GOMP_barrier", &next_barrier);
}

/* An initializer in front of this one may have had a region. */
__attribute__((constructor)) static void find_next(void)
{
    (void)pthread_once(&next_once, find_all);
}

/* What this thread writes, libgomp publishes with the region. */
static void change(bool ours)
{
    struct qn_team_master *own = &qn_team_own;
    if (omp_get_level() == 0) {
        own->ours =
            ours && qn_team_barriers_make(own, (uint32_t)omp_get_num_procs());
    }
}

/* In front of each region. */
static inline void decide(void)
{
    const bool ours = !qn_gomp_imports_tasks();
    if (next_parallel == NULL) {
        find_next();
    }
    if (ours != qn_team_own.ours) {
        change(ours);
    }
}

void GOMP_parallel(region_fn *fn, void *data, unsigned threads, unsigned flags)
{
    decide();
    next_parallel(fn, data, threads, flags);
}

unsigned GOMP_parallel_reductions(region_fn *fn, void *data, unsigned threads,
                                  unsigned flags)
{
    decide();
    return next_reductions(fn, data, threads, flags);
}

/* What gcc called before 4.9. */
void GOMP_parallel_start(region_fn *fn, void *data, unsigned threads)
{
    decide();
    next_start(fn, data, threads);
}

/* The same for all threads of a team. NULL: they pass GOMP's. */
static struct qn_barrier_member *seat_of_team(void)
{
    const uint32_t number = (uint32_t)omp_get_thread_num();
    struct qn_team_master *m = number == 0 ? &qn_team_own : qn_team_creator;
    if (m == NULL || !m->ours || !m->known || omp_get_level() != 1) {
        return NULL;
    }
    return qn_team_barriers_seat(m, (uint32_t)omp_get_num_threads(), number);
}

void GOMP_barrier(void)
{
    struct qn_barrier_member *me = seat_of_team();
    if (me != NULL) {
        qn_barrier_wait(me);
        return;
    }
    (void)pthread_once(&next_once, find_all);
    next_barrier();
}
