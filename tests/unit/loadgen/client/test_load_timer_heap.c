#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/client/timer_heap.h"
#include "tests/support/test.h"

enum { SIZE = 50 };

Test(load_timer_heap, an_empty_heap_has_no_due_member)
{
    struct qn_timer_heap a;
    cr_assert_eq(qn_timer_heap_init(&a, 3), QN_OK);
    cr_assert_eq(qn_timer_heap_first(&a), QN_TIME_NEVER);
    qn_timer_heap_set(
        &a, 1, QN_TIME_NEVER); /* removes a member that is not in the heap */
    cr_assert_eq(qn_timer_heap_first(&a), QN_TIME_NEVER);
    qn_timer_heap_fini(&a);
}

Test(load_timer_heap, a_member_has_one_time_the_last_that_was_set)
{
    struct qn_timer_heap a;
    cr_assert_eq(qn_timer_heap_init(&a, 3), QN_OK);
    qn_timer_heap_set(&a, 0, 50);
    qn_timer_heap_set(&a, 2, 20);
    qn_timer_heap_set(&a, 2, 70);
    cr_assert_eq(qn_timer_heap_first(&a), 50);
    cr_assert_eq(qn_timer_heap_pop(&a), 0);
    cr_assert_eq(qn_timer_heap_pop(&a), 2);
    cr_assert_eq(qn_timer_heap_first(&a), QN_TIME_NEVER);
    qn_timer_heap_fini(&a);
}

/* Comparison with a plain array, 10^5 random changes. */
Test(load_timer_heap, agrees_with_a_search_through_all)
{
    struct qn_timer_heap a;
    qn_time_t at[SIZE];
    uint64_t random = 7;
    cr_assert_eq(qn_timer_heap_init(&a, SIZE), QN_OK);
    for (int i = 0; i < SIZE; i++) {
        at[i] = QN_TIME_NEVER;
    }
    for (int step = 0; step < 100000; step++) {
        uint32_t who = (uint32_t)qn_random_below(&random, SIZE);
        at[who] = qn_random_below(&random, 4) == 0
                      ? QN_TIME_NEVER
                      : qn_random_below(&random, 100);
        qn_timer_heap_set(&a, who, at[who]);
        qn_time_t first = QN_TIME_NEVER;
        for (int i = 0; i < SIZE; i++) {
            first = at[i] < first ? at[i] : first;
        }
        cr_assert_eq(qn_timer_heap_first(&a), first, "step %d", step);
        if (first != QN_TIME_NEVER && qn_random_below(&random, 3) == 0) {
            who = qn_timer_heap_pop(&a);
            cr_assert_eq(at[who], first, "step %d", step);
            at[who] = QN_TIME_NEVER;
        }
    }
    qn_timer_heap_fini(&a);
}
