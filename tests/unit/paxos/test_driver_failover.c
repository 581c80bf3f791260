/*
 * Fail-over through real drivers: who leads and who accepts dies, stands still
 * and comes back (PROTOCOL.md 3.4 to 3.6, 11).
 */
#include "core/place/outbox.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver_world.h"

static struct world *begin(uint32_t nodes, bool memory)
{
    struct world *w = world_make(nodes, memory);
    world_start(w);
    return w;
}

/* Some commands of everybody that runs. */
static void load(struct world *w, uint32_t commands)
{
    for (uint64_t x = 0; x < commands; x++) {
        for (qn_node_t i = 0; i < w->nodes; i++) {
            if (w->member[i].driver != NULL && !w->member[i].stopped) {
                (void)world_submit(w, i, &x, sizeof x);
            }
        }
        world_rounds(w, x % 3 == 0);
    }
}

static void go_on(struct world *w)
{
    load(w, 60);
    world_settle(w, 20000);
}

/* What `to` has not read of `from` yet is lost. */
static void wipe(struct world *w, qn_node_t from, qn_node_t to,
                 enum qn_lane lane)
{
    memset(qn_outbox_lane(w->member[from].life.outbox, to, lane), 0,
           WORLD_CELLS * 64);
}

/* LEARN comes down the right tree: sooner than any gap is looked for. */
static void learns_come_at_once(struct world *w)
{
    world_rounds(w, 50);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver == NULL) {
            continue;
        }
        world_submit_number(w, i, i);
        world_rounds(w, 8);
        cr_assert(world_settled(w), "of node %u", i);
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
}

