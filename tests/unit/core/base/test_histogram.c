#include "core/base/bits.h"
#include "core/base/histogram.h"
#include "loadgen/base/random.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>

static struct qn_histogram h;
static struct qn_histogram other;

Test(histogram, empty_has_quantile_zero)
{
    cr_assert_eq(qn_histogram_quantile(&h, 0.5), 0);
    cr_assert_eq(qn_histogram_quantile(&h, 1), 0);
}

Test(histogram, one_value_is_every_quantile)
{
    qn_histogram_record(&h, 123456789);
    cr_assert_eq(qn_histogram_quantile(&h, 0.001), 123456789);
    cr_assert_eq(qn_histogram_quantile(&h, 0.5), 123456789);
    cr_assert_eq(qn_histogram_quantile(&h, 1), 123456789);
}

/* Index and upper bound against each other at every bucket's both ends. */
Test(histogram, buckets_cover_all_values_without_gap_or_overlap)
{
    uint64_t lower = 0;
    for (uint32_t i = 0; i < QN_HISTOGRAM_BUCKETS; i++) {
        uint64_t upper = qn_histogram_upper(i);
        cr_assert_geq(upper, lower, "bucket %u", i);
        cr_assert_eq(qn_histogram_index(lower), i, "lower end of %u", i);
        cr_assert_eq(qn_histogram_index(upper), i, "upper end of %u", i);
        cr_assert_leq((upper - lower) * 1000, lower,
                      "bucket %u: three significant digits", i);
        lower = upper + 1;
    }
    cr_assert_eq(lower, UINT64_C(1) << QN_HISTOGRAM_MAX_BITS);
}

Test(histogram, values_beyond_the_range_are_clipped_but_the_maximum_is_exact)
{
    qn_histogram_record(&h, UINT64_MAX);
    qn_histogram_record(&h, UINT64_C(1) << QN_HISTOGRAM_MAX_BITS);
    cr_assert_eq(h.count, 2);
    cr_assert_eq(qn_histogram_quantile(&h, 1), UINT64_MAX);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Against a sort of the raw samples, over seven orders of magnitude. */
Test(histogram, quantiles_agree_with_an_offline_sort)
{
    enum { N = 100000 };
    static const double quantile[] = {0.00001, 0.1,   0.5,    0.9,
                                      0.99,    0.999, 0.9999, 1};
    static uint64_t sample[N];
    uint64_t random = 42;
    for (int i = 0; i < N; i++) {
        sample[i] = qn_random_next(&random) >> (30 + i % 24);
        qn_histogram_record(&h, sample[i]);
    }
    qsort(sample, N, sizeof sample[0], by_value);
    for (size_t i = 0; i < QN_ARRAY_COUNT(quantile); i++) {
        uint64_t want = sample[(int)ceil(quantile[i] * N) - 1];
        uint64_t got = qn_histogram_quantile(&h, quantile[i]);
        cr_assert_geq(got, want, "q %g", quantile[i]);
        cr_assert_leq((double)got, (double)want * 1.001, "q %g: %g and %g",
                      quantile[i], (double)got, (double)want);
    }
}

Test(histogram, merging_is_recording_both)
{
    for (uint64_t v = 1; v <= 1000; v++) {
        qn_histogram_record(v % 3 == 0 ? &h : &other, v);
    }
    qn_histogram_merge(&h, &other);
    cr_assert_eq(h.count, 1000);
    cr_assert_eq(h.max, 1000);
    cr_assert_eq(qn_histogram_quantile(&h, 0.5), 500);
    cr_assert_eq(qn_histogram_quantile(&h, 0.999), 999);
}

Test(histogram, clearing_leaves_nothing)
{
    qn_histogram_record(&h, 5);
    qn_histogram_record(&h, UINT64_MAX);
    qn_histogram_clear(&h);
    cr_assert_arr_eq(&h, &other, sizeof h);
}
