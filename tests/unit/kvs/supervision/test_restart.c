/*
 * The next incarnation after an end: restart, back-off, and what is expedited.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include "core/base/err.h"
#include "tests/support/test.h"

Test(restart, a_new_group_is_spawned_with_numbers_that_grow)
{
    struct bench b;
    bench_init(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_START});
    cr_assert_eq(count(&b, QN_DO_SPAWN), 3);
    for (qn_node_t i = 0; i < 3; i++) {
        spawned(&b, i);
        cr_expect_eq(b.s.replica[i].incarnation, i + 1);
    }
}

Test(restart, readiness_is_announced_once_when_all_are_ready)
{
    struct bench b;
    bench_init(&b, 2);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_START});
    spawned(&b, 0);
    spawned(&b, 1);
    says_hello(&b, 0);
    says_hello(&b, 1);
    says_kind(&b, 0, QN_CTL_READY);
    cr_expect_eq(count(&b, QN_DO_ANNOUNCE), 0);
    says_kind(&b, 1, QN_CTL_READY);
    cr_expect_eq(count(&b, QN_DO_ANNOUNCE), 1);
    cr_expect_eq(told(&b, 0, QN_CTL_READY), 1);
    says_kind(&b, 1, QN_CTL_READY);
    cr_expect_eq(count(&b, QN_DO_ANNOUNCE), 0);
}

Test(restart, an_initial_member_that_ends_ends_the_start)
{
    struct bench b;
    bench_init(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_START});
    spawned(&b, 0);
    spawned(&b, 1);
    spawned(&b, 2);
    ended(&b, 1, 1 << 8);
    cr_assert_not_null(find(&b, QN_DO_BLAME, 1));
    cr_expect_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_NOT_BEGUN);
}

Test(restart, an_initial_member_that_cannot_be_spawned_ends_the_start)
{
    struct bench b;
    bench_init(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_START});
    spawn_failed(&b, 0, QN_EAGAIN);
    cr_assert_eq(find(&b, QN_DO_BLAME, 0)->number, QN_EAGAIN);
    cr_expect_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_NOT_BEGUN);
}

Test(restart, a_replica_that_lived_for_long_is_started_after_30_ms)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    cr_assert(logged(&b, "replica 1 (process 121) was ended by signal 9 "
                         "(Killed); 2 of 3 go on; starting it again"));
    cr_assert_eq(restart_in_ms(&b, 1), 30);
    later(&b, 29);
    cr_assert_eq(count(&b, QN_DO_SPAWN), 0);
    cr_assert_eq(b.out.deadline, b.now + QN_MS);
    later(&b, 1);
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 1));
    cr_assert_eq(find(&b, QN_DO_SPAWN, 1)->incarnation, 4);
    timer(&b);
    cr_assert_eq(count(&b, QN_DO_SPAWN), 0, "it is ordered once");
}

Test(restart, the_back_off_doubles_up_to_5_s_while_lives_are_short)
{
    struct bench b;
    bench_serve(&b, 5);
    killed(&b, 1);
    later(&b, 30);
    int64_t want = 30;
    for (int i = 0; i < 12; i++) {
        spawned(&b, 1);
        killed(&b, 1);
        cr_assert_eq(restart_in_ms(&b, 1), want, "%d: %lld, not %lld", i,
                     (long long)restart_in_ms(&b, 1), (long long)want);
        later(&b, (uint64_t)want);
        cr_assert_not_null(find(&b, QN_DO_SPAWN, 1));
        want = 2 * want < 5000 ? 2 * want : 5000;
    }
    comes(&b, 1);
    b.now += 10 * QN_S; /* a long life starts over */
    killed(&b, 1);
    cr_assert_eq(restart_in_ms(&b, 1), 30);
}

Test(restart, without_a_majority_it_is_started_at_once)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 0);
    cr_expect_eq(restart_in_ms(&b, 0), 30);
    killed(&b, 1);
    cr_expect_eq(restart_in_ms(&b, 1), 0);
    cr_expect_eq(restart_in_ms(&b, 0), 0, "the one in back-off is expedited");
}

