#ifndef QN_LOADGEN_BASE_MEDIAN_H
#define QN_LOADGEN_BASE_MEDIAN_H

/** The median of few measurements, and how sure it is. Pure, any thread. */

#include <stdint.h>

#define QN_MEDIAN_VALUES_MAX 1000u

struct qn_median {
    double median;
    double low, high; /* the median of what was drawn from lies between them
                         with 95 % certainty, whatever its distribution */
};

/**
 * Order statistics of the binomial distribution. Of fewer than 6 values `low`
 * and `high` are the least and the largest one, and less certain.
 *
 * @param v  [n] sorted by it; n from 1 to QN_MEDIAN_VALUES_MAX.
 */
struct qn_median qn_median_of(double *v, uint32_t n);

#endif
