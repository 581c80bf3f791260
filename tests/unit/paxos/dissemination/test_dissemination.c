/*
 * Dissemination without channels: each decision at its boundary values.
 */
#include "paxos/dissemination/dissemination.h"

#include <signal.h>

#include "core/base/err.h"
#include "tests/support/test.h"

/* Node 1 of five. */
enum { SELF = 1, NODES = 5 };
#define ALL   UINT64_C(31)
#define START ((qn_time_t)5 * QN_S)

static struct qn_dissemination d;
static const struct qn_dissemination_source star = {.topology = "sequential"};

static void setup(void)
{
    qn_dissemination_init(&d, SELF, NODES);
}

#define CASE(name)  Test(dissemination, name, .init = setup)
#define ABORT(name) Test(dissemination, name, .init = setup, .signal = SIGABRT)

/* The tree of these members; the root leads and accepts. */
static void adopt(const char *topology, uint64_t members, qn_node_t root,
                  uint64_t living)
{
    const struct qn_dissemination_source s = {.topology = topology};
    qn_node_t order[QN_NODES_MAX];
    struct qn_tree t;
    cr_assert(qn_dissemination_change(
        &d, (struct qn_dissemination_shape){members, 0}));
    uint32_t n = qn_dissemination_order(&d, members, root, root, order);
    cr_assert_eq(qn_dissemination_plan(&t, &s, 0, order, n), QN_OK);
    qn_dissemination_adopt(&d, &t, living);
}

/* ---- the tree ------------------------------------------------------------ */

static void expect_order(uint64_t members, qn_node_t leader, qn_node_t acceptor,
                         uint32_t n, const qn_node_t *want)
{
    qn_node_t got[QN_NODES_MAX];
    cr_assert_eq(qn_dissemination_order(&d, members, leader, acceptor, got), n);
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(got[i], want[i], "%u: %u, not %u", i, got[i], want[i]);
    }
}

CASE(the_root_comes_first_then_the_members_ascending)
{
    expect_order(ALL, 3, 3, 5, (qn_node_t[]){3, 0, 1, 2, 4});
    expect_order(ALL & ~UINT64_C(4), 3, 3, 4, (qn_node_t[]){3, 0, 1, 4});
}

CASE(a_leader_that_does_not_accept_is_no_member)
{
    expect_order(ALL, 0, 3, 4, (qn_node_t[]){3, 1, 2, 4});
}

CASE(the_acceptor_is_the_root_though_it_is_not_among_the_members)
{
    expect_order(3, 3, 3, 3, (qn_node_t[]){3, 0, 1});
    expect_order(0, 0, 3, 1, (qn_node_t[]){3});
}

CASE(a_root_has_the_living_members_as_children)
{
    adopt("sequential", ALL, SELF, ALL);
    cr_assert_eq(d.children, UINT64_C(29));
    cr_assert_eq(d.parent[0], SELF);
    cr_assert_not(d.inner);
    adopt("sequential", ALL, SELF, ALL & ~UINT64_C(8));
    cr_assert_eq(d.children, UINT64_C(21));
    adopt("sequential", 7, SELF, ALL);
    cr_assert_eq(d.children, 5);
}

CASE(only_a_root_has_children_here)
{
    adopt("sequential", ALL, 0, ALL);
    cr_assert_eq(d.children, 0);
    cr_assert_eq(d.parent[0], 0);
    adopt("sequential", ALL & ~UINT64_C(2), 0, ALL);
    cr_assert_eq(d.parent[0], QN_NO_MEMBER, "it is no member");
}

CASE(there_is_no_tree_of_an_unknown_shape)
{
    const struct qn_dissemination_source s = {.topology = "bush"};
    const qn_node_t order[] = {1, 0, 2};
    struct qn_tree t = {.n = 77};
    cr_assert_eq(qn_dissemination_plan(&t, &s, 0, order, 3), QN_ENOENT);
    cr_assert_eq(t.n, 77, "untouched");
}

CASE(a_given_tree_goes_before_a_shape)
{
    const qn_node_t order[] = {0, 1, 2};
    struct qn_tree plan, t;
    cr_assert_eq(qn_dissemination_plan(&plan, &star, 0, order, 3), QN_OK);
    const struct qn_dissemination_source s = {.topology = "bush",
                                              .plan = &plan};
    cr_assert_eq(qn_dissemination_plan(&t, &s, 0, order, 3), QN_OK);
    cr_assert_eq(t.n, 3);
    cr_assert_eq(t.root, 0);
}

/* ---- another tree is heard of -------------------------------------------- */

static void hear(uint64_t members, uint32_t ring)
{
    qn_dissemination_hear(&d, (struct qn_dissemination_shape){members, ring});
}

