/*
 * Members that are added and removed, and processes that are to be none.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include <signal.h>

#include "core/base/err.h"
#include "kvs/control/recovery_error.h"
#include "tests/support/test.h"

enum { CLIENT = 77, SEATS = 4 };

/* Nodes 0 .. n - 1 of four seats serve. */
static void serve(struct bench *b, uint32_t n)
{
    struct qn_supervision_opts o = opts_of(SEATS);
    o.taken = ((uint64_t)1 << n) - 1;
    bench_init(b, SEATS);
    qn_supervision_init(&b->s, &o);
    step(b, (struct qn_supervision_event){.kind = QN_ON_START});
    for (qn_node_t i = 0; i < n; i++) {
        spawned(b, i);
    }
    for (qn_node_t i = 0; i < n; i++) {
        says_hello(b, i);
    }
    for (qn_node_t i = 0; i < n; i++) {
        says_kind(b, i, QN_CTL_READY);
    }
    b->now += 60 * QN_S;
}

static void wants_one_more(struct bench *b, qn_node_t from)
{
    says(b, from,
         (struct qn_control_msg){.kind = QN_CTL_MEMBER_ADD,
                                 .u.member_add.client = CLIENT});
}

static void wants_less(struct bench *b, qn_node_t from, qn_node_t node)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_MEMBER_REMOVE,
             .u.member_remove = {.node = node, .client = CLIENT}});
}

static void met(struct bench *b, qn_node_t from, qn_node_t node, int err)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_PEER_MET,
             .u.peer_met = {.node = node,
                            .incarnation = b->s.replica[node].incarnation,
                            .error = err}});
}

static void voters_are(struct bench *b, qn_node_t from, uint32_t entries,
                       uint64_t voters)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_VOTERS,
             .u.voters = {.entries = entries, .voters = voters}});
}

/* What has become of the last order; the voters are of `entries`. */
static void changed(struct bench *b, qn_node_t from,
                    enum qn_voter_outcome outcome, int err, uint32_t entries,
                    uint64_t voters)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_VOTER_CHANGED,
             .u.voter_changed = {.outcome = outcome,
                                 .number = b->s.change.number,
                                 .entries = entries,
                                 .voters = voters,
                                 .error = err}});
}

/* @return why not, QN_MEMBER_ERRORS: not answered in this step. */
static uint32_t answer(const struct bench *b, qn_node_t to)
{
    const struct qn_control_msg *m = message(b, to, QN_CTL_MEMBER_ANSWER);
    if (m == NULL) {
        return QN_MEMBER_ERRORS;
    }
    cr_expect_eq(m->u.member_answer.client, CLIENT);
    return m->u.member_answer.why;
}

static const struct qn_ctl_voter_change *order(const struct bench *b,
                                               qn_node_t to)
{
    const struct qn_control_msg *m = message(b, to, QN_CTL_VOTER_CHANGE);
    return m == NULL ? NULL : &m->u.voter_change;
}

/* A newcomer of seat 3 has said HELLO. */
static void comes_to_three(struct bench *b)
{
    serve(b, 3);
    wants_one_more(b, 1);
    cr_assert_not_null(find(b, QN_DO_SPAWN, 3));
    spawned(b, 3);
    says_hello(b, 3);
}

/* It is complete, and its vote was ordered of the asker. */
static void loads_to_three(struct bench *b)
{
    comes_to_three(b);
    for (qn_node_t i = 0; i < 3; i++) {
        met(b, i, 3, QN_OK);
    }
    says_kind(b, 3, QN_CTL_READY);
    timer(b);
    cr_assert_not_null(order(b, 1));
}

/* ---- added --------------------------------------------------------------- */

Test(member_change, a_newcomer_starts_when_all_have_met_it)
{
    struct bench b;
    comes_to_three(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_PEER_UP), 3);
    cr_expect_eq(told(&b, 0, QN_CTL_PEER_UP), 1);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 0);
    met(&b, 0, 3, QN_OK);
    met(&b, 0, 3, QN_OK);
    met(&b, 2, 3, QN_OK);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 0);
    met(&b, 1, 3, QN_OK);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 1);
}

Test(member_change, its_vote_is_ordered_when_it_is_complete)
{
    struct bench b;
    loads_to_three(&b);
    const struct qn_ctl_voter_change *c = order(&b, 1);
    cr_expect_eq(c->node, 3);
    cr_expect(c->votes);
    cr_expect_eq(c->incarnation, b.s.replica[3].incarnation);
    changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 15);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_NONE);
    cr_expect_eq(b.s.change.step, QN_MEMBER_NONE);
    killed(&b, 3);
    cr_expect_geq(restart_in_ms(&b, 3), 0, "it is a member as any other");
}

