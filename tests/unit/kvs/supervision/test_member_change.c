/* Orders to change the members: given again, carried out, refused. */
#include "tests/unit/kvs/supervision/member_fixture.h"

#include <signal.h>

#include "core/base/err.h"
#include "kvs/control/recovery_error.h"
#include "tests/support/test.h"

/* ---- orders -------------------------------------------------------------- */

Test(member_change, another_one_is_asked_if_the_first_ends_or_is_silent)
{
    struct bench b;
    member_loads_to_three(&b);
    killed(&b, 1);
    timer(&b);
    cr_assert_not_null(member_order(&b, 2));
    later(&b, 7999);
    cr_expect_null(member_order(&b, 0));
    later(&b, 1);
    cr_assert_not_null(member_order(&b, 0));
}

Test(member_change, what_may_pass_is_asked_again)
{
    static const int passes[] = {QN_EAGAIN, QN_EBUSY, QN_ENOTLEADER};
    struct bench b;
    member_loads_to_three(&b);
    qn_node_t by = 1;
    for (int i = 0; i < 3; i++) {
        member_changed(&b, by, QN_VOTER_REFUSED, passes[i], 1, 7);
        later(&b, 200);
        by = (by + 1) % 3;
        cr_assert_not_null(member_order(&b, by), "%d", i);
    }
    member_changed(&b, by, QN_VOTER_REFUSED, QN_EAGAIN, 1, 7);
    later(&b, 30000);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
}

/* The first one may have it still, and order it when it goes on. */
Test(member_change, a_refusal_to_another_one_does_not_take_the_first_back)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_less(&b, 1, 2);
    timer(&b);
    later(&b, 8000);
    cr_assert_not_null(member_order(&b, 0));
    member_changed(&b, 0, QN_VOTER_REFUSED, QN_EPERM, 1, 7);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_UNKNOWN);
}

/* What a former order comes to is no answer to the present one. */
Test(member_change, an_answer_to_another_order_is_none)
{
    struct bench b;
    member_loads_to_three(&b);
    says(&b, 1,
         (struct qn_control_msg){
             .kind = QN_CTL_VOTER_CHANGED,
             .u.voter_changed = {.outcome = QN_VOTER_REFUSED,
                                 .number = b.s.change.number - 1,
                                 .error = QN_ENOQUORUM}});
    member_changed(&b, 0, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    cr_expect_eq(b.s.change.step, QN_MEMBER_VOTES);
    cr_expect(b.s.change.asked);
}

Test(member_change, what_is_unknown_for_long_is_said_to_be)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_less(&b, 1, 2);
    timer(&b);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(member_answer(&b, 1), QN_MEMBER_ERRORS);
        later(&b, 8000);
    }
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_UNKNOWN);
    cr_expect_eq(b.s.replica[2].state, QN_REPLICA_SERVING);
    member_voters_are(&b, 0, 2, 3); /* it was done after all */
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
}

/* ---- removed ------------------------------------------------------------- */

Test(member_change, a_removed_member_drains_and_its_seat_is_vacant)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_less(&b, 1, 2);
    timer(&b);
    const struct qn_ctl_voter_change *c = member_order(&b, 1);
    cr_assert_not_null(c);
    cr_expect_eq(c->node, 2);
    cr_expect(!c->votes);
    member_changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 3);
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
    says_kind(&b, 2, QN_CTL_DRAINED);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERRORS,
                 "not before it has ended");
    ended(&b, 2, 0);
    cr_expect_not_null(find(&b, QN_DO_CLOSE_LISTENER, 2));
    cr_expect_eq(restart_in_ms(&b, 2), -1);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_NONE);
    member_wants_one_more(&b, 0);
    const struct qn_supervision_action *a = find(&b, QN_DO_SPAWN, 2);
    cr_assert_not_null(a, "its seat is taken again");
    cr_expect_gt(a->incarnation, b.s.replica[2].incarnation);
}

