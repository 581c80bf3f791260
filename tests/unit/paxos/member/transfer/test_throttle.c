#include "paxos/member/transfer/throttle.h"

#include "tests/support/test.h"

static struct qn_throttle p;
static qn_time_t now, cpu;

#define PORTION (100 * QN_US)

static void setup(void)
{
    now = 5 * QN_S;
    cpu = QN_S;
    qn_throttle_begin(&p, now, cpu);
}

#define CASE(name) Test(throttle, name, .init = setup)

/* A portion in a turn that begins now. @return when to come again. */
static qn_time_t portion(void)
{
    cr_assert_leq(qn_throttle_turn(&p, now, cpu), now);
    cpu += PORTION;
    return qn_throttle_worked(&p, now, PORTION);
}

/* Go there; the thread works for others meanwhile, `percent` of the time. */
static void pass(qn_time_t until, uint64_t percent)
{
    if (until > now) {
        cpu += (until - now) * percent / 100;
        now = until;
    }
}

CASE(a_portion_is_followed_by_a_rest_of_two)
{
    qn_time_t began = now;
    cr_assert(!qn_throttle_alone(&p));
    cr_assert_eq(portion(), began + 3 * PORTION);
    now += 2 * PORTION;
    cr_assert_eq(qn_throttle_turn(&p, now, cpu), began + 3 * PORTION);
}

CASE(beside_other_work_it_takes_a_third)
{
    qn_time_t began = now;
    for (int i = 0; i < 100; i++) {
        pass(portion(), 90);
        cr_assert(!qn_throttle_alone(&p));
    }
    cr_assert_eq(now - began, 300 * PORTION);
}

CASE(who_is_alone_does_not_rest)
{
    pass(portion(), 2);
    for (int i = 0; i < 100; i++) {
        cr_assert_leq(portion(), now);
        cr_assert(qn_throttle_alone(&p));
        now += PORTION + PORTION / 20; /* the portion, and a look around */
        cpu += PORTION / 20;
    }
}

CASE(it_rests_again_when_others_come)
{
    pass(portion(), 2);
    (void)portion();
    cr_assert(qn_throttle_alone(&p));
    uint32_t more = 1;
    for (; qn_throttle_alone(&p); more++) {
        pass(now + 2 * PORTION, 100); /* half of it is for others */
        (void)portion();
        cr_assert_leq(more, QN_THROTTLE_QUANTA);
    }
    cr_assert_gt(qn_throttle_worked(&p, now, PORTION), now);
}

CASE(a_rest_that_ends_late_was_somebody_elses)
{
    qn_time_t until = portion();
    pass(until + QN_THROTTLE_LATE + 1, 0);
    (void)portion();
    cr_assert(!qn_throttle_alone(&p));
    pass(p.until + QN_THROTTLE_LATE, 0);
    (void)portion();
    cr_assert(qn_throttle_alone(&p));
}

CASE(without_a_portion_no_period_ends)
{
    cr_assert_leq(qn_throttle_turn(&p, now, cpu), now);
    pass(now + QN_S, 0);
    cr_assert_leq(qn_throttle_turn(&p, now, cpu), now);
    cr_assert(!qn_throttle_alone(&p));
}
