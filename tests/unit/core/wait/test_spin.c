#include "core/wait/spin.h"
#include "tests/support/test.h"

static qn_time_t budget(uint32_t nodes, uint32_t cores, uint32_t quota_milli)
{
    return qn_doorbell_spin_budget(&(struct qn_spin_opts){
        .nodes = nodes, .cores = cores, .quota_milli = quota_milli});
}

Test(spin, is_free_where_each_node_owns_a_core)
{
    cr_assert_eq(budget(1, 1, 0), QN_SPIN_BUDGET);
    cr_assert_eq(budget(3, 3, 0), QN_SPIN_BUDGET);
    cr_assert_eq(budget(3, 64, 0), QN_SPIN_BUDGET);
}

Test(spin, is_never_done_with_more_nodes_than_cores)
{
    cr_assert_eq(budget(2, 1, 0), 0);
    cr_assert_eq(budget(4, 3, 0), 0);
}

Test(spin, counts_a_quota_as_cores)
{
    cr_assert_eq(budget(3, 8, 2999), 0);
    cr_assert_eq(budget(3, 8, 3000), QN_SPIN_BUDGET);
    cr_assert_eq(budget(1, 8, 1), 0);
}

Test(spin, without_a_budget_parks_at_once)
{
    struct qn_spin s;
    qn_spin_init(&s, 0);
    cr_assert_not(qn_spin_again(&s, 0));
}

Test(spin, looks_until_the_budget_is_spent_then_parks)
{
    struct qn_spin s;
    qn_spin_init(&s, 10);
    cr_assert(qn_spin_again(&s, 100));
    cr_assert(qn_spin_again(&s, 109));
    cr_assert_not(qn_spin_again(&s, 110));
    cr_assert(qn_spin_again(&s, 500), "the next wait has its own budget");
}

Test(spin, starts_afresh_after_something_was_found)
{
    struct qn_spin s;
    qn_spin_init(&s, 10);
    cr_assert(qn_spin_again(&s, 100));
    qn_spin_reset(&s);
    cr_assert(qn_spin_again(&s, 111));
    cr_assert(qn_spin_again(&s, 120));
    cr_assert_not(qn_spin_again(&s, 121));
}

Test(spin, after_a_long_yield_there_is_none_for_a_while)
{
    struct qn_yield y = {0};
    /* it took long */
    cr_assert(qn_spin_yield(&y, qn_clock_now() - QN_YIELD_LONG - 1));
    cr_assert_eq(y.pauses, 1);
    cr_assert_gt(y.from, qn_clock_now());
    struct qn_yield before = y;
    cr_assert(!qn_spin_yield(&y, y.from - 1));
    cr_assert_eq(y.from, before.from);
    cr_assert_eq(y.pauses, before.pauses);
}

Test(spin, a_short_yield_ends_the_pauses)
{
    struct qn_yield y = {.from = 1, .pauses = 3};
    cr_assert(qn_spin_yield(&y, QN_TIME_NEVER / 2)); /* short */
    cr_assert_eq(y.pauses, 0);
}

Test(spin, pauses_double_up_to_sixteen_times)
{
    struct qn_yield y = {0};
    qn_time_t pause = QN_YIELD_PAUSE;
    for (int i = 0; i < 7; i++) {
        qn_spin_yield_not(&y, 1000);
        cr_assert_eq(y.from, 1000 + pause);
        pause = pause < 16 * QN_YIELD_PAUSE ? 2 * pause : pause;
    }
}
