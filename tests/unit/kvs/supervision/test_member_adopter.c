/* What an adopter makes of voters, and of processes that are none. */
#include "tests/unit/kvs/supervision/member_fixture.h"

#include "tests/support/test.h"

static void orphan(struct bench *b, qn_node_t i, uint32_t entries,
                   uint64_t voters)
{
    step(b, (struct qn_supervision_event){
                .kind = QN_ON_ORPHAN_MET, .node = i, .pid = (pid_t)(100 + i)});
    says(b, i,
         (struct qn_control_msg){.kind = QN_CTL_HELLO,
                                 .u.hello = {.node = i, .incarnation = i + 1}});
    says_kind(b, i, QN_CTL_READY);
    member_voters_are(b, i, entries, voters);
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

Test(member_adopter, an_adopter_finds_the_voters)
{
    struct bench b;
    adopt(&b, 13);
    cr_expect_eq(count(&b, QN_DO_SPAWN), 0, "a vacant seat stays vacant");
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 0);
    adopt(&b, 15);
    cr_expect_not_null(find(&b, QN_DO_SPAWN, 1), "a voter is started");
}

Test(member_adopter, an_adopter_ends_a_newcomer_without_a_vote)
{
    struct bench b;
    adopt(&b, 5);
    cr_expect_eq(told(&b, 3, QN_CTL_DRAIN), 1);
    says_kind(&b, 3, QN_CTL_DRAINED);
    ended(&b, 3, 0);
    cr_expect_eq(restart_in_ms(&b, 3), -1);
    member_voters_are(&b, 0, 4, 13); /* its entry comes all the same */
    cr_expect_eq(restart_in_ms(&b, 3), 0);
}

/* Roles have changed, and the voters lag. */
Test(member_adopter, an_adopter_ends_a_newcomer_that_knows_more)
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
Test(member_adopter, a_late_replica_is_left_alone_until_it_has_spoken)
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
    member_voters_are(&b, 2, 2, 1);
    says_kind(&b, 2, QN_CTL_START);
    timer(&b);
    cr_expect_eq(told(&b, 2, QN_CTL_DRAIN), 1);
}

/* The dead supervisor had told only this one of the newcomer, which ended. */
Test(member_adopter, a_late_replica_hears_of_the_end_of_one_that_it_alone_knows)
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
    member_wants_one_more(&b, 0);
    cr_assert_not_null(find(&b, QN_DO_SPAWN, 2));
    cr_expect_gt(find(&b, QN_DO_SPAWN, 2)->incarnation, 7);
}

/* The one that the group began with was removed, and lives; the other one has
 * died. */
Test(member_adopter, an_adopter_starts_the_voters_that_a_removed_one_names)
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
    member_voters_are(&b, 1, 3, 2);
    cr_expect_eq(b.s.voters, 2);
}
