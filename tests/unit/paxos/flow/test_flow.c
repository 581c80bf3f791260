#include "flow_world.h"

#include "tests/support/test.h"

#define CASE(name) Test(flow, name, .init = flow_setup)

Test(flow, the_leader_is_no_member_that_ends, .init = flow_setup,
     .signal = SIGABRT)
{
    qn_flow_down(&fw.f, fw.now, 0);
}

Test(flow, limits_let_lag_be_no_more_than_stop, .signal = SIGABRT)
{
    struct qn_flow_limits l = flow_limits;
    l.stop_bytes = l.lag_bytes - 1;
    qn_flow_init(&fw.f, 0, 3, &l);
}

CASE(no_leader_runs_further_ahead_than_the_mark)
{
    cr_assert_eq(flow_decide(1000), LAG / BATCH);
    cr_assert_eq(flow_decide(1000), 0);
    flow_applies(1, 4);
    cr_assert_eq(flow_decide(1000), 0, "the other one has applied nothing");
    flow_applies(2, 3);
    cr_assert_eq(flow_decide(1000), 3);
}

CASE(slots_count_as_bytes_do)
{
    fw.f.limits.lag_slots = 3;
    fw.f.member[1].mark_slots = fw.f.member[2].mark_slots = 3;
    cr_assert_eq(flow_decide(1000), 3);
}

CASE(a_batch_longer_than_the_mark_goes_alone)
{
    cr_assert_eq(qn_flow_shuts(&fw.f, fw.now, 5 * STOP).members, 0);
    cr_assert_eq(flow_decide(1), 1);
    cr_assert_eq(qn_flow_shuts(&fw.f, fw.now, 5 * STOP).members, 6);
}

CASE(a_short_stop_costs_no_member_anything)
{
    flow_passes(QN_FLOW_QUIET + 1);
    cr_assert_eq(flow_decide(1000), STOP / BATCH);
}

CASE(a_member_that_resumes_keeps_the_lag_that_it_has)
{
    flow_passes(QN_FLOW_QUIET + 1);
    flow_applies(2, 0);
    flow_decide(1000);
    flow_applies(1, 1);
    flow_applies(2, 1);
    cr_assert_eq(flow_decide(1000), 0, "the lag that it has is its mark");
    flow_applies(1, 6);
    flow_applies(2, 6);
    cr_assert_eq(flow_decide(1000), 3,
                 "which falls half as fast as it applies");
    for (uint32_t k = 0; k < 3; k++) {
        flow_applies(1, 1000);
        flow_applies(2, 1000);
        flow_decide(1000);
    }
    flow_applies(1, 1000);
    flow_applies(2, 1000);
    cr_assert_eq(flow_decide(1000), LAG / BATCH, "to what it was");
}

CASE(a_member_that_applies_nothing_is_given_up_after_the_timeout)
{
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_applies(1, 1000);
    flow_passes(QN_S - 1);
    cr_assert_eq(flow_decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    flow_passes(1);
    cr_assert_gt(flow_decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&fw.f), 2);
    cr_assert_eq(fw.f.given, 1);
}

CASE(a_floor_of_progress_keeps_it_awaited_and_less_does_not)
{
    flow_decide(1000);
    flow_applies(2, 1000);
    for (uint32_t second = 0; second < 5; second++) {
        flow_passes(QN_S / 2);
        flow_applies(1, 1);
        flow_applies(2, 1000);
        flow_decide(1000);
        flow_passes(QN_S / 2);
        flow_applies(2, 1000);
        flow_decide(1000);
        cr_assert_eq(qn_flow_awaited(&fw.f), 6, "1 slot: 10 of 100 bytes");
    }
    fw.f.limits.lag_bytes = 10 * LAG; /* 10 are less than a sixteenth */
    fw.f.limits.stop_bytes = 10 * STOP;
    for (uint32_t second = 0; second < 12; second++) {
        flow_passes(QN_S);
        flow_applies(1, 1);
        flow_applies(2, 1000);
        flow_decide(1000);
    }
    cr_assert_eq(qn_flow_awaited(&fw.f), 4, "one slot now and then holds all");
}

CASE(given_up_it_is_awaited_again_when_it_applies_what_is_kept)
{
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_applies(2, 1000);
    flow_decide(1000);
    flow_passes(QN_S);
    flow_decide(10);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4);
    fw.lo = fw.applied[1] + 5;
    flow_applies(1, 1);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4, "its next slot is gone");
    flow_applies(1, 10);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    cr_assert_eq(flow_decide(1000), 0, "its mark is what it lacks");
}

