#ifndef QN_LOADGEN_TOPO_MODEL_COMPARE_H
#define QN_LOADGEN_TOPO_MODEL_COMPARE_H

/**
 * Latency against throughput of acknowledged broadcasts: trees and rings of
 * every arity, the static trees, and the planner's plans between its fastest
 * and its least busy one.
 *
 * A single operation waits for the longest path; in a sequence of operations
 * each one waits for the busiest core. No topology is best at both, so the
 * useful choices form a Pareto front: the topologies that no other one beats at
 * one measure without being worse at the other.
 *
 * Rings are listed twice, with a map for the latency and one for the rate.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/topo/model/topology_spec.h"

enum qn_compare_kind {
    QN_COMPARE_PLANNED,
    QN_COMPARE_RING,
    QN_COMPARE_COMPANION,
    QN_COMPARE_TREE,
    QN_COMPARE_KNOWN, /* static and published trees */
    QN_COMPARE_KINDS
};

/** "planned", "diamond rings", ... */
const char *qn_compare_kind_name(uint32_t kind);

struct qn_compare_point {
    char name[QN_TOPOLOGY_SPEC_NAME];
    enum qn_compare_kind kind;
    uint32_t arity; /* of a ring or balanced tree, else 0 */
    double latency; /* cycles of a single operation */
    double each;    /* cycles per operation, QN_PIPELINE_SIM_DEFAULT in a row */
    bool front; /* no other point is at least as good at both, and better at one
                 */
};

struct qn_compare {
    const struct qn_machine *m; /* borrowed */
    uint32_t count, room;
    bool live;                      /* print progress on stderr */
    struct qn_compare_point *point; /* [count] by kind, then arity */
};

/**
 * @param o     Root, seed, moves, queued factor; trees are the same in both
 *              directions.
 * @param live  Print progress on stderr: 256 cores take seconds.
 * @param out   Filled; freed by qn_compare_destroy.
 * @return QN_OK, QN_ENOMEM.
 */
int qn_compare_run(struct qn_compare **out, const struct qn_machine *m,
                   const struct qn_topology_spec_opts *o, bool live);

/** NULL is allowed. */
void qn_compare_destroy(struct qn_compare *c);

/** Sets `front` of each point. */
void qn_compare_mark_front(struct qn_compare_point *point, uint32_t count);

/**
 * Cycles per operation with at most `window` of them outstanding, window >= 1:
 * by Little's law at least latency / window, and at least `each`. This is a
 * lower bound: operations that delay each other before the busiest core is
 * saturated need more.
 */
double qn_compare_cycles(const struct qn_compare_point *p, uint32_t window);

/** The point with the least of that; NULL if there is none. */
const struct qn_compare_point *qn_compare_best(const struct qn_compare *c,
                                               uint32_t window);

/** Writes all points by latency, then the best one for each window. */
void qn_compare_write_text(const struct qn_compare *c, FILE *to);

/** topology,kind,arity,latency,pipeline_cycles,front */
void qn_compare_write_csv(const struct qn_compare *c, FILE *to);

#endif
