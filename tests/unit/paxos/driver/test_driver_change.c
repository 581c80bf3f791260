/*
 * Orders to change the voters: in any member, whichever node leads or ends
 * meanwhile (PROTOCOL.md 4.4). Memory acceptor.
 */
#include "paxos/driver/driver_internal.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* Time passes faster than the members turn. */
static void waits(struct world *w, qn_time_t ns)
{
    for (qn_time_t until = w->now + ns; w->now < until;) {
        w->now += 9 * QN_MS;
        world_rounds(w, 1);
    }
}

/* The order is refused, for this reason, and has changed nothing. */
static void refused(struct world *w, qn_node_t at,
                    const struct qn_driver_change *c, int err)
{
    uint64_t before = world_status(w, at).voters;
    cr_assert_eq(world_order(w, at, c), QN_OK);
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_PENDING);
    waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_REFUSED);
    cr_assert_eq(world_status(w, at).change_error, err, "%s",
                 qn_strerror(world_status(w, at).change_error));
    cr_assert_eq(world_status(w, at).voters, before);
}

/* ---- orders ---------------------------------------------------------------
 */

/* Seats 0 to n - 1 of eight. */
static struct world *voters(uint32_t n)
{
    struct world *w = world_seats(8, (UINT64_C(1) << n) - 1);
    world_go_on(w);
    return w;
}

Test(driver_change, any_member_takes_an_order)
{
    struct world *w = voters(2);
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
    struct world *w = voters(3);
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
    struct world *w = voters(2);
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
    struct world *w = voters(3);
    world_restart(w, 3);
    world_restart(w, 4);
    world_go_on(w);
    w->member[1].stopped = w->member[2].stopped = true; /* none is chosen */
    cr_assert_eq(world_order_of(w, 0, 3, true), QN_OK);
    world_rounds(w, 10);
    struct qn_driver_change c = world_change(w, 4, true);
    refused(w, 4, &c, QN_EBUSY);
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
    struct world *w = voters(1);
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
    struct world *w = voters(1);
    struct qn_driver_change c = world_change(w, 0, false);
    c.forced = true;
    world_restart(w, 1);
    world_go_on(w);
    refused(w, 1, &c, QN_EINVAL);
    refused(w, 0, &c, QN_EINVAL);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, a_newcomer_that_is_not_there_is_waited_for)
{
    struct world *w = voters(1);
    struct qn_driver_change c = {.node = 3, .inc = 200, .votes = true};
    refused(w, 0, &c, QN_EAGAIN);
    cr_assert_eq(world_order(w, 0, &c), QN_OK);
    waits(w, QN_S);
    w->lives = 199;
    world_restart(w, 3);
    world_ordered(w, 0, 9);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, an_order_names_an_incarnation)
{
    struct world *w = voters(3);
    struct qn_driver_change c = world_change(w, 2, false);
    world_lose(w, 2);
    world_restart(w, 2);
    world_go_on(w);
    refused(w, 1, &c, QN_ESTALE);
    world_go_on(w);
    world_end(w);
}

