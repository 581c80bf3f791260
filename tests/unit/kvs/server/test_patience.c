#include "kvs/server/patience.h"

#include "tests/support/test.h"

#define LEAST (50 * QN_MS)
#define MOST  (QN_PATIENCE_MOST * LEAST)

static struct qn_patience p;
static qn_time_t now;

static void setup(void)
{
    now = 1000 * QN_S;
    qn_patience_init(&p, LEAST);
}

#define CASE(name) Test(patience, name, .init = setup)

CASE(it_stays_as_it_is_while_nobody_was_wrong)
{
    cr_assert_eq(qn_patience_at(&p, now), LEAST);
    cr_assert_eq(qn_patience_at(&p, now + 3600 * QN_S), LEAST);
}

CASE(each_wrong_suspicion_doubles_it_up_to_the_most)
{
    for (qn_time_t want = 2 * LEAST; want <= MOST; want *= 2) {
        cr_assert_eq(qn_patience_wrong(&p, now), want);
        cr_assert_eq(qn_patience_at(&p, now), want);
        now += QN_S;
    }
    cr_assert_eq(qn_patience_wrong(&p, now), MOST);
}

CASE(it_halves_for_each_minute_without_one)
{
    qn_patience_wrong(&p, now);
    qn_patience_wrong(&p, now);
    cr_assert_eq(qn_patience_at(&p, now + QN_PATIENCE_CALM - 1), 4 * LEAST);
    cr_assert_eq(qn_patience_at(&p, now + QN_PATIENCE_CALM), 2 * LEAST);
    now += QN_PATIENCE_CALM + QN_PATIENCE_CALM / 2;
    cr_assert_eq(qn_patience_at(&p, now), 2 * LEAST);
    cr_assert_eq(qn_patience_wrong(&p, now), 4 * LEAST);
    cr_assert_eq(qn_patience_at(&p, now + QN_PATIENCE_CALM - 1), 4 * LEAST);
}

CASE(it_is_the_least_again_however_long_nobody_asked)
{
    qn_patience_wrong(&p, now);
    cr_assert_eq(qn_patience_at(&p, now + 3600 * QN_S), LEAST);
    cr_assert_eq(qn_patience_wrong(&p, now + 3600 * QN_S), 2 * LEAST);
}

CASE(who_is_late_itself_bears_twice_as_much)
{
    qn_patience_late(&p, LEAST / 2, now);
    cr_assert_eq(qn_patience_at(&p, now), LEAST);
    qn_patience_late(&p, LEAST * 6 / 5, now);
    cr_assert_eq(qn_patience_at(&p, now), LEAST * 12 / 5);
    qn_patience_late(&p, LEAST, now); /* less, and it stays */
    cr_assert_eq(qn_patience_at(&p, now + QN_PATIENCE_CALM - 1),
                 LEAST * 12 / 5);
    cr_assert_eq(qn_patience_wrong(&p, now), LEAST * 24 / 5);
    qn_patience_late(&p, MOST, now);
    cr_assert_eq(qn_patience_at(&p, now), MOST);
}

CASE(it_halves_down_to_the_least)
{
    qn_patience_late(&p, LEAST * 6 / 5, now);
    cr_assert_eq(qn_patience_at(&p, now + QN_PATIENCE_CALM), LEAST * 6 / 5);
    cr_assert_eq(qn_patience_at(&p, now + 2 * QN_PATIENCE_CALM), LEAST);
}

CASE(who_was_stopped_was_not_late)
{
    qn_patience_late(&p, MOST + 1, now);
    cr_assert_eq(qn_patience_at(&p, now), LEAST);
}
