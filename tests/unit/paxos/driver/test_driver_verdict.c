/*
 * A group with the memory acceptor that cannot go on (PROTOCOL.md 5.7),
 * through real drivers: two of three stand still for so long that the ring goes
 * on over what they lack, and then its owner ends.
 */
#include <string.h>

#include "core/place/outbox.h"
#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

#define SLOTS 64u

static struct world *small_ring(uint32_t nodes)
{
    struct world *w = world_make(nodes, true);
    w->ring_slots = SLOTS;
    w->snapshots_by_hand = true;
    world_start(w);
    world_go_on(w);
    return w;
}

/* Node 0 decides `slots` more, alone; what it sends is lost for the others,
 * which stand still. */
static void decide_alone(struct world *w, uint32_t slots)
{
    for (qn_node_t i = 1; i < w->nodes; i++) {
        w->member[i].stopped = true;
    }
    qn_slot_t until = world_status(w, 0).applied + slots;
    for (uint32_t r = 0; world_status(w, 0).applied < until; r++) {
        cr_assert_lt(r, 200000u);
        uint64_t x = r;
        if (qn_driver_room(w->member[0].driver)) {
            (void)world_submit(w, 0, &x, sizeof x);
        }
        world_rounds(w, 1);
        for (qn_node_t i = 1; i < w->nodes; i++) {
            world_wipe(w, 0, i, QN_LANE_TREE);
        }
    }
}

static enum qn_verdict_kind verdict(const struct world *w, qn_node_t i)
{
    return world_status(w, i).verdict.kind;
}

static void wait_for(struct world *w, qn_node_t i, enum qn_verdict_kind kind)
{
    for (uint32_t r = 0; verdict(w, i) != kind; r++) {
        cr_assert_lt(r, 20000u, "node %u: %d, expected %d", i, verdict(w, i),
                     kind);
        world_rounds(w, 1);
    }
}

/* All have the same in this world, and go on from where node `left` is. */
static void force(struct world *w, qn_node_t left)
{
    struct world_member *m = &w->member[left];
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (i != left && w->member[i].driver != NULL) {
            cr_assert_eq(qn_driver_recover(m->driver, w->now), QN_EBUSY);
            world_lose(w, i);
        }
    }
    w->history_count = m->count;
    cr_assert_eq(qn_driver_recover(m->driver, w->now), QN_OK);
    m->slot = m->exposed = qn_driver_applied(m->driver);
    m->need_snapshot = false;
}

static void all_go_on(struct world *w, qn_node_t left)
{
    w->snapshots_by_hand = false;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (i != left) {
            world_restart(w, i);
            w->member[i].need_snapshot = true;
        }
    }
    world_settle(w, 50000);
    world_go_on(w);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        cr_assert_eq(verdict(w, i), QN_VERDICT_NONE);
        cr_assert(world_status(w, i).served);
    }
}

Test(driver_verdict, what_the_ring_has_gone_over_is_lost_and_said)
{
    struct world *w = small_ring(3);
    qn_slot_t had = world_status(w, 1).learned;
    decide_alone(w, 4 * SLOTS);
    qn_slot_t decided = world_status(w, 0).applied;
    w->member[1].stopped = w->member[2].stopped = false;
    world_lose(w, 0);
    for (qn_node_t i = 1; i < 3; i++) {
        wait_for(w, i, QN_VERDICT_STOPPED);
        struct qn_driver_status st = world_status(w, i);
        cr_assert(st.halted);
        cr_assert_eq(st.verdict.kept, had);
        cr_assert_eq(st.verdict.hi, decided);
        cr_assert_gt(st.verdict.lo, had + 1);
        cr_assert_leq(st.verdict.lo, decided);
        cr_assert_eq(st.highest_announced, decided);
        cr_assert_eq(st.waiting, 0);
        cr_assert_eq(qn_driver_recoverable(w->member[i].driver), QN_OK);
    }
    /* A later incarnation brings nothing, and changes nothing. */
    world_come(w, 0);
    for (uint32_t r = 0; r < 100; r++) { /* it has not begun */
        world_rounds(w, 1);
        cr_assert_eq(verdict(w, 1), QN_VERDICT_STOPPED);
    }
    world_arrive(w, 0);
    world_rounds(w, 5000);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert_eq(verdict(w, i), QN_VERDICT_STOPPED, "node %u", i);
        cr_assert_leq(world_status(w, i).applied, had);
    }
    cr_assert_eq(qn_driver_recoverable(w->member[0].driver), QN_OK);
    force(w, 2);
    cr_assert_eq(qn_driver_applied(w->member[2].driver), decided);
    all_go_on(w, 2);
    world_lose(w, 2); /* the others have all of it */
    world_settle(w, 20000);
    world_go_on(w);
    world_end(w);
}

