#include "core/base/bits.h"
#include "loadgen/workload/zipf.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

/*
 * Comparison with exact probabilities, summed in this file. All seeds are
 * fixed, so a verdict is always the same; a limit of five standard deviations
 * of chi-square would be exceeded by one seed in millions.
 */

enum { DRAWS = 300000, N_MAX = 1000 };

static double weight(uint64_t rank, double theta)
{
    return pow((double)rank + 1, -theta);
}

static double weight_sum(uint64_t n, double theta)
{
    double sum = 0;
    for (uint64_t i = n; i-- > 0;) { /* smallest terms first */
        sum += weight(i, theta);
    }
    return sum;
}

/* Chi-square of counts[n]; ranks are merged until 10 are expected. */
static double chi_square(const uint64_t *counts, uint64_t n, double theta,
                         double *freedom)
{
    double sum = weight_sum(n, theta);
    double chi = 0;
    double expected = 0;
    double got = 0;
    *freedom = -1;
    for (uint64_t i = 0; i < n; i++) {
        expected += DRAWS * weight(i, theta) / sum;
        got += (double)counts[i];
        if (expected >= 10 || i == n - 1) {
            chi += (got - expected) * (got - expected) / fmax(expected, 1);
            *freedom += 1;
            expected = 0;
            got = 0;
        }
    }
    return chi;
}

static const double thetas[] = {0,      0.0005, 0.5, 0.99, 0.9995,           1,
                                1.0005, 1.2,    2,   5,    QN_ZIPF_THETA_MAX};

Test(zipf, small_n_have_exact_probabilities)
{
    static const uint64_t sizes[] = {2, 3, 10, N_MAX};
    for (size_t t = 0; t < QN_ARRAY_COUNT(thetas); t++) {
        for (size_t s = 0; s < QN_ARRAY_COUNT(sizes); s++) {
            static uint64_t counts[N_MAX];
            memset(counts, 0, sizeof counts);
            struct qn_zipf z;
            uint64_t random = 1000 * t + s;
            qn_zipf_init(&z, sizes[s], thetas[t]);
            for (int i = 0; i < DRAWS; i++) {
                uint64_t rank = qn_zipf_draw(&z, &random);
                cr_assert_lt(rank, sizes[s]);
                counts[rank]++;
            }
            double freedom;
            double chi = chi_square(counts, sizes[s], thetas[t], &freedom);
            cr_assert_lt(chi, freedom + 5 * sqrt(2 * freedom) + 10,
                         "theta %g, n %d: chi-square %g, %g degrees", thetas[t],
                         (int)sizes[s], chi, freedom);
        }
    }
}

/* The first ranks of 10^7 keys, each within five standard deviations. */
Test(zipf, large_n_have_exact_heads)
{
    const uint64_t n = 10000000;
    static const double some[] = {0.5, 0.99, 1, 1.5};
    for (size_t t = 0; t < QN_ARRAY_COUNT(some); t++) {
        uint64_t counts[10] = {0};
        struct qn_zipf z;
        uint64_t random = t;
        qn_zipf_init(&z, n, some[t]);
        for (int i = 0; i < DRAWS; i++) {
            uint64_t rank = qn_zipf_draw(&z, &random);
            cr_assert_lt(rank, n);
            counts[QN_MIN(rank, 9)]++;
        }
        double sum = weight_sum(n, some[t]);
        for (uint64_t i = 0; i < 9; i++) {
            double p = weight(i, some[t]) / sum;
            double slack = 5 * sqrt(DRAWS * p * (1 - p)) + 1;
            cr_assert(fabs((double)counts[i] - DRAWS * p) < slack,
                      "theta %g, rank %d: %d of %g", some[t], (int)i,
                      (int)counts[i], DRAWS * p);
        }
    }
}

/* Body and tail: the share of each power of ten. */
Test(zipf, large_n_have_exact_decades)
{
    const uint64_t n = 9999999;
    uint64_t counts[8] = {0};
    struct qn_zipf z;
    uint64_t random = 7;
    qn_zipf_init(&z, n, 0.99);
    for (int i = 0; i < DRAWS; i++) {
        counts[(int)log10((double)qn_zipf_draw(&z, &random) + 1)]++;
    }
    double sum = weight_sum(n, 0.99);
    uint64_t rank = 0;
    uint64_t end = 9;
    for (int decade = 0; decade < 7; decade++, end = 10 * end + 9) {
        double p = 0;
        for (; rank < end; rank++) {
            p += weight(rank, 0.99) / sum;
        }
        double slack = 5 * sqrt(DRAWS * p * (1 - p));
        cr_assert(fabs((double)counts[decade] - DRAWS * p) < slack,
                  "decade %d: %d of %g", decade, (int)counts[decade],
                  DRAWS * p);
    }
}

Test(zipf, one_rank_is_always_drawn)
{
    for (size_t t = 0; t < QN_ARRAY_COUNT(thetas); t++) {
        struct qn_zipf z;
        uint64_t random = 1;
        qn_zipf_init(&z, 1, thetas[t]);
        for (int i = 0; i < 1000; i++) {
            cr_assert_eq(qn_zipf_draw(&z, &random), 0);
        }
    }
}

/* At the limit of double precision: the largest n with the flattest and the
 * steepest theta still gives ranks in range. */
Test(zipf, the_largest_n_stays_in_range)
{
    for (size_t t = 0; t < QN_ARRAY_COUNT(thetas); t++) {
        struct qn_zipf z;
        uint64_t random = 1;
        qn_zipf_init(&z, QN_ZIPF_N_MAX, thetas[t]);
        for (int i = 0; i < 100000; i++) {
            cr_assert_lt(qn_zipf_draw(&z, &random), QN_ZIPF_N_MAX);
        }
    }
}
