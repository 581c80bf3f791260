/*
 * A group that has stopped goes on from one replica.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include "core/base/err.h"
#include "kvs/control/recovery_error.h"
#include "tests/support/test.h"

/* A client of `from`, its 5th, wants the group to go on from `node`. */
static void wish(struct bench *b, qn_node_t from, qn_node_t node)
{
    says(b, from,
         (struct qn_control_msg){
             .kind = QN_CTL_RECOVER,
             .u.recover = {
                 .node = node, .epoch = 8, .client = 5, .position = 90}});
}

static void answer(struct bench *b, qn_node_t from, uint64_t question,
                   uint32_t refusal)
{
    says(b, from,
         (struct qn_control_msg){.kind = QN_CTL_RECOVERABLE,
                                 .u.recoverable = {.question = question,
                                                   .refusal = refusal,
                                                   .position = 91}});
}

static void recovered(struct bench *b, qn_node_t from, int64_t err)
{
    says(b, from,
         (struct qn_control_msg){.kind = QN_CTL_RECOVERED,
                                 .u.recovered.error = err});
}

static uint32_t refused(const struct bench *b, qn_node_t asker)
{
    const struct qn_control_msg *m = message(b, asker, QN_CTL_RECOVER_REFUSED);
    return m == NULL ? QN_RECOVERY_ERROR_NONE : m->u.recover_refused.refusal;
}

/* Up to: all others are killed. */
static void choose(struct bench *b)
{
    bench_serve(b, 3);
    wish(b, 0, 1);
    answer(b, 1, 1, QN_RECOVERY_ERROR_NONE);
    timer(b);
}

/* What it said may have been its last words. */
Test(recovery, no_replica_is_killed_for_one_that_has_ended_meanwhile)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    answer(&b, 1, 1, QN_RECOVERY_ERROR_NONE);
    cr_expect_null(find(&b, QN_DO_KILL, 0));
    ended(&b, 1, 9);
    timer(&b);
    cr_expect_null(find(&b, QN_DO_KILL, 0));
    cr_expect_null(find(&b, QN_DO_KILL, 2));
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_ENDED);
}

Test(recovery, the_chosen_replica_is_asked_first_and_nothing_else_happens)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    const struct qn_control_msg *q = message(&b, 1, QN_CTL_RECOVER_QUERY);
    cr_assert_not_null(q);
    cr_expect_eq(q->u.recover_query.epoch, 8);
    cr_expect_eq(q->u.recover_query.position, 90);
    cr_expect_eq(b.out.count, 1);
}

Test(recovery, if_it_could_all_others_are_killed)
{
    struct bench b;
    choose(&b);
    cr_expect(logged(&b, "recovering from replica 1 by order, position 91"));
    cr_assert_not_null(find(&b, QN_DO_KILL, 0));
    cr_expect_null(find(&b, QN_DO_KILL, 1));
    cr_assert_not_null(find(&b, QN_DO_KILL, 2));
}

Test(recovery, it_is_ordered_when_the_others_have_ended_and_none_is_started)
{
    struct bench b;
    choose(&b);
    killed(&b, 0);
    later(&b, 100);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    cr_expect_eq(told(&b, 1, QN_CTL_RECOVER_ORDER), 0);
    killed(&b, 2);
    cr_expect_eq(told(&b, 1, QN_CTL_PEER_DOWN), 1);
    later(&b, 100);
    cr_expect_eq(told(&b, 1, QN_CTL_RECOVER_ORDER), 1);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    cr_expect_not(logged(&b, "ended by signal"), "it was wanted");
}

Test(recovery, all_others_are_started_when_it_has_gone_on)
{
    struct bench b;
    choose(&b);
    b.s.opts.restart = false; /* without a majority nothing is decided */
    killed(&b, 0);
    killed(&b, 2);
    timer(&b);
    recovered(&b, 1, QN_OK);
    timer(&b);
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 0));
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 2));
    cr_expect_not(qn_supervision_needs_stopped(&b.s, QN_ON_MESSAGE, b.now));
}