/* Of two voters of which one has ended none decides. */
Test(driver_change, living_voters_stay_a_majority_unless_it_is_forced)
{
    struct world *w = voters(3);
    world_lose(w, 2);
    struct qn_driver_change c = world_change(w, 1, false);
    refused(w, 0, &c, QN_ENOQUORUM);
    refused(w, 1, &c, QN_ENOQUORUM);
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

Test(driver_change, voters_that_are_no_majority_change_nothing)
{
    struct world *w = voters(4);
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
Test(driver_change, stalled_voters_are_waited_for_if_it_is_forced)
{
    struct world *w = voters(4);
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
Test(driver_change, an_order_without_a_leader_and_a_majority_is_refused_at_once)
{
    struct world *w = voters(3);
    world_restart(w, 3);
    world_go_on(w);
    world_lose(w, 0);
    world_lose(w, 1);
    refused_at_once(w, 2, 0, false, false);
    refused_at_once(w, 2, 0, false, true);
    refused_at_once(w, 3, 3, true, false);
    world_end(w);
}

Test(driver_change, what_an_ended_leader_may_have_begun_is_waited_for)
{
    struct world *w = voters(3);
    w->member[0].stopped = true;
    cr_assert_eq(world_order_of(w, 1, 2, false), QN_OK);
    world_rounds(w, 10);
    world_lose(w, 0);
    world_lose(w, 2);
    world_rounds(w, 100);
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_UNKNOWN);
    world_end(w);
}

Test(driver_change, enough_followers_are_left_unless_it_is_forced)
{
    struct world *w = world_make(8, true);
    w->voters = 7;
    w->flow = qn_flow_default(3, 4096, 1u << 22);
    w->flow.min_awaited = 2;
    world_start(w);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 2, false);
    refused(w, 1, &c, QN_EPERM);
    c.forced = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_ordered(w, 1, 3);
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}

/* ---- members that go ------------------------------------------------------
 */

/* Whichever node is asked, and whichever is removed. */
static void removes(qn_node_t at, qn_node_t node)
{
    struct world *w = voters(3);
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

/* It was stopped when it was removed, and has submitted since. */
Test(driver_change, what_a_removed_member_sends_is_not_decided)
{
    struct world *w = voters(3);
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

/* Writes are held for node 1, so what node 2 has sent waits at the leader. */
Test(driver_change, the_leader_drops_what_it_has_queued_of_a_removed_member)
{
    struct world *w = world_make(8, true);
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
    uint64_t last = w->member[2].session[2].last;
    for (uint64_t x = 0; x < 10; x++) {
        world_submit_number(w, 2, x);
    }
    world_rounds(w, 20);
    cr_assert_eq(queued(w, 0), before + 10);
    struct qn_driver_change c = world_change(w, 2, false);
    c.forced = true;
    cr_assert_eq(world_order(w, 0, &c), QN_OK);
    world_ordered(w, 0, 3);
    world_rounds(w, 1);
    cr_assert_eq(queued(w, 0), before);
    w->member[1].stopped = false;
    world_lose(w, 2);
    world_go_on(w);
    cr_assert_eq(w->member[0].session[2].last, last, "none was decided");
    world_end(w);
}

Test(driver_change, a_dead_voter_is_removed_and_its_seat_is_taken_again)
{
    struct world *w = voters(3);
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

/* The leader ends before it has answered, or with its entry under way. */
Test(driver_change, an_order_outlives_the_leader)
{
    for (uint32_t rounds = 0; rounds < 8; rounds++) {
        struct world *w = voters(3);
        world_restart(w, 3);
        world_go_on(w);
        cr_assert_eq(world_order_of(w, 1, 3, true), QN_OK);
        world_rounds(w, rounds);
        world_lose(w, 0);
        world_ordered(w, 1, 15);
        world_go_on(w);
        world_end(w);
    }
}

static void unknown(const struct world *w, qn_node_t at, int err)
{
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_UNKNOWN);
    cr_assert_eq(world_status(w, at).change_error, err, "%s",
                 qn_strerror(world_status(w, at).change_error));
}

/* The entry is proposed, and a majority would not be left any more. */
Test(driver_change, what_the_leader_has_begun_it_refuses_no_more)
{
    struct world *w = voters(3);
    world_restart(w, 3);
    world_go_on(w);
    w->member[1].stopped = w->member[2].stopped = true; /* none is chosen */
    cr_assert_eq(world_order_of(w, 3, 2, false), QN_OK);
    world_rounds(w, 10);
    world_suspect(w, 2);
    world_rounds(w, 1000);
    cr_assert_eq(world_status(w, 3).change, QN_CHANGE_PENDING, "%s",
                 qn_strerror(world_status(w, 3).change_error));
    world_suspect(w, 0);
    w->member[1].stopped = w->member[2].stopped = false;
    world_ordered(w, 3, 3);
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}

/* The leader has taken an order, or may have, and ends; the next one refuses
 * it. */
static void refused_later(bool taken)
{
    struct world *w = voters(3);
    world_restart(w, 3);
    world_go_on(w);
    w->member[1].stopped = w->member[2].stopped = true;
    w->member[0].stopped = !taken;
    cr_assert_eq(world_order_of(w, 3, 2, false), QN_OK);
    world_rounds(w, 10);
    world_lose(w, 0);
    w->member[1].stopped = w->member[2].stopped = false;
    world_rounds(w, 3000);
    cr_assert_eq(world_status(w, 3).voters, 7);
    unknown(w, 3, QN_ENOQUORUM);
    struct qn_driver_change c = world_change(w, 2, false);
    refused(w, 3, &c, QN_ENOQUORUM); /* the same leader alone was asked */
    world_restart(w, 0);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, what_a_former_leader_may_have_begun_no_later_one_takes_back)
{
    refused_later(true);
    refused_later(false);
}

/* It is not the newest that the leader has answered. */
Test(driver_change, an_answer_to_a_former_order_ends_no_later_one)
{
    struct world *w = voters(3);
    world_lose(w, 2);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 1, false);
    w->member[0].stopped = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    unknown(w, 1, QN_ETIMEDOUT);
    c.forced = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_rounds(w, 1);
    w->member[0].stopped = false;
    world_ordered(w, 1, 5);
    world_lose(w, 1);
    world_restart(w, 2);
    world_go_on(w);
    world_end(w);
}

/* The order is refused, and then forced, before all was answered. */
Test(driver_change, an_order_may_be_forced_while_it_is_pending)
{
    struct world *w = voters(3);
    world_lose(w, 2);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 1, false);
    w->member[0].stopped = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    waits(w, 100 * QN_MS);
    c.forced = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    w->member[0].stopped = false;
    world_ordered(w, 1, 5);
    world_end(w);
}

/* Its service is behind, and the leader cannot know that. */
Test(driver_change, another_heir_is_told_if_the_first_does_not_lead)
{
    struct world *w = voters(3);
    world_go_on(w);
    cr_assert(world_suspend_apply(w, 1, true));
    cr_assert_eq(world_order_of(w, 0, 0, false), QN_OK);
    world_ordered(w, 0, 6);
    cr_assert_eq(world_status(w, 2).leader, 2);
    cr_assert(world_suspend_apply(w, 1, false));
    world_lose(w, 0);
    world_go_on(w);
    world_end(w);
}

/* Node 1 has asked, and takes no turn until the voters are these. */
static void asks_and_stops(struct world *w, qn_node_t node, bool votes,
                           uint64_t then)
{
    cr_assert_eq(world_order_of(w, 1, node, votes), QN_OK);
    world_rounds(w, 1);
    w->member[1].stopped = true;
    for (int r = 0; r < 5000 && world_status(w, 2).voters != then; r++) {
        world_rounds(w, 1);
    }
    cr_assert_eq(world_status(w, 2).voters, then);
}

/* It resumes: its order is done, and is not asked again. */
static void done_though(struct world *w, uint64_t voters)
{
    uint32_t entries = w->member[2].driver->roles.ul_len;
    w->member[1].stopped = false;
    world_ordered(w, 1, voters);
    world_rounds(w, 1000);
    cr_assert_eq(w->member[2].driver->roles.ul_len, entries);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, a_voter_that_came_and_went_is_not_ordered_again)
{
    struct world *w = voters(3);
    world_restart(w, 3);
    world_go_on(w);
    asks_and_stops(w, 3, true, 15);
    cr_assert_eq(world_order_of(w, 2, 3, false), QN_OK);
    world_ordered(w, 2, 7);
    world_lose(w, 3);
    done_though(w, 7);
}

Test(driver_change, a_voter_that_went_is_gone_though_its_seat_is_taken)
{
    struct world *w = voters(4);
    asks_and_stops(w, 3, false, 7);
    world_rounds(w, 20);
    world_lose(w, 3);
    world_restart(w, 3);
    world_rounds(w, 1000);
    cr_assert_eq(world_order_of(w, 2, 3, true), QN_OK);
    world_ordered(w, 2, 15);
    done_though(w, 15);
}

Test(driver_change, the_entry_of_another_incarnation_does_not_end_an_order)
{
    struct world *w = voters(3);
    world_restart(w, 3);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 3, true);
    c.inc += 100;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    w->member[1].stopped = true;
    cr_assert_eq(world_order_of(w, 2, 3, true), QN_OK);
    world_ordered(w, 2, 15);
    cr_assert_eq(world_order_of(w, 2, 3, false), QN_OK);
    world_ordered(w, 2, 7);
    w->member[1].stopped = false;
    world_rounds(w, 1000);
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    world_end(w);
}

