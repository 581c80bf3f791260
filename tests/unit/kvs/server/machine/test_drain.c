#include "kvs/server/machine/drain.h"

#include "tests/support/test.h"

#define LIMIT (10 * QN_S)

static struct qn_drain d;
static qn_time_t now;

static void setup(void)
{
    d = (struct qn_drain){0};
    now = 1000 * QN_S;
}

#define CASE(name) Test(drain, name, .init = setup)

CASE(it_begins_once_by_closing_and_once_more_does_no_harm)
{
    cr_assert_not(qn_drain_active(&d));
    cr_assert_eq(qn_drain_begin(&d, LIMIT, now), QN_DRAIN_CLOSE);
    cr_assert(qn_drain_active(&d));
    cr_assert_eq(qn_drain_begin(&d, LIMIT, now + QN_S), 0);
    cr_assert_eq(qn_drain_turn(&d, true, now + QN_S), QN_DRAIN_TELL);
    cr_assert_eq(qn_drain_begin(&d, LIMIT, now + QN_S), QN_DRAIN_TELL,
                 "a later supervisor has not heard it");
    cr_assert_eq(d.give_up_at, now + LIMIT, "the first limit counts");
}

CASE(while_replies_are_owed_it_goes_on)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    cr_assert_eq(qn_drain_turn(&d, false, now + LIMIT - 1), 0);
    cr_assert(qn_drain_active(&d));
}

CASE(all_answered_it_tells_the_supervisor_and_waits_for_stop)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    cr_assert_eq(qn_drain_turn(&d, true, now), QN_DRAIN_TELL);
    cr_assert_eq(d.unanswered, 0);
    cr_assert_not(qn_drain_active(&d));
    cr_assert_eq(qn_drain_told(&d, true), 0);
    cr_assert_not(d.stopping);
}

CASE(when_the_limit_is_over_it_gives_up_and_tells_the_number)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    cr_assert_eq(qn_drain_turn(&d, false, now + LIMIT), QN_DRAIN_GIVE_UP);
    cr_assert_eq(qn_drain_gave_up(&d, 3), QN_DRAIN_TELL);
    cr_assert_eq(d.unanswered, 3);
    cr_assert_eq(qn_drain_told(&d, true), 0);
}

CASE(what_is_answered_at_the_limit_is_not_given_up)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    cr_assert_eq(qn_drain_turn(&d, true, now + LIMIT), QN_DRAIN_TELL);
    cr_assert_eq(d.unanswered, 0);
}

CASE(a_limit_of_zero_gives_up_in_the_first_turn)
{
    (void)qn_drain_begin(&d, 0, now);
    cr_assert_eq(qn_drain_turn(&d, false, now), QN_DRAIN_GIVE_UP);
}

CASE(without_a_supervisor_it_stops_when_drained)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    (void)qn_drain_turn(&d, true, now);
    cr_assert_eq(qn_drain_told(&d, false), QN_DRAIN_LEAVE_LOOP);
    cr_assert(d.stopping);
}

CASE(without_a_supervisor_it_logs_what_it_owes)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    (void)qn_drain_turn(&d, false, now + LIMIT);
    (void)qn_drain_gave_up(&d, 2);
    cr_assert_eq(qn_drain_told(&d, false), QN_DRAIN_LOG | QN_DRAIN_LEAVE_LOOP);
}

CASE(a_supervisor_that_ends_stops_only_a_drained_replica)
{
    cr_assert_eq(qn_drain_supervisor_lost(&d), 0, "serving");
    (void)qn_drain_begin(&d, LIMIT, now);
    cr_assert_eq(qn_drain_supervisor_lost(&d), 0, "draining");
    (void)qn_drain_turn(&d, true, now);
    (void)qn_drain_told(&d, true);
    cr_assert_eq(qn_drain_supervisor_lost(&d), QN_DRAIN_LEAVE_LOOP);
}

CASE(an_order_to_stop_stops_in_any_phase)
{
    cr_assert_eq(qn_drain_stop(&d), QN_DRAIN_LEAVE_LOOP);
    cr_assert(d.stopping);
    cr_assert_not(d.draining);
}

CASE(a_shutdown_counts_as_requested_if_it_comes_first)
{
    qn_drain_request_shutdown(&d);
    cr_assert(d.shutdown_requested);
    (void)qn_drain_begin(&d, LIMIT, now);
    qn_drain_request_shutdown(&d);
    cr_assert(d.shutdown_requested);
}

CASE(a_shutdown_while_the_supervisor_drains_it_was_not_requested)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    qn_drain_request_shutdown(&d);
    cr_assert_not(d.shutdown_requested);
}

Test(drain, it_finishes_once, .init = setup, .signal = SIGABRT)
{
    (void)qn_drain_begin(&d, LIMIT, now);
    (void)qn_drain_turn(&d, true, now);
    (void)qn_drain_turn(&d, true, now);
}

Test(drain, it_cannot_finish_before_it_began, .init = setup, .signal = SIGABRT)
{
    (void)qn_drain_turn(&d, true, now);
}