Test(member_change, a_member_that_cannot_meet_it_ends_it)
{
    struct bench b;
    comes_to_three(&b);
    met(&b, 2, 3, QN_ENOMEM);
    timer(&b);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERRORS, "not before it has ended");
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

Test(member_change, a_member_that_a_signal_stopped_need_not_meet_it)
{
    struct bench b;
    comes_to_three(&b);
    cr_expect(qn_supervision_needs_stopped(&b.s, QN_ON_TIMER, b.now));
    met(&b, 0, 3, QN_OK);
    met(&b, 1, 3, QN_OK);
    timer(&b);
    cr_assert_eq(told(&b, 3, QN_CTL_START), 0);
    b.facts.stopped = 1u << 2;
    later(&b, 50);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 1);
    cr_expect_not(qn_supervision_needs_stopped(&b.s, QN_ON_TIMER, b.now));
    met(&b, 3, 2, QN_EAGAIN); /* it has no lanes for the newcomer */
    says_kind(&b, 3, QN_CTL_READY);
    timer(&b);
    changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 15);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_NONE);
    met(&b, 2, 3, QN_OK); /* it goes on */
    cr_assert_eq(told(&b, 3, QN_CTL_PEER_UP), 1);
    cr_expect_eq(message(&b, 3, QN_CTL_PEER_UP)->u.peer_up.node, 2);
    met(&b, 3, 2, QN_OK);
    later(&b, 10000);
    cr_expect_eq(told(&b, 3, QN_CTL_PEER_UP), 0);
}

Test(member_change, a_silent_member_ends_it)
{
    struct bench b;
    comes_to_three(&b);
    met(&b, 0, 3, QN_OK);
    met(&b, 2, 3, QN_OK);
    later(&b, 5000);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    killed(&b, 3);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_SILENT);
}

Test(member_change, a_newcomer_that_is_late_ends)
{
    struct bench b;
    serve(&b, 3);
    wants_one_more(&b, 1);
    spawned(&b, 3);
    later(&b, 60000); /* no HELLO */
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    killed(&b, 3);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_LATE);
    comes_to_three(&b);
    for (qn_node_t i = 0; i < 3; i++) {
        met(&b, i, 3, QN_OK);
    }
    later(&b, 59999);
    cr_expect_null(find(&b, QN_DO_KILL, 3));
    later(&b, 1);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
}

/* Its next incarnation has lanes for all seats that are taken. */
Test(member_change, a_member_that_ends_need_not_meet_it)
{
    struct bench b;
    comes_to_three(&b);
    met(&b, 0, 3, QN_OK);
    met(&b, 1, 3, QN_OK);
    killed(&b, 2);
    timer(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_START), 1);
}

Test(member_change, a_newcomer_that_ends_is_not_started_again)
{
    struct bench b;
    comes_to_three(&b);
    killed(&b, 3);
    cr_expect_eq(restart_in_ms(&b, 3), -1);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_ENDED);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}

Test(member_change, a_process_that_cannot_be_made_is_a_reason)
{
    struct bench b;
    serve(&b, 3);
    wants_one_more(&b, 1);
    spawn_failed(&b, 3, QN_EMFILE);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_SPAWN);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}

/* It was complete, so it may have clients: it drains. */
Test(member_change, a_refused_newcomer_drains)
{
    struct bench b;
    loads_to_three(&b);
    changed(&b, 1, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    timer(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    says_kind(&b, 3, QN_CTL_DRAINED);
    timer(&b);
    cr_expect_eq(told(&b, 3, QN_CTL_STOP), 1);
    ended(&b, 3, 0);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_QUORUM);
}

/* Its entry may come: it is a voter then, and is started again. */
Test(member_change, a_newcomer_that_ends_while_it_gets_its_vote_comes_back)
{
    struct bench b;
    loads_to_three(&b);
    killed(&b, 3);
    timer(&b);
    cr_expect_eq(b.s.change.step, QN_MEMBER_VOTES);
    cr_expect_eq(restart_in_ms(&b, 3), -1);
    changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 15);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_NONE);
    timer(&b);
    cr_expect_not_null(find(&b, QN_DO_SPAWN, 3));
}

