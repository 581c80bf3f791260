/*
 * A whole group in which one node gives a snapshot from a state without a
 * consistent cut, and applies nothing meanwhile. And one in which one node gets
 * its core only now and then: it lacks no more than it does in a few looks, and
 * a stalled node slows no other one.
 */
#include "paxos/driver/flow_control.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

#define ROUNDS 500 /* of the others, to one of the slow node */

static int64_t lag_of(const struct world *w, qn_node_t i)
{
    return (int64_t)(world_status(w, 0).applied - world_status(w, i).applied);
}

/* A busy group for `looks`, in whose ROUNDS rounds node 2 takes `turns`.
 * @return how much more slots it lacks then. */
static int64_t busy(struct world *w, uint32_t looks, uint32_t turns)
{
    int64_t before = lag_of(w, 2);
    qn_time_t end = w->now + looks * QN_FLOW_CONTROL_INTERVAL;
    w->member[2].stopped = true;
    while (w->now < end) {
        for (uint32_t i = 0; i < ROUNDS; i++) {
            if (qn_driver_room(w->member[0].driver)) {
                world_submit_number(w, 0, i);
            }
            world_rounds(w, 1);
        }
        for (uint32_t i = 0; i < turns; i++) {
            world_turn(w, 2);
        }
    }
    w->member[2].stopped = false;
    return lag_of(w, 2) - before;
}

static void slow_node(bool memory)
{
    struct world *w = world_begin(3, memory);
    busy(w, 6, 1);
    cr_assert_gt(lag_of(w, 2), 0, "it is not slow");
    cr_assert_eq(world_status(w, 0).flow_control_for, 1u << 2);
    cr_assert_gt(world_status(w, 0).flow_control_delay_ns, 0);
    cr_assert_leq(world_status(w, 0).flow_control_delay_ns,
                  QN_FLOW_CONTROL_DELAY_MAX);
    cr_assert_eq(world_status(w, 2).flow_control_delay_ns, 0,
                 "it does not lead");
    cr_assert_leq(busy(w, 6, 1), 0, "it gets ever further behind");
    world_settle(w, 100000);
    world_end(w);
}

Test(driver_flow_control, who_works_and_cannot_follow_is_waited_for)
{
    slow_node(true);
}

Test(driver_flow_control, also_with_an_acceptor_process)
{
    slow_node(false);
}

Test(driver_flow_control, who_stands_still_slows_nobody)
{
    struct world *w = world_begin(3, true);
    qn_slot_t before = world_status(w, 0).applied;
    busy(w, 3, 0);
    qn_slot_t first = world_status(w, 0).applied - before;
    busy(w, 3, 0);
    cr_assert_geq(world_status(w, 0).applied - before, 2 * first);
    cr_assert_eq(world_status(w, 0).flow_control_for, 0);
    world_settle(w, 100000);
    world_end(w);
}

/* ---- applying suspended -------------------------------------------------- */

static void suspended_node(bool memory, qn_node_t i)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    cr_assert(world_suspend_apply(w, i, true));
    qn_slot_t at = w->member[i].slot;
    for (uint32_t k = 0; k < 50; k++) {
        world_submit_number(w, (i + 1) % 3, k);
        world_rounds(w, 2);
    }
    world_rounds(w, 100);
    cr_assert_eq(w->member[i].slot, at);
    for (qn_node_t k = 0; k < 3; k++) {
        cr_assert(k == i || w->member[k].slot > at, "node %u", k);
    }
    /* It learns, and is not called again and again for what it cannot do. */
    cr_assert_gt(world_status(w, i).learned, at);
    world_turn(w, i);
    cr_assert(!qn_driver_pending(w->member[i].driver));
    world_submit_number(w, i, 1);
    world_rounds(w, 100);
    cr_assert(!world_settled(w), "its own command waits");
    cr_assert(world_suspend_apply(w, i, false));
    world_go_on(w);
    cr_assert_gt(w->member[i].slot, at);
    world_end(w);
}

Test(driver_flow_control, one_that_suspends_applying_goes_on_learning)
{
    for (qn_node_t i = 0; i < 3; i++) { /* the leader, too */
        suspended_node(true, i);
        suspended_node(false, i);
    }
}

/* Another member takes over, though the suspended one is the first in rank. */
Test(driver_flow_control, one_that_suspends_applying_does_not_propose_itself)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    cr_assert_eq(world_status(w, 1).leader, 0);
    cr_assert(world_suspend_apply(w, 1, true) &&
              world_suspend_apply(w, 2, true));
    world_lose(w, 0);
    world_rounds(w, 5000);
    for (qn_node_t i = 1; i < 3; i++) {
        cr_assert_eq(world_status(w, i).role, QN_FOLLOWER);
        cr_assert_eq(world_status(w, i).leader, 0);
    }
    cr_assert(world_suspend_apply(w, 2, false));
    world_rounds(w, 5000);
    cr_assert_eq(world_status(w, 2).role, QN_ACTIVE);
    cr_assert_eq(world_status(w, 1).leader, 2, "not the first in rank");
    cr_assert(world_suspend_apply(w, 1, false));
    world_go_on(w);
    world_end(w);
}
