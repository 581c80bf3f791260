#ifndef QN_LOADGEN_BCAST_RANK_H
#define QN_LOADGEN_BCAST_RANK_H

/** Do two measures put things into the same order? Pure, any thread. */

#include <stdint.h>

#define QN_RANK_MAX 64u /* things */

/**
 * Spearman's rank correlation; equal values share the mean of their ranks.
 *
 * @param a, b  [n] the two measures. Borrowed.
 * @param n     At most QN_RANK_MAX (asserted).
 * @return -1 .. 1; NAN if it says nothing: fewer than 3 things, or all equal
 *         by one of the measures. O(n^2).
 */
double qn_rank_correlation(const double *a, const double *b, uint32_t n);

#endif
