#ifndef QN_TOPO_CANDIDATES_H
#define QN_TOPO_CANDIDATES_H

/**
 * Every tree that a rule gives, for the planner to start from: the static
 * trees, the balanced ones of up to QN_CANDIDATE_ARITY children, a chain of
 * nearest neighbours, and the adaptive and cluster trees over every level, from
 * one root.
 */

#include "core/topo/shape.h"

#define QN_CANDIDATE_ARITY 4u

/** Called for each; the shape is borrowed. */
typedef void qn_candidate_fn(void *arg, const char *name,
                             const struct qn_shape *s);

/** Build all trees from a root. O(n^2) each, mst2 and bad2 O(n^3).
 *  @return QN_OK, QN_EINVAL (root), QN_ENOMEM. */
int qn_candidates(const struct qn_machine *m, uint32_t root,
                  qn_candidate_fn *fn, void *arg);

#endif
