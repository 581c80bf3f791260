/*
 * Services that cannot apply, behind real drivers: what waits is applied in
 * order, once; a lost state is replaced, and the group goes on (paxos/apply).
 * The world checks every command that is applied.
 */
#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

enum { NODES = 3 };

static struct world *begin(bool memory)
{
    struct world *w = world_make(NODES, memory);
    w->may_fail = true;
    world_start(w);
    world_go_on(w);
    return w;
}

/* The next `left` commands that node i is given, from its next slot on. */
static void fail(struct world *w, qn_node_t i, int err, uint32_t left,
                 bool inside)
{
    struct world_member *m = &w->member[i];
    m->fails.err = err;
    m->fails.left = left;
    m->fails.from = m->slot + 1;
    m->fails.inside = inside;
}

static const struct qn_apply_failure *failure(const struct world *w,
                                              qn_node_t i)
{
    return qn_driver_apply_failure(w->member[i].driver);
}

static void all_agree(struct world *w)
{
    world_go_on(w);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        cr_assert_eq(w->member[i].count, w->history_count, "node %u", i);
        cr_assert_eq(failure(w, i)->phase, QN_APPLY_OK, "node %u", i);
    }
}

/* ---- short of memory ----------------------------------------------------- */

static void memory_comes_back(bool memory, qn_node_t i, bool inside)
{
    struct world *w = begin(memory);
    struct qn_resume r;
    fail(w, i, QN_ENOMEM, 100000, inside);
    world_load(w, 100);
    world_rounds(w, 500);
    cr_assert_gt(w->member[i].refused, 1u);
    cr_assert_eq(failure(w, i)->phase, QN_APPLY_SHORT);
    cr_assert_eq(failure(w, i)->slot, w->member[i].slot + 1);
    cr_assert_not(qn_driver_cut(w->member[i].driver, &r), "inside a slot");
    cr_assert_leq(qn_driver_deadline(w->member[i].driver),
                  failure(w, i)->again_at);
    cr_assert_eq(qn_driver_applied(w->member[i].driver), w->member[i].slot);
    w->member[i].fails.left = 0;
    all_agree(w);
    cr_assert_eq(w->installs, 0);
    world_end(w);
}

Test(driver_apply, what_waits_for_memory_is_applied_in_order)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        memory_comes_back(false, i, false);
        memory_comes_back(true, i, false);
        memory_comes_back(true, i, true);
    }
}

/* Each of them, all the time, in the middle of everything. */
Test(driver_apply, no_schedule_of_refusals_loses_or_repeats_a_command)
{
    struct world *w = begin(true);
    for (int k = 0; k < 200; k++) {
        qn_node_t i = (qn_node_t)world_random(w, NODES);
        fail(w, i, QN_ENOMEM, 1 + (uint32_t)world_random(w, 3),
             world_random(w, 2) == 0);
        world_load(w, 30);
        world_rounds(w, (uint32_t)world_random(w, 20));
    }
    all_agree(w);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_gt(w->member[i].refused, 20u);
    }
    cr_assert_eq(w->installs, 0);
    world_end(w);
}

Test(driver_apply, memory_that_is_short_for_a_second_costs_the_state)
{
    struct world *w = begin(true);
    fail(w, 2, QN_ENOMEM, 100000, false);
    world_load(w, 30);
    qn_time_t from = w->now;
    while (failure(w, 2)->phase != QN_APPLY_LOST && w->installs == 0) {
        world_rounds(w, 100);
        cr_assert_lt(w->now - from, 2 * QN_APPLY_AGAIN_FOR);
    }
    cr_assert_geq(w->now - from, QN_APPLY_AGAIN_FOR);
    cr_assert_leq(w->member[2].refused,
                  (uint32_t)(QN_APPLY_AGAIN_FOR / QN_APPLY_AGAIN) + 1);
    w->member[2].fails.left = 0;
    all_agree(w);
    cr_assert_eq(w->installs, 1);
    world_end(w);
}

Test(driver_apply, a_driver_may_end_while_commands_wait)
{
    struct world *w = begin(true);
    fail(w, 1, QN_ENOMEM, 100000, true);
    world_load(w, 200);
    world_rounds(w, 200);
    cr_assert_eq(failure(w, 1)->phase, QN_APPLY_SHORT);
    world_lose(w, 1);
    world_go_on(w);
    world_end(w);
}

/* ---- a lost state -------------------------------------------------------- */

static void state_is_replaced(bool memory, qn_node_t i, bool inside)
{
    struct world *w = begin(memory);
    struct qn_resume r;
    w->snapshots_by_hand = true;
    fail(w, i, QN_EIO, 1, inside);
    world_load(w, 100);
    world_rounds(w, 2000);
    cr_assert_eq(failure(w, i)->phase, QN_APPLY_LOST);
    cr_assert_eq(failure(w, i)->error, QN_EIO);
    cr_assert_eq(failure(w, i)->slot, w->member[i].slot + 1);
    cr_assert(w->member[i].need_snapshot);
    cr_assert_not(qn_driver_cut(w->member[i].driver, &r), "gives none");
    w->snapshots_by_hand = false;
    all_agree(w);
    cr_assert_eq(w->installs, 1);
    world_end(w);
}