/* Its entry may be one that no member keeps. */
Test(driver_change, with_entries_skipped_the_outcome_of_an_order_is_unknown)
{
    struct world *w = voters(3);
    struct qn_driver_change c = {.node = 3, .inc = 300, .votes = true};
    struct qn_driver *d = w->member[1].driver;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    qn_driver_order_learn(d, 0);
    cr_assert_not(d->order.begun);
    ((struct qn_utility *)qn_onepaxos_utility(d->machine))->lo++;
    qn_driver_order_learn(d, 0);
    cr_assert(d->order.begun);
    waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    unknown(w, 1, QN_EAGAIN);
    world_end(w);
}

Test(driver_change, nothing_of_an_order_is_left_when_its_member_ends)
{
    struct world *w = voters(3);
    struct qn_driver_change c = {.node = 3, .inc = 300, .votes = true};
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_rounds(w, 200);
    world_lose(w, 1);
    w->lives = 299;
    world_restart(w, 3);
    world_go_on(w);
    waits(w, QN_S);
    cr_assert_eq(world_status(w, 0).voters, 7);
    world_becomes_voter(w, 3);
    world_end(w);
}

/* ---- any schedule ---------------------------------------------------------
 */

static uint64_t living(const struct world *w)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        mask |= w->member[i].driver != NULL ? qn_driver_bit(i) : 0;
    }
    return mask;
}

