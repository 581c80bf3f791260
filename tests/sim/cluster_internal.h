#ifndef QN_TESTS_SIM_CLUSTER_INTERNAL_H
#define QN_TESTS_SIM_CLUSTER_INTERNAL_H

/** Between cluster.c and cluster_check.c. */

#include "tests/sim/cluster.h"

#define CHECK(c, cond, ...) ((cond) ? (void)0 : cluster_fail((c), __VA_ARGS__))

/** The ring of a life; NULL: none. */
const struct qn_ring *cluster_ring(const struct cluster *c, qn_node_t node,
                                   uint64_t inc);

/* After each step of node i, in this order. */
void cluster_check_learned(struct cluster *c, qn_node_t i);
void cluster_check_roles(struct cluster *c, qn_node_t i);
void cluster_check_bounds(struct cluster *c, qn_node_t i);

/** Node i applies. */
void cluster_check_apply(struct cluster *c, qn_node_t i,
                         const struct qn_apply *a);

#endif
