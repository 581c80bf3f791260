#ifndef QN_TESTS_SIM_EXPLORE_SYNC_LOCK_WORLD_H
#define QN_TESTS_SIM_EXPLORE_SYNC_LOCK_WORLD_H

/**
 * Nodes that use one lock, under every schedule. What each does is a string of
 * operations:
 *
 *     a   acquire, count, release
 *     t   try; if it has the lock, count and release
 *     u   acquire until a time that passes only when no node can run, likewise
 *     w   acquire, wait for an `e`, count, release
 *     e   end the wait of `w`
 *
 * A fault: two holders at once, a count that is lost or not ordered behind the
 * one before, and a node that does not end.
 */

#include "core/sim/explore/explore.h"
#include "core/sync/lock/lock_internal.h"

struct lock_program {
    const char *node[QN_EXPLORE_NODES]; /* NULL: no such node */
    bool own_cores;
};

/** Two nodes of two operations each, and others. */
extern const struct lock_program lock_of_two;
extern const struct lock_program lock_of_three;
extern const struct lock_program lock_of_tries;
extern const struct lock_program lock_of_a_sleeper; /* beside a try */
extern const struct lock_program lock_of_deadlines; /* of timed types */
extern const struct lock_program lock_of_own_cores;

/** @return true: no fault within that many deviations. */
bool lock_is_clean(const struct qn_lock_type *type,
                   const struct lock_program *p, enum qn_explore_memory m,
                   uint32_t deviations, struct qn_explored *out);

#endif
