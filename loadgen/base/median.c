#include "loadgen/base/median.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/assert.h"

#define TAIL 0.025 /* of the certainty that is missing, on each side */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many values may be left out at each end: the largest k for which fewer
 * than k + 1 of n lie below the median with a chance of TAIL at most, less one.
 */
static uint32_t left_out(uint32_t n)
{
    double term = pow(0.5, n), tail = term;
    uint32_t k = 0;
    while (tail <= TAIL) {
        k++;
        term *= (double)(n - k + 1) / k;
        tail += term;
    }
    return k > 0 ? k - 1 : 0;
}

struct qn_median qn_median_of(double *v, uint32_t n)
{
    QN_ASSERT(n > 0);
    QN_ASSERT(n <= QN_MEDIAN_VALUES_MAX); /* 0.5^n is no 0 */
    qsort(v, n, sizeof *v, by_value);
    const uint32_t k = left_out(n);
    return (struct qn_median){.median = (v[(n - 1) / 2] + v[n / 2]) / 2,
                              .low = v[k],
                              .high = v[n - 1 - k]};
}
