/*
 * Replicas are replaced one at a time.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include <string.h>

#include "tests/support/test.h"

/* All serving replicas say the same: leader, acceptor, epoch; all in sync. */
static void agree(struct bench *b, qn_node_t leader, qn_node_t acceptor,
                  uint64_t epoch)
{
    for (qn_node_t i = 0; i < b->s.opts.replicas; i++) {
        if (b->s.replica[i].state == QN_REPLICA_SERVING) {
            says(
                b, i,
                (struct qn_control_msg){.kind = QN_CTL_ROLES,
                                        .u.roles = {.token = b->s.upgrade.token,
                                                    .epoch = epoch,
                                                    .leader = leader,
                                                    .acceptor = acceptor,
                                                    .active = i == leader,
                                                    .in_sync = UINT64_MAX}});
        }
    }
    later(b, 2);
}

static void begin(struct bench *b, uint32_t n, uint64_t same)
{
    bench_serve(b, n);
    step(b, (struct qn_supervision_event){.kind = QN_ON_UPGRADE,
                                          .same_program = same});
    timer(b);
}

/* `i` was told to drain: it ends, and its next incarnation comes. */
static void replace(struct bench *b, qn_node_t i)
{
    ended(b, i, 0);
    timer(b);
    comes(b, i);
    timer(b);
}

/* Which replica is told to drain in the last step; -1: none. */
static int dismissed(const struct bench *b)
{
    for (qn_node_t i = 0; i < b->s.opts.replicas; i++) {
        if (told(b, i, QN_CTL_DRAIN) > 0) {
            return (int)i;
        }
    }
    return -1;
}

Test(upgrade, all_are_asked_about_roles_once_per_step)
{
    struct bench b;
    begin(&b, 3, 0);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_expect_eq(told(&b, i, QN_CTL_ROLES_QUERY), 1);
    }
    cr_expect_eq(b.out.deadline, b.now + 2 * QN_MS);
    later(&b, 2);
    cr_expect_eq(told(&b, 0, QN_CTL_ROLES_QUERY), 0);
}

Test(upgrade, replicas_without_a_role_go_first_then_acceptor_then_leader)
{
    struct bench b;
    begin(&b, 3, 0);
    b.s.opts.memory_acceptor = false;
    agree(&b, 0, 1, 4);
    cr_assert_eq(dismissed(&b), 2);
    replace(&b, 2);
    agree(&b, 0, 1, 4);
    cr_assert_eq(dismissed(&b), 1);
    replace(&b, 1);
    agree(&b, 0, 1, 4);
    cr_assert_eq(dismissed(&b), -1);
    cr_assert_eq(message(&b, 1, QN_CTL_LEAD)->u.lead.node, 2,
                 "another one relieves it, but not the acceptor");
    agree(&b, 2, 1, 5);
    cr_assert_eq(dismissed(&b), 0);
    replace(&b, 0);
    agree(&b, 2, 1, 5);
    cr_assert(logged(&b, "done: 3 replicas replaced in "));
}

Test(upgrade, a_leader_that_none_relieves_in_5_s_leaves_as_it_is)
{
    struct bench b;
    begin(&b, 3, 6);
    agree(&b, 0, 0, 4);
    cr_assert_eq(told(&b, 0, QN_CTL_LEAD), 1);
    later(&b, 4990);
    cr_assert_eq(dismissed(&b), -1);
    later(&b, 10);
    cr_assert_eq(dismissed(&b), 0);
}

Test(upgrade, one_that_runs_this_program_stays)
{
    struct bench b;
    begin(&b, 3, 5);
    agree(&b, 0, 0, 4);
    cr_expect_eq(dismissed(&b), 1);
    replace(&b, 1);
    agree(&b, 0, 0, 4);
    cr_expect(logged(&b, "done: 1 replica replaced in "));
}

Test(upgrade, no_replica_leaves_while_they_disagree)
{
    struct bench b;
    begin(&b, 3, 0);
    for (qn_node_t i = 0; i < 3; i++) {
        says(&b, i,
             (struct qn_control_msg){.kind = QN_CTL_ROLES,
                                     .u.roles = {.token = b.s.upgrade.token,
                                                 .epoch = i == 2 ? 5 : 4,
                                                 .active = i == 0,
                                                 .in_sync = UINT64_MAX}});
    }
    later(&b, 2);
    cr_expect_eq(dismissed(&b), -1);
    later(&b, 60000);
    cr_expect(
        logged(&b, "the replicas do not agree which one leads, after 60 s"));
}