Test(driver_apply, a_lost_state_is_replaced_and_the_group_goes_on)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        state_is_replaced(false, i, false);
        state_is_replaced(false, i, true);
        state_is_replaced(true, i, false);
        state_is_replaced(true, i, true);
    }
}

/* No slot is behind the one that failed, so the snapshot is of that very slot.
 */
Test(driver_apply, the_snapshot_may_be_of_the_slot_that_failed)
{
    struct world *w = begin(true);
    w->snapshots_by_hand = true;
    fail(w, 2, QN_EIO, 1, false);
    world_submit_number(w, 0, 1);
    world_rounds(w, 200);
    cr_assert_eq(failure(w, 2)->phase, QN_APPLY_LOST);
    qn_slot_t slot = failure(w, 2)->slot;
    if (w->member[0].slot == slot) {
        cr_assert(world_install(w, 2, 0));
        cr_assert_eq(w->member[2].slot, slot);
    }
    w->snapshots_by_hand = false;
    all_agree(w);
    cr_assert_eq(w->installs, 1);
    world_end(w);
}

Test(driver_apply, an_older_snapshot_does_not_replace_a_lost_state)
{
    struct world *w = begin(true);
    struct qn_resume r;
    struct qn_ul_entry ul[QN_UL_KEPT];
    cr_assert(qn_driver_cut(w->member[0].driver, &r));
    uint32_t n = qn_driver_ul(w->member[0].driver, ul, QN_UL_KEPT);
    w->snapshots_by_hand = true;
    fail(w, 2, QN_EIO, 1, false);
    world_load(w, 10);
    world_rounds(w, 500);
    cr_assert_eq(failure(w, 2)->phase, QN_APPLY_LOST);
    cr_assert_eq(qn_driver_install(w->member[2].driver, &r, ul, n, w->now),
                 QN_ESTALE);
    cr_assert_eq(failure(w, 2)->phase, QN_APPLY_LOST);
    w->snapshots_by_hand = false;
    all_agree(w);
    world_end(w);
}

/* A service that fails for good: one snapshot, then the end. */
Test(driver_apply, a_member_that_fails_again_ends)
{
    struct world *w = begin(true);
    struct qn_resume r;
    struct qn_ul_entry ul[QN_UL_KEPT];
    qn_node_t i = (world_status(w, 0).leader + 1) % NODES;
    qn_node_t other = (i + 2) % NODES;
    fail(w, i, QN_EIO, UINT32_MAX, false);
    for (int k = 0; k < 20; k++) {
        world_submit_number(w, other, (uint64_t)k);
        world_rounds(w, 100);
    }
    cr_assert_eq(failure(w, i)->phase, QN_APPLY_ENDED);
    cr_assert_eq(failure(w, i)->ended, QN_EAPPLY);
    cr_assert_eq(w->installs, 1);
    cr_assert(qn_driver_cut(w->member[other].driver, &r));
    uint32_t n = qn_driver_ul(w->member[other].driver, ul, QN_UL_KEPT);
    cr_assert_eq(qn_driver_install(w->member[i].driver, &r, ul, n, w->now),
                 QN_EAPPLY);
    world_lose(w, i);
    world_go_on(w);
    cr_assert_eq(w->member[other].count, w->history_count);
    world_end(w);
}

/* A command that no service can apply: all name the same slot and error. */
Test(driver_apply, what_no_service_can_apply_stops_the_group)
{
    struct world *w = begin(true);
    w->snapshots_by_hand = true;
    world_settle(w, 20000);
    qn_slot_t from = w->member[0].slot + 1;
    for (qn_node_t i = 0; i < NODES; i++) {
        fail(w, i, -77, 1, false);
        w->member[i].fails.from = from;
    }
    world_submit_number(w, 1, 5);
    world_rounds(w, 3000);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(failure(w, i)->donors, UINT64_C(0));
        cr_assert_eq(failure(w, i)->phase, QN_APPLY_STOPPED);
        cr_assert_eq(world_status(w, i).in_sync, UINT64_C(0));
        cr_assert_eq(world_status(w, i).lost_states, UINT64_C(7));
        cr_assert_eq(failure(w, i)->slot, failure(w, 0)->slot);
        cr_assert_eq(failure(w, i)->error, -77);
        qn_driver_apply_gave_up(w->member[i].driver, QN_EIO);
        cr_assert_eq(failure(w, i)->ended, QN_EIO);
    }
    world_end(w);
}

