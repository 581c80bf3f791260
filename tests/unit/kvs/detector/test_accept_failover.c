/*
 * Accept fail-over in virtual time: this replica is node 1 of three. The stall
 * detector inside has tests of its own (test_stall_detector.c).
 */
#include "kvs/detector/accept_failover.h"

#include "tests/support/test.h"

#define NODES 3u
#define SELF  1u
#define PEERS 5u /* mask: 0 and 2 */

static struct qn_accept_failover a;
static struct qn_accept_actions actions;
static struct qn_stall_view view[NODES];
static qn_time_t now;

static void setup(void)
{
    now = 1000 * QN_S;
    qn_accept_failover_init(&a, SELF, NODES);
    for (qn_node_t i = 0; i < NODES; i++) {
        view[i] = (struct qn_stall_view){.serves = true, .turns = 7};
    }
    view[SELF] = (struct qn_stall_view){0};
}

#define CASE(name) Test(accept_failover, name, .init = setup)

static void check(uint64_t pending, uint64_t present)
{
    cr_assert(qn_accept_failover_due(&a, now));
    qn_accept_failover_check(&a, view, pending, present, now, &actions);
}

/* It serves, has told the kernel so, and waits for a connection. */
static void serving(void)
{
    qn_accept_failover_start(&a);
    check(0, PEERS);
    cr_assert_eq(a.next_check, QN_TIME_NEVER);
    now += QN_S;
}

CASE(before_it_serves_no_check_is_due)
{
    cr_assert_not(qn_accept_failover_due(&a, now));
    cr_assert_not(qn_accept_failover_peers_changed(&a));
    cr_assert_eq(a.next_check, QN_TIME_NEVER);
}

CASE(the_first_check_comes_at_once_and_tells_the_kernel)
{
    qn_accept_failover_start(&a);
    check(0, PEERS);
    cr_assert(actions.tell_kernel);
    cr_assert_eq(a.available, 7);
    cr_assert(qn_accept_failover_all(&a));
}

CASE(without_connections_it_polls_and_no_check_is_due)
{
    serving();
    cr_assert(actions.poll);
    cr_assert_not(qn_accept_failover_due(&a, now + 3600 * QN_S));
}

CASE(a_connection_at_a_peers_queue_leads_to_checks_15_ms_apart)
{
    serving();
    qn_accept_failover_wake(&a);
    check(1u << 0, PEERS);
    cr_assert_not(actions.poll);
    cr_assert_eq(actions.serve, 0, "its owner has time");
    cr_assert_eq(a.next_check, now + 15 * QN_MS);
}

/* The owner has accepted it: one more look, then the queues are polled. */
CASE(it_polls_again_an_interval_after_the_last_connection)
{
    serving();
    qn_accept_failover_wake(&a);
    check(0, PEERS);
    cr_assert_not(actions.poll);
    now = a.next_check;
    check(0, PEERS);
    cr_assert(actions.poll);
    cr_assert_eq(a.next_check, QN_TIME_NEVER);
}

CASE(the_queue_of_a_dead_peer_is_served_in_the_first_check)
{
    serving();
    view[0] = (struct qn_stall_view){0};
    qn_accept_failover_wake(&a);
    check(1u << 0, 1u << 2);
    cr_assert_eq(actions.serve, 1u << 0);
    cr_assert(actions.tell_kernel);
    cr_assert_eq(a.available, 6);
}

static void stall_of_0(void)
{
    serving();
    qn_accept_failover_wake(&a);
    for (int i = 0; i < 3; i++) {
        view[2].turns++;
        check(1u << 0, PEERS);
        now = a.next_check;
    }
}

CASE(the_queue_of_a_stalled_peer_is_served_and_the_peer_is_rung)
{
    stall_of_0();
    cr_assert_eq(actions.serve, 1u << 0);
    cr_assert_eq(actions.ring, 1u << 0);
    cr_assert(actions.tell_kernel);
    cr_assert_eq(a.available, 6);
}

CASE(the_kernel_is_told_changes_only)
{
    stall_of_0();
    check(1u << 0, PEERS);
    cr_assert_eq(actions.serve, 1u << 0);
    cr_assert_not(actions.tell_kernel);
}

CASE(while_a_present_peer_is_unavailable_checks_go_on_100_ms_apart)
{
    stall_of_0();
    check(0, PEERS);
    cr_assert(actions.poll);
    cr_assert_eq(a.next_check, now + 100 * QN_MS);
    now = a.next_check;
    view[0].turns++;
    check(0, PEERS);
    cr_assert(actions.tell_kernel);
    cr_assert_eq(a.available, 7);
    cr_assert_eq(a.next_check, QN_TIME_NEVER);
}

/* It was stalled in its first turn: the counter of an absent one is 0, too. */
CASE(an_absent_peer_is_neither_rung_nor_checked_for)
{
    view[0].turns = 0;
    stall_of_0();
    cr_assert_eq(actions.ring, 1u << 0);
    view[0] = (struct qn_stall_view){0};
    check(0, 1u << 2);
    cr_assert_eq(actions.ring, 0);
    cr_assert_eq(a.next_check, QN_TIME_NEVER);
}

CASE(news_of_a_peer_lead_to_a_check_at_once)
{
    serving();
    cr_assert(qn_accept_failover_peers_changed(&a));
    cr_assert(qn_accept_failover_due(&a, now));
    view[2] = (struct qn_stall_view){0};
    check(0, 1u << 0);
    cr_assert(actions.tell_kernel);
    cr_assert_eq(a.available, 3);
}

CASE(when_it_stops_the_kernel_is_told_to_leave_it_out)
{
    serving();
    cr_assert(qn_accept_failover_stop(&a));
    cr_assert_eq(a.available, PEERS);
    cr_assert_not(qn_accept_failover_due(&a, now));
    cr_assert_not(qn_accept_failover_peers_changed(&a));
}

/* A kernel that was told of no replica would fall back to all of them. */
CASE(the_last_available_replica_tells_the_kernel_nothing)
{
    view[0] = view[2] = (struct qn_stall_view){0};
    qn_accept_failover_start(&a);
    check(0, 0);
    cr_assert_not(qn_accept_failover_stop(&a));
}

CASE(one_that_never_served_stops_without_a_word)
{
    cr_assert_not(qn_accept_failover_stop(&a));
}

CASE(each_of_a_mask_is_picked_as_often)
{
    unsigned picked[64] = {0};
    const uint64_t mask = UINT64_C(1) << 63 | 0x29;
    for (uint64_t r = 0; r < 400; r++) {
        picked[qn_accept_failover_pick(mask, r)]++;
    }
    cr_assert_eq(picked[0], 100);
    cr_assert_eq(picked[3], 100);
    cr_assert_eq(picked[5], 100);
    cr_assert_eq(picked[63], 100);
}

CASE(a_group_of_64_is_a_full_mask)
{
    qn_accept_failover_init(&a, 0, QN_NODES_MAX);
    a.available = UINT64_MAX;
    cr_assert(qn_accept_failover_all(&a));
}

Test(accept_failover, a_check_that_is_not_due_is_an_error, .init = setup,
     .signal = SIGABRT)
{
    qn_accept_failover_check(&a, view, 0, PEERS, now, &actions);
}
