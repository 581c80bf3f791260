/*
 * A whole group in which one node gets its core only now and then: it lacks no
 * more than it does in a few looks, and who stands still slows nobody.
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
