/*
 * A group whose supervisor has ended is taken over; and a successor takes the
 * group from a living one.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include "tests/support/test.h"

static void met(struct bench *b, qn_node_t i)
{
    step(b, (struct qn_supervision_event){
                .kind = QN_ON_ORPHAN_MET, .node = i, .pid = (pid_t)(200 + i)});
}

static void knows(struct bench *b, qn_node_t from, enum qn_control_kind kind,
                  qn_node_t node, uint64_t incarnation)
{
    struct qn_control_msg m = {.kind = kind};
    if (kind == QN_CTL_PEER_DOWN) {
        m.u.peer_down.node = node;
        m.u.peer_down.incarnation = incarnation;
    } else if (kind == QN_CTL_HELLO) {
        m.u.hello.node = node;
        m.u.hello.incarnation = incarnation;
    } else {
        m.u.peer_up.node = node;
        m.u.peer_up.incarnation = incarnation;
    }
    says(b, from, m);
}

static void event_of(struct bench *b, enum qn_supervision_on kind, qn_node_t i)
{
    step(b, (struct qn_supervision_event){.kind = kind, .node = i});
}

static void take_over(struct bench *b, uint32_t n)
{
    const struct qn_supervision_opts o = opts_of(n);
    step(b, (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER, .opts = &o});
}

/* Replicas 0 and 1 of three answer and know incarnation 3 of replica 2. */
static void two_of_three(struct bench *b)
{
    bench_init(b, 1);
    for (qn_node_t i = 0; i < 2; i++) {
        met(b, i);
        knows(b, i, QN_CTL_PEER_UP, 1 - i, 2 - i);
        knows(b, i, QN_CTL_PEER_UP, 2, 3);
        knows(b, i, QN_CTL_HELLO, i, 1 + i);
        says_kind(b, i, QN_CTL_READY);
    }
}

static void said_all(struct bench *b)
{
    says_kind(b, 0, QN_CTL_START);
    says_kind(b, 1, QN_CTL_START);
}

static void finish(struct bench *b)
{
    for (qn_node_t i = 0; i < 3; i++) {
        event_of(b, QN_ON_CATCH_UP, i);
    }
    event_of(b, QN_ON_TAKEN_OVER, 0);
}

Test(adoption, waits_until_all_have_said_all)
{
    struct bench b;
    two_of_three(&b);
    cr_expect(qn_supervision_awaits_orphans(&b.s, b.now));
    says_kind(&b, 0, QN_CTL_START);
    cr_expect(qn_supervision_awaits_orphans(&b.s, b.now + 499 * QN_MS));
    cr_expect_not(qn_supervision_awaits_orphans(&b.s, b.now + 500 * QN_MS));
    says_kind(&b, 1, QN_CTL_START);
    cr_expect_not(qn_supervision_awaits_orphans(&b.s, b.now));
}

Test(adoption, nothing_is_done_to_orphans_before_it_takes_over)
{
    struct bench b;
    bench_init(&b, 1);
    met(&b, 0);
    cr_expect_eq(b.out.count, 0);
    knows(&b, 0, QN_CTL_PEER_DOWN, 2, 3);
    cr_expect_eq(b.out.count, 0);
    says_kind(&b, 0, QN_CTL_START);
    cr_expect_eq(b.out.count, 0);
    event_of(&b, QN_ON_ORPHAN_ENDED, 0);
    cr_expect_eq(b.out.count, 0);
}

Test(adoption, each_outbox_is_kept_once)
{
    struct bench b;
    bench_init(&b, 1);
    met(&b, 0);
    met(&b, 1);
    knows(&b, 0, QN_CTL_PEER_UP, 2, 3);
    cr_expect_eq(count(&b, QN_DO_KEEP_OUTBOX), 1);
    knows(&b, 1, QN_CTL_PEER_UP, 2, 3);
    cr_expect_eq(count(&b, QN_DO_KEEP_OUTBOX), 0);
    knows(&b, 1, QN_CTL_PEER_UP, 2, 7); /* a newer one replaces it */
    cr_expect_eq(find(&b, QN_DO_DROP_OUTBOX, 2)->outbox.incarnation, 3);
    cr_expect_eq(find(&b, QN_DO_KEEP_OUTBOX, 2)->outbox.incarnation, 7);
    knows(&b, 0, QN_CTL_PEER_UP, 2, 3);
    cr_expect_eq(b.out.count, 0, "an older one is not needed");
}