/* It drains meanwhile, and no operator has asked it to. */
Test(member_change, a_newcomer_that_leaves_and_gets_its_vote_comes_back)
{
    struct bench b;
    loads_to_three(&b);
    changed(&b, 1, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    timer(&b);
    cr_assert_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    voters_are(&b, 0, 2, 15);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_NONE);
    says_kind(&b, 3, QN_CTL_DRAINED);
    ended(&b, 3, 0);
    cr_expect_geq(restart_in_ms(&b, 3), 0);
}

Test(member_change, a_newcomer_that_leaves_ends_in_time_with_a_vote_too)
{
    struct bench b;
    loads_to_three(&b);
    changed(&b, 1, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    timer(&b);
    voters_are(&b, 0, 2, 15);
    later(&b, 15000);
    cr_expect_not_null(find(&b, QN_DO_KILL, 3));
    killed(&b, 3);
    cr_expect_geq(restart_in_ms(&b, 3), 0);
}

/* It has learned more entries than the voters have spoken of: they speak when
 * other replicas vote, and roles were changed since. */
Test(member_change, a_newcomer_has_no_vote_because_it_knows_more)
{
    struct bench b;
    comes_to_three(&b);
    for (qn_node_t i = 0; i < 3; i++) {
        met(&b, i, 3, QN_OK);
    }
    voters_are(&b, 3, 7, 7);
    cr_expect_eq(b.s.voters, 7);
    cr_expect_not(b.s.replica[3].leaves);
    says_kind(&b, 3, QN_CTL_READY);
    timer(&b);
    cr_expect_not_null(order(&b, 1));
    cr_expect_eq(b.s.change.step, QN_MEMBER_VOTES);
}

/* ---- orders -------------------------------------------------------------- */

Test(member_change, another_one_is_asked_if_the_first_ends_or_is_silent)
{
    struct bench b;
    loads_to_three(&b);
    killed(&b, 1);
    timer(&b);
    cr_assert_not_null(order(&b, 2));
    later(&b, 7999);
    cr_expect_null(order(&b, 0));
    later(&b, 1);
    cr_assert_not_null(order(&b, 0));
}

Test(member_change, what_may_pass_is_asked_again)
{
    static const int passes[] = {QN_EAGAIN, QN_EBUSY, QN_ENOTLEADER};
    struct bench b;
    loads_to_three(&b);
    qn_node_t by = 1;
    for (int i = 0; i < 3; i++) {
        changed(&b, by, QN_VOTER_REFUSED, passes[i], 1, 7);
        later(&b, 200);
        by = (by + 1) % 3;
        cr_assert_not_null(order(&b, by), "%d", i);
    }
    changed(&b, by, QN_VOTER_REFUSED, QN_EAGAIN, 1, 7);
    later(&b, 30000);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
}

/* The first one may have it still, and order it when it goes on. */
Test(member_change, a_refusal_to_another_one_does_not_take_the_first_back)
{
    struct bench b;
    serve(&b, 3);
    wants_less(&b, 1, 2);
    timer(&b);
    later(&b, 8000);
    cr_assert_not_null(order(&b, 0));
    changed(&b, 0, QN_VOTER_REFUSED, QN_EPERM, 1, 7);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_UNKNOWN);
}

/* What a former order comes to is no answer to the present one. */
Test(member_change, an_answer_to_another_order_is_none)
{
    struct bench b;
    loads_to_three(&b);
    says(&b, 1,
         (struct qn_control_msg){
             .kind = QN_CTL_VOTER_CHANGED,
             .u.voter_changed = {.outcome = QN_VOTER_REFUSED,
                                 .number = b.s.change.number - 1,
                                 .error = QN_ENOQUORUM}});
    changed(&b, 0, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 7);
    cr_expect_eq(b.s.change.step, QN_MEMBER_VOTES);
    cr_expect(b.s.change.asked);
}

Test(member_change, what_is_unknown_for_long_is_said_to_be)
{
    struct bench b;
    serve(&b, 3);
    wants_less(&b, 1, 2);
    timer(&b);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(answer(&b, 1), QN_MEMBER_ERRORS);
        later(&b, 8000);
    }
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_UNKNOWN);
    cr_expect_eq(b.s.replica[2].state, QN_REPLICA_SERVING);
    voters_are(&b, 0, 2, 3); /* it was done after all */
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
}

/* ---- removed ------------------------------------------------------------- */