CASE(other_members_are_announced_equal_ones_are_not)
{
    adopt("sequential", 7, 0, ALL);
    hear(7, 0);
    cr_assert_eq(d.announced.members, 0);
    hear(15, 0);
    cr_assert_eq(d.announced.members, 15);
}

CASE(bits_outside_the_group_mean_nothing)
{
    adopt("sequential", 7, 0, ALL);
    hear(7 | UINT64_C(1) << NODES, 0);
    cr_assert_eq(d.announced.members, 0);
    hear(UINT64_MAX, 0);
    cr_assert_eq(d.announced.members, ALL);
}

CASE(a_ring_is_announced_and_the_tree_again)
{
    adopt("sequential", ALL, 0, ALL);
    hear(ALL, QN_DISSEMINATION_RING_MAX);
    cr_assert_eq(d.announced.members, ALL);
    cr_assert_eq(d.announced.ring, QN_DISSEMINATION_RING_MAX);
    cr_assert(qn_dissemination_change(&d, d.announced));
    hear(ALL, QN_DISSEMINATION_RING_MAX);
    cr_assert_eq(d.announced.members, 0, "it is that");
    hear(ALL, 0);
    cr_assert_eq(d.announced.members, ALL);
    cr_assert_eq(d.announced.ring, 0u);
}

CASE(a_ring_that_no_group_has_means_the_tree)
{
    adopt("sequential", ALL, 0, ALL);
    hear(ALL, QN_DISSEMINATION_RING_MAX + 1);
    cr_assert_eq(d.announced.members, 0);
    hear(ALL, UINT32_MAX);
    cr_assert_eq(d.announced.members, 0);
}

CASE(a_ring_goes_before_what_the_source_says)
{
    const qn_node_t order[] = {1, 0, 2, 3, 4};
    struct qn_tree t;
    cr_assert_eq(qn_dissemination_plan(&t, &star, 2, order, 5), QN_OK);
    cr_assert_eq(t.root, 1);
    cr_assert_eq(t.parent[0], 1);
    cr_assert_eq(t.parent[2], 0);
    cr_assert_eq(t.parent[3], 1);
    cr_assert_eq(t.parent[4], 3);
    cr_assert_eq(
        qn_dissemination_plan(&t, &star, QN_DISSEMINATION_RING_MAX, order, 5),
        QN_OK);
    cr_assert_eq(t.child_count[1], 4);
}

CASE(the_tree_changes_after_a_delivery_only)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_deliver_begin(&d);
    cr_assert_not(
        qn_dissemination_change(&d, (struct qn_dissemination_shape){7, 2}));
    cr_assert_eq(d.announced.members, 7);
    cr_assert_eq(d.children, 0, "nothing is sent down the tree before");
    cr_assert_eq(d.shape.members, ALL);
    qn_dissemination_deliver_end(&d);
    cr_assert_eq(d.announced.ring, 2u);
    cr_assert(qn_dissemination_change(&d, d.announced));
    cr_assert_eq(d.shape.ring, 2u);
    cr_assert_eq(d.announced.members, 0);
    cr_assert_eq(d.shape.members, 7);
}

ABORT(a_tree_that_is_adopted_during_a_delivery_aborts)
{
    const struct qn_tree t = {.n = 1, .root = SELF, .parent[SELF] = SELF};
    qn_dissemination_deliver_begin(&d);
    qn_dissemination_adopt(&d, &t, ALL);
}

CASE(the_parent_of_now_and_before_and_the_root_may_tell)
{
    adopt("sequential", ALL, 2, ALL);
    adopt("sequential", ALL, 3, ALL);
    cr_assert(qn_dissemination_may_tell(&d, 3, false));
    cr_assert(qn_dissemination_may_tell(&d, 2, false));
    cr_assert_not(qn_dissemination_may_tell(&d, 4, false));
    cr_assert(qn_dissemination_may_tell(&d, 4, true));
    adopt("sequential", ALL, 3, ALL);
    cr_assert_not(qn_dissemination_may_tell(&d, 2, false), "two trees ago");
}

CASE(in_a_tree_with_inner_nodes_every_peer_may_tell)
{
    adopt("tree:k=1", ALL, 0, ALL);
    cr_assert(d.inner);
    cr_assert(qn_dissemination_may_tell(&d, 4, false));
}

/* ---- children without room ----------------------------------------------- */

CASE(a_child_without_room_is_waited_for_once)
{
    adopt("sequential", ALL, SELF, ALL);
    cr_assert_eq(qn_dissemination_room(&d, 4), 4);
    cr_assert(qn_dissemination_wait(&d, 4, START));
    cr_assert_eq(qn_dissemination_deadline(&d), START + QN_STALL);
    cr_assert(qn_dissemination_wait(&d, 4, START + QN_STALL - 1));
    cr_assert_not(qn_dissemination_wait(&d, 4, START + QN_STALL));
    cr_assert_eq(d.left_behind, 4);
    cr_assert_eq(qn_dissemination_deadline(&d), QN_TIME_NEVER);
    cr_assert_eq(qn_dissemination_room(&d, 4), 0, "it is left behind");
    cr_assert_eq(qn_dissemination_room(&d, 0), 0);
    cr_assert_eq(qn_dissemination_room(&d, 4), 4, "it had room meanwhile");
}

