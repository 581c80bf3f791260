#include "core/wait/spin.h"
#include "tests/support/test.h"

static qn_time_t budget(uint32_t nodes, uint32_t cores, uint32_t quota_milli)
{
    return qn_bell_spin_budget(&(struct qn_spin_opts){
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
