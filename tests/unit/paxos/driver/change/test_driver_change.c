/*
 * Orders to change the voters: in any member, what they end as, and members
 * that go (PROTOCOL.md 4.4). Memory acceptor.
 */
#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/change/change_world.h"

Test(driver_change, any_member_takes_an_order)
{
    struct world *w = change_voters(2);
    world_restart(w, 2);
    world_restart(w, 3);
    world_go_on(w);
    cr_assert_eq(world_order_of(w, 0, 2, true), QN_OK); /* the leader */
    world_ordered(w, 0, 7);
    cr_assert_eq(world_order_of(w, 1, 3, true), QN_OK); /* a follower */
    world_ordered(w, 1, 15);
    cr_assert_eq(world_order_of(w, 3, 2, false), QN_OK);
    world_ordered(w, 3, 11);
    world_rounds(w, 20);
    cr_assert(qn_driver_removed(w->member[2].driver));
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}

/* Its vote has ended, and a later one may have begun while that was decided. */
Test(driver_change, an_order_tells_of_a_later_incarnation)
{
    struct world *w = change_voters(3);
    const struct qn_driver_change c = world_change(w, 2, false);
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_ordered(w, 1, 3);
    cr_assert_eq(world_status(w, 1).change_error, QN_OK);
    world_rounds(w, 20);
    world_lose(w, 2);
    world_go_on(w);
    cr_assert_eq(world_order(w, 1, &c), QN_OK, "again");
    world_ordered(w, 1, 3);
    cr_assert_eq(world_status(w, 1).change_error, QN_OK, "it has ended");
    world_restart(w, 2);
    world_go_on(w);
    for (qn_node_t at = 0; at < 3; at++) {
        cr_assert_eq(world_order(w, at, &c), QN_OK);
        world_ordered(w, at, 3);
        cr_assert_eq(world_status(w, at).change_error, QN_ESTALE, "%u", at);
    }
    world_end(w);
}

Test(driver_change, an_order_may_be_given_again_and_another_one_waits)
{
    struct world *w = change_voters(2);
    world_restart(w, 2);
    world_go_on(w);
    cr_assert_eq(world_order_of(w, 1, 2, true), QN_OK);
    cr_assert_eq(world_order_of(w, 1, 2, true), QN_OK);
    cr_assert_eq(world_order_of(w, 1, 2, false), QN_EBUSY);
    cr_assert_eq(world_order_of(w, 1, 0, false), QN_EBUSY);
    world_ordered(w, 1, 7);
    uint32_t entries = w->member[0].driver->roles.ul_len;
    cr_assert_eq(world_order_of(w, 1, 2, true), QN_OK, "it is so");
    world_ordered(w, 1, 7);
    cr_assert_eq(w->member[0].driver->roles.ul_len, entries);
    world_go_on(w);
    world_end(w);
}

/* Two members order at once: one change at a time. */
Test(driver_change, the_leader_makes_one_change_at_a_time)
{
    struct world *w = change_voters(3);
    world_restart(w, 3);
    world_restart(w, 4);
    world_go_on(w);
    w->member[1].stopped = w->member[2].stopped = true; /* none is chosen */
    cr_assert_eq(world_order_of(w, 0, 3, true), QN_OK);
    world_rounds(w, 10);
    struct qn_driver_change c = world_change(w, 4, true);
    change_refused(w, 4, &c, QN_EBUSY);
    cr_assert_eq(world_status(w, 0).change, QN_CHANGE_UNKNOWN);
    cr_assert_eq(world_status(w, 0).change_error, QN_ETIMEDOUT);
    w->member[1].stopped = w->member[2].stopped = false;
    world_rounds(w, 3000);
    cr_assert_eq(world_status(w, 0).voters, 15, "it was done though");
    world_go_on(w);
    world_end(w);
}

Test(driver_change, an_order_that_cannot_be_is_refused_at_once)
{
    struct world *w = change_voters(1);
    struct qn_driver_change c = {.node = 8, .inc = 5, .votes = true};
    cr_assert_eq(world_order(w, 0, &c), QN_EINVAL);
    c = (struct qn_driver_change){.node = 3, .votes = true};
    cr_assert_eq(world_order(w, 0, &c), QN_EINVAL);
    cr_assert_eq(world_status(w, 0).change, QN_CHANGE_NONE);
    world_end(w);
    w = world_begin(3, false);
    cr_assert_eq(world_order_of(w, 0, 1, false), QN_ENOSYS);
    world_end(w);
}

