#include "kvs/server/machine/startup.h"

#include "tests/support/test.h"

enum { ALL = QN_STARTUP_SERVING | QN_STARTUP_READY | QN_STARTUP_ACCEPT };

static struct qn_startup s;

Test(startup, without_a_store_nothing_happens)
{
    qn_startup_init(&s, false);
    cr_assert_eq(qn_startup_turn(&s, false, false), 0);
    cr_assert_not(s.ready);
}

Test(startup, a_later_replica_serves_and_accepts_with_its_store_once)
{
    qn_startup_init(&s, false);
    cr_assert_eq(qn_startup_turn(&s, true, false), ALL);
    cr_assert_eq(qn_startup_turn(&s, true, false), 0);
}

Test(startup, a_founder_accepts_when_all_have_joined)
{
    qn_startup_init(&s, true);
    cr_assert_eq(qn_startup_turn(&s, true, false),
                 QN_STARTUP_SERVING | QN_STARTUP_READY);
    cr_assert_eq(qn_startup_turn(&s, true, false), 0);
    qn_startup_all_joined(&s);
    cr_assert_eq(qn_startup_turn(&s, true, false), QN_STARTUP_ACCEPT);
    cr_assert(s.accepting);
}

Test(startup, a_founder_without_a_store_accepts_nothing)
{
    qn_startup_init(&s, true);
    qn_startup_all_joined(&s);
    cr_assert_eq(qn_startup_turn(&s, false, false), 0);
    cr_assert_eq(qn_startup_turn(&s, true, false), ALL);
}

/* It is needed as a donor or voter; no client comes any more. */
Test(startup, a_draining_replica_gets_ready_and_does_not_serve)
{
    qn_startup_init(&s, false);
    cr_assert_eq(qn_startup_turn(&s, true, true), QN_STARTUP_READY);
    cr_assert_not(s.accepting);
}
