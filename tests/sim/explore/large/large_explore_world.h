#ifndef QN_TESTS_SIM_EXPLORE_LARGE_LARGE_EXPLORE_WORLD_H
#define QN_TESTS_SIM_EXPLORE_LARGE_LARGE_EXPLORE_WORLD_H

/**
 * Members that run large collectives one after the other, under every schedule.
 * The root gives each broadcast another value and each member adds another one
 * to each reduction, by plain accesses in the same buffers every time: so a
 * fault is a wrong value, a read that is not ordered behind its write, a buffer
 * that is written while another member reads it, and a member that does not
 * end.
 */

#include "core/coll/large/large.h"
#include "core/sim/explore/explore.h"

struct large_program {
    uint32_t members;
    uint32_t operations; /* in a row */
    enum qn_large_operation operation;
    enum qn_large_sync entry, exit;
    uint32_t ends; /* a member that only says that it has ended; 0: none */
};

/** @return true: no fault within that many deviations. */
bool large_is_clean(const struct large_program *p, enum qn_explore_memory m,
                    uint32_t deviations, struct qn_explored *out);

#endif
