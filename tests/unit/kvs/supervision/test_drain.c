/*
 * How a server ends in order; and what a signal does.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include <signal.h>

#include "tests/support/test.h"

static void drained(struct bench *b, qn_node_t i, uint64_t unsent)
{
    says(b, i,
         (struct qn_control_msg){.kind = QN_CTL_DRAINED,
                                 .u.drained.unsent_replies = unsent});
}

static int finish_status(const struct bench *b)
{
    const struct qn_supervision_action *a = find(b, QN_DO_FINISH, 0);
    return a == NULL ? -1 : a->number;
}

Test(drain, a_signal_tells_all_to_drain_and_closes_the_listeners)
{
    struct bench b;
    bench_serve(&b, 3);
    signalled(&b, SIGTERM);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_expect_eq(told(&b, i, QN_CTL_DRAIN), 1);
    }
    cr_expect_eq(count(&b, QN_DO_CLOSE_LISTENERS), 1);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0);
}

Test(drain, all_stop_when_the_last_one_has_drained)
{
    struct bench b;
    bench_serve(&b, 3);
    signalled(&b, SIGTERM);
    drained(&b, 0, 0);
    drained(&b, 1, 0);
    cr_expect_eq(told(&b, 0, QN_CTL_STOP), 0);
    drained(&b, 2, 0);
    cr_expect_eq(told(&b, 0, QN_CTL_STOP), 1);
    cr_expect_eq(told(&b, 2, QN_CTL_STOP), 1);
}

Test(drain, ends_with_0_when_all_was_answered)
{
    struct bench b;
    bench_serve(&b, 2);
    signalled(&b, SIGINT);
    drained(&b, 0, 0);
    drained(&b, 1, 0);
    ended(&b, 0, 0);
    timer(&b);
    cr_expect_eq(finish_status(&b), -1);
    ended(&b, 1, 0);
    timer(&b);
    cr_expect_eq(finish_status(&b), QN_SUPERVISOR_DRAINED);
    cr_expect_eq(b.out.texts, 0);
}

Test(drain, an_end_counts_as_drained_for_the_others)
{
    struct bench b;
    bench_serve(&b, 2);
    signalled(&b, SIGTERM);
    drained(&b, 0, 0);
    killed(&b, 1);
    cr_expect_eq(told(&b, 0, QN_CTL_STOP), 1);
    ended(&b, 0, 0);
    timer(&b);
    cr_expect_eq(finish_status(&b), QN_SUPERVISOR_LOST, "one had not drained");
}

Test(drain, replies_that_were_not_given_are_counted)
{
    struct bench b;
    bench_serve(&b, 2);
    signalled(&b, SIGTERM);
    drained(&b, 0, 3);
    drained(&b, 1, 4);
    ended(&b, 0, 0);
    ended(&b, 1, 0);
    timer(&b);
    cr_expect(logged(&b, "replies not given: 7"));
    cr_expect_eq(finish_status(&b), QN_SUPERVISOR_LOST);
}

Test(drain, a_silent_replica_is_killed_5_s_after_the_limit)
{
    struct bench b;
    bench_serve(&b, 3);
    signalled(&b, SIGTERM);
    drained(&b, 0, 0);
    cr_expect_eq(b.out.deadline, b.now + 15 * QN_S);
    later(&b, 14999);
    cr_expect_eq(count(&b, QN_DO_KILL), 0);
    later(&b, 1);
    cr_expect_null(find(&b, QN_DO_KILL, 0), "it has drained");
    cr_assert_not_null(find(&b, QN_DO_KILL, 1));
    cr_assert_not_null(find(&b, QN_DO_KILL, 2));
    later(&b, 60000);
    cr_expect_eq(count(&b, QN_DO_KILL), 0, "SIGKILL needs no second one");
    ended(&b, 0, 0);
    killed(&b, 1);
    killed(&b, 2);
    timer(&b);
    cr_expect(logged(&b, "; killed, since silent: replicas 1 2"));
}

Test(drain, the_limit_is_the_one_that_replicas_know)
{
    struct bench b;
    bench_serve(&b, 3);
    signalled(&b, SIGTERM);
    says(&b, 1,
         (struct qn_control_msg){.kind = QN_CTL_DRAINING,
                                 .u.draining.timeout_s = 2});
    cr_expect_eq(b.out.deadline, b.now + 7 * QN_S);
}

Test(drain, no_replica_is_started_while_draining)
{
    struct bench b;
    bench_serve(&b, 5);
    killed(&b, 1);
    signalled(&b, SIGTERM);
    later(&b, 30);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    killed(&b, 2);
    later(&b, 30);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    cr_expect_eq(restart_in_ms(&b, 2), -1);
}

/* Its end and the signal came at the same time. */
Test(drain, after_the_last_complete_one_the_status_is_not_0)
{
    struct bench b;
    bench_serve(&b, 1);
    killed(&b, 0);
    signalled(&b, SIGTERM);
    if (!b.s.over) {
        timer(&b);
    }
    cr_assert(b.s.over);
    cr_expect_eq(b.s.status, QN_SUPERVISOR_LOST);
}

Test(drain, a_second_signal_ends_at_once)
{
    struct bench b;
    bench_serve(&b, 3);
    signalled(&b, SIGTERM);
    signalled(&b, SIGINT);
    cr_expect_eq(finish_status(&b), 128 + SIGINT);
}

Test(drain, a_signal_before_readiness_ends_the_start_with_0)
{
    struct bench b;
    bench_init(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_START});
    spawned(&b, 0);
    signalled(&b, SIGTERM);
    cr_expect_eq(finish_status(&b), QN_SUPERVISOR_DRAINED);
}

Test(drain, a_group_that_had_stopped_is_said_to_be_gone)
{
    struct bench b;
    bench_serve(&b, 2);
    signalled(&b, SIGTERM);
    drained(&b, 0, 0);
    says(&b, 1,
         (struct qn_control_msg){.kind = QN_CTL_DRAINED,
                                 .u.drained.group_stopped = true});
    ended(&b, 0, 0);
    ended(&b, 1, 0);
    timer(&b);
    cr_expect(logged(&b, "the group had stopped and was not recovered"));
    cr_expect_eq(finish_status(&b), QN_SUPERVISOR_LOST);
}