Test(recovery, a_refusal_of_the_chosen_one_is_passed_on)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    answer(&b, 1, 1, QN_RECOVERY_ERROR_LESS);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_LESS);
    cr_expect_eq(
        message(&b, 0, QN_CTL_RECOVER_REFUSED)->u.recover_refused.client, 5);
    cr_expect_eq(count(&b, QN_DO_KILL), 0);
}

Test(recovery, an_answer_to_an_earlier_question_is_not_taken)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    answer(&b, 1, 1, QN_RECOVERY_ERROR_LESS);
    wish(&b, 0, 1);
    answer(&b, 1, 1, QN_RECOVERY_ERROR_NONE);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_KILL), 0);
    answer(&b, 1, 2, QN_RECOVERY_ERROR_NONE);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_KILL), 2);
}

Test(recovery, an_answer_of_another_replica_is_not_taken)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    answer(&b, 2, 1, QN_RECOVERY_ERROR_NONE);
    cr_expect_eq(count(&b, QN_DO_KILL), 0);
}

Test(recovery, a_silent_chosen_one_is_given_up_after_3_s)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    later(&b, 2999);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_NONE);
    cr_expect_leq(b.out.deadline, b.now + 100 * QN_MS);
    later(&b, 1);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_SILENT);
}

Test(recovery, a_chosen_one_that_ends_while_it_is_asked_is_refused)
{
    struct bench b;
    bench_serve(&b, 5);
    wish(&b, 0, 1);
    killed(&b, 1);
    timer(&b);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_ENDED);
}

/* Its next incarnation answers a question that was not put to it. */
Test(recovery, the_next_incarnation_of_the_chosen_one_was_not_asked)
{
    struct bench b;
    bench_serve(&b, 5);
    wish(&b, 0, 1);
    killed(&b, 1);
    b.s.replica[1].restart_at = b.now;
    qn_time_t at = b.now;
    b.s.recovery.until = at + 3600 * QN_S;
    step(&b, (struct qn_supervision_event){.kind = QN_ON_HANGUP, .node = 1});
    answer(&b, 1, 1, QN_RECOVERY_ERROR_NONE);
    cr_expect_eq(count(&b, QN_DO_KILL), 0);
}

Test(recovery, a_chosen_one_that_ends_alone_takes_the_data_along)
{
    struct bench b;
    choose(&b);
    killed(&b, 0);
    killed(&b, 2);
    timer(&b);
    killed(&b, 1);
    timer(&b);
    cr_expect_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_LOST);
}

Test(recovery, a_chosen_one_that_does_not_go_on_in_5_s_is_given_up)
{
    struct bench b;
    choose(&b);
    killed(&b, 0);
    killed(&b, 2);
    timer(&b);
    later(&b, 5000);
    cr_expect(logged(&b, "replica 1 does not answer; the others are started "
                         "again"));
    timer(&b);
    cr_expect_eq(b.s.recovery.step, QN_RECOVERY_NONE);
    cr_expect_eq(count(&b, QN_DO_SPAWN) + b.s.replica[0].spawning, 1);
}

Test(recovery, one_at_a_time)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    wish(&b, 2, 0);
    cr_expect_eq(refused(&b, 2), QN_RECOVERY_ERROR_TWICE);
}

Test(recovery, not_from_one_that_is_not_complete)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    wish(&b, 0, 1);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_ABSENT);
}

Test(recovery, not_while_the_server_drains)
{
    struct bench b;
    bench_serve(&b, 3);
    signalled(&b, 15);
    wish(&b, 0, 1);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_LEAVES);
}

Test(recovery, a_drain_ends_the_question)
{
    struct bench b;
    bench_serve(&b, 3);
    wish(&b, 0, 1);
    signalled(&b, 15);
    timer(&b);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_LEAVES);
}

Test(recovery, not_while_an_upgrade_is_going_on)
{
    struct bench b;
    bench_serve(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_UPGRADE});
    wish(&b, 0, 1);
    cr_expect_eq(refused(&b, 0), QN_RECOVERY_ERROR_UPGRADE);
}