Test(member_change, one_that_does_not_drain_is_killed)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_less(&b, 1, 2);
    timer(&b);
    member_changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 3);
    timer(&b);
    later(&b, 14999);
    cr_expect_null(find(&b, QN_DO_KILL, 2));
    later(&b, 1);
    cr_expect_not_null(find(&b, QN_DO_KILL, 2));
}

/* The others may have to learn it with its vote. */
Test(member_change, one_that_alone_knows_its_removal_is_started_again)
{
    struct bench b;
    member_serve(&b, 3);
    member_voters_are(&b, 2, 2, 3);
    timer(&b);
    cr_expect_eq(b.s.voters, 7);
    says_kind(&b, 2, QN_CTL_DRAINED);
    ended(&b, 2, 0);
    cr_expect_geq(restart_in_ms(&b, 2), 0, "no operator has asked it to end");
    member_voters_are(&b, 0, 2, 3);
    cr_expect_eq(b.s.voters, 3);
    cr_expect_eq(restart_in_ms(&b, 2), -1);
}

/* It drains only when its clients have their answers. */
Test(member_change, a_member_that_was_asked_to_remove_itself_answers_first)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_less(&b, 2, 2);
    timer(&b);
    cr_assert_not_null(member_order(&b, 0), "another one orders it");
    member_changed(&b, 0, QN_VOTER_OK, QN_OK, 2, 3);
    cr_expect_eq(member_answer(&b, 2), QN_MEMBER_ERROR_NONE);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 0);
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
}

/* The incarnation that is removed is the one that ended. */
Test(member_change, a_dead_one_is_not_started_while_it_is_removed)
{
    struct bench b;
    member_serve(&b, 3);
    killed(&b, 2);
    member_wants_less(&b, 1, 2);
    timer(&b);
    cr_assert_not_null(member_order(&b, 1));
    cr_expect_eq(member_order(&b, 1)->incarnation, b.s.replica[2].incarnation);
    later(&b, 1000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    member_changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 3);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_NONE);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}

Test(member_change, a_dead_one_that_is_not_removed_is_started)
{
    struct bench b;
    member_serve(&b, 3);
    killed(&b, 2);
    member_wants_less(&b, 1, 2);
    timer(&b);
    member_changed(&b, 1, QN_VOTER_REFUSED, QN_EPERM, 1, 7);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_LEAST);
    later(&b, 30);
    cr_expect_not_null(find(&b, QN_DO_SPAWN, 2));
}

/* ---- refused ------------------------------------------------------------- */

Test(member_change, what_cannot_be_is_refused_and_nothing_is_begun)
{
    struct bench b;
    member_serve(&b, 4);
    member_wants_one_more(&b, 1);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_FULL);
    member_serve(&b, 1);
    member_wants_less(&b, 0, 0);
    cr_expect_eq(member_answer(&b, 0), QN_MEMBER_ERROR_LAST);
    member_serve(&b, 3);
    member_wants_less(&b, 0, 3);
    cr_expect_eq(member_answer(&b, 0), QN_MEMBER_ERROR_ABSENT);
    b.s.opts.memory_acceptor = false;
    member_wants_one_more(&b, 1);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_PROCESS);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    cr_expect_eq(b.s.change.step, QN_MEMBER_NONE);
}

Test(member_change, one_that_the_machine_cannot_hold_is_refused)
{
    struct bench b;
    const struct qn_control_msg m = {.kind = QN_CTL_MEMBER_ADD,
                                     .u.member_add.client = CLIENT};
    member_serve(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_MESSAGE,
                                           .node = 1,
                                           .message = &m,
                                           .unfit = true,
                                           .fits = 700});
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_MEMORY);
    cr_expect_eq(message(&b, 1, QN_CTL_MEMBER_ANSWER)->u.member_answer.fits,
                 700);
}

