/*
 * libquoin-gomp.so: the barrier of core/barrier in programs of OpenMP that gcc
 * has compiled.
 *
 *     LD_PRELOAD=libquoin-gomp.so program
 *
 * It takes the place of two functions of libgomp. GOMP_parallel runs a parallel
 * region: here the team gets its barrier, since nothing else says which threads
 * form a team. GOMP_barrier is what compilers call for `barrier`, at the end of
 * a static `for` and of `single`: there the team passes the barrier that it
 * got.
 *
 *     GOMP_parallel(f)             begin(region) in each thread:
 *       (size, f, data) -> region    current = seat of this thread
 *       libgomp's, of begin          f(data) ... GOMP_barrier: wait(current)
 *                                    current = none
 *       <- libgomp's barrier, which ends the region, and so the use of both
 *
 * Ends of regions and of dynamic loops, and copyprivate, call hidden functions
 * of libgomp, and stay as they are. Each of both kinds is a whole barrier, and
 * all threads of a team pass the same ones in the same order, so they mix.
 *
 * GOMP's barrier stays, in whole regions, so that all members of a team do the
 * same: where a loaded object imports tasks or cancellation (imports.h); in
 * nested regions; in teams of one, of more than QN_GOMP_TEAM_MAX, of fewer
 * threads than were asked for, and where there is no memory for a barrier. A
 * library that is loaded within a region counts from the next one on.
 */
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/barrier/gomp/imports.h"
#include "core/barrier/gomp/team_barriers.h"
#include "core/base/assert.h"

#define EXPORT __attribute__((visibility("default")))

typedef void region_fn(void *data);
typedef void parallel_fn(region_fn *fn, void *data, unsigned threads,
                         unsigned flags);
typedef void barrier_fn(void);

EXPORT parallel_fn GOMP_parallel;
EXPORT barrier_fn GOMP_barrier;

/* What these two were without this library. */
static parallel_fn *next_parallel;
static barrier_fn *next_barrier;
static pthread_once_t next_once = PTHREAD_ONCE_INIT;

static _Thread_local struct qn_barrier_member *current; /* NULL: GOMP's */

/* ISO C has no cast from an object to a function. */
static void find(const char *name, void *function)
{
    const void *address = dlsym(RTLD_NEXT, name);
    QN_ASSERT(address != NULL); /* libgomp is linked */
    memcpy(function, &address, sizeof address);
}

static void find_next(void)
{
    find("GOMP_parallel", &next_parallel);
    find("GOMP_barrier", &next_barrier);
}

static void begin(void *arg)
{
    const struct qn_team_region *r = arg;
    /* All threads of a team see the same size, and decide alike. */
    if ((uint32_t)omp_get_num_threads() == r->size) {
        current = &r->seat[omp_get_thread_num()].me;
    }
    r->fn(r->data);
    current = NULL;
}

void GOMP_parallel(region_fn *fn, void *data, unsigned threads, unsigned flags)
{
    (void)pthread_once(&next_once, find_next);
    const uint32_t size =
        threads != 0 ? threads : (uint32_t)omp_get_max_threads();
    struct qn_team_region *r = NULL;
    if (size > 1 && omp_get_level() == 0 && !qn_gomp_imports_tasks()) {
        r = qn_team_region_of(size, fn, data, omp_get_num_procs);
    }
    if (r != NULL) {
        next_parallel(begin, r, threads, flags);
    } else {
        next_parallel(fn, data, threads, flags);
    }
}

void GOMP_barrier(void)
{
    /* A thread that has begun a nested region still has its seat of the outer
     * one. */
    if (current != NULL && omp_get_level() == 1) {
        qn_barrier_wait(current);
    } else {
        (void)pthread_once(&next_once, find_next);
        next_barrier();
    }
}