/* The ring still has what they lack: a take-over like any other. */
Test(driver_verdict, a_ring_that_reaches_back_is_no_stop)
{
    struct world *w = small_ring(3);
    decide_alone(w, SLOTS / 2);
    w->member[1].stopped = w->member[2].stopped = false;
    world_lose(w, 0);
    for (uint32_t r = 0; !world_settled(w); r++) {
        cr_assert_lt(r, 20000u);
        cr_assert_eq(verdict(w, 1), QN_VERDICT_NONE);
        cr_assert_eq(verdict(w, 2), QN_VERDICT_NONE);
        world_rounds(w, 1);
    }
    world_go_on(w);
    world_end(w);
}

/* What lies in the lanes of a stalled member is not known: the group waits for
 * it until it ends. */
Test(driver_verdict, who_stands_still_is_waited_for)
{
    struct world *w = small_ring(3);
    decide_alone(w, 4 * SLOTS);
    w->member[1].stopped = false;
    w->member[2].deaf = true;
    world_lose(w, 0);
    wait_for(w, 1, QN_VERDICT_WAITING);
    cr_assert_eq(world_status(w, 1).waiting, 0, "a moment is no reason");
    for (uint32_t r = 0; r < 12000; r++) {
        world_rounds(w, 1);
        cr_assert_eq(verdict(w, 1), QN_VERDICT_WAITING);
    }
    cr_assert_eq(world_status(w, 1).waiting, 1 << 2);
    cr_assert_not(world_status(w, 1).halted);
    cr_assert_eq(qn_driver_recoverable(w->member[1].driver), QN_EBUSY);
    cr_assert_eq(qn_driver_recover(w->member[1].driver, w->now), QN_EBUSY);
    w->member[2].deaf = false;
    world_lose(w, 2);
    wait_for(w, 1, QN_VERDICT_STOPPED);
    force(w, 1);
    all_go_on(w, 1);
    world_end(w);
}

/* He has what the others lack: all go on, nothing is lost. */
Test(driver_verdict, who_was_waited_for_may_have_all)
{
    struct world *w = small_ring(3);
    w->member[1].stopped = true;
    for (uint32_t k = 0; k < 12000; k++) { /* node 2 follows */
        uint64_t x = k;
        (void)(k % 8 == 0 && world_submit(w, 0, &x, sizeof x));
        world_rounds(w, 1);
        world_wipe(w, 0, 1, QN_LANE_TREE);
    }
    cr_assert_gt(qn_ring_lo(&w->member[0].incarnation.ring),
                 world_status(w, 1).learned + 1);
    w->member[2].stopped = true;
    w->member[2].deaf = true;
    w->member[1].stopped = false;
    world_kill(w, 0);
    world_tell(w, 1, 0);
    world_rounds(w, 100);
    cr_assert_eq(verdict(w, 1), QN_VERDICT_NONE, "node 2 has said it before");
    w->member[2].stopped = false;
    world_catch_up(w, 2);
    w->snapshots_by_hand = false;
    world_settle(w, 50000);
    world_go_on(w);
    cr_assert_eq(verdict(w, 2), QN_VERDICT_NONE);
    world_end(w);
}

