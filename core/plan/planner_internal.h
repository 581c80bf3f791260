#ifndef QN_CORE_PLAN_PLANNER_INTERNAL_H
#define QN_CORE_PLAN_PLANNER_INTERNAL_H

/** The parts of the planner: plan.c (options, candidates, the result),
 *  plan_search.c (which searches a goal needs), plan_pair.c (two trees of an
 *  answered broadcast). */

#include "core/plan/plan.h"

struct qn_planner {
    const struct qn_machine *m;
    struct qn_plan_opts o;
    struct qn_machine *scratch; /* for robust plans; else NULL */
    struct qn_shape start;      /* the candidate of least cost */
    double start_cost;
    struct qn_plan best;
    double merit; /* of best: what is made small */
    bool any;
};

/** Hand in a pair of trees; the best one handed in is the plan. */
void qn_planner_offer(struct qn_planner *p, const char *from,
                      const struct qn_shape *down, const struct qn_shape *up);

/** Spend the moves. @return QN_OK or QN_ENOMEM. */
int qn_planner_search(struct qn_planner *p);

/**
 * Anneal the two trees of an answered broadcast in turn, each priced with the
 * other, and offer what comes of it.
 *
 * @param s  Both trees at the beginning; the root stays.
 * @return QN_OK or QN_ENOMEM.
 */
int qn_planner_pair(struct qn_planner *p, const struct qn_shape *s,
                    uint64_t moves);

#endif