Test(driver_apply, donors_are_known_by_what_they_say_that_they_have_applied)
{
    struct world *w = begin(true);
    w->snapshots_by_hand = true;
    cr_assert_eq(failure(w, 2)->phase, QN_APPLY_OK);
    fail(w, 2, QN_EIO, 1, false);
    world_load(w, 30);
    world_rounds(w, 2000);
    cr_assert_eq(failure(w, 2)->donors, UINT64_C(3));
    world_lose(w, 0);
    world_rounds(w, 10);
    cr_assert_eq(failure(w, 2)->donors, UINT64_C(2));
    w->snapshots_by_hand = false;
    world_settle(w, 40000);
    cr_assert_eq(w->installs, 1);
    world_end(w);
}

static void loses_its_state(struct world *w, qn_node_t i)
{
    fail(w, i, QN_EIO, 1, false);
    world_load(w, 30);
    world_rounds(w, 300);
    cr_assert_eq(failure(w, i)->phase, QN_APPLY_LOST);
}

/* It could decide only as much as a log holds. */
Test(driver_apply, a_leader_whose_state_is_lost_hands_over)
{
    struct world *w = begin(true);
    w->snapshots_by_hand = true;
    qn_node_t was = world_status(w, 1).leader;
    fail(w, was, QN_EIO, 1, false);
    world_submit_number(w, (was + 1) % NODES, 1);
    world_rounds(w, 2000);
    cr_assert_eq(failure(w, was)->phase, QN_APPLY_LOST);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_neq(world_status(w, i).leader, was);
        cr_assert_eq(world_status(w, i).reason, QN_REASON_ORDER);
    }
    w->snapshots_by_hand = false;
    all_agree(w);
    world_end(w);
}

/* Its vote and its log are whole: with one of two others ended it is needed,
 * and it is there. */
Test(driver_apply, a_member_without_its_state_votes_and_is_not_in_sync)
{
    struct world *w = begin(true);
    w->snapshots_by_hand = true;
    qn_node_t was = world_status(w, 0).leader;
    qn_node_t i = (was + 1) % NODES, other = (was + 2) % NODES;
    loses_its_state(w, i);
    for (qn_node_t k = 0; k < NODES; k++) {
        cr_assert_eq(world_status(w, k).in_sync, 7 & ~(UINT64_C(1) << i));
        cr_assert_eq(world_status(w, k).lost_states, UINT64_C(1) << i);
    }
    world_lose(w, was);
    world_rounds(w, 20000);
    cr_assert_eq(world_status(w, other).leader, other);
    uint32_t before = w->member[other].count;
    world_submit_number(w, other, 1);
    world_rounds(w, 2000);
    cr_assert_gt(w->member[other].count, before);
    w->snapshots_by_hand = false;
    world_settle(w, 40000);
    cr_assert_eq(world_status(w, other).in_sync, 7 & ~(UINT64_C(1) << was));
    cr_assert_eq(w->installs, 1);
    world_end(w);
}

/* A member that waits for its first snapshot will have none from these. */
Test(driver_apply, one_that_has_no_state_yet_is_not_waited_for)
{
    struct world *w = begin(true);
    w->snapshots_by_hand = true;
    qn_driver_has_state(w->member[0].driver, false);
    loses_its_state(w, 2);
    cr_assert_eq(failure(w, 2)->donors, UINT64_C(2));
    fail(w, 1, QN_EIO, 1, false);
    world_submit_number(w, 0, 1);
    world_rounds(w, 6000);
    cr_assert_eq(failure(w, 1)->phase, QN_APPLY_STOPPED);
    cr_assert_eq(failure(w, 2)->phase, QN_APPLY_STOPPED);
    qn_driver_has_state(w->member[0].driver, true);
    world_rounds(w, 6000);
    cr_assert_eq(failure(w, 1)->phase, QN_APPLY_LOST);
    cr_assert_eq(failure(w, 1)->donors, UINT64_C(1));
    w->snapshots_by_hand = false;
    world_settle(w, 40000);
    cr_assert_eq(w->installs, 2);
    world_end(w);
}

Test(driver_apply, a_lost_state_is_known_by_message_too)
{
    struct world *w = world_make(NODES, false);
    w->may_fail = w->messages = w->snapshots_by_hand = true;
    world_start(w);
    world_go_on(w);
    loses_its_state(w, 2);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(world_status(w, i).lost_states, UINT64_C(4));
    }
    w->snapshots_by_hand = false;
    all_agree(w);
    cr_assert_eq(world_status(w, 0).lost_states, UINT64_C(0));
    world_end(w);
}

/* By message a read is answered by what the machine has put out. */
Test(driver_apply, no_read_by_message_misses_what_waits_for_memory)
{
    struct world *w = world_make(NODES, false);
    w->may_fail = w->messages = true;
    world_start(w);
    world_go_on(w);
    for (int k = 0; k < 100; k++) {
        qn_node_t i = (qn_node_t)world_random(w, NODES);
        fail(w, i, QN_ENOMEM, 1 + (uint32_t)world_random(w, 50), false);
        world_load(w, 10);
        world_rounds(w, (uint32_t)world_random(w, 40));
    }
    all_agree(w);
    world_end(w);
}
