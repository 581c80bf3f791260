#include <math.h>

#include "loadgen/bcast/rank.h"
#include "tests/support/test.h"

Test(rank, order_counts_and_not_size)
{
    const double a[] = {1, 2, 3, 4}, up[] = {5, 6, 70, 800},
                 down[] = {9, 8, 1, 0}, swapped[] = {1, 2, 4, 3};
    cr_assert_float_eq(qn_rank_correlation(a, up, 4), 1, 1e-12);
    cr_assert_float_eq(qn_rank_correlation(a, down, 4), -1, 1e-12);
    /* 1 - 6 * (1 + 1) / (4 * 15) */
    cr_assert_float_eq(qn_rank_correlation(a, swapped, 4), 0.8, 1e-12);
}

Test(rank, equal_values_share_their_rank)
{
    const double a[] = {1, 1, 2}, b[] = {1, 2, 3};
    cr_assert_float_eq(qn_rank_correlation(a, b, 3), sqrt(0.75), 1e-12);
}

Test(rank, is_undefined_for_two_values_and_for_equal_values)
{
    const double a[] = {1, 2, 3}, flat[] = {7, 7, 7};
    cr_assert(isnan(qn_rank_correlation(a, a, 0)));
    cr_assert(isnan(qn_rank_correlation(a, a, 2)));
    cr_assert(isnan(qn_rank_correlation(a, flat, 3)));
}
