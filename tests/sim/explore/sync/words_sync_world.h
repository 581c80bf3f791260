#ifndef QN_TESTS_SIM_EXPLORE_WORDS_SYNC_WORLD_H
#define QN_TESTS_SIM_EXPLORE_WORDS_SYNC_WORLD_H

/**
 * Nodes that use locks and delegates over words, under every schedule. What
 * each does is a string of operations:
 *
 *     a b   acquire lock 0 (1), count, release
 *     t     try to acquire lock 0; if that succeeds count, release
 *     n     acquire lock 0, and lock 1 inside of it
 *     c d   delegate to object 0 (1): count
 *     s S   serve object 0 until it was stopped; S: once another has left
 *     p     poll as the server of object 0: take its endpoint, serve, or leave
 *     l     say that it has left, as a server, or another that X waits for
 *     y     let the others run
 *     x X   stop its server, once there is one; X: once another has left
 *
 * A fault: two in one section, a count that is lost or not ordered behind the
 * one before, a result that is given twice, a node that does not end.
 */

#include "core/sim/explore/explore.h"

struct words_program {
    const char *node[QN_EXPLORE_NODES]; /* NULL: no such node */
    const char *delegate;               /* NULL: hyb_comb */
    uint32_t batch;                     /* 0: the default */
    uint32_t deviations;                /* in C11; one less in TSO */
    bool split;
};

/** @return true: no fault within p->deviations + more. */
bool words_sync_is_clean(const struct words_program *p,
                         enum qn_explore_memory memory, int more,
                         struct qn_explored *out);

#endif
