#ifndef QN_BASE_HISTOGRAM_H
#define QN_BASE_HISTOGRAM_H

/**
 * A log-linear histogram of times with three significant digits.
 *
 * Each power of two is cut into QN_HISTOGRAM_STEPS equal steps, so a recorded
 * value is known to within 1/1024 of itself, from 1 ns to half an hour, in
 * 280 KiB, and recording is a shift and an increment. Values below 2048 are
 * exact. The idea is Gil Tene's HdrHistogram.
 *
 * One thread. The caller owns the bytes; all zero is an empty histogram.
 */

#include <stdint.h>

#define QN_HISTOGRAM_STEPS     1024 /* per power of two; 2^10 > 10^3 */
#define QN_HISTOGRAM_STEP_BITS 10
#define QN_HISTOGRAM_MAX_BITS                                                  \
    41 /* values from 2^41 ns (37 min) on are clipped */
#define QN_HISTOGRAM_BUCKETS                                                   \
    ((QN_HISTOGRAM_MAX_BITS - QN_HISTOGRAM_STEP_BITS + 1) * QN_HISTOGRAM_STEPS)

struct qn_histogram {
    uint64_t count;
    uint64_t max; /* ns, exact; 0 if empty */
    uint64_t bucket[QN_HISTOGRAM_BUCKETS];
};

/** The bucket of a value: monotonic in it. Clips large values. */
static inline uint32_t qn_histogram_index(uint64_t value)
{
    if (value >> QN_HISTOGRAM_MAX_BITS != 0) {
        return QN_HISTOGRAM_BUCKETS - 1;
    }
    /* Below 2 * STEPS the bucket is the value; above, each power of two is
     * shifted down until its STEPS + 1 leading bits are left. */
    uint32_t log2 = 63 - (uint32_t)__builtin_clzll(value | QN_HISTOGRAM_STEPS);
    uint32_t shift = log2 - QN_HISTOGRAM_STEP_BITS;
    return (uint32_t)(value >> shift) + shift * QN_HISTOGRAM_STEPS;
}

/** Count one value (ns). */
static inline void qn_histogram_record(struct qn_histogram *h, uint64_t value)
{
    h->bucket[qn_histogram_index(value)]++;
    h->count++;
    h->max = value > h->max ? value : h->max;
}

/** The largest value that falls into a bucket (< QN_HISTOGRAM_BUCKETS). */
uint64_t qn_histogram_upper(uint32_t index);

/**
 * The value that a share `q` of all values does not exceed: with n values
 * sorted, the one at position ceil(q * n), counted from 1, rounded up to its
 * bucket's end.
 *
 * @param q  0 < q <= 1.
 * @return ns; 0 if the histogram is empty. O(buckets).
 */
uint64_t qn_histogram_quantile(const struct qn_histogram *h, double q);

/** Add all of `from` to `to`. O(buckets up to the largest value). */
void qn_histogram_merge(struct qn_histogram *to,
                        const struct qn_histogram *from);

/** Empty it. O(buckets up to the largest value). */
void qn_histogram_clear(struct qn_histogram *h);

#endif