/* As the member says that knows most. */
static uint64_t newest_voters(const struct world *w)
{
    uint32_t most = 0;
    uint64_t voters_now = 0;
    for (uint64_t m = living(w); m != 0; m &= m - 1) {
        const struct qn_driver *d = w->member[__builtin_ctzll(m)].driver;
        const struct qn_utility *u = qn_onepaxos_utility(d->machine);
        if (qn_utility_len(u) > most) {
            most = qn_utility_len(u);
            voters_now = qn_utility_voters(u);
        }
    }
    return voters_now;
}

/* Whatever change is under way, a majority is left, and of that one in sync. */
static bool may_end(const struct world *w, qn_node_t i)
{
    uint64_t all = newest_voters(w);
    uint64_t left = all & living(w) & ~qn_driver_bit(i);
    bool sync = false;
    for (uint64_t m = left; m != 0; m &= m - 1) {
        sync |= world_in_sync(w, (qn_node_t)__builtin_ctzll(m));
    }
    return w->member[i].driver != NULL && sync &&
           2 * __builtin_popcountll(left) > __builtin_popcountll(all) + 1;
}

static void removed_end(struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver != NULL &&
            qn_driver_removed(w->member[i].driver)) {
            world_lose(w, i);
        }
    }
}

static void something(struct world *w)
{
    qn_node_t i = (qn_node_t)world_random(w, w->nodes);
    qn_node_t at = (qn_node_t)world_random(w, w->nodes);
    bool lives = w->member[i].driver != NULL;
    switch (world_random(w, 6)) {
    case 0:
    case 1:
        if (w->member[at].driver != NULL) {
            (void)world_order_of(w, at, i, world_random(w, 2) == 0);
        }
        break;
    case 2:
        if (may_end(w, i)) {
            world_lose(w, i);
        }
        break;
    case 3:
        if (!lives) {
            world_restart(w, i);
        }
        break;
    default:
        world_load(w, (uint32_t)world_random(w, 10));
        break;
    }
    world_rounds(w, (uint32_t)world_random(w, 40));
    removed_end(w);
}

/* @return entries of the utility log. Orders, ends and beginnings, in any
 * order. Then all go on: each order has ended, all know the same voters, and
 * those go on. */
static uint32_t story(uint64_t seed)
{
    struct world *w = world_seats(6, 7);
    uint32_t entries = 0;
    w->seed = seed;
    for (uint32_t step = 0; step < 80; step++) {
        something(w);
    }
    for (uint64_t m = newest_voters(w) & ~living(w); m != 0; m &= m - 1) {
        world_restart(w, (qn_node_t)__builtin_ctzll(m));
    }
    world_rounds(w, 2000);
    waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    removed_end(w);
    world_go_on(w);
    for (uint64_t m = living(w); m != 0; m &= m - 1) {
        struct qn_driver_status st =
            world_status(w, (qn_node_t)__builtin_ctzll(m));
        cr_assert_neq(st.change, QN_CHANGE_PENDING, "seed %lu", seed);
        cr_assert_eq(st.voters, newest_voters(w), "seed %lu", seed);
        cr_assert_not(st.non_voting && st.is_voter, "seed %lu", seed);
        entries =
            QN_MAX(entries, w->member[__builtin_ctzll(m)].driver->roles.ul_len);
    }
    world_end(w);
    return entries;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 5u
#else
#define SEEDS 20u
#endif

Test(driver_change, whatever_ends_and_begins_each_order_is_done_or_not_begun)
{
    uint64_t seeds = seeds_number("QN_DRIVER_SEEDS", SEEDS);
    uint64_t entries = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        entries += story(seed);
    }
    cr_assert_gt(entries, 5 * seeds, "few changes: %lu", entries);
}

