#ifndef QN_KVS_FRONTEND_LOOP_DEADLINE_H
#define QN_KVS_FRONTEND_LOOP_DEADLINE_H

/**
 * When the next turn is due at the latest: a libuv timer that cannot be slept
 * through.
 *
 * libuv runs its timers before it decides how long to block. A timer that
 * became due since the last turn is thus gone when the loop goes to sleep, and
 * the sleep has no end. So one that went off is remembered until it is set
 * again: the caller that decides about sleep asks qn_loop_deadline_rang.
 *
 * Threads: the loop's.
 */

#include <stdbool.h>
#include <uv.h>

#include "core/base/clock.h"

struct qn_loop_deadline {
    uv_timer_t timer;
    qn_time_t at; /* what the timer is set to; QN_TIME_NEVER: it is not */
    bool rang;    /* went off, and was not set since */
};

/** Not set. The handle is closed with the loop's others; `a` must live until
 *  then. */
void qn_loop_deadline_init(struct qn_loop_deadline *a, uv_loop_t *loop);

/** Set it to `at` (ns; QN_TIME_NEVER: to nothing), which ends an earlier
 *  setting and a ring. Called once per turn, at its end. */
void qn_loop_deadline_set(struct qn_loop_deadline *a, qn_time_t at,
                          qn_time_t now);

/** It went off since it was set: a turn is due, do not sleep. */
static inline bool qn_loop_deadline_rang(const struct qn_loop_deadline *a)
{
    return a->rang;
}

#endif
