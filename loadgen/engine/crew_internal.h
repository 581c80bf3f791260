#ifndef QN_LOADGEN_ENGINE_CREW_INTERNAL_H
#define QN_LOADGEN_ENGINE_CREW_INTERNAL_H

/** A worker's users, made from the plan; and their share of the work. */

#include "loadgen/engine/conn_internal.h"
#include "loadgen/engine/worker.h"

/**
 * Make the users of every threads-th client of the plan from `index` on, with
 * the task to preload its share. loop, stats and all_rest must be set.
 *
 * @return QN_OK or QN_ENOMEM; qn_crew_fini in both cases.
 */
int qn_crew_init(struct qn_crew *crew, const struct qn_worker_plan *plan,
                 uint32_t index);

void qn_crew_fini(struct qn_crew *crew);

/**
 * A user asks by the mix from now on.
 *
 * @param requests  Of all users of the plan; UINT64_MAX: no end.
 * @param start     Of its schedule, in an open loop.
 */
void qn_crew_begin(struct qn_crew *crew, uint32_t user, uint64_t requests,
                   qn_time_t start);

/** Back to work, all of them. */
void qn_crew_wake(struct qn_crew *crew);

/** What all users owe at `now`: requests outstanding, and (filled) those that
 *  are due and not sent. */
uint64_t qn_crew_owed(const struct qn_crew *crew, qn_time_t now,
                      uint64_t *unsent);

/** How many users have asked as much as can be recorded, and asked no more. */
uint64_t qn_crew_spent(const struct qn_crew *crew);

#endif
