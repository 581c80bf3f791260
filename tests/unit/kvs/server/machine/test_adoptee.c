#include "kvs/server/machine/adoptee.h"

#include "tests/support/test.h"

static struct qn_adoptee a;

static void setup(void)
{
    qn_adoptee_init(&a, true);
}

#define CASE(name) Test(adoptee, name, .init = setup)

CASE(a_lost_supervisor_is_logged_once_and_adopters_are_let_in)
{
    cr_assert_eq(qn_adoptee_lost(&a, false),
                 QN_ADOPTEE_LOG_ALONE | QN_ADOPTEE_LISTEN);
    cr_assert(a.alone);
}

CASE(without_a_socket_it_stays_alone)
{
    qn_adoptee_init(&a, false);
    cr_assert_eq(qn_adoptee_lost(&a, false), QN_ADOPTEE_LOG_ALONE);
    cr_assert_not(a.listening);
}

CASE(a_stopping_replica_lets_no_adopter_in)
{
    cr_assert_eq(qn_adoptee_lost(&a, true), QN_ADOPTEE_LOG_ALONE);
    cr_assert_not(a.listening);
}

CASE(one_adopter_at_a_time)
{
    (void)qn_adoptee_lost(&a, false);
    cr_assert_eq(qn_adoptee_came(&a, 17), QN_ADOPTEE_TALK);
    cr_assert_not(a.listening);
    cr_assert_eq(a.adopter, 17);
}

CASE(an_adopter_of_a_common_version_is_told_all)
{
    (void)qn_adoptee_lost(&a, false);
    (void)qn_adoptee_came(&a, 17);
    cr_assert_eq(qn_adoptee_greeted(&a, 5),
                 QN_ADOPTEE_TELL | QN_ADOPTEE_TELL_ALL);
    cr_assert_eq(qn_adoptee_told(&a, false), 0);
    cr_assert(a.alone, "not before its START");
}

CASE(an_adopter_of_another_version_is_told_the_version_only)
{
    (void)qn_adoptee_lost(&a, false);
    (void)qn_adoptee_came(&a, 17);
    cr_assert_eq(qn_adoptee_greeted(&a, 0), QN_ADOPTEE_TELL);
}

CASE(an_adopter_that_cannot_be_told_all_is_hung_up_on)
{
    (void)qn_adoptee_lost(&a, false);
    (void)qn_adoptee_came(&a, 17);
    cr_assert_eq(qn_adoptee_told(&a, true), QN_ADOPTEE_HANG_UP);
    cr_assert_eq(qn_adoptee_lost(&a, false), QN_ADOPTEE_LISTEN);
}

CASE(with_its_start_the_adopter_is_the_supervisor)
{
    (void)qn_adoptee_lost(&a, false);
    (void)qn_adoptee_came(&a, 17);
    (void)qn_adoptee_greeted(&a, 5);
    cr_assert_eq(qn_adoptee_started(&a), QN_ADOPTEE_LOG_ADOPTED);
    cr_assert_not(a.alone);
    cr_assert_eq(a.adopter, 17);
}

CASE(an_adopter_that_hangs_up_leaves_the_replica_to_the_next)
{
    (void)qn_adoptee_lost(&a, false);
    (void)qn_adoptee_came(&a, 17);
    cr_assert_eq(qn_adoptee_lost(&a, false), QN_ADOPTEE_LISTEN, "no line");
    cr_assert_eq(a.adopter, 0);
    cr_assert_eq(qn_adoptee_came(&a, 18), QN_ADOPTEE_TALK);
}

CASE(a_second_supervisor_that_ends_is_logged_again)
{
    (void)qn_adoptee_lost(&a, false);
    (void)qn_adoptee_came(&a, 17);
    (void)qn_adoptee_started(&a);
    cr_assert_eq(qn_adoptee_lost(&a, false),
                 QN_ADOPTEE_LOG_ALONE | QN_ADOPTEE_LISTEN);
}

CASE(the_living_supervisor_is_no_adopter)
{
    cr_assert_eq(qn_adoptee_greeted(&a, 5), 0);
    cr_assert_eq(qn_adoptee_started(&a), 0);
}

Test(adoptee, an_adopter_comes_only_to_a_replica_that_listens, .init = setup,
     .signal = SIGABRT)
{
    (void)qn_adoptee_came(&a, 17);
}
