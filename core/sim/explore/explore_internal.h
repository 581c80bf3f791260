#ifndef QN_SIM_EXPLORE_EXPLORE_INTERNAL_H
#define QN_SIM_EXPLORE_EXPLORE_INTERNAL_H

/**
 * What a memory asks of the explorer while it performs an access. Inside of the
 * folder only.
 */

#include "core/sim/machine.h"

/** How much older than the newest store is what a load takes: below `count`,
 *  and by default 0. A step of its own. */
uint32_t qn_explore_old(uint32_t count);

/** A store has left its buffer for lack of room. */
void qn_explore_overflow(void);

/** The next piece of a long copy: a point as in front of any access. */
void qn_explore_piece(const struct qn_sim_access *piece);

#endif
