/*
 * Pearson's correlation of the ranks. With two items it could only be 1 or -1,
 * so it would mean nothing.
 */
#include "loadgen/bcast/rank.h"

#include <math.h>

#include "core/base/assert.h"

/* Rank, 0 for the least; equal values share their mean rank. */
static double rank_of(const double *v, uint32_t n, uint32_t i)
{
    uint32_t less = 0, equal = 0;
    for (uint32_t j = 0; j < n; j++) {
        less += v[j] < v[i];
        equal += v[j] == v[i];
    }
    return less + (equal - 1) / 2.0;
}

double qn_rank_correlation(const double *a, const double *b, uint32_t n)
{
    QN_ASSERT(n <= QN_RANK_MAX);
    double mean = (n - 1.0) / 2, ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < n; i++) {
        double x = rank_of(a, n, i) - mean;
        double y = rank_of(b, n, i) - mean;
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return n < 3 || aa == 0 || bb == 0 ? (double)NAN : ab / sqrt(aa * bb);
}
