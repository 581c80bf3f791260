#ifndef QN_LOADGEN_BCAST_RANK_H
#define QN_LOADGEN_BCAST_RANK_H

/** Rank correlation: do two measures order items in the same way? Pure, any
 *  thread. */

#include <stdint.h>

#define QN_RANK_MAX 64u /* items */

/**
 * Spearman's rank correlation; equal values share the mean of their ranks.
 *
 * @param a, b  [n] the two measures. Borrowed.
 * @param n     At most QN_RANK_MAX (asserted).
 * @return -1 .. 1; NAN if undefined: fewer than 3 items, or all equal by one of
 *         the measures. O(n^2).
 */
double qn_rank_correlation(const double *a, const double *b, uint32_t n);

#endif
