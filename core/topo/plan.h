#ifndef QN_TOPO_PLAN_H
#define QN_TOPO_PLAN_H

/**
 * The planner: a nearly optimal tree for an operation on a machine.
 *
 * Every known tree is a candidate (candidates.h). So a plan is never worse than
 * a static tree from the same root (with a free one: from the first core) or
 * the published adaptive tree.
 *
 * Budgets count evaluated moves and the only randomness is the seed's: equal
 * input gives the equal plan, on any computer and at any speed.
 *
 * Pure but for scratch memory, any thread. Structs are large (qn_plan: 16 KB).
 */

#include "core/topo/optimum.h"
#include "core/topo/predict.h"
#include "core/topo/shape.h"

/** What is made small. The first are operations' latencies, as enum qn_op. */
enum qn_goal {
    QN_GOAL_BROADCAST = QN_OP_BROADCAST,
    QN_GOAL_REDUCE = QN_OP_REDUCE,
    QN_GOAL_BARRIER = QN_OP_BARRIER,
    QN_GOAL_ACK = QN_OP_ACK,
    QN_GOAL_2PC = QN_OP_2PC,
    QN_GOAL_THROUGHPUT = QN_OPS, /* cycles per acknowledged broadcast, which
                                    the busiest core spends on it */
    QN_GOAL_STREAM,              /* the same without acknowledgements */
    QN_GOALS
};

/** "broadcast", "reduce", "barrier", "ack", "2pc", "throughput", "stream";
 *  NULL past the last. */
const char *qn_goal_name(uint32_t goal);

struct qn_plan_opts {
    enum qn_goal goal;
    uint32_t root;        /* index, or QN_ROOT_FREE */
    uint64_t seed;        /* of the local search */
    uint64_t moves;       /* evaluated moves; 0: the default, which fits in
                             100 ms with 256 cores */
    double q;             /* queued factor, 0 .. 1 */
    bool one_tree;        /* the same tree in both directions */
    double max_occupancy; /* cycles the busiest core may spend per operation;
                             0: any. Kept if that is possible at all */
    bool robust;          /* of the finalists, that with the least 90 %
                             quantile under costs perturbed by 10 % */
};

/** Broadcast, free root, seed 1, default moves, q = 1. */
#define QN_PLAN_OPTS_DEFAULT                                                   \
    (struct qn_plan_opts)                                                      \
    {                                                                          \
        .root = QN_ROOT_FREE, .seed = 1, .q = 1                                \
    }

struct qn_plan {
    struct qn_shape down; /* who informs whom; of a reduction: as `up` */
    struct qn_shape up;   /* who answers to whom; of a broadcast: as `down` */
    double cost;          /* cycles: qn_plan_cost of the two */
    bool exact;           /* proven: no plan of this kind costs less */
    uint64_t moves;       /* evaluated */
    char from[32];        /* the candidate that became it */
};

/**
 * What a pair of trees with the same root costs, in cycles; with down == up
 * this is qn_predict. The commit of 2pc goes down the tree of the broadcast.
 *
 * @param q  Queued factor, 0 .. 1.
 */
double qn_plan_cost(const struct qn_machine *m, const struct qn_shape *down,
                    const struct qn_shape *up, enum qn_goal goal, double q);

/**
 * Plan over all cores of a machine; restrict it first for a subset.
 *
 * @param out  Filled; untouched on failure.
 * @return QN_OK; QN_EINVAL (root, goal, q); QN_ENOMEM.
 */
int qn_plan(struct qn_plan *out, const struct qn_machine *m,
            const struct qn_plan_opts *o);

#endif
