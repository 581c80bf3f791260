#ifndef QN_CORE_PLAN_EXACT_ACK_PLAN_H
#define QN_CORE_PLAN_EXACT_ACK_PLAN_H

/**
 * Two trees with a common root for an acknowledged broadcast or a two-phase
 * commit in a small group: one down which it is told, one up which it is
 * answered. ack_plan.c says how they are found, and ack_plan_proof.c how
 * the best ones are proven.
 *
 * Pure but for scratch memory, any thread.
 */

#include "core/plan/exact/subset_dp.h"
#include "core/plan/search/objective.h"

#define QN_ACK_PLAN_MAX 10u /* cores */

struct qn_ack_plan_opts {
    bool commit;     /* the commit of 2pc goes down, too */
    uint32_t root;   /* index, or QN_ROOT_FREE */
    uint32_t proven; /* root from which nothing costs less than the plan to
                        begin with; QN_ROOT_FREE: none is known */
    uint64_t moves;  /* that may be spent, some 0.3 us each: 128 hand-overs
                        looked at; a recursion over subsets counts as
                        5^(n-1) / 1800 + 6 */
};

struct qn_ack_plan {
    struct qn_shape down, up;
    double cost;    /* cycles, with q = 1 */
    bool exact;     /* proven: no two trees from these roots cost less */
    uint64_t moves; /* spent */
};

/**
 * Improve a plan; if the moves suffice, until it is the best one.
 *
 * @param x     Two trees and what they cost, replaced by better ones if any are
 *              found; the rest is filled. Untouched on failure.
 * @param m     2 .. QN_ACK_PLAN_MAX cores.
 * @param back  m back in time: send(u,v) is m's receive(v,u), receive(u,v) m's
 *              send(v,u).
 * @return QN_OK or QN_ENOMEM.
 */
int qn_ack_plan_search(struct qn_ack_plan *x, const struct qn_machine *m,
                       const struct qn_machine *back,
                       const struct qn_ack_plan_opts *o);

#endif