CASE(a_wait_ends_when_there_is_room)
{
    adopt("sequential", ALL, SELF, ALL);
    cr_assert(qn_dissemination_wait(&d, 4, START));
    cr_assert_not(qn_dissemination_wait(&d, 0, START + 1));
    cr_assert_eq(d.left_behind, 0);
    cr_assert(qn_dissemination_wait(&d, 4, START + QN_STALL));
    cr_assert_eq(qn_dissemination_deadline(&d), START + 2 * QN_STALL);
}

CASE(a_child_that_missed_a_broadcast_is_left_behind)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_drop(&d, 5);
    cr_assert_eq(d.left_behind, 5);
    cr_assert_eq(qn_dissemination_room(&d, 4), 0);
    cr_assert_eq(d.left_behind, 4, "node 0 had room");
    qn_dissemination_forgive(&d);
    cr_assert_eq(d.left_behind, 0);
}

CASE(a_child_that_ends_is_none_any_more)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_drop(&d, 4);
    qn_dissemination_peer_down(&d, 2);
    cr_assert_eq(d.children, UINT64_C(25));
    cr_assert_eq(d.left_behind, 0);
}

CASE(a_node_that_is_no_root_any_more_waits_for_no_child)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_wait(&d, 4, START);
    qn_dissemination_drop(&d, 1);
    adopt("sequential", ALL, 0, ALL);
    cr_assert_eq(qn_dissemination_deadline(&d), QN_TIME_NEVER);
    cr_assert_eq(d.left_behind, 0);
}

ABORT(dropping_a_node_that_is_no_child_aborts)
{
    adopt("sequential", 7, SELF, ALL);
    qn_dissemination_drop(&d, 8);
}

/* ---- how long a broadcast takes ------------------------------------------ */

CASE(a_broadcast_is_timed_until_all_have_it)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_probe_begin(&d, 10, START);
    qn_dissemination_probe_begin(&d, 11, START + QN_S);
    cr_assert_eq(d.latency_probe_slot, 10, "one at a time");
    qn_dissemination_probe_look(&d, false, START + QN_LATENCY_PROBE_LOOK);
    cr_assert_eq(d.broadcast_latency_ns, 0);
    qn_dissemination_probe_look(&d, true, START + 2 * QN_LATENCY_PROBE_LOOK);
    cr_assert_eq(d.broadcast_latency_ns, 2 * QN_LATENCY_PROBE_LOOK);
    cr_assert_eq(d.latency_probe_slot, 0);
}

CASE(broadcasts_are_timed_now_and_then_and_smoothed)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_probe_begin(&d, 10, START);
    qn_dissemination_probe_look(&d, true, START + 800);
    qn_time_t next = START + QN_LATENCY_PROBE_INTERVAL;
    qn_dissemination_probe_begin(&d, 11, next - 1);
    cr_assert_eq(d.latency_probe_slot, 0, "too early");
    qn_dissemination_probe_begin(&d, 12, next);
    cr_assert_eq(d.latency_probe_slot, 12);
    qn_dissemination_probe_look(&d, true, next + 1600);
    cr_assert_eq(d.broadcast_latency_ns, (7 * 800 + 1600) / 8);
}

CASE(a_late_look_does_not_tell_when_a_slot_arrived)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_probe_begin(&d, 10, START);
    qn_dissemination_probe_look(&d, true, START + QN_LATENCY_PROBE_LOOK + 1);
    cr_assert_eq(d.broadcast_latency_ns, 0);
    cr_assert_eq(d.latency_probe_slot, 0);
}

CASE(a_root_without_others_times_nothing)
{
    adopt("sequential", 1 << SELF, SELF, ALL);
    qn_dissemination_probe_begin(&d, 10, START);
    qn_dissemination_probe_look(&d, true, START);
    cr_assert_eq(d.broadcast_latency_ns, 0);
}

CASE(another_tree_has_another_latency)
{
    adopt("sequential", ALL, SELF, ALL);
    qn_dissemination_probe_begin(&d, 10, START);
    qn_dissemination_probe_look(&d, true, START + 800);
    qn_dissemination_probe_begin(&d, 11, START + QN_S);
    adopt("sequential", 7, SELF, ALL);
    cr_assert_eq(d.broadcast_latency_ns, 0);
    cr_assert_eq(d.latency_probe_slot, 0);
}
