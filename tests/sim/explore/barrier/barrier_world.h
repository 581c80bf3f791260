#ifndef QN_TESTS_SIM_EXPLORE_BARRIER_BARRIER_WORLD_H
#define QN_TESTS_SIM_EXPLORE_BARRIER_BARRIER_WORLD_H

/**
 * Nodes that pass a barrier several times, under every schedule. In front of
 * episode e a node writes e to its cell of side e % 2, and behind it reads that
 * side of all: plain accesses, so a fault is a cell of another episode, a read
 * that is not ordered behind the write, and a node that does not end.
 */

#include "core/barrier/barrier_internal.h"
#include "core/sim/explore/explore.h"

struct barrier_program {
    uint32_t members;
    uint32_t episodes;
    bool own_cores;
    bool follower; /* behind its first episode member 0 leaves, and another node
                      joins in its place */
};

/** @return true: no fault within that many deviations. */
bool barrier_is_clean(const char *form, const struct barrier_program *p,
                      enum qn_explore_memory m, uint32_t deviations,
                      struct qn_explored *out);

#endif
