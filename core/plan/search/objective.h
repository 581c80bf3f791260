#ifndef QN_CORE_PLAN_SEARCH_OBJECTIVE_H
#define QN_CORE_PLAN_SEARCH_OBJECTIVE_H

/**
 * What a plan is judged by: goals, their cost for a pair of trees, what the
 * busiest core spends, and the cost that nine of ten disturbed machines keep.
 *
 * Pure, any thread.
 */

#include "core/topo/predict.h"
#include "core/topo/shape.h"

/** What is made small. The first are operations' latencies, as enum
 * qn_collective. */
enum qn_goal {
    QN_GOAL_BROADCAST = QN_COLLECTIVE_BROADCAST,
    QN_GOAL_REDUCE = QN_COLLECTIVE_REDUCE,
    QN_GOAL_BARRIER = QN_COLLECTIVE_BARRIER,
    QN_GOAL_ACK = QN_COLLECTIVE_ACK,
    QN_GOAL_2PC = QN_COLLECTIVE_2PC,
    QN_GOAL_THROUGHPUT = QN_COLLECTIVES, /* cycles per acknowledged broadcast,
                                    which the busiest core spends on it */
    QN_GOAL_STREAM,                      /* the same without acknowledgements */
    QN_GOALS
};

/** "broadcast", "reduce", "barrier", "ack", "2pc", "throughput", "stream";
 *  NULL past the last. */
const char *qn_goal_name(uint32_t goal);

/**
 * What a pair of trees with the same root costs, in cycles; with down == up
 * this is qn_predict. The commit of 2pc goes down the tree of the broadcast.
 *
 * @param q  Queued factor, 0 .. 1.
 */
double qn_plan_cost(const struct qn_machine *m, const struct qn_shape *down,
                    const struct qn_shape *up, enum qn_goal goal, double q);

/** Cycles that the busiest core spends per operation: a broadcast goes down, a
 *  reduction up, everything else both ways once. */
double qn_plan_occupancy(const struct qn_machine *m,
                         const struct qn_shape *down, const struct qn_shape *up,
                         enum qn_goal goal);

#define QN_DISTURBED_SAMPLES 20u

/**
 * The 90 % quantile of the cost when each message's costs differ by up to 10 %
 * from the machine's, over QN_DISTURBED_SAMPLES samples of a seed.
 *
 * @param scratch  A machine of as many cores; its costs are overwritten.
 */
double qn_plan_disturbed(struct qn_machine *scratch, const struct qn_machine *m,
                         const struct qn_shape *down, const struct qn_shape *up,
                         enum qn_goal goal, double q, uint64_t seed);

#endif
