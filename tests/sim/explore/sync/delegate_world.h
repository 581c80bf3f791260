#ifndef QN_TESTS_SIM_EXPLORE_DELEGATE_WORLD_H
#define QN_TESTS_SIM_EXPLORE_DELEGATE_WORLD_H

/**
 * Clients of one object, each with some operations on a plain counter, under
 * every schedule: each result once, in the order of each client, with what its
 * operation wrote visible behind it, and no client is left asleep.
 */

#include "core/sim/explore/explore.h"
#include "core/sync/delegate/delegate.h"

struct delegate_program {
    const char *type;
    const char *lock;      /* NULL: the backend's own */
    uint32_t clients;      /* 1 .. QN_EXPLORE_NODES */
    uint32_t calls;        /* of each */
    uint32_t batch;        /* 0: the default */
    uint32_t domains;      /* 0: 1; client i is in domain i % domains */
    uint32_t change_every; /* of `auto` */
    bool own_cores;
    bool only_operations; /* use their data */
    bool rejoin;          /* client 0 leaves and joins between its calls */
    uint32_t deviations;
};

/** @return no fault, and all schedules were run; *out says more. */
bool delegate_explore(const struct delegate_program *p,
                      enum qn_explore_memory memory, struct qn_explored *out);

#endif
