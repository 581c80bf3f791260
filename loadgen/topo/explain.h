#ifndef QN_LOADGEN_TOPO_EXPLAIN_H
#define QN_LOADGEN_TOPO_EXPLAIN_H

/**
 * A topology explained in words: when each core has its message, which cores it
 * sends to, and why in that order. All numbers are those of a timeline, so they
 * add up to the prediction.
 */

#include <stdio.h>

#include "loadgen/topo/model/topology_spec.h"

/** @return QN_OK; QN_ENOENT if the topology does not support the operation;
 *          QN_ENOMEM. The caller checks ferror(). */
int qn_tree_explain(const struct qn_topology_spec *c,
                    const struct qn_machine *m, enum qn_goal goal, double q,
                    FILE *to);

#endif
