#include "core/base/histogram.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

#include <string.h>

/*
 * Bucket i < 2 * STEPS holds the value i. From there on, bucket
 * s * STEPS + m, with m in [STEPS, 2 * STEPS), holds the 2^s values whose
 * leading bits are m. So index and value grow together, and a quantile is one
 * walk from the left.
 */

uint64_t qn_histogram_upper(uint32_t index)
{
    QN_ASSERT(index < QN_HISTOGRAM_BUCKETS);
    if (index < 2 * QN_HISTOGRAM_STEPS) {
        return index;
    }
    uint32_t shift = index / QN_HISTOGRAM_STEPS - 1;
    uint64_t leading = index - shift * QN_HISTOGRAM_STEPS;
    return ((leading + 1) << shift) - 1;
}

uint64_t qn_histogram_quantile(const struct qn_histogram *h, double q)
{
    QN_ASSERT(q > 0 && q <= 1);
    double exact = q * (double)h->count;
    uint64_t rank = (uint64_t)exact;
    rank += (double)rank < exact; /* rounded up */
    rank = QN_MIN(rank, h->count);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < QN_HISTOGRAM_BUCKETS && rank > 0; i++) {
        seen += h->bucket[i];
        if (seen >= rank) {
            /* The last bucket also holds what was clipped. */
            return i == QN_HISTOGRAM_BUCKETS - 1
                       ? h->max
                       : QN_MIN(qn_histogram_upper(i), h->max);
        }
    }
    return 0;
}

void qn_histogram_merge(struct qn_histogram *to,
                        const struct qn_histogram *from)
{
    uint32_t top = qn_histogram_index(from->max);
    for (uint32_t i = 0; i <= top; i++) {
        to->bucket[i] += from->bucket[i];
    }
    to->count += from->count;
    to->max = QN_MAX(to->max, from->max);
}

void qn_histogram_clear(struct qn_histogram *h)
{
    uint32_t top = qn_histogram_index(h->max);
    memset(h->bucket, 0, (top + 1) * sizeof h->bucket[0]);
    h->count = 0;
    h->max = 0;
}
