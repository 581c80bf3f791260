#ifndef QN_BARRIER_GOMP_TEAM_BARRIERS_H
#define QN_BARRIER_GOMP_TEAM_BARRIERS_H

/**
 * The barriers of the teams that one thread begins, one for each size of team.
 *
 * A team lives for one parallel region; the next one of that size gets the same
 * barrier, which every member has then left: the region has ended with a
 * barrier of libgomp. So its members go on counting episodes where the threads
 * before them were, and nothing is made anew.
 */

#include <stdint.h>

#include "core/barrier/barrier.h"

#define QN_GOMP_TEAM_MAX 256u /* larger teams keep GOMP's barrier */

struct qn_team_seat {
    alignas(QN_CACHELINE) struct qn_barrier_member me;
};

/** What each thread of a team is told, in one line. It changes only where it
 *  is another region, so a region that is run again moves no line. */
struct qn_team_region {
    alignas(QN_CACHELINE) void (*fn)(void *);
    void *data;
    uint32_t size;
    struct qn_team_seat *seat; /* [size] each is used by that thread */
};

/**
 * The next region of the calling thread, with the barrier of that size. Both
 * are freed when the thread ends; the region holds until the next call.
 *
 * @param size   Threads of the team, at least 2.
 * @param fn     What each of them runs, with `data`.
 * @param cores  Says how many cores they run on: omp_get_num_procs, a system
 *               call. Asked when the barrier is made.
 * @return NULL: a larger team, no memory, or no key for data of a thread.
 *
 * Any thread; allocates once per thread and size.
 */
struct qn_team_region *qn_team_region_of(uint32_t size, void (*fn)(void *),
                                         void *data, int (*cores)(void));

#endif