/* ---- messages -------------------------------------------------------------
 */

static void hears(struct world *w, qn_node_t at, qn_node_t from, uint8_t kind,
                  uint8_t what, qn_node_t node)
{
    const struct qn_msg m = {.kind = kind,
                             .epoch = (qn_epoch_t)world_status(w, at).epoch,
                             .order = {.inc = w->member[node % 8].inc,
                                       .node = (uint8_t)node,
                                       .what = what}};
    qn_driver_send(w->member[from].driver, at, &m);
    qn_driver_flush(w->member[from].driver, w->now);
    world_rounds(w, 100);
}

Test(driver_change, only_the_leader_says_which_other_node_leads)
{
    struct world *w = voters(3);
    uint64_t epoch = world_status(w, 1).epoch;
    hears(w, 1, 2, QN_MSG_ORDER, QN_ORDER_LEAD, 1);
    cr_assert_eq(world_status(w, 1).epoch, epoch);
    hears(w, 1, 0, QN_MSG_ORDER, QN_ORDER_LEAD, 1);
    cr_assert_gt(world_status(w, 1).epoch, epoch);
    cr_assert_eq(world_status(w, 1).leader, 1);
    world_go_on(w);
    world_end(w);
}

Test(driver_change, an_answer_counts_from_the_leader_to_its_own_question)
{
    struct world *w = voters(3);
    struct qn_driver_change c = {.node = 3, .inc = 300, .votes = true};
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    w->member[3].inc = 300;      /* as the messages say */
    w->member[0].stopped = true; /* it answers by hand */
    waits(w, 9 * QN_DRIVER_ORDER_AGAIN);
    const struct qn_driver_order *o = &w->member[1].driver->order;
    uint32_t asked = o->asked;
    cr_assert_gt(asked, o->answered + 2);
    struct qn_msg m = {.kind = QN_MSG_TAKEN,
                       .order = {.inc = 300,
                                 .number = asked,
                                 .node = 3,
                                 .what = QN_ORDER_ADD,
                                 .error = (uint32_t)-QN_ENOQUORUM}};
    cr_assert(qn_driver_order_take(w->member[1].driver, 2, &m));
    m.order.inc = 299;
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    m.order.inc = 300;
    m.order.what = QN_ORDER_REMOVE;
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    m.order.what = QN_ORDER_ADD;
    m.order.number = asked + 1; /* was not asked */
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    m.order.number = o->answered; /* was answered */
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    for (uint32_t n = o->answered + 1; n != asked; n++) {
        m.order.number = n; /* a later one may be taken */
        cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
        cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    }
    waits(w, 3 * QN_DRIVER_ORDER_AGAIN);
    cr_assert_eq(o->asked, asked, "it is asked no more");
    m.order.number = asked;
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_REFUSED);
    cr_assert_eq(world_status(w, 1).change_error, QN_ENOQUORUM);
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    waits(w, 9 * QN_DRIVER_ORDER_AGAIN);
    m.order.number = o->asked; /* the answers before it are lost */
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    unknown(w, 1, QN_ENOQUORUM);
    w->member[0].stopped = false;
    w->member[3].inc = 0;
    world_end(w);
}

Test(driver_change, an_order_about_no_node_of_the_group_is_malformed)
{
    struct world *w = world_seats(3, 7);
    hears(w, 1, 2, QN_MSG_ORDER, QN_ORDER_ADD, 7);
    cr_assert(w->member[1].driver->peer[2].corrupt);
    cr_assert_not(w->member[0].driver->peer[2].corrupt);
    world_end(w);
}
