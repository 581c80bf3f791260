#include "core/wait/backoff.h"
#include "tests/support/test.h"

Test(backoff, none_parks_at_once)
{
    struct qn_backoff p;
    qn_backoff_init(&p, &(struct qn_backoff_opts){0});
    cr_assert_not(qn_backoff_again(&p));
}

Test(backoff, of_a_node_that_shares_its_core_is_a_few_yields)
{
    struct qn_backoff p;
    const struct qn_backoff_opts o =
        qn_backoff_of(&(struct qn_spin_opts){.nodes = 3, .cores = 2});
    cr_assert_eq(o.look_ns, 0);
    cr_assert_gt(o.yields, 0);
    qn_backoff_init(&p, &o);
    for (int wait = 0; wait < 2; wait++) {
        for (uint32_t i = 0; i < o.yields; i++) {
            cr_assert(qn_backoff_again(&p), "yield %u", i);
        }
        cr_assert_not(qn_backoff_again(&p));
        qn_backoff_reset(&p);
    }
}

Test(backoff, of_a_node_that_owns_its_core_is_looks)
{
    const struct qn_backoff_opts o =
        qn_backoff_of(&(struct qn_spin_opts){.nodes = 2, .cores = 2});
    cr_assert_eq(o.look_ns, QN_SPIN_BUDGET);
    cr_assert_eq(o.yields, 0);
}

/* The clock of the test is the real one: it may be late, never early. */
Test(backoff, looks_for_its_time_and_then_parks)
{
    struct qn_backoff p;
    const struct qn_backoff_opts o = {.look_ns = QN_MS};
    qn_backoff_init(&p, &o);
    for (int wait = 0; wait < 2; wait++) {
        uint32_t looks = 0;
        const qn_time_t start = qn_clock_now();
        while (qn_backoff_again(&p)) {
            looks++;
        }
        cr_assert_geq(looks, QN_BACKOFF_LOOKS);
        cr_assert_geq(qn_clock_now() - start, QN_MS);
        qn_backoff_reset(&p);
    }
}

Test(backoff, looks_before_each_yield_if_it_is_said)
{
    struct qn_backoff p;
    const struct qn_backoff_opts o = {.yields = 2, .looks = 5};
    qn_backoff_init(&p, &o);
    for (int wait = 0; wait < 2; wait++) {
        for (uint32_t i = 0; i < 2 * (5 + 1); i++) {
            cr_assert(qn_backoff_again(&p));
            cr_assert_eq(p.yields, (i + 1) / 6, "look %u", i);
        }
        cr_assert_not(qn_backoff_again(&p));
        qn_backoff_reset(&p);
    }
}

Test(backoff, looks_first_and_yields_then)
{
    struct qn_backoff p;
    const struct qn_backoff_opts o = {.look_ns = 1, .yields = 2};
    uint32_t count = 0;
    qn_backoff_init(&p, &o);
    while (qn_backoff_again(&p)) {
        count++;
    }
    /* The clock is read twice before the time is over. */
    cr_assert_eq(count, 2 * QN_BACKOFF_LOOKS - 1 + 2);
}

/* Its times are the caller's: no turn is counted. */
Test(backoff, at_a_time_that_is_known_it_looks_for_exactly_that_long)
{
    struct qn_backoff p;
    const struct qn_backoff_opts o = {.look_ns = 100, .yields = 1};
    qn_backoff_init(&p, &o);
    for (int wait = 0; wait < 2; wait++) {
        cr_assert(qn_backoff_again_at(&p, 1000));
        cr_assert(qn_backoff_again_at(&p, 1099));
        cr_assert_eq(p.yields, 0);
        cr_assert(qn_backoff_again_at(&p, 1100), "it yields");
        cr_assert_eq(p.yields, 1);
        cr_assert_not(qn_backoff_again_at(&p, 1101));
        qn_backoff_reset(&p);
    }
}
