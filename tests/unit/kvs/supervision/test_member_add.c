/* Members that are added: until they vote, and what may end them before. */
#include "tests/unit/kvs/supervision/member_fixture.h"

#include "core/base/err.h"
#include "tests/support/test.h"

Test(member_add, a_newcomer_starts_when_all_have_met_it)
{
    struct bench b;
    member_comes_to_three(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_PEER_UP), 3);
    cr_expect_eq(told(&b, 0, QN_CTL_PEER_UP), 1);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 0);
    member_met(&b, 0, 3, QN_OK);
    member_met(&b, 0, 3, QN_OK);
    member_met(&b, 2, 3, QN_OK);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 0);
    member_met(&b, 1, 3, QN_OK);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 1);
}

Test(member_add, its_vote_is_ordered_when_it_is_complete)
{
    struct bench b;
    member_loads_to_three(&b);
    const struct qn_ctl_voter_change *c = member_order(&b, 1);
    cr_expect_eq(c->node, 3);
    cr_expect(c->votes);
    cr_expect_eq(c->incarnation, b.s.replica[3].incarnation);
    member_changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 15);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_NONE);
    cr_expect_eq(b.s.change.step, QN_MEMBER_NONE);
    killed(&b, 3);
    cr_expect_geq(restart_in_ms(&b, 3), 0, "it is a member as any other");
}

Test(member_add, a_member_that_cannot_meet_it_ends_it)
{
    struct bench b;
    member_comes_to_three(&b);
    member_met(&b, 2, 3, QN_ENOMEM);
    timer(&b);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERRORS,
                 "not before it has ended");
    killed(&b, 3);
    timer(&b);
    const struct qn_control_msg *m = message(&b, 1, QN_CTL_MEMBER_ANSWER);
    cr_assert_not_null(m);
    cr_expect_eq(m->u.member_answer.why, QN_MEMBER_ERROR_UNMET);
    cr_expect_eq(m->u.member_answer.peer, 2);
    cr_expect_eq(m->u.member_answer.error, QN_ENOMEM);
    cr_expect_eq(restart_in_ms(&b, 3), -1);
    cr_expect_eq(qn_supervision_taken(&b.s), 7);
}

Test(member_add, a_member_that_a_signal_stopped_need_not_meet_it)
{
    struct bench b;
    member_comes_to_three(&b);
    cr_expect(qn_supervision_needs_stopped(&b.s, QN_ON_TIMER, b.now));
    member_met(&b, 0, 3, QN_OK);
    member_met(&b, 1, 3, QN_OK);
    timer(&b);
    cr_assert_eq(told(&b, 3, QN_CTL_START), 0);
    b.facts.stopped = 1u << 2;
    later(&b, 50);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 1);
    cr_expect_not(qn_supervision_needs_stopped(&b.s, QN_ON_TIMER, b.now));
    member_met(&b, 3, 2, QN_EAGAIN); /* it has no lanes for the newcomer */
    says_kind(&b, 3, QN_CTL_READY);
    timer(&b);
    member_changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 15);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_NONE);
    member_met(&b, 2, 3, QN_OK); /* it goes on */
    cr_assert_eq(told(&b, 3, QN_CTL_PEER_UP), 1);
    cr_expect_eq(message(&b, 3, QN_CTL_PEER_UP)->u.peer_up.node, 2);
    member_met(&b, 3, 2, QN_OK);
    later(&b, 10000);
    cr_expect_eq(told(&b, 3, QN_CTL_PEER_UP), 0);
}

Test(member_add, a_silent_member_ends_it)
{
    struct bench b;
    member_comes_to_three(&b);
    member_met(&b, 0, 3, QN_OK);
    member_met(&b, 2, 3, QN_OK);
    later(&b, 5000);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    killed(&b, 3);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_SILENT);
}

