#ifndef QN_LOADGEN_TOPO_MODEL_COMPARE_H
#define QN_LOADGEN_TOPO_MODEL_COMPARE_H

/**
 * Latency against throughput of acknowledged broadcasts: trees and rings of
 * every arity, the static trees, and what the planner finds between its
 * fastest and its busiest plan.
 *
 * A single operation waits for the longest path; of many operations in a row
 * each waits for the busiest core. Nothing is best at both, so what is worth
 * choosing from is a front: those that nobody beats at one without losing at
 * the other.
 *
 * Rings stand there twice, with a map for the latency and one for the rate.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/topo/model/contender.h"

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
    char name[QN_CONTENDER_NAME];
    enum qn_compare_kind kind;
    uint32_t arity; /* of a ring or balanced tree, else 0 */
    double latency; /* cycles of one operation alone */
    double each;    /* cycles per operation, QN_PIPELINE_SIM_DEFAULT in a row */
    bool front;     /* no other is at least as good at both, and better at
                       one */
};

struct qn_compare {
    const struct qn_machine *m; /* borrowed */
    uint32_t count, room;
    bool live;                      /* count on stderr while they are made */
    struct qn_compare_point *point; /* [count] by kind, then arity */
};

/**
 * @param o     Root, seed, moves, queued factor; trees are the same in both
 *              directions.
 * @param live  Count on stderr: 256 cores take seconds.
 * @param out  Filled; freed by qn_compare_destroy. @return QN_OK, QN_ENOMEM.
 */
int qn_compare_run(struct qn_compare **out, const struct qn_machine *m,
                   const struct qn_contender_opts *o, bool live);

/** NULL is allowed. */
void qn_compare_destroy(struct qn_compare *c);

/** Mark the front of any points. */
void qn_compare_mark_front(struct qn_compare_point *point, uint32_t count);

/**
 * Cycles per operation with at most `window` of them outstanding, window >= 1:
 * by Little's law no less than latency / window, and no less than `each`. That
 * is a bound: operations that delay each other before the busiest core is
 * full need more.
 */
double qn_compare_cycles(const struct qn_compare_point *p, uint32_t window);

/** The point with the least of that; NULL if there is none. */
const struct qn_compare_point *qn_compare_best(const struct qn_compare *c,
                                               uint32_t window);

/** Everything by latency, then what to use with which window. */
void qn_compare_write_text(const struct qn_compare *c, FILE *to);

/** topology,kind,arity,latency,pipeline_cycles,front */
void qn_compare_write_csv(const struct qn_compare *c, FILE *to);

#endif