static void nothing_happens(bool memory)
{
    struct world *w = begin(3, memory);
    go_on(w);
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
    struct world *w = begin(nodes, memory);
    load(w, 60);
    world_lose(w, 0);
    world_settle(w, 20000);
    go_on(w);
    struct qn_driver_status st = world_status(w, nodes - 1);
    cr_assert_neq(st.leader, 0);
    cr_assert_eq(st.failovers, 1);
    cr_assert_eq(st.reason, QN_REASON_DEATH);
    cr_assert_eq(st.lost, 0);
    cr_assert_eq(st.acceptor, memory ? st.leader : 1);
    learns_come_at_once(w);
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

Test(driver_failover, the_acceptor_dies)
{
    struct world *w = begin(3, false);
    load(w, 60);
    world_lose(w, 1);
    world_settle(w, 20000);
    go_on(w);
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
    struct world *w = begin(5, false);
    load(w, 30);
    world_lose(w, first);
    world_settle(w, 20000);
    load(w, 30);
    world_lose(w, second);
    world_settle(w, 20000);
    go_on(w);
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

/* ---- new lives ----------------------------------------------------------- */

static void comes_back(bool memory, qn_node_t who)
{
    struct world *w = begin(3, memory);
    load(w, 60);
    world_lose(w, who);
    world_settle(w, 20000);
    load(w, 600);
    world_restart(w, who);
    go_on(w);
    cr_assert_eq(w->member[who].count, w->history_count);
    /* and it counts: the others may go now, one after the other */
    world_lose(w, world_status(w, who).leader);
    world_settle(w, 20000);
    go_on(w);
    world_end(w);
}

Test(driver_failover, a_new_life_catches_up_and_counts)
{
    for (qn_node_t who = 0; who < 3; who++) {
        comes_back(false, who);
        comes_back(true, who);
    }
}

/* What it has missed is nowhere any more but in the state of others. */
static void needs_a_snapshot(bool memory)
{
    struct world *w = world_make(3, memory);
    w->ring_slots = 16;
    world_start(w);
    load(w, 30);
    world_lose(w, 2);
    load(w, 300);
    world_settle(w, 20000);
    w->snapshots_by_hand = true;
    world_restart(w, 2);
    world_rounds(w, 3000);
    cr_assert(w->member[2].need_snapshot);
    cr_assert(world_status(w, 2).need_snapshot);
    cr_assert_eq(world_status(w, 0).in_sync & 4, 0, "it has nothing");
    cr_assert_eq(w->installs, 0);
    w->snapshots_by_hand = false;
    go_on(w);
    cr_assert_eq(w->installs, 1);
    cr_assert(!world_status(w, 2).need_snapshot);
    cr_assert(!memory || (world_status(w, 0).in_sync & 4) != 0);
    world_end(w);
}

Test(driver_failover, a_new_life_goes_on_behind_a_snapshot)
{
    needs_a_snapshot(true);
    needs_a_snapshot(false);
}

Test(driver_failover, a_snapshot_that_brings_nothing_is_refused)
{
    struct world *w = begin(3, true);
    struct qn_resume r;
    struct qn_ul_entry ul[QN_UL_KEPT];
    go_on(w);
    cr_assert(qn_driver_cut(w->member[1].driver, &r));
    uint32_t n = qn_driver_ul(w->member[1].driver, ul, QN_UL_KEPT);
    cr_assert_eq(n, 1);
    cr_assert_eq(qn_driver_install(w->member[2].driver, &r, ul, n, w->now),
                 QN_ESTALE);
    r.position += 10;
    ul[0].leader_inc++;
    cr_assert_eq(qn_driver_install(w->member[2].driver, &r, ul, n, w->now),
                 QN_EINVAL);
    cr_assert_eq(world_status(w, 2).applied, w->member[2].slot);
    world_end(w);
}

Test(driver_failover, a_peer_is_announced_once_and_in_order)
{
    struct world *w = begin(3, true);
    struct world_member *m = &w->member[0];
    struct qn_driver_peer_opts up = {
        .node = 2,
        .inc = w->member[2].inc,
        .direct = m->direct[2],
        .tree = m->tree[2],
        .state = qn_outbox_state(w->member[2].life.outbox)};
    cr_assert_eq(qn_driver_up(m->driver, &up, w->now), QN_ESTALE);
    up.node = 0;
    cr_assert_eq(qn_driver_up(m->driver, &up, w->now), QN_EINVAL);
    up.node = 2;
    up.inc = 0;
    cr_assert_eq(qn_driver_up(m->driver, &up, w->now), QN_EINVAL);
    go_on(w);
    world_end(w);
}

/* ---- the record ---------------------------------------------------------- */

/* Both voters of the entry die after it was chosen, and come back: their
 * records know it, though node 0 has never heard of it. */
Test(driver_failover, an_entry_outlives_all_who_voted_for_it)
{
    struct world *w = begin(3, true);
    go_on(w);
    w->member[0].stopped = true;
    world_suspect(w, 1);
    for (uint32_t r = 0; r < 3000 && world_status(w, 1).failovers == 0; r++) {
        world_rounds(w, 1);
    }
    uint64_t epoch = world_status(w, 1).epoch;
    cr_assert_gt(epoch, 0);
    load(w, 10);
    world_settle(w, 20000);
    for (qn_node_t i = 1; i < 3; i++) { /* what it has not read is lost */
        wipe(w, i, 0, QN_LANE_DIRECT);
        wipe(w, i, 0, QN_LANE_TREE);
    }
    world_kill(w, 1);
    world_kill(w, 2);
    world_restart(w, 1);
    world_restart(w, 2);
    w->member[0].stopped = false;
    world_settle(w, 20000);
    go_on(w);
    cr_assert_gt(world_status(w, 0).epoch, epoch);
    world_end(w);
}

/* Two of three know nothing at all: that is no majority for anything. */
Test(driver_failover, who_knows_nothing_elects_nobody)
{
    struct world *w = begin(3, true);
    go_on(w);
    w->member[0].stopped = true;
    for (qn_node_t i = 1; i < 3; i++) {
        w->member[i].blank = true;
        world_lose(w, i);
    }
    world_restart(w, 1);
    world_restart(w, 2);
    world_suspect(w, 1);
    world_rounds(w, 5000);
    for (qn_node_t i = 1; i < 3; i++) {
        struct qn_ul_entry e;
        cr_assert_eq(qn_driver_ul(w->member[i].driver, &e, 1), 0);
    }
    w->member[0].stopped = false;
    world_suspect(w, 0);
    go_on(w);
    world_end(w);
}

/* But two of three with their records are, though they have never voted. */
Test(driver_failover, a_majority_of_new_lives_goes_on)
{
    struct world *w = begin(3, true);
    go_on(w);
    w->member[0].stopped = true;
    world_lose(w, 1);
    world_lose(w, 2);
    world_restart(w, 1);
    world_restart(w, 2);
    world_suspect(w, 1);
    go_on(w);
    cr_assert_neq(world_status(w, 1).leader, 0);
    w->member[0].stopped = false;
    world_suspect(w, 0);
    go_on(w);
    world_end(w);
}

/* A record that was never written binds nobody, and entry 0 comes from the
 * others. A damaged one: its node is mute, and learns all the same. */
static void record_is(bool damaged)
{
    struct world *w = begin(3, true);
    go_on(w);
    world_lose(w, 2);
    memset(w->member[2].record, damaged ? 0x5a : 0, 1024);
    w->member[2].blank = !damaged;
    world_restart(w, 2);
    go_on(w);
    cr_assert_eq(world_status(w, 2).mute, damaged);
    world_lose(w, 0);
    if (damaged) { /* one of three votes */
        load(w, 1);
        world_rounds(w, 5000);
        cr_assert(!world_settled(w));
    } else {
        go_on(w);
    }
    world_end(w);
}

Test(driver_failover, an_empty_record_is_no_vote)
{
    record_is(false);
}

Test(driver_failover, a_damaged_record_makes_mute)
{
    record_is(true);
}

/* ---- the memory acceptor ------------------------------------------------- */

Test(driver_failover, all_but_one_die_at_once)
{
    for (qn_node_t stays = 0; stays < 5; stays++) {
        struct world *w = begin(5, true);
        load(w, 60);
        world_settle(w, 20000);
        load(w, 3);
        for (qn_node_t i = 0; i < 5; i++) {
            if (i != stays) {
                world_kill(w, i);
            }
        }
        for (qn_node_t i = 0; i < 5; i++) {
            world_tell(w, stays, i);
        }
        world_rounds(w, 100);
        for (qn_node_t i = 0; i < 5; i++) {
            if (i != stays) {
                world_restart(w, i);
                world_rounds(w, 7);
            }
        }
        world_settle(w, 20000);
        go_on(w);
        world_end(w);
    }
}

/* The survivor has asked in vain for long: it asks again as soon as somebody
 * can answer. */
Test(driver_failover, the_first_that_comes_back_makes_a_majority_at_once)
{
    struct world *w = world_make(3, true);
    w->shared_cores = true;
    world_start(w);
    go_on(w);
    world_lose(w, 0);
    world_lose(w, 1);
    world_rounds(w, 5000);
    world_submit_number(w, 2, 1);
    world_rounds(w, 33);
    world_restart(w, 1);
    world_settle(w, 100); /* 10 ms */
    world_end(w);
}

/* A life that begins while another node is dead waits for it in nothing. */
Test(driver_failover, who_was_dead_at_the_beginning_is_so)
{
    struct world *w = begin(5, true);
    load(w, 30);
    world_lose(w, 3);
    world_lose(w, 4);
    world_settle(w, 20000);
    world_restart(w, 4);
    go_on(w);
    world_rounds(w, 100);
    cr_assert_eq(world_status(w, 4).alive, 0x17);
    cr_assert_eq(world_status(w, 4).log_bytes, 0, "kept for the dead");
    world_end(w);
}

/* The leader decides, publishes, and dies; its LEARNs are in no lane. */
Test(driver_failover, what_only_the_ring_has_is_read_without_a_fail_over)
{
    struct world *w = begin(3, true);
    go_on(w);
    qn_driver_hold_learns(w->member[1].driver, true);
    qn_driver_hold_learns(w->member[2].driver, true);
    world_submit_number(w, 0, 7);
    world_turn(w, 0);
    world_turn(w, 0);
    qn_slot_t slot = w->member[0].slot;
    cr_assert_eq(qn_driver_read_index(w->member[1].driver), slot);
    cr_assert_lt(w->member[1].slot, slot);
    for (qn_node_t i = 1; i < 3; i++) {
        wipe(w, 0, i, QN_LANE_TREE);
    }
    world_kill(w, 0);
    w->member[1].stopped = true; /* no majority: no fail-over */
    world_tell(w, 2, 0);
    qn_driver_hold_learns(w->member[2].driver, false);
    world_rounds(w, 100);
    cr_assert_eq(w->member[2].slot, slot);
    cr_assert_eq(world_status(w, 2).failovers, 0);
    w->member[1].stopped = false;
    world_tell(w, 1, 0);
    qn_driver_hold_learns(w->member[1].driver, false);
    go_on(w);
    world_end(w);
}

Test(driver_failover, memory_is_kept_as_long_as_the_word_names_it)
{
    struct world *w = begin(3, true);
    go_on(w);
    uint64_t inc = w->member[0].inc;
    w->member[1].stopped = true; /* no majority: nobody takes over */
    world_kill(w, 0);
    world_tell(w, 2, 0);
    world_rounds(w, 100);
    cr_assert(qn_driver_keeps(w->member[2].driver, 0, inc));
    cr_assert(!qn_driver_keeps(w->member[2].driver, 0, inc + 1000));
    w->member[1].stopped = false;
    world_tell(w, 1, 0);
    go_on(w);
    cr_assert(!qn_driver_keeps(w->member[2].driver, 0, inc));
    cr_assert(!qn_driver_keeps(w->member[1].driver, 0, inc));
    world_end(w);
}

/* ---- standing still ------------------------------------------------------ */

static void stops(bool memory, qn_node_t who)
{
    struct world *w = begin(3, memory);
    go_on(w);
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
    cr_assert_eq(st.reason, QN_REASON_STANDING);
    cr_assert_eq(st.lost, who);
    cr_assert_eq(qn_driver_waits_for(w->member[waits].driver), 0);
    load(w, 200);
    w->member[who].stopped = false;
    world_suspect(w, 0);
    world_submit_number(w, who, 2);
    go_on(w);
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
    struct world *w = begin(3, true);
    go_on(w);
    for (uint64_t x = 0; x < 40; x++) {
        world_submit_number(w, 0, x);
    }
    w->member[0].stopped = true;
    world_suspect(w, 1);
    go_on(w);
    qn_slot_t slot = w->member[1].slot;
    uint64_t epoch = qn_load(&w->word.first, QN_RELAXED);
    cr_assert_gt(epoch, 0);
    world_turn(w, 0);
    cr_assert_leq(w->member[0].slot, slot);
    cr_assert_eq(qn_load(&w->word.first, QN_RELAXED), epoch);
    w->member[0].stopped = false;
    world_suspect(w, 0);
    go_on(w);
    world_end(w);
}

Test(driver_failover, nobody_is_waited_for_while_nothing_waits)
{
    for (int memory = 0; memory < 2; memory++) {
        struct world *w = begin(3, memory != 0);
        go_on(w);
        for (qn_node_t i = 0; i < 3; i++) {
            cr_assert_eq(qn_driver_waits_for(w->member[i].driver), 0);
        }
        w->member[0].stopped = w->member[1].stopped = true;
        world_rounds(w, 1000);
        cr_assert_eq(qn_driver_waits_for(w->member[2].driver), 0);
        world_end(w);
    }
}

/* ---- the tree ------------------------------------------------------------ */

/* 0 or 1 is the root; 3 and 4 hang below an inner node. */
static void inner_node_dies(bool memory)
{
    struct world *w = world_make(5, memory);
    w->topology = "binary";
    world_start(w);
    go_on(w);
    qn_node_t inner = memory ? 1 : 2;
    world_lose(w, inner);
    load(w, 30);
    world_settle(w, 20000);
    uint64_t before = world_status(w, 3).fetches + world_status(w, 4).fetches;
    go_on(w);
    cr_assert_eq(world_status(w, 3).fetches + world_status(w, 4).fetches,
                 before, "LEARNs come down another tree");
    world_restart(w, inner);
    go_on(w);
    before = 0;
    for (qn_node_t i = 0; i < 5; i++) {
        before += world_status(w, i).fetches;
    }
    go_on(w);
    for (qn_node_t i = 0; i < 5; i++) {
        before -= world_status(w, i).fetches;
    }
    cr_assert_eq(before, 0, "it is in the tree again");
    world_end(w);
}

Test(driver_failover, who_hangs_below_a_dead_node_gets_learns_at_once)
{
    inner_node_dies(true);
    inner_node_dies(false);
}

/* Only the root has heard of a death: its LEARNs tell the others. */
Test(driver_failover, the_root_says_which_tree_it_is)
{
    struct world *w = world_make(5, true);
    w->topology = "binary";
    world_start(w);
    go_on(w);
    world_kill(w, 1);
    world_tell(w, 0, 1);
    for (uint64_t x = 0; x < 20; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 1);
    }
    for (qn_node_t i = 2; i < 5; i++) {
        cr_assert_eq(w->member[i].slot, w->member[0].slot, "node %u", i);
    }
    for (qn_node_t i = 2; i < 5; i++) {
        world_tell(w, i, 1);
    }
    go_on(w);
    world_end(w);
}

/* An inner node stands still: it leaves the tree, and comes back into it. */
Test(driver_failover, who_stands_still_leaves_the_tree)
{
    struct world *w = world_make(5, true);
    w->topology = "binary";
    world_start(w);
    go_on(w);
    w->member[1].stopped = true; /* 3 and 4 hang below it */
    load(w, 600);
    for (uint64_t x = 0; x < 20; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 2);
        cr_assert_eq(w->member[3].slot, w->member[0].slot);
        cr_assert_eq(w->member[4].slot, w->member[0].slot);
    }
    w->member[1].stopped = false;
    go_on(w);
    load(w, 100);
    learns_come_at_once(w);
    world_end(w);
}

