/*
 * Fail-over through real drivers: the leader or the acceptor dies or is
 * stalled (PROTOCOL.md 6.2 to 6.4, 5).
 */
#include "core/place/outbox.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

static void roles_are_known(struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver != NULL) {
            const struct qn_driver_status st = world_status(w, i);
            cr_expect_eq(qn_driver_has_role(w->member[i].driver),
                         i == st.leader || i == st.acceptor, "node %u", i);
        }
    }
}

static void roles_are_as_at_first(struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        struct qn_driver_status st = world_status(w, i);
        cr_assert_eq(st.epoch, 0);
        cr_assert_eq(st.leader, 0);
        cr_assert_eq(st.acceptor, w->memory ? 0 : 1);
        cr_assert_eq(st.failovers, 0);
        cr_assert_eq(st.reason, QN_REASON_NONE);
    }
    roles_are_known(w);
}

static void nothing_happens(bool memory)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    world_rounds(w, 20000);
    roles_are_as_at_first(w);
    struct qn_driver_status st = world_status(w, 2);
    cr_assert_eq(st.fetches, 0);
    cr_assert_eq(st.in_sync, memory ? 7 : 3);
    cr_assert_eq(st.alive, 7);
    world_end(w);
}

Test(driver_failover, without_faults_roles_stay_process)
{
    nothing_happens(false);
}

Test(driver_failover, without_faults_roles_stay_memory)
{
    nothing_happens(true);
}

static void leader_dies(uint32_t nodes, bool memory)
{
    struct world *w = world_begin(nodes, memory);
    world_load(w, 60);
    world_lose(w, 0);
    world_settle(w, 20000);
    world_go_on(w);
    struct qn_driver_status st = world_status(w, nodes - 1);
    cr_assert_neq(st.leader, 0);
    cr_assert_eq(st.failovers, 1);
    cr_assert_eq(st.reason, QN_REASON_DEATH);
    cr_assert_eq(st.lost, 0);
    cr_assert_eq(st.acceptor, memory ? st.leader : 1);
    roles_are_known(w);
    world_learns_at_once(w);
    world_rounds(w, 50);
    st = world_status(w, nodes - 1);
    cr_assert_eq(st.in_sync, memory ? st.alive : UINT64_C(1) << st.leader | 2);
    world_end(w);
}

Test(driver_failover, the_leader_dies)
{
    leader_dies(3, false);
    leader_dies(3, true);
    leader_dies(5, false);
    leader_dies(5, true);
}

/* Certain deaths wait for no time-out: with a turn each 100 us that is 2 ms. */
static void soon(bool memory, qn_node_t who)
{
    struct world *w = world_make(3, memory);
    w->shared_cores = true;
    world_start(w);
    world_load(w, 60);
    world_lose(w, who);
    world_submit_number(w, 2, 1);
    world_settle(w, 20);
    world_end(w);
}

Test(driver_failover, a_death_costs_a_few_turns)
{
    soon(true, 0);
    soon(false, 0);
    soon(false, 1);
}

Test(driver_failover, the_acceptor_dies)
{
    struct world *w = world_begin(3, false);
    world_load(w, 60);
    world_lose(w, 1);
    world_settle(w, 20000);
    world_go_on(w);
    struct qn_driver_status st = world_status(w, 2);
    cr_assert_eq(st.leader, 0);
    cr_assert_eq(st.acceptor, 2);
    cr_assert_eq(st.reason, QN_REASON_DEATH);
    cr_assert_eq(st.lost, 1);
    world_end(w);
}

/* One after the other, the second when the first is over. */
static void both_die(qn_node_t first, qn_node_t second)
{
    struct world *w = world_begin(5, false);
    world_load(w, 30);
    world_lose(w, first);
    world_settle(w, 20000);
    world_load(w, 30);
    world_lose(w, second);
    world_settle(w, 20000);
    world_go_on(w);
    world_end(w);
}

