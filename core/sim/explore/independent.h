#ifndef QN_SIM_EXPLORE_INDEPENDENT_H
#define QN_SIM_EXPLORE_INDEPENDENT_H

/**
 * What the order of two accesses of different nodes can change, by memory. A
 * wrong "nothing" hides schedules, so what is not known is "something". Inside
 * of the folder only.
 */

#include "core/sim/explore/explore.h"
#include "core/sim/machine.h"

/** No other node can tell when it acts, so none has to run in front of it.
 *  `checked`: there are checked copies, which can tell of plain ones. */
bool qn_access_local(enum qn_explore_memory m, const struct qn_sim_access *a,
                     bool checked);

/** Other nodes can tell whether it was done: a node is killed in front of it.
 */
bool qn_access_seen(const struct qn_sim_access *a);

/** It writes memory. */
bool qn_access_writes(const struct qn_sim_access *a);

/** It is a fence of seq_cst, or a system call, which is one. */
bool qn_access_full_fence(const struct qn_sim_access *a);

/** TSO: it empties the store buffer of its node. */
bool qn_access_empties(const struct qn_sim_access *a);

/** Done in either order they give the same. `drain` says that b is a store
 *  that leaves a store buffer. */
bool qn_access_independent(enum qn_explore_memory m,
                           const struct qn_sim_access *a,
                           const struct qn_sim_access *b, bool drain);

#endif