Test(member_add, a_newcomer_that_is_late_ends)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_one_more(&b, 1);
    spawned(&b, 3);
    later(&b, 60000); /* no HELLO */
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    killed(&b, 3);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_LATE);
    member_comes_to_three(&b);
    for (qn_node_t i = 0; i < 3; i++) {
        member_met(&b, i, 3, QN_OK);
    }
    later(&b, 59999);
    cr_expect_null(find(&b, QN_DO_KILL, 3));
    later(&b, 1);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
}

/* Its next incarnation has lanes for all seats that are taken. */
Test(member_add, a_member_that_ends_need_not_meet_it)
{
    struct bench b;
    member_comes_to_three(&b);
    member_met(&b, 0, 3, QN_OK);
    member_met(&b, 1, 3, QN_OK);
    killed(&b, 2);
    timer(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 1);
}

Test(member_add, a_newcomer_that_ends_is_not_started_again)
{
    struct bench b;
    member_comes_to_three(&b);
    killed(&b, 3);
    cr_expect_eq(restart_in_ms(&b, 3), -1);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_ENDED);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}

Test(member_add, a_process_that_cannot_be_made_is_a_reason)
{
    struct bench b;
    member_serve(&b, 3);
    member_wants_one_more(&b, 1);
    spawn_failed(&b, 3, QN_EMFILE);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_SPAWN);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}

/* It was complete, so it may have clients: it drains. */
Test(member_add, a_refused_newcomer_drains)
{
    struct bench b;
    member_loads_to_three(&b);
    member_changed(&b, 1, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    timer(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    says_kind(&b, 3, QN_CTL_DRAINED);
    timer(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_STOP), 1);
    ended(&b, 3, 0);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_QUORUM);
}

/* Its entry may come: it is a voter then, and is started again. */
Test(member_add, a_newcomer_that_ends_while_it_gets_its_vote_comes_back)
{
    struct bench b;
    member_loads_to_three(&b);
    killed(&b, 3);
    timer(&b);
    cr_expect_eq(b.s.change.step, QN_MEMBER_VOTES);
    cr_expect_eq(restart_in_ms(&b, 3), -1);
    member_changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 15);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_NONE);
    timer(&b);
    cr_expect_not_null(find(&b, QN_DO_SPAWN, 3));
}

/* It drains meanwhile, and no operator has asked it to. */
Test(member_add, a_newcomer_that_leaves_and_gets_its_vote_comes_back)
{
    struct bench b;
    member_loads_to_three(&b);
    member_changed(&b, 1, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    timer(&b);
    cr_assert_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    member_voters_are(&b, 0, 2, 15);
    timer(&b);
    cr_expect_eq(member_answer(&b, 1), QN_MEMBER_ERROR_NONE);
    says_kind(&b, 3, QN_CTL_DRAINED);
    ended(&b, 3, 0);
    cr_expect_geq(restart_in_ms(&b, 3), 0);
}

Test(member_add, a_newcomer_that_leaves_ends_in_time_with_a_vote_too)
{
    struct bench b;
    member_loads_to_three(&b);
    member_changed(&b, 1, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    timer(&b);
    member_voters_are(&b, 0, 2, 15);
    later(&b, 15000);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    killed(&b, 3);
    cr_expect_geq(restart_in_ms(&b, 3), 0);
}

/* It has learned more entries than the voters have spoken of: they speak when
 * other replicas vote, and roles were changed since. */
Test(member_add, a_newcomer_has_no_vote_because_it_knows_more)
{
    struct bench b;
    member_comes_to_three(&b);
    for (qn_node_t i = 0; i < 3; i++) {
        member_met(&b, i, 3, QN_OK);
    }
    member_voters_are(&b, 3, 7, 7);
    cr_expect_eq(b.s.voters, 7);
    cr_expect_not(b.s.replica[3].leaves);
    says_kind(&b, 3, QN_CTL_READY);
    timer(&b);
    cr_expect_not_null(member_order(&b, 1));
    cr_expect_eq(b.s.change.step, QN_MEMBER_VOTES);
}
