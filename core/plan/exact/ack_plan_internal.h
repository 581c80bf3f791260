#ifndef QN_CORE_PLAN_EXACT_ACK_PLAN_INTERNAL_H
#define QN_CORE_PLAN_EXACT_ACK_PLAN_INTERNAL_H

/** The parts of the search for two trees: ack_plan.c (a good plan, the order of
 *  the roots), ack_plan_proof.c (the best one from a root). */

#include "core/plan/exact/ack_plan.h"
#include "core/plan/exact/transfer_edges.h"

#define QN_ANSWERED_CLEARLY                                                    \
    1e-9 /* part of the cost by which better is better */

struct qn_answering {
    const struct qn_machine *m;
    const struct qn_ack_plan_opts *o;
    struct qn_ack_plan *out;
    struct qn_subset_dp there, back;   /* the machine, and back in time */
    struct qn_transfer_edges down, up; /* of a proof, likewise */
    uint64_t fill;                     /* moves, of a recursion over subsets */
    uint64_t left;                     /* moves */
    bool cut;                          /* there were not enough of them */
};

/** Spend moves. Once there are none left, what is asked for is done, but
 *  nothing is proven by it. */
void qn_answering_spend(struct qn_answering *p, uint64_t moves);

/** Hand in two trees. @return What they cost. */
double qn_answering_offer(struct qn_answering *p, const struct qn_shape *down,
                          const struct qn_shape *up);

/** Whether two cores may trade places and no cost differs. */
bool qn_answering_twins(const struct qn_machine *m, uint32_t u, uint32_t v);

/** Until nothing from this root is better than what is known, or the moves are
 *  spent. */
void qn_answering_prove(struct qn_answering *p, uint32_t root);

#endif
