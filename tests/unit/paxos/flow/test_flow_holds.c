/* What is kept for a joiner, and how long. */

#include "flow_world.h"

#include "tests/support/test.h"

#define CASE(name) Test(flow, name, .init = flow_setup)

static void hold(qn_slot_t slot, uint32_t done)
{
    const struct qn_flow_hold h = {slot, done};
    uint64_t slots = slot == 0 ? 0 : fw.decided + 1 - slot;
    const struct qn_flow_kept since = {
        .bytes = slots * BATCH, .slots = slots, .kept = slot >= fw.lo};
    qn_flow_keep(&fw.f, fw.now, 2, h, since);
}

/* Batches decided while the others follow at once. */
static uint64_t run(uint64_t most)
{
    uint64_t k = 0;
    while (k < most && flow_decide(1) == 1) {
        k++;
        flow_applies(1, 1);
        flow_applies(2, 1);
    }
    return k;
}

CASE(a_hold_lets_the_leader_go_as_far_as_the_join_has_come)
{
    hold(1, 0);
    cr_assert_eq(run(1000), STOP / 8 / BATCH);
    cr_assert_eq(qn_flow_first(&fw.f), 1);
    hold(1, QN_HOLD_DONE / 2);
    run(1000);
    cr_assert_gt(fw.decided, STOP / 8 / BATCH);
    cr_assert_lt(fw.decided, STOP * 2 / 3 / BATCH);
    hold(1, QN_HOLD_DONE);
    run(1000);
    cr_assert_geq(fw.decided, STOP / BATCH - 1);
    cr_assert_leq(fw.decided, STOP / BATCH);
    hold(0, 0);
    cr_assert_eq(run(1000), 1000);
}

/* Else a join of small batches fills the ring's slots at full speed, and then
 * no write is decided until it ends. */
CASE(slots_count_as_bytes_do_for_a_hold)
{
    fw.f.limits.stop_slots = 16;
    hold(1, 0);
    cr_assert_eq(run(1000), 2);
    hold(1, QN_HOLD_DONE / 2);
    cr_assert_eq(run(1000), 7, "so writes slow down and do not stop");
    hold(1, QN_HOLD_DONE);
    cr_assert_eq(run(1000), 7);
    hold(0, 0);
    cr_assert_eq(run(1000), 1000);
}

CASE(a_hold_that_does_not_grow_is_given_up)
{
    hold(1, 0);
    run(1000);
    flow_passes(QN_S);
    hold(1, 1);
    flow_passes(2 * QN_S - 1);
    cr_assert_eq(run(1000), 0);
    flow_passes(1);
    cr_assert_eq(run(1000), 1000);
    cr_assert_eq(fw.f.holds, 1);
    hold(1, 2);
    cr_assert_eq(run(1000), 1000, "it is over");
    hold(fw.decided + 1, 0);
    cr_assert_lt(run(1000), 1000, "the next one counts");
}

/* It grows, but the joiner was slow: it costs no more than a part of the pause.
 */
CASE(a_hold_for_one_that_was_slow_has_a_bound)
{
    flow_seconds(2, flow_well, flow_well);
    flow_seconds(5, flow_squeezed, flow_well);
    cr_assert_eq(qn_flow_awaited(&fw.f), 4);
    hold(fw.decided + 1, 0);
    cr_assert_eq(fw.f.member[2].hold.slot, 0, "nothing is held in its pause");
    fw.lo = fw.decided;
    flow_seconds(16, flow_stopped, flow_well);
    qn_slot_t cut = fw.decided + 1;
    hold(cut, 0);
    run(1000);
    cr_assert_eq(run(1000), 0, "it is worth a trial");
    for (uint32_t k = 1; k < 400; k++) { /* of 10 ms: a quarter of 16 s */
        flow_passes(10 * QN_MS);
        hold(cut, k);
        run(1000);
        cr_assert_eq(fw.f.holds, 0);
    }
    flow_passes(10 * QN_MS);
    cr_assert_eq(run(1000), 1000);
    cr_assert_eq(fw.f.holds, 1);
    cr_assert_eq(fw.f.member[1].pause, 2 * QN_FLOW_PAUSE * QN_S);
    hold(fw.decided + 1, 0);
    cr_assert_eq(run(1000), 1000, "the next pause has begun");
}

CASE(a_hold_ends_with_its_giver)
{
    hold(1, 0);
    run(1000);
    qn_flow_down(&fw.f, fw.now, 2);
    cr_assert_eq(run(1000), 1000);
}

CASE(what_is_gone_is_not_held)
{
    fw.lo = 7;
    hold(3, 0);
    cr_assert_eq(qn_flow_first(&fw.f), 1, "that of the members");
    cr_assert_eq(run(1000), 1000);
}

CASE(the_time_is_counted)
{
    flow_decide(1000);
    flow_decide(1);
    flow_applies(2, 1000);
    flow_decide(1);
    flow_passes(50 * QN_MS);
    flow_decide(1);
    cr_assert_eq(qn_flow_shut_by(&fw.f, 1, fw.now), 50 * QN_MS);
    cr_assert_eq(qn_flow_shut_by(&fw.f, 2, fw.now), 0);
    cr_assert_eq(qn_flow_shut(&fw.f, fw.now), 50 * QN_MS);
    flow_applies(1, 1000);
    flow_decide(1);
    flow_passes(QN_S);
    flow_decide(1);
    cr_assert_eq(qn_flow_shut(&fw.f, fw.now), 50 * QN_MS);
}