/* ---- wild peers ---------------------------------------------------------- */

/* A learner writes over its outbox and the read index, then it dies. */
static void wild_learner(bool memory, int byte)
{
    struct world *w = begin(3, memory);
    go_on(w);
    struct qn_outbox_state *state = qn_outbox_state(w->member[2].life.outbox);
    w->wild = true;
    memset(state, byte, sizeof *state);
    qn_store(&w->read_index, UINT64_C(1) << 40, QN_SEQ_CST);
    w->member[2].stopped = true;
    qn_slot_t slot = w->member[0].slot;
    for (qn_node_t i = 0; i < 2; i++) {
        world_rounds(w, 100);
        cr_assert_eq(qn_driver_read_index(w->member[i].driver), slot,
                     "a reader would wait for ever");
        cr_assert_eq(world_status(w, i).decided_hi, slot);
    }
    world_lose(w, 2);
    go_on(w);
    qn_store(&w->read_index, 0, QN_SEQ_CST); /* and if it was made smaller */
    world_rounds(w, 1);
    cr_assert_eq(qn_load(&w->read_index, QN_SEQ_CST), w->member[0].slot);
    world_end(w);
}

Test(driver_failover, a_wild_learner_holds_nobody_up)
{
    wild_learner(true, 0);
    wild_learner(true, 0xee);
    wild_learner(false, 0);
    wild_learner(false, 0xee);
}