/* A snapshot that is on its way is waited for if the ring goes on behind it. */
Test(driver_verdict, a_snapshot_on_its_way_is_waited_for)
{
    struct world *w = small_ring(3);
    decide_alone(w, 4 * SLOTS);
    w->member[1].stopped = w->member[2].stopped = false;
    qn_slot_t decided = world_status(w, 0).applied;
    qn_driver_coming(w->member[2].driver, decided);
    world_lose(w, 0);
    wait_for(w, 1, QN_VERDICT_WAITING);
    world_rounds(w, 12000);
    cr_assert_eq(world_status(w, 1).waiting, 1 << 2);
    qn_driver_coming(w->member[2].driver, 0); /* it was damaged */
    wait_for(w, 1, QN_VERDICT_STOPPED);
    world_end(w);
}

/* Node 1 leads, and decides alone; nodes 0 and 2 are stopped. Node 2 has not
 * heard of the entry that made node 1 the leader, and never hears of it: all
 * others end. */
static struct world *only_one_without_the_entry_is_left(void)
{
    struct world *w = small_ring(3);
    w->member[2].stopped = true;
    world_lose(w, 0);
    world_restart(w, 0);
    (void)world_install(w, 0, 1);
    for (uint32_t r = 0; world_status(w, 1).role != QN_ACTIVE; r++) {
        cr_assert_lt(r, 20000u);
        world_rounds(w, 1);
    }
    w->member[0].stopped = true;
    qn_slot_t until = world_status(w, 1).applied + 4 * SLOTS;
    for (uint32_t r = 0; world_status(w, 1).applied < until; r++) {
        cr_assert_lt(r, 200000u);
        uint64_t x = r;
        if (qn_driver_room(w->member[1].driver)) {
            (void)world_submit(w, 1, &x, sizeof x);
        }
        world_rounds(w, 1);
        world_wipe(w, 1, 0, QN_LANE_TREE);
        world_wipe(w, 1, 2, QN_LANE_TREE);
    }
    for (qn_node_t i = 0; i < 2; i++) {
        world_wipe(w, i, 2, QN_LANE_DIRECT);
        world_lose(w, i);
    }
    cr_assert_gt(qn_load(&w->word.first, QN_RELAXED), 0u);
    w->member[2].stopped = false;
    return w;
}

/* The owner of the register has announced itself: that is enough to see that
 * the group has halted, and to go on. */
Test(driver_verdict, a_survivor_that_has_not_heard_of_the_epoch_goes_on)
{
    struct world *w = only_one_without_the_entry_is_left();
    qn_slot_t decided = qn_load(&w->word.second, QN_RELAXED);
    uint64_t epoch = qn_load(&w->word.first, QN_RELAXED);
    wait_for(w, 2, QN_VERDICT_STOPPED);
    cr_assert_lt(world_status(w, 2).epoch, epoch, "it has not heard of it");
    cr_assert_eq(qn_driver_recoverable(w->member[2].driver), QN_OK);
    force(w, 2);
    cr_assert_eq(qn_driver_applied(w->member[2].driver), decided);
    all_go_on(w, 2);
    cr_assert_gt(qn_load(&w->word.first, QN_RELAXED), epoch);
    world_end(w);
}

/* Nothing says which ring the register means. Then nothing is declared void,
 * until another member brings the entry. */
Test(driver_verdict, without_an_owner_a_survivor_waits_for_the_entry)
{
    struct world *w = only_one_without_the_entry_is_left();
    memset(w->owner, 0, sizeof w->owner);
    world_rounds(w, 5000);
    cr_assert_eq(verdict(w, 2), QN_VERDICT_NONE);
    cr_assert_eq(qn_driver_recoverable(w->member[2].driver), QN_EBUSY);
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_EBUSY);
    world_restart(w, 1);
    wait_for(w, 2, QN_VERDICT_STOPPED);
    cr_assert_eq(qn_driver_recoverable(w->member[2].driver), QN_OK);
    force(w, 2);
    all_go_on(w, 2);
    world_end(w);
}

/* ---- the accept register is overwritten ---------------------------------- */

/* As a leader does that misbehaves. */
static void overwrite(struct world *w, uint64_t epoch, qn_slot_t hi)
{
    uint64_t e;
    uint64_t h;
    qn_load_pair(&w->word, &e, &h);
    cr_assert(qn_cas_pair(&w->word, e, h, epoch, hi));
}

