/* Replica 1 of three, in epoch 5 of a group that has stopped. */
#include "kvs/server/machine/recovery_request.h"

#include "tests/support/test.h"

#define SELF   1u
#define CLIENT 129u

static struct qn_recovery_request r;
static struct qn_recovery_view v;
static struct qn_recovery_goal goal;
static struct qn_recovery_answer answer;

static void setup(void)
{
    r = (struct qn_recovery_request){0};
    v = (struct qn_recovery_view){.self = SELF,
                                  .nodes = 3,
                                  .stopped = true,
                                  .recoverable = true,
                                  .ready = true,
                                  .epoch = 5,
                                  .learned = 1000};
    goal = (struct qn_recovery_goal){.epoch = 5, .node = 2, .position = 900};
    answer = (struct qn_recovery_answer){0};
}

#define CASE(name) Test(recovery_request, name, .init = setup)

CASE(a_request_for_another_replica_is_passed_on_and_its_position_not_judged)
{
    goal.position = 5000;
    v.ready = false;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_NONE);
}

CASE(a_server_of_one_replica_refuses)
{
    v.self = 0;
    v.nodes = 1;
    goal.node = 0;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_SINGLE);
}

CASE(a_group_that_runs_refuses)
{
    v.stopped = false;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_RUNS);
}

CASE(another_epoch_than_the_users_is_refused)
{
    goal.epoch = 4;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_CHANGED);
    goal.epoch = 6;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_CHANGED);
}

CASE(without_a_supervisor_it_is_refused)
{
    v.alone = true;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_ALONE);
}

CASE(while_a_client_waits_a_second_request_is_refused)
{
    qn_recovery_hold(&r, CLIENT, 2);
    v.client_waits = true;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_TWICE);
    v.client_waits = false; /* it has hung up */
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_NONE);
}

CASE(the_chosen_replica_refuses_if_it_has_less_than_was_agreed_to)
{
    goal.node = SELF;
    goal.position = 1000;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_NONE);
    cr_assert_eq(qn_recovery_possible(&v, &goal), QN_RECOVERY_ERROR_NONE);
    goal.position = 1001;
    cr_assert_eq(qn_recovery_check(&r, &v, &goal), QN_RECOVERY_ERROR_LESS);
    cr_assert_eq(qn_recovery_possible(&v, &goal), QN_RECOVERY_ERROR_LESS);
}

CASE(the_chosen_replica_refuses_while_it_loads)
{
    v.ready = false;
    cr_assert_eq(qn_recovery_possible(&v, &goal), QN_RECOVERY_ERROR_COMES);
    v.ready = true;
    v.snapshot_comes = true;
    cr_assert_eq(qn_recovery_possible(&v, &goal), QN_RECOVERY_ERROR_COMES);
}

CASE(the_chosen_replica_refuses_what_its_driver_cannot_do)
{
    v.recoverable = false;
    cr_assert_eq(qn_recovery_possible(&v, &goal), QN_RECOVERY_ERROR_CHANGED);
    v.recoverable = true;
    goal.epoch = 6;
    cr_assert_eq(qn_recovery_possible(&v, &goal), QN_RECOVERY_ERROR_CHANGED);
}

CASE(a_refusal_answers_the_client_once)
{
    qn_recovery_hold(&r, CLIENT, 2);
    cr_assert(
        qn_recovery_refused(&r, CLIENT, QN_RECOVERY_ERROR_SILENT, &answer));
    cr_assert_eq(answer.client, CLIENT);
    cr_assert_eq(answer.node, 2);
    cr_assert_eq(answer.why, QN_RECOVERY_ERROR_SILENT);
    cr_assert_not(
        qn_recovery_refused(&r, CLIENT, QN_RECOVERY_ERROR_SILENT, &answer));
    cr_assert_not(qn_recovery_end(&r, QN_RECOVERY_ERROR_ALONE, &answer));
}

/* An earlier client of this replica, whose connection has closed. */
CASE(a_refusal_for_another_client_answers_none)
{
    qn_recovery_hold(&r, CLIENT, 2);
    cr_assert_not(qn_recovery_refused(&r, CLIENT + 64, QN_RECOVERY_ERROR_SILENT,
                                      &answer));
    cr_assert(qn_recovery_end(&r, QN_RECOVERY_ERROR_ALONE, &answer));
    cr_assert_eq(answer.why, QN_RECOVERY_ERROR_ALONE);
}

CASE(a_refusal_without_a_client_answers_none)
{
    cr_assert_not(
        qn_recovery_refused(&r, 0, QN_RECOVERY_ERROR_SILENT, &answer));
}

CASE(a_recovered_replica_answers_its_own_client)
{
    qn_recovery_hold(&r, CLIENT, SELF);
    cr_assert(qn_recovery_end(&r, QN_RECOVERY_ERROR_NONE, &answer));
    cr_assert_eq(answer.client, CLIENT);
    cr_assert_eq(answer.why, QN_RECOVERY_ERROR_NONE);
}

Test(recovery_request, a_client_has_an_id, .init = setup, .signal = SIGABRT)
{
    qn_recovery_hold(&r, 0, 2);
}