Test(adoption, those_that_answered_are_adopted_and_the_vacant_one_is_started)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    cr_expect_eq(told(&b, 0, QN_CTL_START), 1);
    cr_expect_eq(told(&b, 1, QN_CTL_START), 1);
    event_of(&b, QN_ON_VACANT, 2);
    event_of(&b, QN_ON_CATCH_UP, 0);
    cr_expect_eq(message(&b, 0, QN_CTL_PEER_DOWN)->u.peer_down.incarnation, 3);
    finish(&b);
    cr_expect_eq(count(&b, QN_DO_ANNOUNCE), 1);
    cr_expect_eq(b.s.adopted, 2);
    timer(&b);
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 2));
    cr_assert_eq(find(&b, QN_DO_SPAWN, 2)->incarnation, 4,
                 "higher than any that was given before");
    cr_assert(qn_supervision_adoption_is_over(&b.s));
}

Test(adoption, a_vacant_one_that_was_asked_to_shut_down_stays_away)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_VACANT, .node = 2, .shut_down = true});
    cr_expect(logged(&b, "replica 2 was asked to shut down; it is not started "
                         "again"));
    finish(&b);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}

Test(adoption, the_outbox_of_a_dead_owner_of_the_register_is_retained)
{
    struct bench b;
    bench_init(&b, 1);
    owned_by(&b, 2, 3);
    for (qn_node_t i = 0; i < 2; i++) {
        met(&b, i);
        knows(&b, i, QN_CTL_PEER_UP, 2, 3);
        knows(&b, i, QN_CTL_HELLO, i, 1 + i);
        says_kind(&b, i, QN_CTL_READY);
    }
    said_all(&b);
    take_over(&b, 3);
    event_of(&b, QN_ON_VACANT, 2);
    event_of(&b, QN_ON_CATCH_UP, 0);
    cr_expect_eq(count(&b, QN_DO_DROP_OUTBOX), 0);
    cr_expect_eq(b.s.retained.node, 2);
    cr_expect_eq(b.s.retained.incarnation, 3);
}

/* It takes the register over after it has been spoken of, and ends. */
Test(adoption, an_owner_that_came_to_be_one_meanwhile_is_retained)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    owned_by(&b, 2, 3);
    take_over(&b, 3);
    event_of(&b, QN_ON_VACANT, 2);
    event_of(&b, QN_ON_CATCH_UP, 0);
    cr_expect_eq(count(&b, QN_DO_DROP_OUTBOX), 0);
    cr_expect_eq(b.s.retained.incarnation, 3);
}

Test(adoption, an_outbox_of_the_dead_that_is_not_needed_is_dropped)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    event_of(&b, QN_ON_VACANT, 2);
    event_of(&b, QN_ON_CATCH_UP, 0);
    cr_expect_eq(find(&b, QN_DO_DROP_OUTBOX, 2)->outbox.incarnation, 3);
}

/* Replica 1 has not heard that replica 2 began its incarnation 9. */
Test(adoption, a_replica_hears_of_the_incarnations_that_it_missed)
{
    struct bench b;
    bench_init(&b, 1);
    for (qn_node_t i = 0; i < 3; i++) {
        met(&b, i);
    }
    knows(&b, 1, QN_CTL_PEER_UP, 2, 3);
    for (qn_node_t i = 0; i < 3; i++) {
        knows(&b, i, QN_CTL_HELLO, i, i == 2 ? 9 : 1 + i);
        says_kind(&b, i, QN_CTL_READY);
        says_kind(&b, i, QN_CTL_START);
    }
    take_over(&b, 3);
    event_of(&b, QN_ON_CATCH_UP, 1);
    cr_expect_eq(message(&b, 1, QN_CTL_PEER_DOWN)->u.peer_down.incarnation, 3);
    cr_expect_eq(told(&b, 1, QN_CTL_PEER_UP), 2, "replicas 0 and 2");
}

