#ifndef QN_LOADGEN_TOPO_EXPLAIN_H
#define QN_LOADGEN_TOPO_EXPLAIN_H

/**
 * A topology in words: when each core has its message, whom it serves, and why
 * in that order. All numbers are those of a timeline, so they add up to the
 * prediction.
 */

#include <stdio.h>

#include "loadgen/topo/model/contender.h"

/** @return QN_OK; QN_ENOENT (the topology does not do that); QN_ENOMEM. The
 *  caller checks ferror(). */
int qn_tree_explain(const struct qn_contender *c, const struct qn_machine *m,
                    enum qn_goal goal, double q, FILE *to);

#endif
