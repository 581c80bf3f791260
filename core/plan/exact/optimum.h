#ifndef QN_CORE_PLAN_EXACT_OPTIMUM_H
#define QN_CORE_PLAN_EXACT_OPTIMUM_H

/** The best of all broadcast trees, for small groups. Any thread. */

#include "core/plan/exact/subset_dp.h"

#define QN_OPTIMUM_MAX QN_SUBSETS_MAX /* cores */

/**
 * @param root     Index, or QN_ROOT_FREE for the core from which the best tree
 *                 is fastest.
 * @param latency  Filled, cycles; NULL: not wanted.
 * @return QN_OK; QN_EINVAL (root); QN_EMSGSIZE (too many cores); QN_ENOMEM.
 */
int qn_optimum_build(struct qn_shape *s, const struct qn_machine *m,
                     uint32_t root, double *latency);

/** From each core as root: the latency of its best tree.
 *  @param latency [n] filled. @return as qn_optimum_build. */
int qn_optimum_roots(const struct qn_machine *m, double *latency);

#endif
