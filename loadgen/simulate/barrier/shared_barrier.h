#ifndef QN_LOADGEN_SIMULATE_SHARED_BARRIER_H
#define QN_LOADGEN_SIMULATE_SHARED_BARRIER_H

/**
 * Barriers on shared lines (core/barrier) on the timed machine. Each member has
 * a core of its own, and looks on. One thread, one call at a time; allocates.
 */

#include "core/barrier/barrier.h"
#include "core/sim/timed/timed.h"

struct qn_shared_barrier_opts {
    const char *form;            /* its name */
    const struct qn_shape *tree; /* of the form `tree`; NULL: two children
                                    each, in the order of members */
    uint32_t members;            /* 2 .. QN_BARRIER_MEMBERS_MAX */
    struct qn_prices *prices;    /* for as many nodes */
    uint64_t episode_ns;         /* more than one takes */
    bool alone;     /* all enter an episode at once, `episode_ns` behind the
                       start of the one before; else a member enters the next
                       one when it has left one */
    uint32_t count; /* episodes that are timed, at least 1 */
    uint64_t seed;
    double jitter;                    /* as in timed.h */
    const struct qn_sim_fault *fault; /* [faults] borrowed */
    uint32_t faults;
};

/** Unknown times are NAN. */
struct qn_shared_barrier_result {
    /* Of an episode: from the start until the last member has left it; if not
     * alone: what it takes member 0. */
    double median_ns, p99_ns;
    double rate;     /* episodes per second; NAN if alone */
    uint64_t wrong;  /* a member left before another one had entered */
    bool incomplete; /* a member did not come back in time */
    struct qn_timed_result run; /* qn_timed_result_free */
};

/** @param r  Filled. @return QN_OK; QN_EINVAL: no such form, or opts are out of
 *  range; QN_ENOMEM. */
int qn_shared_barrier_run(struct qn_shared_barrier_result *r,
                          const struct qn_shared_barrier_opts *o);

#endif
