#ifndef QN_BARRIER_GOMP_WORKERS_H
#define QN_BARRIER_GOMP_WORKERS_H

/**
 * Which thread began the team of a worker.
 *
 * libgomp keeps the threads that it has started for a thread, and gives them to
 * the teams of that thread only. So a worker needs to know it once: the library
 * also takes the place of pthread_create, and tells a thread that libgomp
 * starts which one has started it. All other threads are started as they are.
 */

#include "core/barrier/gomp/team_barriers.h"

/** Of the calling thread, for the teams that it begins. */
extern _Thread_local struct qn_team_master qn_team_own;

/** That of the thread that has started this one for its teams. NULL: it was not
 *  started by libgomp. */
extern _Thread_local struct qn_team_master *qn_team_creator;

#endif