Test(driver_failover, leader_then_acceptor)
{
    both_die(0, 1);
}

Test(driver_failover, acceptor_then_leader)
{
    both_die(1, 0);
}

/* ---- standing still ------------------------------------------------------ */

static void stops(bool memory, qn_node_t who)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    w->member[who].stopped = true;
    qn_node_t waits = memory ? 2 : who == 0 ? 2 : 0;
    world_submit_number(w, waits, 1);
    world_rounds(w, 10);
    cr_assert_eq(qn_driver_waits_for(w->member[waits].driver), UINT64_C(1)
                                                                   << who);
    world_suspect(w, UINT64_C(1) << who);
    world_settle(w, 20000);
    world_rounds(w, 20); /* the last no-op */
    struct qn_driver_status st = world_status(w, waits);
    cr_assert_eq(st.reason, QN_REASON_SUSPECTED);
    cr_assert_eq(st.lost, who);
    cr_assert_eq(qn_driver_waits_for(w->member[waits].driver), 0);
    world_load(w, 200);
    w->member[who].stopped = false;
    world_suspect(w, 0);
    world_submit_number(w, who, 2);
    world_go_on(w);
    cr_assert_neq(world_status(w, who).epoch, 0);
    cr_assert(!w->member[0].wrote || world_status(w, 0).leader == 0);
    world_end(w);
}

Test(driver_failover, who_stood_still_is_deposed_and_catches_up)
{
    stops(true, 0);
    stops(false, 0);
    stops(false, 1);
}

/* It has a batch in hand when it stops: the fence is the word. */
Test(driver_failover, a_deposed_leader_decides_nothing)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    for (uint64_t x = 0; x < 40; x++) {
        world_submit_number(w, 0, x);
    }
    w->member[0].stopped = true;
    world_suspect(w, 1);
    world_go_on(w);
    qn_slot_t slot = w->member[1].slot;
    uint64_t epoch = qn_load(&w->word.first, QN_RELAXED);
    cr_assert_gt(epoch, 0);
    world_turn(w, 0);
    cr_assert_leq(w->member[0].slot, slot);
    cr_assert_eq(qn_load(&w->word.first, QN_RELAXED), epoch);
    w->member[0].stopped = false;
    world_suspect(w, 0);
    world_go_on(w);
    world_end(w);
}

Test(driver_failover, nobody_is_waited_for_while_nothing_waits)
{
    for (int memory = 0; memory < 2; memory++) {
        struct world *w = world_begin(3, memory != 0);
        w->silent = true;
        world_go_on(w);
        for (qn_node_t i = 0; i < 3; i++) {
            cr_assert_eq(qn_driver_waits_for(w->member[i].driver), 0);
        }
        w->member[0].stopped = w->member[1].stopped = true;
        world_rounds(w, 1000);
        cr_assert_eq(qn_driver_waits_for(w->member[2].driver), 0);
        world_end(w);
    }
}

/* ---- in order ------------------------------------------------------------ */

/* The leader lives and is loaded; 2 is told to lead. */
static void hands_over(bool memory)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    for (uint64_t x = 0; x < 40; x++) {
        world_submit_number(w, (qn_node_t)(x % 3), x);
    }
    for (qn_node_t i = 0; i < 3; i++) {
        qn_driver_lead(w->member[i].driver, 2, w->now);
    }
    world_rounds(w, 20); /* 2 ms: nobody waits out a suspicion */
    world_settle(w, 20);
    for (qn_node_t i = 0; i < 3; i++) {
        struct qn_driver_status st = world_status(w, i);
        cr_assert_eq(st.epoch, 1);
        cr_assert_eq(st.leader, 2);
        cr_assert_eq(st.reason, QN_REASON_ORDER);
        cr_assert_eq(st.lost, 0);
    }
    world_lose(w, 0); /* a follower: nothing changes */
    world_go_on(w);
    cr_assert_eq(world_status(w, 1).epoch, 1);
    world_restart(w, 0);
    world_go_on(w);
    world_end(w);
}