Test(member_change, a_removed_member_drains_and_its_seat_is_vacant)
{
    struct bench b;
    serve(&b, 3);
    wants_less(&b, 1, 2);
    timer(&b);
    const struct qn_ctl_voter_change *c = order(&b, 1);
    cr_assert_not_null(c);
    cr_expect_eq(c->node, 2);
    cr_expect(!c->votes);
    changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 3);
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
    says_kind(&b, 2, QN_CTL_DRAINED);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERRORS, "not before it has ended");
    ended(&b, 2, 0);
    cr_expect_not_null(find(&b, QN_DO_CLOSE_LISTENER, 2));
    cr_expect_eq(restart_in_ms(&b, 2), -1);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_NONE);
    wants_one_more(&b, 0);
    const struct qn_supervision_action *a = find(&b, QN_DO_SPAWN, 2);
    cr_assert_not_null(a, "its seat is taken again");
    cr_expect_gt(a->incarnation, b.s.replica[2].incarnation);
}

Test(member_change, one_that_does_not_drain_is_killed)
{
    struct bench b;
    serve(&b, 3);
    wants_less(&b, 1, 2);
    timer(&b);
    changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 3);
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
    serve(&b, 3);
    voters_are(&b, 2, 2, 3);
    timer(&b);
    cr_expect_eq(b.s.voters, 7);
    says_kind(&b, 2, QN_CTL_DRAINED);
    ended(&b, 2, 0);
    cr_expect_geq(restart_in_ms(&b, 2), 0, "no operator has asked it to end");
    voters_are(&b, 0, 2, 3);
    cr_expect_eq(b.s.voters, 3);
    cr_expect_eq(restart_in_ms(&b, 2), -1);
}

/* It drains only when its clients have their answers. */
Test(member_change, a_member_that_was_asked_to_remove_itself_answers_first)
{
    struct bench b;
    serve(&b, 3);
    wants_less(&b, 2, 2);
    timer(&b);
    cr_assert_not_null(order(&b, 0), "another one orders it");
    changed(&b, 0, QN_VOTER_OK, QN_OK, 2, 3);
    cr_expect_eq(answer(&b, 2), QN_MEMBER_ERROR_NONE);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 0);
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
}

/* The incarnation that is removed is the one that ended. */
Test(member_change, a_dead_one_is_not_started_while_it_is_removed)
{
    struct bench b;
    serve(&b, 3);
    killed(&b, 2);
    wants_less(&b, 1, 2);
    timer(&b);
    cr_assert_not_null(order(&b, 1));
    cr_expect_eq(order(&b, 1)->incarnation, b.s.replica[2].incarnation);
    later(&b, 1000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    changed(&b, 1, QN_VOTER_OK, QN_OK, 2, 3);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_NONE);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}

Test(member_change, a_dead_one_that_is_not_removed_is_started)
{
    struct bench b;
    serve(&b, 3);
    killed(&b, 2);
    wants_less(&b, 1, 2);
    timer(&b);
    changed(&b, 1, QN_VOTER_REFUSED, QN_EPERM, 1, 7);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_LEAST);
    later(&b, 30);
    cr_expect_not_null(find(&b, QN_DO_SPAWN, 2));
}

/* ---- refused ------------------------------------------------------------- */

Test(member_change, what_cannot_be_is_refused_and_nothing_is_begun)
{
    struct bench b;
    serve(&b, 4);
    wants_one_more(&b, 1);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_FULL);
    serve(&b, 1);
    wants_less(&b, 0, 0);
    cr_expect_eq(answer(&b, 0), QN_MEMBER_ERROR_LAST);
    serve(&b, 3);
    wants_less(&b, 0, 3);
    cr_expect_eq(answer(&b, 0), QN_MEMBER_ERROR_ABSENT);
    b.s.opts.memory_acceptor = false;
    wants_one_more(&b, 1);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_PROCESS);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    cr_expect_eq(b.s.change.step, QN_MEMBER_NONE);
}

Test(member_change, one_that_the_machine_cannot_hold_is_refused)
{
    struct bench b;
    const struct qn_control_msg m = {.kind = QN_CTL_MEMBER_ADD,
                                     .u.member_add.client = CLIENT};
    serve(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_MESSAGE,
                                           .node = 1,
                                           .message = &m,
                                           .unfit = true,
                                           .fits = 700});
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_MEMORY);
    cr_expect_eq(message(&b, 1, QN_CTL_MEMBER_ANSWER)->u.member_answer.fits,
                 700);
}

