#ifndef QN_TESTS_SIM_OBJECT_WORLD_H
#define QN_TESTS_SIM_OBJECT_WORLD_H

/**
 * Up to three threads at one collection, or at one counter, under every
 * schedule. Each runs a program of operations: 'p' puts a value of its own, 't'
 * takes one, 'a' adds 1 to the counter, 'y' lets the others run. The history
 * must be linearizable, and behind it `capacity` values fit.
 */

#include "core/sim/explore/explore.h"

#define OBJECT_NODES 3u

struct object_case {
    const char *type;               /* of a collection; NULL: a counter */
    const char *backend;            /* of its delegates; NULL: none */
    const char *lock;               /* of that; NULL: its own choice */
    const char *before;             /* what node 0 does before the run */
    const char *node[OBJECT_NODES]; /* NULL behind the last */
    uint32_t capacity, ring, batch;
};

/** Explore in one memory. @return true: no fault, and complete. */
bool object_explore(const struct object_case *c, enum qn_explore_memory m,
                    uint32_t deviations, struct qn_explored *out);

/** "lcrq [pp] pt tt": a constant until the next call. */
const char *object_case_text(const struct object_case *c);

#endif