Test(driver_failover, a_leader_is_relieved_while_it_lives)
{
    hands_over(true);
    hands_over(false);
}

Test(driver_failover, an_order_to_the_leader_itself_changes_nothing)
{
    struct world *w = world_begin(3, true);
    for (qn_node_t i = 0; i < 3; i++) {
        qn_driver_lead(w->member[i].driver, 0, w->now);
    }
    world_go_on(w);
    cr_assert_eq(world_status(w, 0).epoch, 0);
    world_end(w);
}

/* ---- how much is copied -------------------------------------------------- */

static qn_slot_t ring_begins_at(struct world *w, qn_node_t i)
{
    return qn_ring_lo(&w->member[i].incarnation.ring);
}

/* The ring of the dead leader reaches back to slot 1: all of it would be
 * copied while clients wait. */
Test(driver_failover, a_new_leader_copies_what_the_living_lack)
{
    struct world *w = world_begin(3, true);
    world_load(w, 600);
    world_settle(w, 20000);
    world_rounds(w, 50); /* all have told where they are */
    qn_slot_t hi = w->member[2].slot;
    cr_assert_gt(hi, 100);
    cr_assert_eq(ring_begins_at(w, 0), 1);
    world_lose(w, 0);
    world_go_on(w);
    cr_assert_eq(ring_begins_at(w, 1), hi + 1);
    world_end(w);
}

Test(driver_failover, a_new_leader_copies_for_who_stands_still)
{
    struct world *w = world_begin(5, true);
    world_go_on(w);
    world_rounds(w, 50);
    qn_slot_t behind = w->member[4].slot;
    w->member[4].stopped = true;
    world_load(w, 200);
    world_rounds(w, 50);
    cr_assert_gt(w->member[1].slot, behind + 50);
    world_kill(w, 0);
    for (qn_node_t i = 1; i < 4; i++) { /* and not to who stands still */
        world_tell(w, i, 0);
    }
    world_rounds(w, 200);
    cr_assert_eq(world_status(w, 1).role, QN_ACTIVE);
    cr_assert_leq(ring_begins_at(w, 1), behind + 1);
    w->member[4].stopped = false;
    world_tell(w, 4, 0);
    world_go_on(w);
    cr_assert_eq(w->installs, 0, "it needs no snapshot");
    world_end(w);
}

/* It stood still for longer than the ring reaches: a copy does not help it. */
Test(driver_failover, a_new_leader_copies_nothing_for_who_lags_behind_the_ring)
{
    struct world *w = world_make(5, true);
    w->ring_slots = 64;
    world_start(w);
    world_go_on(w);
    w->member[4].stopped = true;
    world_load(w, 300); /* the ring is full: it is waited for ... */
    cr_assert_eq(ring_begins_at(w, 0), 1);
    world_rounds(w, 300); /* ... until it is given up */
    world_load(w, 900);
    world_rounds(w, 50);
    qn_slot_t hi = w->member[1].slot;
    cr_assert_gt(ring_begins_at(w, 0), w->member[4].slot + 1);
    cr_assert_leq(ring_begins_at(w, 0) + 32, hi);
    world_kill(w, 0);
    for (qn_node_t i = 1; i < 4; i++) {
        world_tell(w, i, 0);
    }
    world_rounds(w, 200);
    cr_assert_eq(world_status(w, 1).role, QN_ACTIVE);
    cr_assert_eq(ring_begins_at(w, 1), hi + 1);
    w->member[4].stopped = false;
    world_tell(w, 4, 0);
    world_go_on(w);
    world_end(w);
}

