#include <math.h>
#include <string.h>

#include "core/coll/payload/operators.h"
#include "tests/support/test.h"

Test(operators, unsigned_words_are_combined_one_by_one)
{
    const uint64_t from[3] = {7, UINT64_MAX, 1};
    uint64_t sum[3] = {1, 2, 3}, least[3] = {1, 2, 3}, most[3] = {1, 2, 3};
    uint64_t both[3] = {5, 6, 7}, any[3] = {8, 0, 4};
    qn_sum_u64.combine(sum, from, 2);
    qn_min_u64.combine(least, from, 3);
    qn_max_u64.combine(most, from, 2);
    qn_and_u64.combine(both, from, 3);
    qn_or_u64.combine(any, from, 3);
    cr_assert(sum[0] == 8 && sum[1] == 1 && sum[2] == 3);
    cr_assert(least[0] == 1 && least[1] == 2 && least[2] == 1);
    cr_assert(most[0] == 7 && most[1] == UINT64_MAX && most[2] == 3);
    cr_assert(both[0] == 5 && both[1] == 6 && both[2] == 1);
    cr_assert(any[0] == 15 && any[1] == UINT64_MAX && any[2] == 5);
}

Test(operators, signed_words_compare_as_such_and_their_sum_wraps)
{
    const int64_t from[2] = {-3, INT64_MAX};
    int64_t sum[2] = {1, 1}, least[2] = {1, 2}, most[2] = {-5, 2};
    qn_sum_i64.combine(sum, from, 2);
    qn_min_i64.combine(least, from, 2);
    qn_max_i64.combine(most, from, 2);
    cr_assert(sum[0] == -2 && sum[1] == INT64_MIN);
    cr_assert(least[0] == -3 && least[1] == 2);
    cr_assert(most[0] == -3 && most[1] == INT64_MAX);
}

/* Operators with their neutral element give the other one, bit by bit. */
Test(operators, the_neutral_element_changes_nothing)
{
    static const struct qn_operator *const all[] = {
        &qn_sum_u64, &qn_min_u64, &qn_max_u64, &qn_and_u64,
        &qn_or_u64,  &qn_sum_i64, &qn_min_i64, &qn_max_i64,
        &qn_sum_f64, &qn_min_f64, &qn_max_f64};
    const double doubles[] = {1.5, -0.0, 0.0, -INFINITY};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t x, into;
            memcpy(&x, &doubles[k], sizeof x);
            memcpy(&into, all[i]->neutral, sizeof into);
            cr_assert_eq(all[i]->bytes, 8);
            all[i]->combine(&into, &x, 1);
            cr_assert_eq(into, x, "operator %u, value %u", i, k);
            memcpy(&into, &x, sizeof into);
            all[i]->combine(&into, all[i]->neutral, 1);
            cr_assert_eq(into, x, "operator %u, value %u", i, k);
        }
    }
}

Test(operators, those_of_doubles_do_not_commute)
{
    cr_assert(!qn_sum_f64.commutes && !qn_min_f64.commutes &&
              !qn_max_f64.commutes);
    cr_assert(qn_sum_u64.commutes && qn_min_i64.commutes);
}