/* Process acceptor: the bound is that of the newest acceptor, also while this
 * node has not heard of it. */
Test(driver_failover, a_true_read_index_is_never_cut)
{
    struct world *w = begin(5, false);
    go_on(w);
    w->member[4].stopped = true; /* it hears of nothing */
    w->member[1].stopped = true;
    world_suspect(w, 2);
    load(w, 30);
    world_settle(w, 20000);
    cr_assert_neq(world_status(w, 0).acceptor, 1);
    qn_slot_t slot = w->member[0].slot;
    cr_assert_eq(qn_driver_read_index(w->member[4].driver), slot);
    cr_assert_lt(w->member[4].slot, slot);
    cr_assert_eq(qn_driver_read_index(w->member[1].driver), slot,
                 "its own position is none of the newest acceptor");
    w->member[1].stopped = w->member[4].stopped = false;
    world_suspect(w, 0);
    go_on(w);
    world_end(w);
}

/* An acceptor that is appointed and has not heard of it says nothing yet. */
Test(driver_failover, an_appointed_acceptor_bounds_nothing_before_it_knows)
{
    struct world *w = begin(5, false);
    go_on(w);
    for (qn_node_t i = 2; i < 5; i++) {
        qn_driver_hold_learns(w->member[i].driver, true);
    }
    for (uint64_t x = 0; x < 9; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 2);
    }
    w->member[1].stopped = true;
    world_suspect(w, 2);
    for (uint32_t r = 0; r < 2000 && world_status(w, 0).epoch == 0; r++) {
        world_rounds(w, 1); /* checks everybody's read index */
    }
    cr_assert_neq(world_status(w, 0).epoch, 0);
    world_rounds(w, 10);
    for (qn_node_t i = 2; i < 5; i++) {
        qn_driver_hold_learns(w->member[i].driver, false);
    }
    w->member[1].stopped = false;
    world_suspect(w, 0);
    go_on(w);
    world_end(w);
}
