/*
 * Which replica hears of which incarnation, and the retained outbox.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include "core/base/err.h"
#include "tests/support/test.h"

Test(membership, initial_members_hear_of_each_and_then_start)
{
    struct bench b;
    bench_init(&b, 3);
    step(&b, (struct qn_supervision_event){.kind = QN_ON_START});
    for (qn_node_t i = 0; i < 3; i++) {
        spawned(&b, i);
    }
    says_hello(&b, 0);
    cr_expect_eq(message(&b, 1, QN_CTL_PEER_UP)->u.peer_up.node, 0);
    cr_expect_eq(message(&b, 1, QN_CTL_PEER_UP)->u.peer_up.pid, 110);
    cr_expect_eq(told(&b, 0, QN_CTL_PEER_UP), 0);
    says_hello(&b, 1);
    cr_expect_eq(told(&b, 0, QN_CTL_START), 0);
    says_hello(&b, 2);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_expect_eq(told(&b, i, QN_CTL_START), 1, "%u", i);
    }
}

Test(membership, an_outbox_is_kept_from_hello_to_the_end)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    const struct qn_supervision_action *drop = find(&b, QN_DO_DROP_OUTBOX, 1);
    cr_assert_not_null(drop);
    cr_assert_eq(drop->outbox.incarnation, 2);
    later(&b, 30);
    spawned(&b, 1);
    says_hello(&b, 1);
    const struct qn_supervision_action *keep = find(&b, QN_DO_KEEP_OUTBOX, 1);
    cr_assert_eq(keep->outbox.incarnation, 4);
    says_hello(&b, 1);
    cr_assert_eq(count(&b, QN_DO_KEEP_OUTBOX), 0, "said twice");
}

Test(membership, the_others_hear_of_an_end_and_of_the_next_incarnation)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    cr_expect_eq(message(&b, 0, QN_CTL_PEER_DOWN)->u.peer_down.incarnation, 2);
    cr_expect_eq(told(&b, 1, QN_CTL_PEER_DOWN), 0);
    later(&b, 30);
    spawned(&b, 1);
    says_hello(&b, 1);
    const struct qn_control_msg *up = message(&b, 2, QN_CTL_PEER_UP);
    cr_expect_eq(up->u.peer_up.incarnation, 4);
    cr_assert_not_null(find(&b, QN_DO_SKIP_OBSOLETE, 2),
                       "what waits before it is obsolete");
}

Test(membership, a_new_incarnation_hears_of_the_living_and_of_the_dead)
{
    struct bench b;
    bench_serve(&b, 5);
    killed(&b, 1);
    killed(&b, 2);
    later(&b, 30);
    spawned(&b, 1);
    says_hello(&b, 1);
    cr_expect_eq(told(&b, 1, QN_CTL_PEER_UP), 3);
    cr_expect_eq(told(&b, 1, QN_CTL_PEER_DOWN), 1);
    cr_expect_eq(message(&b, 1, QN_CTL_PEER_DOWN)->u.peer_down.node, 2);
    cr_expect_eq(told(&b, 1, QN_CTL_START), 1);
    cr_expect_eq(b.out.action[b.out.count - 1].message.kind, QN_CTL_START);
}

Test(membership, one_that_has_not_said_hello_hears_nothing_before_it)
{
    struct bench b;
    bench_serve(&b, 5);
    killed(&b, 1);
    later(&b, 30);
    spawned(&b, 1);
    killed(&b, 2);
    cr_expect_eq(told(&b, 1, QN_CTL_PEER_DOWN), 0);
    cr_expect_eq(told(&b, 0, QN_CTL_PEER_DOWN), 1);
}

Test(membership, no_peer_hears_of_the_end_of_one_that_has_not_said_hello)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 1);
    later(&b, 30);
    spawned(&b, 1);
    killed(&b, 1);
    cr_expect_eq(told(&b, 0, QN_CTL_PEER_DOWN), 0);
}

Test(membership, the_outbox_of_the_registers_owner_is_retained)
{
    struct bench b;
    bench_serve(&b, 3);
    owned_by(&b, 1, 2);
    killed(&b, 1);
    cr_expect_eq(count(&b, QN_DO_DROP_OUTBOX), 0);
    cr_expect_eq(b.s.retained.incarnation, 2);
}

Test(membership, a_new_incarnation_maps_the_retained_outbox_of_its_predecessor)
{
    struct bench b;
    bool seen = false;
    bench_serve(&b, 3);
    owned_by(&b, 1, 2);
    killed(&b, 1);
    later(&b, 30);
    spawned(&b, 1);
    says_hello(&b, 1);
    for (uint32_t i = 0; i < b.out.count; i++) {
        const struct qn_supervision_action *a = &b.out.action[i];
        seen = seen || (a->kind == QN_DO_SEND && a->node == 1 &&
                        a->outbox.node == 1 && a->outbox.incarnation == 2);
    }
    cr_assert(seen);
}

/* A stalled replica still needs the memory of that incarnation. */
Test(membership, the_retained_incarnation_is_not_obsolete)
{
    struct bench b;
    bench_serve(&b, 3);
    owned_by(&b, 1, 2);
    killed(&b, 1);
    later(&b, 30);
    spawned(&b, 1);
    says_hello(&b, 1);
    const struct qn_supervision_action *skip = find(&b, QN_DO_SKIP_OBSOLETE, 0);
    cr_expect_eq(skip->outbox.node, 1);
    cr_expect_eq(skip->outbox.incarnation, 2);
}