Test(member_change, operations_refuse_each_other)
{
    struct bench b;
    comes_to_three(&b);
    wants_less(&b, 0, 1);
    cr_expect_eq(answer(&b, 0), QN_MEMBER_ERROR_TWICE);
    says(&b, 0, (struct qn_control_msg){.kind = QN_CTL_RECOVER});
    cr_expect_eq(
        message(&b, 0, QN_CTL_RECOVER_REFUSED)->u.recover_refused.refusal,
        QN_RECOVERY_ERROR_MEMBERS);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_SUCCESSOR_ASKS});
    cr_expect_eq(count(&b, QN_DO_REFUSE_SUCCESSOR), 1);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_UPGRADE});
    cr_expect_eq(b.s.upgrade.step, QN_UPGRADE_NONE);

    serve(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_UPGRADE});
    wants_one_more(&b, 1);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_UPGRADE);

    serve(&b, 3);
    says(&b, 0, (struct qn_control_msg){.kind = QN_CTL_RECOVER});
    wants_one_more(&b, 1);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_RECOVERY);
}

Test(member_change, a_drain_ends_a_change)
{
    struct bench b;
    comes_to_three(&b);
    signalled(&b, SIGTERM);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    timer(&b);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_LEAVES);
    wants_one_more(&b, 1);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_LEAVES);
}

/* A client of the former incarnation has gone with it. */
Test(member_change, another_incarnation_of_the_asker_is_told_nothing)
{
    struct bench b;
    comes_to_three(&b);
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
    serve(&b, 3);
    wants_one_more(&b, 1);
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
    serve(&b, 2);
    wants_one_more(&b, 0);
    spawned(&b, 2);
    says_hello(&b, 2);
    met(&b, 0, 2, QN_OK);
    met(&b, 1, 2, QN_OK);
    says_kind(&b, 2, QN_CTL_READY);
    timer(&b);
    changed(&b, 0, QN_VOTER_REFUSED, QN_ENOQUORUM, 1, 3);
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
    comes_to_three(&b);
    killed(&b, 0);
    says(&b, 1,
         (struct qn_control_msg){.kind = QN_CTL_MEMBER_LIST,
                                 .u.member_list.client = CLIENT});
    cr_assert_eq(told(&b, 1, QN_CTL_MEMBER_SEAT), 4);
    cr_expect_eq(answer(&b, 1), QN_MEMBER_ERROR_NONE);
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

/* ---- an adopter ---------------------------------------------------------- */

static void orphan(struct bench *b, qn_node_t i, uint32_t entries,
                   uint64_t voters)
{
    step(b, (struct qn_supervision_event){
                .kind = QN_ON_ORPHAN_MET, .node = i, .pid = (pid_t)(100 + i)});
    says(b, i,
         (struct qn_control_msg){.kind = QN_CTL_HELLO,
                                 .u.hello = {.node = i, .incarnation = i + 1}});
    says_kind(b, i, QN_CTL_READY);
    voters_are(b, i, entries, voters);
    says_kind(b, i, QN_CTL_START);
}

/* Two of four seats began the group; 0, 2 and 3 live, and say who votes. */
static void adopt(struct bench *b, uint64_t voters)
{
    struct qn_supervision_opts o = opts_of(SEATS);
    o.taken = 3;
    bench_init(b, 1);
    orphan(b, 0, 3, voters);
    orphan(b, 3, 3, voters);
    orphan(b, 2, 2, 15 - voters % 15); /* it lags: fewer entries */
    step(b, (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER, .opts = &o});
    step(b, (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = 1});
    for (qn_node_t i = 0; i < SEATS; i++) {
        step(b,
             (struct qn_supervision_event){.kind = QN_ON_CATCH_UP, .node = i});
    }
    step(b, (struct qn_supervision_event){.kind = QN_ON_TAKEN_OVER});
    timer(b);
}

Test(member_change, an_adopter_finds_the_voters)
{
    struct bench b;
    adopt(&b, 13);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0, "a vacant seat stays vacant");
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 0);
    adopt(&b, 15);
    cr_expect_not_null(find(&b, QN_DO_SPAWN, 1), "a voter is started");
}

Test(member_change, an_adopter_ends_a_newcomer_without_a_vote)
{
    struct bench b;
    adopt(&b, 5);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    says_kind(&b, 3, QN_CTL_DRAINED);
    ended(&b, 3, 0);
    cr_expect_eq(restart_in_ms(&b, 3), -1);
    voters_are(&b, 0, 4, 13); /* its entry comes all the same */
    cr_expect_eq(restart_in_ms(&b, 3), 0);
}

