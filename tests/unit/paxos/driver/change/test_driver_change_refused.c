/*
 * Orders to change the voters that are refused beforehand (PROTOCOL.md 4.4).
 */
#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/change/change_world.h"

/* Of two voters of which one has ended none decides. */
Test(driver_change_refused, living_voters_stay_a_majority_unless_it_is_forced)
{
    struct world *w = change_voters(3);
    world_lose(w, 2);
    struct qn_driver_change c = world_change(w, 1, false);
    change_refused(w, 0, &c, QN_ENOQUORUM);
    change_refused(w, 1, &c, QN_ENOQUORUM);
    c.forced = true;
    cr_assert_eq(world_order(w, 0, &c), QN_OK);
    world_ordered(w, 0, 5);
    world_rounds(w, 20);
    cr_assert(qn_driver_removed(w->member[1].driver));
    world_lose(w, 1);
    world_restart(w, 2);
    world_go_on(w);
    world_end(w);
}

/* It is refused before any time has passed in which it could be done. */
static void refused_at_once(struct world *w, qn_node_t at, qn_node_t node,
                            bool votes, bool forced)
{
    struct qn_driver_change c = world_change(w, node, votes);
    c.forced = forced;
    cr_assert_eq(world_order(w, at, &c), QN_OK);
    world_rounds(w, 20);
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_REFUSED, "%u", at);
    cr_assert_eq(world_status(w, at).change_error, QN_ENOQUORUM);
}

Test(driver_change_refused, voters_that_are_no_majority_change_nothing)
{
    struct world *w = change_voters(4);
    world_restart(w, 4);
    world_go_on(w);
    uint64_t entries = w->member[0].driver->roles.ul_len;
    world_lose(w, 2);
    world_lose(w, 3);
    for (int forced = 0; forced <= 1; forced++) {
        refused_at_once(w, 0, 2, false, forced);
        refused_at_once(w, 1, 1, false, forced);
        refused_at_once(w, 0, 0, false, forced);
        refused_at_once(w, 4, 4, true, forced);
    }
    cr_assert_eq(w->member[0].driver->roles.ul_len, entries);
    world_restart(w, 2);
    world_go_on(w);
    world_becomes_voter(w, 4);
    world_end(w);
}

/* They may resume, and then they vote. */
Test(driver_change_refused, stalled_voters_are_waited_for_if_it_is_forced)
{
    struct world *w = change_voters(4);
    struct qn_driver_change c = world_change(w, 3, false);
    w->member[2].stopped = w->member[3].stopped = true;
    world_suspect(w, 12);
    refused_at_once(w, 0, 3, false, false);
    refused_at_once(w, 1, 3, false, false);
    c.forced = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_rounds(w, 100);
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    w->member[2].stopped = false;
    world_ordered(w, 1, 7);
    world_end(w);
}

/* Nor does any other node lead. */
Test(driver_change_refused,
     an_order_without_a_leader_and_a_majority_is_refused_at_once)
{
    struct world *w = change_voters(3);
    world_restart(w, 3);
    world_go_on(w);
    world_lose(w, 0);
    world_lose(w, 1);
    refused_at_once(w, 2, 0, false, false);
    refused_at_once(w, 2, 0, false, true);
    refused_at_once(w, 3, 3, true, false);
    world_end(w);
}

Test(driver_change_refused, what_an_ended_leader_may_have_begun_is_waited_for)
{
    struct world *w = change_voters(3);
    w->member[0].stopped = true;
    cr_assert_eq(world_order_of(w, 1, 2, false), QN_OK);
    world_rounds(w, 10);
    world_lose(w, 0);
    world_lose(w, 2);
    world_rounds(w, 100);
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    change_waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_UNKNOWN);
    world_end(w);
}

Test(driver_change_refused, enough_followers_are_left_unless_it_is_forced)
{
    struct world *w = world_make(8, true);
    w->voters = 7;
    w->flow = qn_flow_default(3, 4096, 1u << 22);
    w->flow.min_awaited = 2;
    world_start(w);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 2, false);
    change_refused(w, 1, &c, QN_EPERM);
    c.forced = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_ordered(w, 1, 3);
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}
