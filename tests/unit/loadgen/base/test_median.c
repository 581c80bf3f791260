/*
 * The interval of a median, beside loadgen/scripts/bench_rows.py, which makes
 * the same one of the figures of whole servers.
 */
#include "loadgen/base/median.h"
#include "tests/support/test.h"

/* Of 1 .. n, in no order. */
static struct qn_median of_first(uint32_t n)
{
    static double v[QN_MEDIAN_VALUES_MAX];
    for (uint32_t i = 0; i < n; i++) {
        v[i] = 1 + (i * 7919 + 3) % n; /* a prime that does not divide n */
    }
    return qn_median_of(v, n);
}

static void expect(uint32_t n, double median, double low, double high)
{
    struct qn_median m = of_first(n);
    cr_assert_eq(m.median, median, "of %u: %g", n, m.median);
    cr_assert_eq(m.low, low, "of %u: %g", n, m.low);
    cr_assert_eq(m.high, high, "of %u: %g", n, m.high);
}

Test(median, twenty_pairs_leave_out_five_at_each_end)
{
    expect(20, 10.5, 6, 15);
}

Test(median, few_values_have_the_least_and_the_largest)
{
    expect(1, 1, 1, 1);
    expect(2, 1.5, 1, 2);
    expect(5, 3, 1, 5);
    expect(6, 3.5, 1, 6); /* the first that is certain: 31 of 32 */
    expect(8, 4.5, 1, 8);
    expect(9, 5, 2, 8);
}

Test(median, of_many_values_the_interval_is_small)
{
    expect(QN_MEDIAN_VALUES_MAX, 500.5, 469, 532);
}
