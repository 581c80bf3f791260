/* Which members are slow: given up, awaited again after a pause. */

#include "flow_world.h"

#include "tests/support/test.h"

#define CASE(name) Test(flow, name, .init = flow_setup)

CASE(one_that_is_much_slower_than_another_is_given_up)
{
    flow_seconds(2, flow_well, flow_well);
    cr_assert_lt(flow_seconds(3, flow_squeezed, flow_well), 300);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6, "it applies more than the floor");
    flow_seconds(2, flow_squeezed, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4);
    cr_assert_eq(fw.f.member[1].pause, QN_FLOW_PAUSE * QN_S);
    cr_assert_eq(flow_seconds(5, flow_squeezed, flow_well), 4000,
                 "no write waits");
}

/* The log that is kept lasts for 5 s. By then the leader knows that the
 * follower is slow, and does not wait for it when it shuts the gate. */
CASE(one_that_is_on_its_way_to_shut_the_gate_is_judged_before)
{
    fw.f.limits.stop_bytes = 5 * 800 * BATCH;
    flow_seconds(2, flow_well, flow_well);
    uint64_t before = flow_seconds(4, flow_squeezed, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    cr_assert_gt(before + flow_seconds(4, flow_squeezed, flow_well),
                 8 * 800 * 8 / 10);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4);
}

/* With the process acceptor a follower is sent again what it has dropped. */
CASE(what_is_read_in_vain_is_no_pace)
{
    flow_seconds(2, flow_well, flow_well);
    for (uint32_t k = 0; k < 6; k++) {
        fw.read_too[1] += 800 * BATCH;
        flow_seconds(1, flow_squeezed, flow_well);
    }
    cr_assert_eq(qn_flow_awaited(&fw.f), 4);
}

/* A stalled follower is not slow: it applies at full speed when it resumes. */
CASE(one_that_has_stopped_is_not_slow)
{
    fw.f.limits.stop_bytes = 6 * 800 * BATCH;
    flow_seconds(2, flow_well, flow_well);
    flow_seconds(5, flow_stopped, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    flow_seconds(5, (struct flow_follower){12, 1}, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    cr_assert_eq(fw.f.given, 0);
}

/* The leader forgets the paces that it measured before. */
CASE(after_a_time_without_load_all_begin_anew)
{
    fw.f.limits.stop_bytes = 6 * 800 * BATCH;
    flow_seconds(2, flow_well, flow_well);
    flow_seconds(5, flow_squeezed, flow_well);
    cr_assert_geq(fw.f.member[1].slow, QN_FLOW_SLOW_LOOKS - 1);
    flow_applies(1, 100000);
    flow_passes(60 * QN_S);
    flow_seconds(1, flow_well, flow_well);
    cr_assert_eq(fw.f.member[1].slow, 0);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
}

/* One core, a third of the turns for each: now this one, now that one has more
 * to do for what it applies, and shuts the gate. */
CASE(all_that_share_a_core_stay_awaited)
{
    const struct flow_follower third = {2, 3}, rest = {4, 3};
    for (uint32_t k = 0; k < 20; k++) {
        flow_seconds(4, third, rest);
        flow_seconds(4, rest, third);
    }
    cr_assert_gt(qn_flow_shut_by(&fw.f, 1, fw.now), 40 * QN_S);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    cr_assert_eq(fw.f.given, 0);
}

CASE(short_stops_cost_no_member_its_place)
{
    flow_seconds(2, flow_well, flow_well);
    for (uint32_t turn = 0; turn < 4000; turn++) {
        flow_passes(10 * QN_MS);
        flow_applies(1, turn % 200 < 180 ? 1000 : 0); /* 0.2 s in every 2 s */
        flow_applies(2, 1000);
        flow_decide(8);
    }
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
}

CASE(two_that_are_slow_alike_are_waited_for)
{
    flow_seconds(2, flow_well, flow_well);
    flow_seconds(20, flow_squeezed, flow_squeezed);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6, "they apply more than the floor");
}

Test(flow, a_slow_member_is_waited_for_if_min_says_so)
{
    flow_begin(3, 2);
    flow_seconds(2, flow_well, flow_well);
    flow_seconds(20, flow_squeezed, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    cr_assert_eq(qn_flow_followed(&fw.f), 4, "but the gate alone waits for it");
}

CASE(after_its_pause_it_is_awaited_when_it_has_caught_up)
{
    flow_seconds(2, flow_well, flow_well);
    flow_seconds(5, flow_squeezed, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4);
    flow_seconds(10, flow_well, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4, "its pause is not over");
    flow_seconds(10, flow_well, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 6);
}

/* It is well for a moment whenever it might be awaited again. */
CASE(each_trial_in_vain_doubles_the_pause)
{
    flow_seconds(2, flow_well, flow_well);
    flow_seconds(3, flow_squeezed, flow_well);
    for (uint64_t pause = QN_FLOW_PAUSE; pause <= 128; pause *= 2) {
        flow_seconds(3, flow_squeezed, flow_well);
        cr_assert_eq(qn_flow_awaited(&fw.f), 4);
        cr_assert_eq(fw.f.member[1].pause, pause * QN_S);
        flow_seconds(pause - 4, flow_well, flow_well);
        cr_assert_eq(qn_flow_awaited(&fw.f), 4, "it does not flap");
        flow_seconds(5, flow_well, flow_well);
        cr_assert_eq(qn_flow_awaited(&fw.f), 6);
    }
    flow_seconds(200, flow_well, flow_well);
    flow_seconds(5, flow_squeezed, flow_well);
    cr_assert_eq(fw.f.member[1].pause, QN_FLOW_PAUSE * QN_S,
                 "all is forgotten");
}

CASE(the_pause_has_a_bound)
{
    flow_seconds(2, flow_well, flow_well);
    fw.f.member[1].pause = QN_FLOW_PAUSE_MOST * QN_S;
    fw.f.member[1].back_at = fw.now;
    flow_seconds(5, flow_squeezed, flow_well);
    cr_assert_eq(fw.f.member[1].pause, QN_FLOW_PAUSE_MOST * QN_S);
}