Test(upgrade, no_replica_leaves_while_one_is_not_in_sync)
{
    struct bench b;
    begin(&b, 3, 0);
    for (qn_node_t i = 0; i < 3; i++) {
        says(&b, i,
             (struct qn_control_msg){.kind = QN_CTL_ROLES,
                                     .u.roles = {.token = b.s.upgrade.token,
                                                 .epoch = 4,
                                                 .active = i == 0,
                                                 .in_sync = 3}});
    }
    later(&b, 2);
    cr_expect_eq(dismissed(&b), -1);
}

Test(upgrade, an_answer_to_a_former_step_is_not_taken)
{
    struct bench b;
    begin(&b, 3, 0);
    b.s.upgrade.token++;
    const uint32_t present = b.s.upgrade.token--;
    agree(&b, 0, 0, 4);
    cr_assert_neq(dismissed(&b), -1);
    cr_assert_eq(b.s.upgrade.token, present);
    says(&b, 0,
         (struct qn_control_msg){.kind = QN_CTL_ROLES,
                                 .u.roles.token = present - 1});
    cr_expect_not(b.s.upgrade.roles[0].heard);
}

Test(upgrade, a_replica_that_does_not_drain_is_killed_and_replaced)
{
    struct bench b;
    begin(&b, 3, 0);
    agree(&b, 0, 0, 4);
    cr_assert_eq(dismissed(&b), 1);
    later(&b, 15000);
    cr_expect(logged(&b, "replica 1 does not drain; it is killed"));
    cr_assert_not_null(find(&b, QN_DO_KILL, 1));
    killed(&b, 1);
    timer(&b);
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 1));
}

Test(upgrade, a_new_replica_that_ends_stops_it_and_is_not_started_again)
{
    struct bench b;
    begin(&b, 3, 0);
    agree(&b, 0, 0, 4);
    ended(&b, 1, 0);
    timer(&b);
    spawned(&b, 1);
    ended(&b, 1, 1 << 8);
    cr_expect(logged(&b, "the upgrade has stopped: the new replica 1 (process "
                         "141) has ended before it was complete"));
    cr_expect(logged(&b, "0 of 3 replaced, the others go on as they were"));
    cr_expect_eq(restart_in_ms(&b, 1), -1);
    later(&b, 10000);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
    cr_expect_eq(dismissed(&b), -1);
}

Test(upgrade, a_new_replica_that_is_not_complete_in_time_is_killed)
{
    struct bench b;
    begin(&b, 3, 0);
    agree(&b, 0, 0, 4);
    ended(&b, 1, 0);
    timer(&b);
    spawned(&b, 1);
    later(&b, 60000);
    cr_assert_not_null(find(&b, QN_DO_KILL, 1));
    killed(&b, 1);
    cr_expect(logged(&b, "was not complete in time; it is ended"));
    cr_expect_eq(restart_in_ms(&b, 1), -1);
}

Test(upgrade, a_replica_that_ends_by_itself_meanwhile_is_waited_for)
{
    struct bench b;
    begin(&b, 3, 0);
    killed(&b, 2);
    agree(&b, 0, 0, 4);
    cr_expect_eq(dismissed(&b), -1, "one is missing already");
    later(&b, 30);
    comes(&b, 2);
    agree(&b, 0, 0, 4);
    cr_expect_eq(dismissed(&b), 1);
}

Test(upgrade, the_last_replica_is_not_replaced)
{
    struct bench b;
    begin(&b, 3, 0);
    b.s.opts.restart = false;
    killed(&b, 1);
    killed(&b, 2);
    agree(&b, 0, 0, 4);
    cr_expect(logged(&b, "one replica is left, no other has the data"));
    cr_expect_eq(dismissed(&b), -1);
}

Test(upgrade, not_while_a_recovery_is_going_on)
{
    struct bench b;
    bench_serve(&b, 3);
    says(&b, 0,
         (struct qn_control_msg){.kind = QN_CTL_RECOVER, .u.recover.node = 1});
    step(&b, (struct qn_supervision_event){.kind = QN_ON_UPGRADE});
    cr_expect(logged(&b, "stopped: a recovery is going on"));
    cr_expect_eq(b.s.upgrade.step, QN_UPGRADE_NONE);
}

Test(upgrade, a_drain_ends_it)
{
    struct bench b;
    begin(&b, 3, 0);
    agree(&b, 0, 0, 4);
    signalled(&b, 15);
    ended(&b, 1, 0);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0);
}
