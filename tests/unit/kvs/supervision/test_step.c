/*
 * The step itself: sizes, determinism, and what it asserts.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include <signal.h>
#include <string.h>

#include "tests/support/test.h"

/* 64 replicas, the largest step: HELLO of a new incarnation while an outbox is
 * retained. */
Test(step, the_largest_step_fits)
{
    static struct bench b;
    bench_serve(&b, QN_NODES_MAX);
    owned_by(&b, 7, 8);
    killed(&b, 7);
    later(&b, 30);
    spawned(&b, 7);
    says_hello(&b, 7);
    cr_expect_eq(told(&b, 7, QN_CTL_PEER_UP), QN_NODES_MAX);
    cr_expect_lt(b.out.count, QN_SUPERVISION_ACTIONS_MAX);
}

Test(step, the_same_events_give_the_same_actions)
{
    static struct bench a;
    static struct bench b;
    bench_serve(&a, 5);
    bench_serve(&b, 5);
    killed(&a, 1);
    killed(&b, 1);
    cr_assert_eq(a.out.count, b.out.count);
    cr_assert_eq(a.out.deadline, b.out.deadline);
    for (uint32_t i = 0; i < a.out.count; i++) {
        cr_expect_eq(a.out.action[i].kind, b.out.action[i].kind);
        cr_expect_eq(a.out.action[i].node, b.out.action[i].node);
    }
    cr_expect_str_eq(a.out.text[0], b.out.text[0]);
}

Test(step, a_message_of_a_process_that_has_ended_is_nothing)
{
    static struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    says_kind(&b, 1, QN_CTL_READY);
    cr_expect_eq(b.out.count, 0);
    cr_expect_eq(b.s.replica[1].state, QN_REPLICA_ENDED);
}

Test(step, nothing_follows_the_end, .signal = SIGABRT)
{
    static struct bench b;
    bench_serve(&b, 3);
    signalled(&b, SIGTERM);
    signalled(&b, SIGTERM);
    timer(&b);
}

Test(step, time_does_not_go_back, .signal = SIGABRT)
{
    static struct bench b;
    bench_serve(&b, 3);
    timer(&b);
    b.now--;
    timer(&b);
}

Test(step, the_number_of_an_incarnation_is_never_given_again, .signal = SIGABRT)
{
    static struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    later(&b, 30);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_SPAWNED, .node = 1, .incarnation = 3});
}