Test(driver_change, the_last_voter_is_not_removed)
{
    struct world *w = change_voters(1);
    struct qn_driver_change c = world_change(w, 0, false);
    c.forced = true;
    world_restart(w, 1);
    world_go_on(w);
    change_refused(w, 1, &c, QN_EINVAL);
    change_refused(w, 0, &c, QN_EINVAL);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, a_newcomer_that_is_not_there_is_waited_for)
{
    struct world *w = change_voters(1);
    struct qn_driver_change c = {.node = 3, .inc = 200, .votes = true};
    change_refused(w, 0, &c, QN_EAGAIN);
    cr_assert_eq(world_order(w, 0, &c), QN_OK);
    change_waits(w, QN_S);
    w->lives = 199;
    world_restart(w, 3);
    world_ordered(w, 0, 9);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, an_order_names_an_incarnation)
{
    struct world *w = change_voters(3);
    struct qn_driver_change c = world_change(w, 2, false);
    world_lose(w, 2);
    world_restart(w, 2);
    world_go_on(w);
    change_refused(w, 1, &c, QN_ESTALE);
    world_go_on(w);
    world_end(w);
}

/* ---- members that go ----------------------------------------------------- */

/* Whichever node is asked, and whichever is removed. */
static void removes(qn_node_t at, qn_node_t node)
{
    struct world *w = change_voters(3);
    world_load(w, 20);
    cr_assert_eq(world_order_of(w, at, node, false), QN_OK);
    for (int r = 0; r < 20000 && !qn_driver_removed(w->member[node].driver);
         r++) {
        world_load(w, 1);
        world_rounds(w, 1);
    }
    struct qn_driver_status st = world_status(w, node);
    cr_assert(qn_driver_removed(w->member[node].driver), "%u at %u", node, at);
    cr_assert_not(st.is_voter);
    cr_assert_eq(st.role, QN_FOLLOWER);
    cr_assert_eq(st.change, at == node ? QN_CHANGE_DONE : QN_CHANGE_NONE);
    cr_assert_eq(qn_driver_waits_for(w->member[node].driver), 0);
    uint64_t seq = 0;
    const struct qn_slice part = {(const uint8_t *)"x", 1};
    cr_assert_eq(qn_driver_submit(w->member[node].driver, &part, 1, &seq),
                 QN_EREMOVED);
    cr_assert_eq(world_order_of(w, node, 1, false), QN_EREMOVED);
    qn_node_t other = (node + 1) % 3;
    world_rounds(w, 50); /* the others learn it, too */
    cr_assert_neq(world_status(w, other).leader, node);
    cr_assert_eq(world_status(w, other).in_sync, 7 & ~qn_driver_bit(node));
    cr_assert(node != 0 || world_status(w, other).reason == QN_REASON_ORDER);
    world_lose(w, node);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, a_member_is_removed_whichever_it_is)
{
    for (qn_node_t at = 0; at < 3; at++) {
        for (qn_node_t node = 0; node < 3; node++) {
            removes(at, node);
        }
    }
}

/* Its removal was refused while it had stopped taking commands. */
Test(driver_change, a_member_that_stays_takes_commands_again)
{
    struct world *w = change_voters(3);
    const struct qn_driver_change c = world_change(w, 2, false);
    world_rounds(w, 20);
    cr_assert_eq(world_order(w, 0, &c), QN_OK);
    int r = 0;
    for (; r < 2000 && qn_driver_room(w->member[2].driver); r++) {
        world_rounds(w, 1);
    }
    cr_assert_lt(r, 2000, "it was asked to leave");
    cr_assert_not(world_submit(w, 2, "x", 1));
    world_lose(w, 0); /* and with it the order */
    world_rounds(w, 1000);
    world_go_on(w);
    cr_assert(qn_driver_room(w->member[2].driver));
    cr_assert_not(qn_driver_removed(w->member[2].driver));
    world_end(w);
}

