/* Replica 1 of five. Facts: which processes the kernel says are stopped. */
#include "kvs/server/machine/role_log.h"

#include "tests/support/test.h"

#define SELF   1u
#define NODES  5u
#define BIT(i) (UINT64_C(1) << (i))

static struct qn_role_log l;
static struct qn_role_actions actions;
static struct qn_role_log_view v;
static uint64_t stopped;
static unsigned asked;

static bool is_stopped(void *ctx, qn_node_t i)
{
    (void)ctx;
    asked++;
    return (stopped & BIT(i)) != 0;
}

static const struct qn_peer_facts facts = {.stopped = is_stopped};

static void setup(void)
{
    l = (struct qn_role_log){0};
    v = (struct qn_role_log_view){.self = SELF,
                                  .stopped = true,
                                  .some_complete = true,
                                  .epoch = 7,
                                  .leader = SELF,
                                  .alive = 0x1f,
                                  .longest = SELF};
    stopped = 0;
    asked = 0;
}

#define CASE(name) Test(role_log, name, .init = setup)

static enum qn_halt_line halt(void)
{
    return qn_role_log_halt(&l, &v, &facts);
}

static void step(uint64_t epoch, struct qn_role_view r)
{
    qn_role_log_step(&l, epoch, &r, &actions);
}

/* ---- a new leader -------------------------------------------------------- */

CASE(a_new_leader_is_logged_once_when_it_is_active)
{
    cr_assert(qn_role_log_due(&l, 3));
    step(3, (struct qn_role_view){.leads = true});
    cr_assert_not(actions.log_leads);
    cr_assert(qn_role_log_due(&l, 3), "it is not active yet");
    step(3, (struct qn_role_view){.leads = true, .active = true});
    cr_assert(actions.log_leads);
    cr_assert_not(qn_role_log_due(&l, 3));
}

CASE(a_follower_logs_nothing_of_a_new_leader)
{
    step(3, (struct qn_role_view){0});
    cr_assert_not(actions.log_leads);
    cr_assert_not(actions.deposed);
    cr_assert_not(qn_role_log_due(&l, 3));
    cr_assert(qn_role_log_due(&l, 4));
}

CASE(a_role_lost_by_suspicion_is_to_be_judged)
{
    step(3, (struct qn_role_view){.suspected = true});
    cr_assert(actions.deposed);
}

/* ---- a group that has stopped -------------------------------------------- */

CASE(process_acceptor_the_would_be_leader_says_once_that_the_group_stopped)
{
    cr_assert_eq(halt(), QN_HALT_LINE_LOST_TOGETHER);
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
    v.epoch = 8;
    cr_assert_eq(halt(), QN_HALT_LINE_LOST_TOGETHER);
}

CASE(process_acceptor_other_replicas_say_nothing)
{
    v.leader = 0;
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
    v.leader = SELF;
    cr_assert_eq(halt(), QN_HALT_LINE_LOST_TOGETHER, "not logged before");
}

CASE(a_group_in_which_all_load_has_nothing_to_say)
{
    v.some_complete = false;
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
    v.some_complete = true;
    cr_assert_eq(halt(), QN_HALT_LINE_LOST_TOGETHER);
}

CASE(the_first_epoch_is_logged_too)
{
    v.epoch = 0;
    cr_assert_eq(halt(), QN_HALT_LINE_LOST_TOGETHER);
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
}

CASE(memory_acceptor_the_replica_with_the_longest_log_says_the_verdict)
{
    v.memory = true;
    v.leader = 0;
    cr_assert_eq(halt(), QN_HALT_LINE_VERDICT);
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
    v.epoch++;
    v.longest = 2;
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
}

static void overwritten_by(qn_node_t leader)
{
    v.memory = true;
    v.overwritten = true;
    v.leader = leader;
    v.longest = 0;
}

CASE(an_overwritten_register_is_logged_once_by_the_first_that_runs)
{
    overwritten_by(0);
    v.alive = BIT(0) | BIT(2) | BIT(SELF);
    cr_assert_eq(halt(), QN_HALT_LINE_OVERWRITTEN);
    v.epoch++;
    cr_assert_eq(halt(), QN_HALT_LINE_NONE, "whatever the epoch");
}

CASE(an_overwritten_register_is_logged_by_another_replica_than_the_leader)
{
    overwritten_by(SELF);
    v.alive = BIT(SELF) | BIT(3) | BIT(4);
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
    stopped = BIT(3);
    cr_assert_eq(halt(), QN_HALT_LINE_NONE, "replica 4 runs");
    stopped |= BIT(4);
    cr_assert_eq(halt(), QN_HALT_LINE_OVERWRITTEN, "there is no other");
}

/* ---- a group that waits -------------------------------------------------- */

static void waits_for(uint64_t mask)
{
    v.memory = true;
    v.stopped = false;
    v.awaited = mask;
}

CASE(the_first_replica_that_is_not_waited_for_says_that_the_group_waits)
{
    waits_for(BIT(0) | BIT(3));
    cr_assert_eq(halt(), QN_HALT_LINE_WAITS);
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
    cr_assert_eq(asked, 0, "the kernel need not be asked");
}

CASE(a_later_replica_that_is_not_waited_for_says_nothing)
{
    waits_for(BIT(3));
    cr_assert_eq(halt(), QN_HALT_LINE_NONE, "replica 0 says it");
}

CASE(if_all_are_waited_for_the_first_that_is_not_stopped_says_it)
{
    waits_for(v.alive);
    cr_assert_eq(halt(), QN_HALT_LINE_NONE, "replica 0 runs");
    stopped = BIT(0);
    cr_assert_eq(halt(), QN_HALT_LINE_WAITS);
}

CASE(if_all_are_stopped_none_says_it)
{
    waits_for(v.alive);
    stopped = v.alive;
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
}

CASE(a_group_that_waits_and_then_stops_is_logged_twice)
{
    waits_for(BIT(0));
    cr_assert_eq(halt(), QN_HALT_LINE_WAITS);
    v.stopped = true;
    cr_assert_eq(halt(), QN_HALT_LINE_VERDICT);
    v.stopped = false;
    cr_assert_eq(halt(), QN_HALT_LINE_NONE);
}

CASE(the_culprit_is_a_stopped_replica_else_another_one_else_this_one)
{
    stopped = BIT(3);
    cr_assert_eq(qn_halt_culprit(BIT(0) | BIT(3), SELF, &facts), 3);
    stopped = 0;
    cr_assert_eq(qn_halt_culprit(BIT(1) | BIT(3), SELF, &facts), 3);
    cr_assert_eq(qn_halt_culprit(BIT(1), SELF, &facts), SELF);
}

CASE(the_longest_log_is_the_own_one_if_others_have_as_much)
{
    const qn_slot_t same[NODES] = {9, 9, 9, 0, 9};
    const qn_slot_t more[NODES] = {9, 9, 9, 12, 12};
    cr_assert_eq(qn_halt_longest(same, NODES, SELF), SELF);
    cr_assert_eq(qn_halt_longest(more, NODES, SELF), 3);
}

Test(role_log, a_group_that_neither_stopped_nor_waits_has_no_line,
     .init = setup, .signal = SIGABRT)
{
    v.stopped = false;
    (void)halt();
}
