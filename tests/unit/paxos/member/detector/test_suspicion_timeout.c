#include "paxos/member/detector/suspicion_timeout.h"

#include "tests/support/test.h"

#define LEAST (50 * QN_MS)
#define MOST  (QN_SUSPICION_TIMEOUT_FACTOR * LEAST)

static struct qn_suspicion_timeout timeout;
static qn_time_t now;

static void setup(void)
{
    now = 1000 * QN_S;
    qn_suspicion_timeout_init(&timeout, LEAST);
}

#define CASE(name) Test(suspicion_timeout, name, .init = setup)

CASE(it_stays_at_the_least_without_a_false_suspicion)
{
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), LEAST);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now + 3600 * QN_S), LEAST);
}

CASE(each_false_suspicion_doubles_it_up_to_the_most)
{
    for (qn_time_t want = 2 * LEAST; want <= MOST; want *= 2) {
        cr_assert_eq(qn_suspicion_timeout_raise(&timeout, now), want);
        cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), want);
        now += QN_S;
    }
    cr_assert_eq(qn_suspicion_timeout_raise(&timeout, now), MOST);
}

/* What was learned about the machine stays, within the new limits. */
CASE(with_another_least_it_keeps_what_it_has_learned)
{
    (void)qn_suspicion_timeout_raise(&timeout, now);
    qn_suspicion_timeout_least(&timeout, LEAST / 2);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), 2 * LEAST);
    qn_suspicion_timeout_least(&timeout, LEAST / 16);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), LEAST, "the most");
    qn_suspicion_timeout_least(&timeout, 3 * LEAST);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), 3 * LEAST);
}

CASE(it_halves_for_each_minute_without_one)
{
    qn_suspicion_timeout_raise(&timeout, now);
    qn_suspicion_timeout_raise(&timeout, now);
    cr_assert_eq(
        qn_suspicion_timeout_at(&timeout, now + QN_SUSPICION_TIMEOUT_CALM - 1),
        4 * LEAST);
    cr_assert_eq(
        qn_suspicion_timeout_at(&timeout, now + QN_SUSPICION_TIMEOUT_CALM),
        2 * LEAST);
    now += QN_SUSPICION_TIMEOUT_CALM + QN_SUSPICION_TIMEOUT_CALM / 2;
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), 2 * LEAST);
    cr_assert_eq(qn_suspicion_timeout_raise(&timeout, now), 4 * LEAST);
    cr_assert_eq(
        qn_suspicion_timeout_at(&timeout, now + QN_SUSPICION_TIMEOUT_CALM - 1),
        4 * LEAST);
}

CASE(it_is_the_least_again_after_any_time_without_a_reader)
{
    qn_suspicion_timeout_raise(&timeout, now);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now + 3600 * QN_S), LEAST);
    cr_assert_eq(qn_suspicion_timeout_raise(&timeout, now + 3600 * QN_S),
                 2 * LEAST);
}

CASE(a_late_turn_raises_it_to_twice_the_delay)
{
    qn_suspicion_timeout_delayed(&timeout, LEAST / 2, now);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), LEAST);
    qn_suspicion_timeout_delayed(&timeout, LEAST * 6 / 5, now);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), LEAST * 12 / 5);
    qn_suspicion_timeout_delayed(&timeout, LEAST, now); /* less, and it stays */
    cr_assert_eq(
        qn_suspicion_timeout_at(&timeout, now + QN_SUSPICION_TIMEOUT_CALM - 1),
        LEAST * 12 / 5);
    cr_assert_eq(qn_suspicion_timeout_raise(&timeout, now), LEAST * 24 / 5);
    qn_suspicion_timeout_delayed(&timeout, MOST, now);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), MOST);
}

CASE(it_halves_down_to_the_least)
{
    qn_suspicion_timeout_delayed(&timeout, LEAST * 6 / 5, now);
    cr_assert_eq(
        qn_suspicion_timeout_at(&timeout, now + QN_SUSPICION_TIMEOUT_CALM),
        LEAST * 6 / 5);
    cr_assert_eq(
        qn_suspicion_timeout_at(&timeout, now + 2 * QN_SUSPICION_TIMEOUT_CALM),
        LEAST);
}

CASE(a_delay_above_the_most_was_a_stop_and_raises_nothing)
{
    qn_suspicion_timeout_delayed(&timeout, MOST + 1, now);
    cr_assert_eq(qn_suspicion_timeout_at(&timeout, now), LEAST);
}

CASE(reading_it_changes_nothing)
{
    qn_suspicion_timeout_raise(&timeout, now);
    const struct qn_suspicion_timeout before = timeout;
    (void)qn_suspicion_timeout_at(&timeout, now + 3600 * QN_S);
    cr_assert_eq(timeout.ns, before.ns);
    cr_assert_eq(timeout.changed_at, before.changed_at);
}

Test(suspicion_timeout, a_least_of_zero_is_an_error_of_the_caller,
     .signal = SIGABRT)
{
    qn_suspicion_timeout_init(&timeout, 0);
}
