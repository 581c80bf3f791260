#include "paxos/driver/flow_control.h"

#include "tests/support/test.h"

/* Node 0 leads, nodes 1 and 2 follow; in each look the leader learns LEARNS
 * slots, which is its pace unless a test says otherwise. */

#define LEARNS 1000u
#define PEERS  UINT64_C(6)

static struct qn_flow_control t;
static qn_time_t now;
static qn_slot_t learned, applied[QN_NODES_MAX];

static qn_time_t look(void)
{
    cr_assert(qn_flow_control_due(&t, now));
    qn_time_t pause = qn_flow_control_look(&t, now, learned, applied, PEERS);
    cr_assert_eq(pause != 0, qn_flow_control_for(&t) != 0);
    return pause;
}

static void setup(void)
{
    t = (struct qn_flow_control){0};
    now = 5 * QN_S;
    learned = applied[1] = applied[2] = 70000;
    cr_assert_eq(look(), 0);
}

#define CASE(name) Test(flow_control, name, .init = setup)

/* @return the pause after a look in which they have done so much. */
static qn_time_t turn(uint64_t leader, uint64_t one, uint64_t two)
{
    now += QN_FLOW_CONTROL_INTERVAL;
    learned += leader;
    applied[1] += one;
    applied[2] += two;
    return look();
}

/* The pause at three quarters of a pace. */
static qn_time_t delay(uint64_t pace)
{
    return QN_FLOW_CONTROL_INTERVAL * 4 / (3 * pace);
}

CASE(who_follows_slows_nobody)
{
    for (int i = 0; i < 9; i++) {
        cr_assert_eq(turn(LEARNS, LEARNS, LEARNS), 0);
    }
}

CASE(who_lags_by_less_than_a_look_slows_nobody)
{
    cr_assert_eq(turn(LEARNS, LEARNS / 2 + 1, LEARNS), 0);
    for (int i = 0; i < 9; i++) {
        cr_assert_eq(turn(LEARNS, LEARNS, LEARNS), 0);
    }
}

CASE(who_works_and_cannot_follow_is_waited_for_after_two_looks)
{
    cr_assert_eq(turn(LEARNS, 200, LEARNS), 0);
    cr_assert_eq(turn(LEARNS, 200, LEARNS), delay(200));
    cr_assert_eq(qn_flow_control_for(&t), 1u << 1);
}

CASE(the_slowest_counts)
{
    turn(LEARNS, 200, 300);
    cr_assert_eq(turn(LEARNS, 250, 300), delay(250));
    cr_assert_eq(qn_flow_control_for(&t), PEERS);
}

CASE(it_lasts_until_little_is_lacking)
{
    turn(LEARNS, 200, LEARNS);
    turn(LEARNS, 200, LEARNS); /* lacks 1600 */
    cr_assert_eq(turn(150, 700, 150), delay(700));
    cr_assert_eq(turn(150, 700, 150), 0); /* lacks 500 */
}

CASE(who_stands_still_is_not_waited_for)
{
    cr_assert_eq(turn(LEARNS, 1, LEARNS), 0); /* it stopped in this look */
    for (int i = 0; i < 9; i++) {
        cr_assert_eq(turn(LEARNS, 0, LEARNS), 0);
    }
}

CASE(who_catches_up_faster_than_the_leader_goes_slows_nobody)
{
    for (int i = 0; i < 20; i++) {
        turn(LEARNS, 0, LEARNS);
    }
    for (int i = 0; i < 9; i++) {
        cr_assert_eq(turn(LEARNS, LEARNS + 500, LEARNS), 0);
    }
}

CASE(no_pause_is_long)
{
    turn(LEARNS, 1, LEARNS);
    cr_assert_eq(turn(LEARNS, 1, LEARNS), QN_FLOW_CONTROL_DELAY_MAX);
}

CASE(a_leader_that_stood_still_begins_anew)
{
    turn(LEARNS, 200, LEARNS);
    now += 2 * QN_FLOW_CONTROL_INTERVAL;
    cr_assert_eq(turn(LEARNS, 200, LEARNS), 0);
    cr_assert_eq(turn(LEARNS, 200, LEARNS), 0);
    cr_assert_eq(turn(LEARNS, 200, LEARNS), delay(200));
}

CASE(a_new_life_that_has_nothing_yet_stands_still)
{
    turn(LEARNS, 200, LEARNS);
    applied[1] = 0;
    cr_assert_eq(turn(LEARNS, 0, LEARNS), 0);
    cr_assert_eq(turn(LEARNS, 5, LEARNS), 0);
    cr_assert_eq(turn(LEARNS, 5, LEARNS), QN_FLOW_CONTROL_DELAY_MAX);
}

CASE(it_is_not_due_before_its_time)
{
    now += QN_FLOW_CONTROL_INTERVAL - 1;
    cr_assert(!qn_flow_control_due(&t, now));
}
