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

#include <stdbool.h>
#include <stdint.h>

#include "core/barrier/barrier.h"

#define QN_GOMP_TEAM_MAX 256u /* larger teams keep GOMP's barrier */

struct qn_team_barriers;

/** A thread that begins teams. It writes, outside of regions; its teams read
 *  within them, so nothing else may lie in the line. */
struct qn_team_master {
    alignas(QN_CACHELINE) struct qn_team_barriers *barriers; /* owned; NULL:
                                                                none */
    bool ours;  /* its teams pass them; only with barriers */
    bool known; /* its workers know it */
};

/**
 * Room for the barriers of the calling thread's teams, if there is none yet.
 * When the thread ends it is freed, and `ours` is false.
 *
 * @param m      Of the calling thread.
 * @param cores  That its teams run on.
 * @return false: no memory, or no key for data of a thread.
 */
bool qn_team_barriers_make(struct qn_team_master *m, uint32_t cores);

/**
 * The seat of a thread at the barrier of its team. The first one of the first
 * team of that size makes the barrier.
 *
 * @param size    Threads of the team.
 * @param number  In [0, size): the thread's.
 * @return NULL, for all members: a team of one, a larger one, or there was no
 *         memory.
 *
 * Any thread of a team of m's, in a region. The first time it takes a mutex.
 */
struct qn_barrier_member *qn_team_barriers_seat(const struct qn_team_master *m,
                                                uint32_t size, uint32_t number);

#endif