Test(adoption, a_stalled_replica_is_adopted_when_it_resumes)
{
    struct bench b;
    two_of_three(&b);
    says_kind(&b, 0, QN_CTL_START);
    b.now += 500 * QN_MS;
    take_over(&b, 3);
    cr_expect(logged(&b, "replica 1 (process 201) is stalled; it is adopted "
                         "when it resumes"));
    event_of(&b, QN_ON_VACANT, 2);
    finish(&b);
    cr_expect_not(qn_supervision_adoption_is_over(&b.s));
    cr_expect_eq(b.s.replica[1].state, QN_REPLICA_SERVING);
    says_kind(&b, 1, QN_CTL_START);
    cr_expect_eq(told(&b, 1, QN_CTL_START), 1);
    cr_expect(logged(&b, "replica 1 (process 201) is adopted now"));
    cr_expect(qn_supervision_adoption_is_over(&b.s));
}

Test(adoption, a_replica_that_takes_no_connection_is_no_vacancy)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    step(&b,
         (struct qn_supervision_event){
             .kind = QN_ON_UNREACHED, .node = 2, .incarnation = 3, .pid = 202});
    cr_expect(logged(&b, "replica 2 (process 202) runs and takes no "
                         "connection"));
    finish(&b);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    cr_expect_eq(count(&b, QN_DO_DROP_OUTBOX), 0);
    met(&b, 2);
    knows(&b, 2, QN_CTL_HELLO, 2, 3);
    says_kind(&b, 2, QN_CTL_READY);
    says_kind(&b, 2, QN_CTL_START);
    cr_expect_eq(told(&b, 2, QN_CTL_START), 1);
    cr_expect(qn_supervision_adoption_is_over(&b.s));
}

/* A peer ends after the group was taken over, and before it was met. */
Test(adoption, one_that_is_met_late_hears_of_the_ends_meanwhile)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    step(&b,
         (struct qn_supervision_event){
             .kind = QN_ON_UNREACHED, .node = 2, .incarnation = 3, .pid = 202});
    finish(&b);
    killed(&b, 1);
    cr_expect_eq(told(&b, 2, QN_CTL_PEER_DOWN), 0);
    met(&b, 2);
    knows(&b, 2, QN_CTL_PEER_UP, 1, 2);
    knows(&b, 2, QN_CTL_HELLO, 2, 3);
    says_kind(&b, 2, QN_CTL_START);
    cr_assert_eq(told(&b, 2, QN_CTL_PEER_DOWN), 1);
    cr_assert_eq(message(&b, 2, QN_CTL_PEER_DOWN)->u.peer_down.incarnation, 2);
}

Test(adoption, one_that_is_met_while_draining_is_told_to_drain)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_UNREACHED, .node = 2, .pid = 202});
    finish(&b);
    signalled(&b, 15);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 0);
    met(&b, 2);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
}

/* Its former supervisor told it to, for an upgrade, and ended. */
Test(adoption, a_replica_that_drained_by_order_is_started_again)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    event_of(&b, QN_ON_VACANT, 2);
    finish(&b);
    timer(&b);
    comes(&b, 2);
    says_kind(&b, 0, QN_CTL_DRAINED);
    cr_expect_eq(told(&b, 0, QN_CTL_STOP), 1);
    ended(&b, 0, 0);
    cr_expect_neq(restart_in_ms(&b, 0), -1);
    says_kind(&b, 1, QN_CTL_DRAINED);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_EXIT, .node = 1, .shut_down = true});
    cr_expect_eq(restart_in_ms(&b, 1), -1, "an operator told it to");
}

Test(adoption, a_group_without_a_complete_replica_is_lost)
{
    struct bench b;
    char text[512];
    bench_init(&b, 1);
    met(&b, 0);
    knows(&b, 0, QN_CTL_HELLO, 0, 5);
    says_kind(&b, 0, QN_CTL_START); /* without READY */
    take_over(&b, 3);
    event_of(&b, QN_ON_VACANT, 1);
    event_of(&b, QN_ON_VACANT, 2);
    finish(&b);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0, "it may rebuild its state");
    later(&b, 2000);
    cr_assert_eq(count(&b, QN_DO_FINISH), 1);
    cr_assert(qn_supervision_last_words(&b.s, text, sizeof text));
}

