#ifndef QN_LOADGEN_TOPO_MODEL_TIMELINE_H
#define QN_LOADGEN_TOPO_MODEL_TIMELINE_H

/**
 * Timeline of one operation on a topology, message by message, under the rules
 * of core/topo/predict.h: when each core is busy. Pictures and explanations are
 * made from it; its end is what qn_plan_cost predicts.
 *
 * Plain data; the create functions allocate; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/plan/plan.h"
#include "core/topo/diamond_ring.h"

struct qn_span {
    double begin; /* cycles */
    double end;
    uint16_t core; /* the busy core */
    uint16_t peer; /* receiver of the message if `send`, else its sender */
    uint8_t phase; /* index into qn_timeline.phase */
    bool send;
};

/** A pass over a topology. */
struct qn_phase {
    const char *name; /* "broadcast", "reduction", "acknowledgements", ... */
    double begin;     /* cycles; its earliest moment */
    double end;
};

#define QN_PHASES_MAX 3u

struct qn_timeline {
    uint32_t n;     /* cores */
    uint32_t count; /* spans */
    uint32_t phases;
    struct qn_phase phase[QN_PHASES_MAX];
    double end;              /* cycles: the operation is complete */
    double at[QN_CORES_MAX]; /* cycles: when each core reaches the state named
                                by `at_means` */
    const char *at_means;    /* "informed", "has its subtree", "released" */
    struct qn_span span[];   /* ordered by time within a core and phase */
};

/**
 * One operation on a pair of trees with the same root.
 *
 * @param down  Tree of the way from the root to the leaves.
 * @param up    Tree of the answers; may be `down`.
 * @param goal  For throughput and stream: the operation that is repeated.
 * @param q     Queued factor, 0 .. 1.
 * @param out   Filled; the caller frees it with free().
 * @return QN_OK or QN_ENOMEM.
 */
int qn_timeline_trees(struct qn_timeline **out, const struct qn_machine *m,
                      const struct qn_shape *down, const struct qn_shape *up,
                      enum qn_goal goal, double q);

/** An acknowledged broadcast on a diamond ring, without local work; its end is
 *  that of qn_pipeline_sim_ring with one operation. Errors as above. */
int qn_timeline_ring(struct qn_timeline **out, const struct qn_machine *m,
                     const struct qn_diamond_ring *r, double q);

#endif