CASE(what_an_awaited_member_lacks_is_kept)
{
    flow_decide(5);
    flow_applies(1, 3);
    flow_applies(2, 4);
    cr_assert_eq(qn_flow_first(&fw.f), 4);
    cr_assert_eq(qn_flow_oldest(&fw.f).members, 2);
    qn_flow_down(&fw.f, fw.now, 1);
    cr_assert_eq(qn_flow_first(&fw.f), 5);
    qn_flow_down(&fw.f, fw.now, 2);
    cr_assert_eq(qn_flow_first(&fw.f), UINT64_MAX);
    cr_assert_eq(flow_decide(1000), 1000, "the last one serves alone");
}

Test(flow, the_last_one_that_must_be_awaited_holds_writes)
{
    flow_begin(3, 1);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S);
    cr_assert_eq(flow_decide(1000), 0);
    cr_assert(fw.f.held);
    cr_assert_eq(__builtin_popcountll(qn_flow_awaited(&fw.f)), 1);
    flow_passes(100 * QN_S);
    cr_assert_eq(flow_decide(1000), 0);
    qn_node_t left = (qn_node_t)__builtin_ctzll(qn_flow_awaited(&fw.f));
    flow_applies(left, 10);
    cr_assert_eq(flow_decide(1000), 5, "its mark falls half as fast");
    flow_applies(left, 1000);
    cr_assert_gt(flow_decide(1000), 0);
    cr_assert(!fw.f.held);
}

Test(flow, the_dead_do_not_count_as_missing)
{
    flow_begin(3, 1);
    flow_decide(1000);
    qn_flow_down(&fw.f, fw.now, 1);
    cr_assert_eq(flow_decide(1000), 0, "the living one is behind");
    qn_flow_down(&fw.f, fw.now, 2);
    cr_assert_eq(flow_decide(1000), 1000);
}

/* An operator does not wait for them any longer. */
Test(flow, writes_that_are_held_go_on_when_the_limit_falls)
{
    flow_begin(3, 1);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S);
    cr_assert_eq(flow_decide(1000), 0);
    cr_assert(fw.f.held);
    qn_flow_change(&fw.f, QN_S, 0);
    cr_assert_eq(flow_decide(1000), 1000, "both are given up at once");
    cr_assert(!fw.f.held);
    cr_assert_eq(qn_flow_awaited(&fw.f), 0);
}

/* The window began when the gate was shut, not when the limit was changed. */
Test(flow, a_shorter_timeout_counts_from_where_the_gate_was_shut)
{
    flow_begin(3, 0);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S / 2);
    cr_assert_eq(flow_decide(1000), 0);
    qn_flow_change(&fw.f, QN_S / 2, 0);
    cr_assert_eq(flow_decide(1000), 1000);
}

Test(flow, a_longer_timeout_waits_on)
{
    flow_begin(3, 0);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S / 2);
    cr_assert_eq(flow_decide(1000), 0);
    qn_flow_change(&fw.f, 10 * QN_S, 0);
    flow_passes(9 * QN_S);
    cr_assert_eq(flow_decide(1000), 0);
    flow_passes(QN_S);
    cr_assert_eq(flow_decide(1000), 1000);
}

/* A member that was given up stays so; no other one is. A new leadership begins
 * with the limits of now. */
Test(flow, a_raised_minimum_gives_no_member_up_from_then_on)
{
    struct qn_flow_place at[QN_NODES_MAX];
    flow_begin(3, 0);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S);
    flow_applies(1, 1000);
    cr_assert_gt(flow_decide(1), 0, "node 2 is given up");
    cr_assert_eq(qn_flow_awaited(&fw.f), 2);
    qn_flow_change(&fw.f, QN_S, 1);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S);
    cr_assert_eq(flow_decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&fw.f), 2);
    for (qn_node_t n = 0; n < 3; n++) {
        at[n] = flow_place(n);
    }
    qn_flow_begin(&fw.f, fw.now, 7, at);
    cr_assert_eq(fw.f.limits.min_awaited, 1);
}