/* Roles have changed, and the voters lag. */
Test(member_change, an_adopter_ends_a_newcomer_that_knows_more)
{
    struct bench b;
    struct qn_supervision_opts o = opts_of(SEATS);
    o.taken = 3;
    bench_init(&b, 1);
    orphan(&b, 3, 4, 3);
    orphan(&b, 0, 3, 3);
    orphan(&b, 1, 3, 3);
    step(&b,
         (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER, .opts = &o});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = 2});
    for (qn_node_t i = 0; i < SEATS; i++) {
        step(&b,
             (struct qn_supervision_event){.kind = QN_ON_CATCH_UP, .node = i});
    }
    step(&b, (struct qn_supervision_event){.kind = QN_ON_TAKEN_OVER});
    timer(&b);
    cr_expect_eq(b.s.voters, 3);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
}

/* It may have a vote of which the others have not heard. */
Test(member_change, a_late_replica_is_left_alone_until_it_has_spoken)
{
    struct bench b;
    struct qn_supervision_opts o = opts_of(SEATS);
    o.taken = 3;
    bench_init(&b, 1);
    orphan(&b, 0, 3, 3);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_ORPHAN_MET, .node = 2, .pid = 102});
    step(&b,
         (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER, .opts = &o});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = 1});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = 3});
    for (qn_node_t i = 0; i < SEATS; i++) {
        step(&b,
             (struct qn_supervision_event){.kind = QN_ON_CATCH_UP, .node = i});
    }
    step(&b, (struct qn_supervision_event){.kind = QN_ON_TAKEN_OVER});
    later(&b, 60000);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 0);
    cr_expect_null(find(&b, QN_DO_KILL, 2));
    says(&b, 2,
         (struct qn_control_msg){.kind = QN_CTL_HELLO,
                                 .u.hello = {.node = 2, .incarnation = 3}});
    says_kind(&b, 2, QN_CTL_READY);
    voters_are(&b, 2, 2, 1);
    says_kind(&b, 2, QN_CTL_START);
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
}

/* The dead supervisor had told only this one of the newcomer, which ended. */
Test(member_change, a_late_replica_hears_of_the_end_of_one_that_it_alone_knows)
{
    struct bench b;
    struct qn_supervision_opts o = opts_of(SEATS);
    o.taken = 3;
    bench_init(&b, 1);
    orphan(&b, 0, 3, 3);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_ORPHAN_MET, .node = 1, .pid = 101});
    step(&b,
         (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER, .opts = &o});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = 2});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = 3});
    for (qn_node_t i = 0; i < SEATS; i++) {
        step(&b,
             (struct qn_supervision_event){.kind = QN_ON_CATCH_UP, .node = i});
    }
    step(&b, (struct qn_supervision_event){.kind = QN_ON_TAKEN_OVER});
    says(&b, 1,
         (struct qn_control_msg){.kind = QN_CTL_PEER_UP,
                                 .u.peer_up = {.node = 2, .incarnation = 7}});
    says(&b, 1,
         (struct qn_control_msg){.kind = QN_CTL_HELLO,
                                 .u.hello = {.node = 1, .incarnation = 2}});
    says_kind(&b, 1, QN_CTL_START);
    cr_assert_eq(told(&b, 1, QN_CTL_PEER_DOWN), 1);
    cr_expect_eq(message(&b, 1, QN_CTL_PEER_DOWN)->u.peer_down.incarnation, 7);
    wants_one_more(&b, 0);
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 2));
    cr_expect_gt(find(&b, QN_DO_SPAWN, 2)->incarnation, 7);
}

/* The one that the group began with was removed, and lives; the other one has
 * died. */
Test(member_change, an_adopter_starts_the_voters_that_a_removed_one_names)
{
    struct bench b;
    struct qn_supervision_opts o = opts_of(2);
    o.taken = 1;
    bench_init(&b, 1);
    orphan(&b, 0, 3, 2);
    step(&b,
         (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER, .opts = &o});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = 1});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_CATCH_UP, .node = 0});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_CATCH_UP, .node = 1});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_TAKEN_OVER});
    timer(&b);
    cr_expect_not_null(find(&b, QN_DO_SPAWN, 1));
    cr_expect_eq(b.s.voters, 3, "its word does not take its own vote");
    comes(&b, 1);
    voters_are(&b, 1, 3, 2);
    cr_expect_eq(b.s.voters, 2);
}
