#ifndef QN_TESTS_LARGE_WORLD_H
#define QN_TESTS_LARGE_WORLD_H

/**
 * An interpreter of the schedules of all members of a large collective: it
 * runs their steps one by one, in an order drawn from a seed, on buffers of
 * exactly the bytes that they may use, and checks each result. Inputs are
 * there from a member's entry on, and gone when it has left. One thread.
 */

#include "core/coll/large/large_schedule.h"

/** What a run found wrong; NULL: nothing. `plan.tree` may be NULL: a tree of
 *  its own for the root.
 *  @param seed  Of the order. */
const char *qn_large_world_run(const struct qn_large_plan *plan, uint32_t seed);

#endif