Test(restart, a_replica_that_a_signal_stopped_does_not_count_for_a_majority)
{
    struct bench b;
    bench_serve(&b, 3);
    b.facts.stopped = 1u << 2;
    killed(&b, 0);
    cr_expect_eq(restart_in_ms(&b, 0), 0);
}

Test(restart, a_long_back_off_is_cut_when_another_one_is_stopped)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    later(&b, 30);
    for (int64_t wait = 30; wait < 400; wait *= 2) {
        spawned(&b, 1);
        killed(&b, 1);
        later(&b, (uint64_t)wait);
    }
    spawned(&b, 1);
    killed(&b, 1);
    cr_assert_gt(restart_in_ms(&b, 1), 50);
    cr_assert(qn_supervision_needs_stopped(&b.s, QN_ON_TIMER, b.now));
    cr_assert_leq(b.out.deadline, b.now + 50 * QN_MS, "it looks again");
    b.facts.stopped = 1u << 2;
    timer(&b);
    cr_assert_eq(restart_in_ms(&b, 1), 50);
}

Test(restart, a_spawn_that_fails_is_tried_again_later)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    later(&b, 30);
    spawn_failed(&b, 1, QN_ENOMEM);
    cr_assert(logged(&b, "replica 1 cannot be started again: "));
    cr_assert_eq(restart_in_ms(&b, 1), 30);
    later(&b, 30);
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 1));
}

/* The shell may give exactly the number that was ordered. */
Test(restart, two_that_are_spawned_in_one_step_have_two_numbers)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 0);
    killed(&b, 1);
    later(&b, 30);
    const struct qn_supervision_action *first = find(&b, QN_DO_SPAWN, 0);
    const struct qn_supervision_action *second = find(&b, QN_DO_SPAWN, 1);
    cr_assert(first != NULL && second != NULL);
    cr_expect_neq(first->incarnation, second->incarnation);
    spawn_failed(&b, 0, QN_EAGAIN);
    spawned(&b, 1);
    cr_expect_eq(b.s.replica[1].state, QN_REPLICA_STARTING);
}

Test(restart, not_if_it_is_switched_off)
{
    struct bench b;
    bench_serve(&b, 3);
    b.s.opts.restart = false;
    killed(&b, 1);
    cr_expect_eq(restart_in_ms(&b, 1), -1);
    cr_assert_not_null(find(&b, QN_DO_CLOSE_LISTENER, 1));
}

Test(restart, not_if_an_operator_asked_it_to_shut_down)
{
    struct bench b;
    bench_serve(&b, 3);
    says_kind(&b, 1, QN_CTL_DRAINED);
    cr_assert_eq(told(&b, 1, QN_CTL_STOP), 1);
    ended(&b, 1, 0);
    cr_expect_eq(restart_in_ms(&b, 1), -1);
    cr_assert_not_null(find(&b, QN_DO_CLOSE_LISTENER, 1));
    cr_expect(logged(&b, "has ended with status 0; 2 of 3 go on"));
}

Test(restart, a_replica_that_says_why_it_cannot_start_is_quoted)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    later(&b, 30);
    spawned(&b, 1);
    says(&b, 1,
         (struct qn_control_msg){.kind = QN_CTL_FAILED,
                                 .u.failed.error = QN_ENOMEM});
    ended(&b, 1, 1 << 8);
    cr_assert(logged(&b, "cannot start: not enough memory; 2 of 3 go on"));
}

Test(restart, a_replica_that_cannot_be_told_is_killed)
{
    struct bench b;
    bench_serve(&b, 3);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_SEND_FAILED, .node = 2, .number = QN_EMFILE});
    cr_assert_not_null(find(&b, QN_DO_KILL, 2));
    cr_assert(logged(&b, "cannot send control message to replica 2: "));
}

Test(restart, an_unexpected_message_is_logged_and_nothing_else)
{
    struct bench b;
    bench_serve(&b, 3);
    says_kind(&b, 2, QN_CTL_START);
    cr_assert(logged(&b, "replica 2: unexpected control message START"));
    cr_assert_eq(b.out.count, 1);
}