Test(member_change, operations_refuse_each_other)
{
    struct bench b;
    member_comes_to_three(&b);
    member_wants_less(&b, 0, 1);
    cr_expect_eq(member_answer(&b, 0), QN_MEMBER_ERROR_TWICE);
    says(&b, 0, (struct qn_control_msg){.kind = QN_CTL_RECOVER});
    cr_expect_eq(
        message(&b, 0, QN_CTL_RECOVER_REFUSED)->u.recover_refused.refusal,
        QN_RECOVERY_ERROR_MEMBERS);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_SUCCESSOR_ASKS});
    cr_expect_eq(count(&b, QN_DO_REFUSE_SUCCESSOR), 1);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_UPGRADE});
    cr_expect_eq(b.s.upgrade.step, QN_UPGRADE_NONE);

    member_serve(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_UPGRADE});
    member_wants_one_more(&b, 1);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_UPGRADE);

    member_serve(&b, 3);
    says(&b, 0, (struct qn_control_msg){.kind = QN_CTL_RECOVER});
    member_wants_one_more(&b, 1);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_RECOVERY);
}

Test(member_change, a_drain_ends_a_change)
{
    struct bench b;
    member_comes_to_three(&b);
    signalled(&b, SIGTERM);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_LEAVES);
    member_wants_one_more(&b, 1);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_LEAVES);
}

/* A client of the former incarnation has gone with it. */
Test(member_change, another_incarnation_of_the_asker_is_told_nothing)
{
    struct bench b;
    member_comes_to_three(&b);
    killed(&b, 1);
    later(&b, 30);
    comes(&b, 1);
    killed(&b, 3);
    timer(&b);
    cr_expect_eq(b.s.change.step, QN_MEMBER_NONE);
    cr_expect_eq(told(&b, 1, QN_CTL_MEMBER_ANSWER), 0);
}

/* The newcomer was told to drain with all others. */
Test(member_change, a_newcomer_is_not_started_while_the_server_drains)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_one_more(&b, 1);
    spawned(&b, 3);
    signalled(&b, SIGTERM);
    timer(&b);
    says_hello(&b, 3);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 0);
}

/* All that had the data may have ended but one that was to leave. */
Test(member_change, the_only_complete_one_stays_until_a_voter_is_complete)
{
    struct bench b;
    member_serve(&b, 2);
    member_wants_one_more(&b, 0);
    spawned(&b, 2);
    says_hello(&b, 2);
    member_met(&b, 0, 2, QN_OK);
    member_met(&b, 1, 2, QN_OK);
    says_kind(&b, 2, QN_CTL_READY);
    timer(&b);
    member_changed(&b, 0, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 3);
    timer(&b);
    cr_assert_eq(told(&b, 2, QN_CTL_DRAIN), 1);
    killed(&b, 0);
    killed(&b, 1);
    says_kind(&b, 2, QN_CTL_DRAINED);
    timer(&b);
    later(&b, 60000);
    cr_expect_eq(told(&b, 2, QN_CTL_STOP), 0);
    cr_expect_null(find(&b, QN_DO_KILL, 2));
    comes(&b, 0);
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_STOP), 1);
}

/* ---- the list ------------------------------------------------------------ */

Test(member_change, the_list_has_a_line_for_each_seat_that_is_taken)
{
    struct bench b;
    member_comes_to_three(&b);
    killed(&b, 0);
    says(&b, 1,
         (struct qn_control_msg){.kind = QN_CTL_MEMBER_LIST,
                                 .u.member_list.client = CLIENT});
    cr_assert_eq(told(&b, 1, QN_CTL_MEMBER_SEAT), 4);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_NONE);
    static const enum qn_member_seat_state states[] = {
        QN_SEAT_ENDED, QN_SEAT_SERVING, QN_SEAT_SERVING, QN_SEAT_STARTING};
    qn_node_t n = 0;
    for (uint32_t i = 0; i < b.out.count; i++) {
        const struct qn_control_msg *m = &b.out.action[i].message;
        if (m->kind == QN_CTL_MEMBER_SEAT) {
            cr_expect_eq(m->u.member_seat.node, n);
            cr_expect_eq(m->u.member_seat.state, states[n]);
            cr_expect_eq(m->u.member_seat.votes, n != 3);
            cr_expect_eq(m->u.member_seat.pid != 0, n != 0);
            n++;
        }
    }
}
