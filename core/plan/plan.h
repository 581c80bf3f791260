#ifndef QN_CORE_PLAN_PLAN_H
#define QN_CORE_PLAN_PLAN_H

/**
 * The planner: a nearly optimal tree for an operation on a machine.
 *
 * Every static tree, the balanced trees of up to QN_CANDIDATE_ARITY children
 * and those of the adaptive generator are candidates (candidates.h); the best
 * one is improved by local search (seek.h), small groups are solved exactly
 * (optimum.h). So a plan is never worse than one of them from the same root
 * (with a free one: from the first core); and with a free root never worse than
 * from the first core (with `robust`: in that quantile). Other balanced trees,
 * and for throughput or one acknowledged broadcast diamond rings, may be
 * better.
 *
 * Budgets count proposed moves and the only randomness is the seed's: equal
 * input gives the equal plan, at any speed of the computer.
 *
 * Pure but for scratch memory, any thread. Structs are large (qn_plan: 16 KB).
 */

#include "core/plan/exact/optimum.h"
#include "core/plan/search/objective.h"

struct qn_plan_opts {
    enum qn_goal goal;
    uint32_t root;        /* index, or QN_ROOT_FREE */
    uint64_t seed;        /* of the local search */
    uint64_t moves;       /* to propose, and with a free root as many again;
                             two trees of an answered broadcast: each time
                             twice as many besides. 0: the default of
                             the goal, which fits in 100 ms with 256 cores
                             (a free root's search: half as many) */
    double q;             /* queued factor, 0 .. 1 */
    bool one_tree;        /* the same tree in both directions */
    double max_occupancy; /* cycles that the busiest core may spend per
                             operation, 0: any. Implies one_tree. If no tree
                             is found that keeps it: the least busy one */
    bool robust;          /* of all found, the one with the least 90 % quantile
                             under costs disturbed by 10 % (objective.h),
                             instead of the least cost */
};

/** Broadcast, free root, seed 1, default moves, q = 1, a tree per direction. */
#define QN_PLAN_OPTS_DEFAULT                                                   \
    (struct qn_plan_opts)                                                      \
    {                                                                          \
        .root = QN_ROOT_FREE, .seed = 1, .q = 1                                \
    }

struct qn_plan {
    struct qn_shape down; /* parents inform children; of a reduction: as `up` */
    struct qn_shape up; /* children answer parents; of a broadcast: as `down` */
    double cost;        /* cycles: qn_plan_cost of the two */
    bool exact;         /* proven: no plan within the options costs less */
    bool provable;      /* not yet: more moves would prove the best */
    uint64_t moves;     /* proposed */
    char from[32];      /* "exact", "search", or the rule that gave it */
};

/**
 * Plan over all cores of a machine; restrict it first for a subset.
 *
 * @param out  Filled; untouched on failure.
 * @return QN_OK; QN_EINVAL (root, goal, q, max_occupancy); QN_ENOMEM.
 *
 * Exact for up to QN_PLAN_EXACT_MAX cores: broadcast; reduction with q = 1;
 * barrier with q = 1 and a tree per direction; without max_occupancy and
 * robust. Acknowledged broadcast and 2pc, as a barrier, for up to
 * QN_ACK_PLAN_MAX cores (answered.h) if the moves suffice: by default they do
 * for 7, nearly always for 8, mostly for 9, every second time for 10.
 */
int qn_plan(struct qn_plan *out, const struct qn_machine *m,
            const struct qn_plan_opts *o);

#define QN_PLAN_EXACT_MAX 12u

#endif