/* Values of {epoch, hi} that no leader can have stored. */
static void overwrite_by(struct world *w, uint32_t how)
{
    uint64_t e;
    uint64_t h;
    qn_load_pair(&w->word, &e, &h);
    const uint64_t values[][2] = {{0, 0},          {UINT64_MAX, UINT64_MAX},
                                  {e, h - 1},      {e + 1, 0},
                                  {e, UINT64_MAX}, {UINT32_MAX, h}};
    overwrite(w, values[how][0], values[how][1]);
}
enum { OVERWRITES = 6 };

static void expect_damaged(struct world *w, qn_node_t i)
{
    wait_for(w, i, QN_VERDICT_DAMAGED);
    struct qn_driver_status st = world_status(w, i);
    cr_expect(st.halted);
    cr_expect(qn_driver_register_damaged(w->member[i].driver));
    cr_expect_eq(qn_driver_recoverable(w->member[i].driver), QN_EBUSY);
    cr_expect_eq(qn_driver_recover(w->member[i].driver, w->now), QN_EBUSY);
}

/* All from `first` on say so, also if nothing is proposed; and what is proposed
 * after it is decided nowhere. */
static void all_say_so(struct world *w, qn_node_t first, uint32_t how)
{
    const qn_slot_t had = world_status(w, first).applied;
    for (qn_node_t i = first; i < 3; i++) {
        expect_damaged(w, i);
        world_submit_number(w, i, i);
    }
    if (first > 0) {
        world_restart(w, 0);
    }
    world_rounds(w, 5000);
    for (qn_node_t i = first; i < 3; i++) {
        cr_expect_eq(world_status(w, i).applied, had, "%u", how);
        expect_damaged(w, i);
    }
}

Test(driver_verdict, an_overwritten_register_is_said_within_a_second)
{
    for (uint32_t how = 0; how < OVERWRITES; how++) {
        struct world *w = world_begin(3, true);
        world_go_on(w);
        const qn_time_t by = w->now + QN_DRIVER_REGISTER + 10 * QN_MS;
        overwrite_by(w, how);
        for (qn_node_t i = 0; i < 3; i++) {
            expect_damaged(w, i);
        }
        cr_expect_leq(w->now, by, "%u", how);
        all_say_so(w, 0, how);
        world_end(w);
    }
}

Test(driver_verdict, an_overwritten_register_is_said_without_its_leader)
{
    for (uint32_t how = 0; how < OVERWRITES; how++) {
        struct world *w = world_begin(3, true);
        world_go_on(w);
        overwrite_by(w, how);
        w->wild = true; /* what a reader loads is bounded by the register */
        world_lose(w, 0);
        all_say_so(w, 1, how);
        world_end(w);
    }
}

/* Node 4 lacks slots, so a leader that takes over copies them. It does not
 * continue behind hi, where it would decide again what is decided. */
Test(driver_verdict, no_leader_takes_an_overwritten_register_over)
{
    struct world *w = world_begin(5, true);
    world_go_on(w);
    w->member[4].stopped = true;
    world_go_on(w);
    uint64_t e;
    uint64_t h;
    qn_load_pair(&w->word, &e, &h);
    overwrite(w, e, h - 1);
    w->wild = true;
    world_lose(w, 0);
    world_rounds(w, 5000);
    for (qn_node_t i = 1; i < 4; i++) {
        expect_damaged(w, i);
    }
    cr_expect_eq(qn_load(&w->word.first, QN_RELAXED), e);
    cr_expect_eq(qn_load(&w->word.second, QN_RELAXED), h - 1);
    world_end(w);
}

/* A leader that does not know that it was decided may move it on. */
Test(driver_verdict, an_overwritten_register_stays_said)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    uint64_t e;
    uint64_t h;
    qn_load_pair(&w->word, &e, &h);
    overwrite(w, e, h - 1);
    expect_damaged(w, 1);
    overwrite(w, e, h + 1);
    world_rounds(w, 5000);
    expect_damaged(w, 1);
    world_end(w);
}