/* One of the three, and none when the leader alone votes. */
Test(flow, a_minority_of_the_voters_changes_with_them)
{
    flow_begin(3, QN_FLOW_MINORITY);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S);
    cr_assert_eq(flow_decide(1000), 0);
    cr_assert(fw.f.held);
    cr_assert_eq(__builtin_popcountll(qn_flow_awaited(&fw.f)), 1);
    qn_flow_voters(&fw.f, 1);
    cr_assert_gt(flow_decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&fw.f), 0);
    qn_flow_voters(&fw.f, 0); /* not known yet */
    cr_assert_gt(flow_decide(1000), 0);
}

Test(flow, a_new_life_is_awaited_when_it_has_its_snapshot)
{
    flow_begin(3, 1);
    qn_flow_down(&fw.f, fw.now, 1);
    flow_decide(8);
    flow_applies(2, 8);
    fw.lo = 5;
    fw.applied[1] = 0;
    qn_flow_heard(&fw.f, fw.now, 1, flow_place(1)); /* it has begun */
    cr_assert_eq(qn_flow_awaited(&fw.f), 4);
    flow_applies(1, 6);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
}

CASE(a_member_that_reads_a_long_batch_stays_awaited)
{
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_applies(2, 1000);
    for (uint32_t k = 1; k < 5; k++) {
        struct qn_flow_place at = flow_place(1);
        flow_passes(QN_S);
        at.read = k * LAG; /* it has applied nothing yet */
        qn_flow_heard(&fw.f, fw.now, 1, at);
        flow_decide(1000);
        cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    }
    flow_passes(QN_S);
    flow_decide(1);
    flow_passes(QN_S);
    flow_decide(1);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4, "it reads no more");
}

/* Each would begin a new window with a slot now and then. */
CASE(two_that_hardly_apply_do_not_hold_all_in_turn)
{
    fw.f.limits.lag_bytes = 100 * LAG; /* a slot is less than the floor */
    fw.f.limits.stop_bytes = 200 * LAG;
    flow_applies(1, 0);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(100000);
    for (uint32_t k = 0; k < 10; k++) {
        flow_passes(QN_S);
        flow_applies(k % 2 + 1, 1);
        flow_decide(0);
        (void)flow_decide(100);
    }
    cr_assert_eq(qn_flow_awaited(&fw.f), 0);
    cr_assert_eq(flow_decide(1000), 1000);
    flow_applies(1, 70);
    cr_assert_eq(qn_flow_awaited(&fw.f), 2, "it has applied the floor");
}

/* ---- stamps -------------------------------------------------------------- */

/* A quarter of a ring is kept for stamps. Writes are held for a hundred days.
 */
CASE(stamps_that_pass_the_gate_last_for_months)
{
    const uint64_t rings[] = {131072, 1024, 256};
    const qn_time_t day = UINT64_C(24) * 3600 * QN_S;
    for (uint32_t r = 0; r < 3; r++) {
        uint64_t stamps = 0;
        fw.f.limits.stop_slots = rings[r] / 4 * 3;
        qn_time_t end = fw.now + 100 * day;
        qn_flow_stamped(&fw.f, fw.now, false);
        for (; fw.now < end && stamps < rings[r]; stamps++) {
            qn_flow_stamped(&fw.f, fw.now, true);
            flow_passes(fw.f.stamp_at - fw.now);
        }
        cr_assert_lt(stamps, rings[r] / 4, "%llu of %llu",
                     (unsigned long long)stamps, (unsigned long long)rings[r]);
    }
    qn_flow_stamped(&fw.f, fw.now, false);
    cr_assert_eq(fw.f.stamp_at, fw.now + QN_FLOW_STAMP, "it was open");
}

/* Both are stalled, and one must stay: the one that votes, though it comes
 * first. */
Test(flow, a_member_that_does_not_vote_does_not_count)
{
    flow_begin(3, 1);
    qn_flow_voters(&fw.f, 0x3);
    flow_passes(QN_FLOW_QUIET + 1);
    flow_decide(1000);
    flow_passes(QN_S);
    cr_assert_eq(flow_decide(1000), 0);
    cr_assert(fw.f.held);
    cr_assert_eq(qn_flow_awaited(&fw.f), 0x2);
    qn_flow_voters(&fw.f, 0x5);
    cr_assert_gt(flow_decide(1000), 0, "now it does not vote");
    cr_assert_eq(qn_flow_awaited(&fw.f), 0);
}
