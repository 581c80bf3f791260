#include "kvs/server/machine/voter_order.h"

#include "core/base/err.h"
#include "tests/support/test.h"

static struct qn_voter_order o;
static struct qn_ctl_voter_changed out;

static void setup(void)
{
    o = (struct qn_voter_order){0};
    out = (struct qn_ctl_voter_changed){0};
}

#define CASE(name) Test(voter_order, name, .init = setup)

CASE(an_order_that_is_taken_is_answered_when_it_has_ended)
{
    cr_assert_not(qn_voter_order_begin(&o, 7, QN_OK, &out));
    cr_assert(o.pending);
    qn_voter_order_end(&o, QN_VOTER_OK, QN_ETIMEDOUT, &out);
    cr_expect_eq(out.outcome, QN_VOTER_OK);
    cr_expect_eq(out.number, 7);
    cr_expect_eq(out.error, QN_OK);
    cr_expect_not(o.pending);
}

CASE(why_it_was_refused_or_is_unknown_is_told)
{
    (void)qn_voter_order_begin(&o, 1, QN_OK, &out);
    qn_voter_order_end(&o, QN_VOTER_REFUSED, QN_ENOQUORUM, &out);
    cr_expect_eq(out.outcome, QN_VOTER_REFUSED);
    cr_expect_eq(out.error, QN_ENOQUORUM);
    (void)qn_voter_order_begin(&o, 2, QN_OK, &out);
    qn_voter_order_end(&o, QN_VOTER_UNKNOWN, QN_EREMOVED, &out);
    cr_expect_eq(out.outcome, QN_VOTER_UNKNOWN);
    cr_expect_eq(out.error, QN_EREMOVED);
}

CASE(what_the_driver_does_not_take_is_refused_at_once)
{
    cr_assert(qn_voter_order_begin(&o, 3, QN_ENOSYS, &out));
    cr_expect_eq(out.outcome, QN_VOTER_REFUSED);
    cr_expect_eq(out.number, 3);
    cr_expect_eq(out.error, QN_ENOSYS);
    cr_expect_not(o.pending);
}

CASE(another_order_leaves_the_one_that_is_under_way)
{
    (void)qn_voter_order_begin(&o, 4, QN_OK, &out);
    cr_assert(qn_voter_order_begin(&o, 5, QN_EBUSY, &out));
    cr_expect_eq(out.number, 5);
    qn_voter_order_end(&o, QN_VOTER_OK, QN_OK, &out);
    cr_expect_eq(out.number, 4);
}

/* The supervisor that had given it has ended. */
CASE(the_same_order_again_is_answered_by_its_newest_number)
{
    (void)qn_voter_order_begin(&o, 4, QN_OK, &out);
    cr_assert_not(qn_voter_order_begin(&o, 1, QN_OK, &out));
    qn_voter_order_end(&o, QN_VOTER_OK, QN_OK, &out);
    cr_expect_eq(out.number, 1);
}

Test(voter_order, an_order_ends_once, .init = setup, .signal = SIGABRT)
{
    (void)qn_voter_order_begin(&o, 4, QN_OK, &out);
    qn_voter_order_end(&o, QN_VOTER_OK, QN_OK, &out);
    qn_voter_order_end(&o, QN_VOTER_OK, QN_OK, &out);
}
