#ifndef QN_CORE_PLAN_EXACT_SUBSET_DP_H
#define QN_CORE_PLAN_EXACT_SUBSET_DP_H

/**
 * The recursion over subsets: the best of all trees for a small group.
 *
 * Each core v has a tail, cycles that it has to spend once it has sent its last
 * message. What is made small is the time until all tails are over; with
 * tails of 0 that is a broadcast. subset_dp.c says how.
 *
 * One thread at a time per object; init allocates, nothing else does.
 */

#include "core/topo/shape.h"

#define QN_SUBSETS_MAX 14u /* cores; memory 3 n 2^n doubles, work 3^n n^2 */

/** As root: every core is tried, or the best one chosen. */
#define QN_ROOT_FREE UINT32_MAX

struct qn_subset_dp {
    const struct qn_machine *m;
    double *way;     /* [n*n] row: from; shortest way, s + r per message */
    double *best;    /* [n << n] row: core, column: set. All tables alike */
    double *alone;   /* if the whole set is handed to one child */
    double *nearest; /* least send cost into the set */
};

/** @param m  Kept until fini. @return QN_OK; QN_EMSGSIZE (more cores than
 *  QN_SUBSETS_MAX); QN_ENOMEM. */
int qn_subset_dp_init(struct qn_subset_dp *x, const struct qn_machine *m);

/** After a failed init, too. */
void qn_subset_dp_fini(struct qn_subset_dp *x);

/**
 * Solve for one root, or for all.
 *
 * @param root   Index, or QN_ROOT_FREE.
 * @param tail   [n] cycles; NULL: 0.
 * @param limit  [n] values of a core that are not below it are taken for
 *               infinite, which saves work; NULL: none.
 */
void qn_subset_dp_fill(struct qn_subset_dp *x, uint32_t root,
                       const double *tail, const double *limit);

/** Least cycles from `root`; QN_SUBSETS_NEVER if that is not below the
 *  limit. */
double qn_subset_dp_value(const struct qn_subset_dp *x, uint32_t root);
#define QN_SUBSETS_NEVER 1e300

/** A tree that attains it; the value must be finite. */
void qn_subset_dp_tree(const struct qn_subset_dp *x, uint32_t root,
                       struct qn_shape *s);

#endif