/* It lives, but has nothing: a snapshot is on its way, if the log is long. */
static void fresh_life(uint32_t commands, bool copied)
{
    struct world *w = world_begin(5, true);
    w->snapshots_by_hand = true;
    world_load(w, commands);
    world_settle(w, 20000);
    world_rounds(w, 50);
    world_lose(w, 4);
    world_restart(w, 4);
    w->member[4].stopped = true;
    world_lose(w, 0);
    world_rounds(w, 2000); /* until it is not waited for to map */
    qn_node_t leader = world_status(w, 1).leader;
    cr_assert_neq(leader, 0);
    cr_assert_eq(world_status(w, leader).role, QN_ACTIVE);
    cr_assert_eq(ring_begins_at(w, leader) == 1, copied);
    world_end(w);
}

Test(driver_failover, a_new_leader_copies_a_short_log_for_a_fresh_life)
{
    fresh_life(60, true);
    fresh_life(6000, false);
}

/* ---- no failover is possible --------------------------------------------- */

static void all_say(struct world *w, bool stopped)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver != NULL) {
            cr_assert_eq(world_status(w, i).halted, stopped, "node %u", i);
            cr_assert_eq(qn_driver_halted(w->member[i].driver), stopped);
        }
    }
}

/* Leader and acceptor end at once: nobody can know what they decided last. The
 * others say so when a majority votes again, and no sooner; so does who leads
 * in vain after that one. */
Test(driver_failover, leader_and_acceptor_end_at_once)
{
    struct world *w = world_begin(3, false);
    world_go_on(w);
    qn_slot_t had = world_status(w, 2).learned;
    world_kill(w, 0);
    world_kill(w, 1);
    world_tell(w, 2, 0);
    world_tell(w, 2, 1);
    world_rounds(w, 5000);
    all_say(w, false);
    world_restart(w, 0);
    world_rounds(w, 5000);
    all_say(w, true);
    cr_assert_eq(world_status(w, 2).highest_announced, had);
    qn_node_t in_vain = world_status(w, 2).leader;
    world_restart(w, 1);
    world_rounds(w, 1000);
    all_say(w, true);
    world_lose(w, in_vain);
    world_rounds(w, 5000);
    all_say(w, true);
    cr_assert_neq(world_status(w, (in_vain + 1) % 3).leader, in_vain);
    world_end(w);
}

/* The same deaths, and each of them is survived. */
Test(driver_failover, whoever_can_go_on_never_says_stopped)
{
    struct world *w = world_begin(5, false);
    world_load(w, 30);
    for (qn_node_t i = 0; i < 4; i++) {
        world_lose(w, i % 2);
        for (uint32_t n = 0; n < 300; n++) {
            world_rounds(w, 1);
            all_say(w, false);
        }
        world_restart(w, i % 2);
        world_go_on(w);
        all_say(w, false);
    }
    world_end(w);
}

Test(driver_failover, a_group_in_memory_never_stops)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    world_lose(w, 0);
    world_lose(w, 1);
    world_rounds(w, 5000);
    all_say(w, false);
    world_restart(w, 0);
    world_go_on(w);
    all_say(w, false);
    world_end(w);
}

/* A frozen leader stages its log to who has learned what the log does not keep.
 * A new incarnation has that when it has installed its snapshot, and says so in
 * its outbox only: the leader must look there though nothing comes. */
Test(driver_failover, a_frozen_leader_sees_who_has_brought_a_snapshot)
{
    for (uint32_t wait = 0; wait < 60; wait++) {
        struct world *w = world_begin(3, false);
        world_go_on(w);
        w->snapshots_by_hand = true;
        world_lose(w, 1);
        world_lose(w, 2);
        world_rounds(w, 20);
        world_submit_number(w, 0, wait);
        world_restart(w, 1);
        world_restart(w, 2);
        world_rounds(w, wait);
        cr_assert_eq(world_status(w, 0).role, QN_HANDING_OVER);
        cr_assert(world_install(w, 1, 0));
        cr_assert(world_install(w, 2, 0));
        world_settle(w, 20000);
        world_end(w);
    }
}