/* No other replica had its outbox. */
Test(adoption, a_late_replica_that_no_peer_knew_is_announced_when_it_is_heard)
{
    struct bench b;
    two_of_three(&b);
    said_all(&b);
    take_over(&b, 3);
    step(&b,
         (struct qn_supervision_event){
             .kind = QN_ON_UNREACHED, .node = 2, .incarnation = 8, .pid = 202});
    finish(&b);
    met(&b, 2);
    knows(&b, 2, QN_CTL_HELLO, 2, 8);
    cr_expect_eq(find(&b, QN_DO_KEEP_OUTBOX, 2)->outbox.incarnation, 8);
    cr_expect_eq(message(&b, 0, QN_CTL_PEER_UP)->u.peer_up.incarnation, 8);
    cr_expect_eq(message(&b, 1, QN_CTL_PEER_UP)->u.peer_up.incarnation, 8);
}

/* It counts as serving until it is heard. */
Test(adoption, a_late_replica_that_is_not_complete_may_be_the_end)
{
    struct bench b;
    bench_init(&b, 1);
    met(&b, 0);
    knows(&b, 0, QN_CTL_HELLO, 0, 5);
    says_kind(&b, 0, QN_CTL_START); /* without READY */
    take_over(&b, 3);
    step(&b,
         (struct qn_supervision_event){
             .kind = QN_ON_UNREACHED, .node = 1, .incarnation = 6, .pid = 201});
    event_of(&b, QN_ON_VACANT, 2);
    finish(&b);
    later(&b, 60000);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0);
    met(&b, 1);
    knows(&b, 1, QN_CTL_HELLO, 1, 6);
    says_kind(&b, 1, QN_CTL_START);
    timer(&b);
    later(&b, 2000);
    cr_expect_eq(count(&b, QN_DO_FINISH), 1);
    cr_expect(b.s.lost);
}

Test(adoption, a_damaged_number_of_an_incarnation_is_not_believed)
{
    struct bench b;
    bench_init(&b, 1);
    met(&b, 0);
    knows(&b, 0, QN_CTL_PEER_UP, 2, UINT64_MAX);
    cr_expect_eq(b.out.count, 0);
    cr_expect_eq(b.s.orphans.newest[2], 0);
}

/* ---- a successor --------------------------------------------------------- */

Test(handover, a_successor_is_answered_and_takes_the_group)
{
    struct bench b;
    bench_serve(&b, 3);
    event_of(&b, QN_ON_SUCCESSOR_ASKS, 0);
    cr_expect_eq(count(&b, QN_DO_ANSWER_SUCCESSOR), 1);
    event_of(&b, QN_ON_SUCCESSOR_TAKES, 0);
    cr_expect_eq(count(&b, QN_DO_HAND_OVER), 1);
    cr_expect_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_DRAINED);
    cr_expect_eq(count(&b, QN_DO_KILL) + count(&b, QN_DO_SEND), 0);
}

Test(handover, a_draining_server_refuses_a_successor)
{
    struct bench b;
    bench_serve(&b, 3);
    signalled(&b, 15);
    event_of(&b, QN_ON_SUCCESSOR_ASKS, 0);
    cr_expect_eq(count(&b, QN_DO_REFUSE_SUCCESSOR), 1);
    event_of(&b, QN_ON_SUCCESSOR_TAKES, 0);
    cr_expect_eq(b.out.count, 0);
}

Test(handover, a_recovery_that_began_meanwhile_keeps_the_group)
{
    struct bench b;
    bench_serve(&b, 3);
    event_of(&b, QN_ON_SUCCESSOR_ASKS, 0);
    says(&b, 0,
         (struct qn_control_msg){.kind = QN_CTL_RECOVER, .u.recover.node = 1});
    event_of(&b, QN_ON_SUCCESSOR_TAKES, 0);
    cr_expect_eq(count(&b, QN_DO_HANG_UP_SUCCESSOR), 1);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0);
}

Test(handover, a_server_that_is_starting_refuses_a_successor)
{
    struct bench b;
    bench_init(&b, 3);
    event_of(&b, QN_ON_START, 0);
    event_of(&b, QN_ON_SUCCESSOR_ASKS, 0);
    cr_expect_eq(count(&b, QN_DO_REFUSE_SUCCESSOR), 1);
}