/* It was stopped when it was removed, and has submitted since. */
Test(driver_change, what_a_removed_member_sends_is_not_decided)
{
    struct world *w = change_voters(3);
    world_rounds(w, 20);
    w->member[2].stopped = true;
    cr_assert_eq(world_order_of(w, 1, 2, false), QN_OK);
    world_ordered(w, 1, 3);
    uint32_t before = w->history_count;
    world_submit_number(w, 2, 1);
    world_submit_number(w, 2, 2);
    w->member[2].stopped = false;
    world_rounds(w, 3000);
    cr_assert(qn_driver_removed(w->member[2].driver));
    cr_assert_eq(w->history_count, before);
    cr_assert_eq(world_status(w, 2).unapplied, 2, "their outcome is unknown");
    cr_assert_eq(qn_driver_waits_for(w->member[2].driver), 0);
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}

static uint64_t queued(const struct world *w, qn_node_t i)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(w->member[i].driver->machine, &st);
    return st.queued;
}

/* Writes are held for node 1, so the ten commands of node 2, whose removal is
 * ordered, wait at the leader. @return how many waits there besides. */
static uint64_t held_when_removed(struct world *w)
{
    w->voters = 7;
    w->ring_slots = 16;
    w->flow = qn_flow_default(3, 16, 1u << 22);
    w->flow.min_awaited = 2;
    world_start(w);
    world_go_on(w);
    w->member[1].stopped = true;
    world_rounds(w, 2000); /* it has stopped, and may lack more */
    for (uint64_t x = 0; x < 200 && queued(w, 0) == 0; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 20);
    }
    uint64_t before = queued(w, 0);
    for (uint64_t x = 0; x < 10; x++) {
        world_submit_number(w, 2, x);
    }
    world_rounds(w, 20);
    cr_assert_eq(queued(w, 0), before + 10);
    struct qn_driver_change c = world_change(w, 2, false);
    c.forced = true;
    cr_assert_eq(world_order(w, 0, &c), QN_OK);
    return before;
}

/* It cannot end them in QN_DRIVER_LEAVE_MAX. */
Test(driver_change, the_leader_drops_what_it_has_queued_of_a_removed_member)
{
    struct world *w = world_make(8, true);
    uint64_t before = held_when_removed(w);
    uint64_t last = w->member[2].session[2].last;
    world_ordered(w, 0, 3);
    world_rounds(w, 1);
    cr_assert_eq(queued(w, 0), before);
    w->member[1].stopped = false;
    world_lose(w, 2);
    world_go_on(w);
    cr_assert_eq(w->member[0].session[2].last, last, "none was decided");
    world_end(w);
}

Test(driver_change, a_removed_member_has_ended_its_own_commands)
{
    struct world *w = world_make(8, true);
    (void)held_when_removed(w);
    uint64_t last = w->member[2].session[2].last;
    world_rounds(w, 2000);
    cr_assert_not(qn_driver_removed(w->member[2].driver), "it is waited for");
    cr_assert_not(world_submit(w, 2, "x", 1));
    w->member[1].stopped = false;
    world_ordered(w, 0, 3);
    world_rounds(w, 200);
    cr_assert(qn_driver_removed(w->member[2].driver));
    cr_assert_eq(world_status(w, 2).unapplied, 0);
    cr_assert_eq(w->member[0].session[2].last, last + 10);
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, a_dead_voter_is_removed_and_its_seat_is_taken_again)
{
    struct world *w = change_voters(3);
    for (qn_node_t node = 0; node < 3; node++) {
        qn_node_t other = (node + 1) % 3;
        world_lose(w, node); /* at first the leader */
        world_settle(w, 20000);
        cr_assert_eq(world_order_of(w, other, node, false), QN_OK);
        world_ordered(w, other, 7 & ~qn_driver_bit(node));
        world_go_on(w);
        world_restart(w, node);
        world_go_on(w);
        cr_assert_not(qn_driver_removed(w->member[node].driver));
        world_becomes_voter(w, node);
        world_go_on(w);
    }
    world_end(w);
}