Test(membership, the_retained_outbox_is_dropped_when_the_register_moves_on)
{
    struct bench b;
    bench_serve(&b, 3);
    owned_by(&b, 1, 2);
    killed(&b, 1);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_DROP_OUTBOX), 0);
    owned_by(&b, 2, 3);
    timer(&b);
    cr_assert_not_null(find(&b, QN_DO_DROP_OUTBOX, 1));
    cr_assert_eq(find(&b, QN_DO_DROP_OUTBOX, 1)->outbox.incarnation, 2);
    timer(&b);
    cr_assert_eq(count(&b, QN_DO_DROP_OUTBOX), 0);
}

Test(membership, a_retained_outbox_is_looked_at_once_per_second)
{
    struct bench b;
    bench_serve(&b, 3);
    b.s.opts.restart = false;
    owned_by(&b, 1, 2);
    killed(&b, 1);
    timer(&b);
    cr_assert_eq(b.out.deadline, b.now + QN_S);
}

/* Two owners die in turn: the first is let go before the second is retained. */
Test(membership, one_outbox_at_most_is_retained)
{
    struct bench b;
    bench_serve(&b, 5);
    owned_by(&b, 1, 2);
    killed(&b, 1);
    owned_by(&b, 2, 3);
    killed(&b, 2);
    cr_expect_eq(find(&b, QN_DO_DROP_OUTBOX, 1)->outbox.incarnation, 2);
    cr_expect_eq(b.s.retained.node, 2);
    cr_expect_eq(b.s.retained.incarnation, 3);
}

/* ---- peers that could not be met ----------------------------------------- */

/* Replica 1 has come again, and 0 says so of it. */
static void comes_again(struct bench *b, int err)
{
    bench_serve(b, 3);
    killed(b, 1);
    later(b, 30);
    comes(b, 1);
    says(b, 0,
         (struct qn_control_msg){
             .kind = QN_CTL_PEER_MET,
             .u.peer_met = {.node = 1, .incarnation = 4, .error = err}});
}

Test(membership, one_that_could_not_meet_a_peer_is_told_again)
{
    static const int passes[] = {QN_EAGAIN, QN_ENOMEM, QN_EMFILE};
    for (int i = 0; i < 3; i++) {
        struct bench b;
        comes_again(&b, passes[i]);
        later(&b, 999);
        cr_expect_eq(told(&b, 0, QN_CTL_PEER_UP), 0);
        later(&b, 1);
        cr_assert_eq(told(&b, 0, QN_CTL_PEER_UP), 1, "error %d", passes[i]);
        cr_expect_eq(message(&b, 0, QN_CTL_PEER_UP)->u.peer_up.incarnation, 4);
        later(&b, 10000);
        cr_expect_eq(told(&b, 0, QN_CTL_PEER_UP), 0, "it has not answered");
    }
}

Test(membership, one_that_has_met_it_or_never_will_is_not_told_again)
{
    static const int errors[] = {QN_OK, QN_ESTALE, QN_ECORRUPT, QN_EPERM};
    for (int i = 0; i < 4; i++) {
        struct bench b;
        comes_again(&b, errors[i]);
        later(&b, 1000);
        cr_expect_eq(told(&b, 0, QN_CTL_PEER_UP), 0, "error %d", errors[i]);
    }
}

Test(membership, no_process_is_told_again_of_one_that_has_ended)
{
    struct bench b;
    comes_again(&b, QN_EAGAIN);
    killed(&b, 1);
    later(&b, 1000);
    cr_expect_eq(told(&b, 0, QN_CTL_PEER_UP), 0);
    comes_again(&b, QN_EAGAIN);
    killed(&b, 0);
    later(&b, 1000);
    cr_expect_eq(count(&b, QN_DO_SEND), 0, "nor is one that has ended");
}
