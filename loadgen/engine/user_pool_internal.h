#ifndef QN_LOADGEN_ENGINE_USER_POOL_INTERNAL_H
#define QN_LOADGEN_ENGINE_USER_POOL_INTERNAL_H

/** The users of one worker: made from the plan, with their share of the
 *  work. */

#include "loadgen/engine/conn_internal.h"
#include "loadgen/engine/worker.h"

/**
 * Make the users of every threads-th client of the plan, from `index` on, with
 * the task to preload their share. loop, stats and all_idle must be set.
 *
 * @return QN_OK or QN_ENOMEM; call qn_user_pool_fini in both cases.
 */
int qn_user_pool_init(struct qn_user_pool *pool,
                      const struct qn_worker_plan *plan, uint32_t index);

void qn_user_pool_fini(struct qn_user_pool *pool);

/**
 * From now on the user sends operations of the mix.
 *
 * @param requests  Operations of all users of the plan; UINT64_MAX: unlimited.
 * @param start     Start of its schedule, in an open loop.
 */
void qn_user_pool_begin(struct qn_user_pool *pool, uint32_t user,
                        uint64_t requests, qn_time_t start);

/** Wake all users: none is idle any more, and each sends what is due. */
void qn_user_pool_wake(struct qn_user_pool *pool);

/** Outstanding requests of all users at `now`; `unsent` is filled with the
 *  number of requests that are due and not sent. */
uint64_t qn_user_pool_outstanding(const struct qn_user_pool *pool,
                                  qn_time_t now, uint64_t *unsent);

/** Number of users that stopped because the history has no room for more. */
uint64_t qn_user_pool_spent(const struct qn_user_pool *pool);

#endif
