#ifndef QN_TOPO_PLANNER_INTERNAL_H
#define QN_TOPO_PLANNER_INTERNAL_H

/** The parts of the planner: plan.c (options, candidates, the result),
 *  plan_search.c (which searches a goal needs). */

#include "core/topo/plan.h"

#define QN_PLAN_STARTS 2u /* trees that a search begins from */

struct qn_planner {
    const struct qn_machine *m;
    struct qn_plan_opts o;
    struct qn_machine *scratch; /* for robust plans; else NULL */
    uint32_t starts;            /* best candidates, best first */
    struct qn_shape start[QN_PLAN_STARTS];
    double start_cost[QN_PLAN_STARTS];
    struct qn_plan best;
    double merit; /* of best: what is made small */
    bool any;
};

/** Hand in a pair of trees; the best one handed in is the plan. */
void qn_planner_offer(struct qn_planner *p, const char *from,
                      const struct qn_shape *down, const struct qn_shape *up);

/** Spend the moves. @return QN_OK or QN_ENOMEM. */
int qn_planner_search(struct qn_planner *p);

#endif
