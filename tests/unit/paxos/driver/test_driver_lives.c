/*
 * Incarnations of real drivers: they end, one after the other or at once, and
 * the next ones begin, with their record and a snapshot (PROTOCOL.md 3.5, 4,
 * 5).
 */
#include <stdlib.h>
#include <string.h>

#include "core/place/outbox.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/driver/vote_record.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* ---- new incarnations
 * ----------------------------------------------------------- */

static void comes_back(bool memory, qn_node_t who)
{
    struct world *w = world_begin(3, memory);
    world_load(w, 60);
    world_lose(w, who);
    world_settle(w, 20000);
    world_load(w, 600);
    world_restart(w, who);
    world_go_on(w);
    cr_assert_eq(w->member[who].count, w->history_count);
    /* and it counts: the others may go now, one after the other */
    world_lose(w, world_status(w, who).leader);
    world_settle(w, 20000);
    world_go_on(w);
    world_end(w);
}

Test(driver_lives, a_new_life_catches_up_and_counts)
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
    world_load(w, 30);
    world_lose(w, 2);
    world_load(w, 300);
    world_settle(w, 20000);
    w->snapshots_by_hand = true;
    world_restart(w, 2);
    world_rounds(w, 3000);
    cr_assert(w->member[2].need_snapshot);
    cr_assert(world_status(w, 2).need_snapshot);
    cr_assert_eq(world_status(w, 0).in_sync & 4, 0, "it has nothing");
    cr_assert_eq(w->installs, 0);
    w->snapshots_by_hand = false;
    world_go_on(w);
    cr_assert_eq(w->installs, 1);
    cr_assert(!world_status(w, 2).need_snapshot);
    cr_assert(!memory || (world_status(w, 0).in_sync & 4) != 0);
    world_end(w);
}

Test(driver_lives, a_new_life_goes_on_behind_a_snapshot)
{
    needs_a_snapshot(true);
    needs_a_snapshot(false);
}

Test(driver_lives, a_snapshot_that_brings_nothing_is_refused)
{
    struct world *w = world_begin(3, true);
    struct qn_resume r, had;
    struct qn_ul_entry ul[QN_UL_KEPT];
    world_go_on(w);
    cr_assert(qn_driver_cut(w->member[1].driver, &r));
    uint32_t n = qn_driver_ul(w->member[1].driver, ul, QN_UL_KEPT);
    cr_assert_eq(n, 1);
    r.ended[1] = 1; /* a former incarnation, as only its giver knows */
    cr_assert_eq(qn_driver_install(w->member[2].driver, &r, ul, n, w->now),
                 QN_ESTALE);
    cr_assert(qn_driver_cut(w->member[2].driver, &had));
    cr_assert_eq(had.ended[1], 1, "that is so for ever");
    r.position += 10;
    ul[0].leader_inc++;
    cr_assert_eq(qn_driver_install(w->member[2].driver, &r, ul, n, w->now),
                 QN_EINVAL);
    cr_assert_eq(world_status(w, 2).applied, w->member[2].slot);
    world_end(w);
}

Test(driver_lives, a_peer_is_announced_once_and_in_order)
{
    struct world *w = world_begin(3, true);
    struct world_member *m = &w->member[0];
    struct qn_driver_peer_opts up = {
        .node = 2,
        .inc = w->member[2].inc,
        .direct = m->direct[2],
        .tree = m->tree[2],
        .state = qn_outbox_state(w->member[2].incarnation.outbox)};
    cr_assert_eq(qn_driver_up(m->driver, &up, w->now), QN_ESTALE);
    up.node = 0;
    cr_assert_eq(qn_driver_up(m->driver, &up, w->now), QN_EINVAL);
    up.node = 2;
    up.inc = 0;
    cr_assert_eq(qn_driver_up(m->driver, &up, w->now), QN_EINVAL);
    world_go_on(w);
    world_end(w);
}

/* The leader dies when its LEARN has left and before it has published. That is
 * applied when its end is heard of, outside of any turn; and a read may come
 * then. */
Test(driver_lives, what_the_end_of_a_life_brings_is_published)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    uint64_t before = qn_load(&w->read_index, QN_SEQ_CST);
    world_submit_number(w, 0, 7);
    world_turn(w, 0);
    world_kill(w, 0);
    qn_store(&w->read_index, before, QN_SEQ_CST);
    world_tell(w, 1, 0);
    cr_assert_gt(qn_driver_applied(w->member[1].driver), before);
    cr_assert_eq(qn_load(&w->read_index, QN_SEQ_CST),
                 qn_driver_applied(w->member[1].driver));
    world_tell(w, 2, 0);
    world_go_on(w);
    world_end(w);
}

/* Its entries may be news: what they say of roles holds before the next
 * message, which may be one from the tree. */
Test(driver_lives, a_snapshot_brings_the_newest_roles)
{
    struct world *w = world_begin(5, true);
    world_go_on(w);
    w->member[4].stopped = w->member[4].deaf = true;
    world_lose(w, 0);
    world_go_on(w);
    uint64_t epoch = world_status(w, 1).epoch;
    cr_assert_gt(epoch, 0);
    cr_assert(world_install(w, 4, 1));
    const struct qn_outbox_state *s =
        qn_outbox_state(w->member[4].incarnation.outbox);
    cr_assert_eq(qn_load(&s->epoch, QN_RELAXED), epoch);
    w->member[4].stopped = w->member[4].deaf = false;
    world_tell(w, 4, 0);
    world_go_on(w);
    world_end(w);
}

/* ---- the record ---------------------------------------------------------- */

/* Both voters of the entry die after it was chosen, and come back: their
 * records know it, though node 0 has never heard of it. */
Test(driver_lives, an_entry_outlives_all_who_voted_for_it)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    w->member[0].stopped = true;
    world_suspect(w, 1);
    for (uint32_t r = 0; r < 3000 && world_status(w, 1).failovers == 0; r++) {
        world_rounds(w, 1);
    }
    uint64_t epoch = world_status(w, 1).epoch;
    cr_assert_gt(epoch, 0);
    world_load(w, 10);
    world_settle(w, 20000);
    for (qn_node_t i = 1; i < 3; i++) { /* what it has not read is lost */
        world_wipe(w, i, 0, QN_LANE_DIRECT);
        world_wipe(w, i, 0, QN_LANE_TREE);
    }
    world_kill(w, 1);
    world_kill(w, 2);
    world_restart(w, 1);
    world_restart(w, 2);
    w->member[0].stopped = false;
    world_settle(w, 20000);
    world_go_on(w);
    cr_assert_gt(world_status(w, 0).epoch, epoch);
    world_end(w);
}

/* Two of three know nothing at all: that is no majority for anything. */
Test(driver_lives, who_knows_nothing_elects_nobody)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
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
    world_go_on(w);
    world_end(w);
}

/* But two of three with their records are, though they have never voted. */
Test(driver_lives, a_majority_of_new_lives_goes_on)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    w->member[0].stopped = true;
    world_lose(w, 1);
    world_lose(w, 2);
    world_restart(w, 1);
    world_restart(w, 2);
    world_suspect(w, 1);
    world_go_on(w);
    cr_assert_neq(world_status(w, 1).leader, 0);
    w->member[0].stopped = false;
    world_suspect(w, 0);
    world_go_on(w);
    world_end(w);
}

/* The first incarnation had written one: it was wiped, and nobody knows what it
 * has voted for. */
Test(driver_lives, an_empty_record_makes_mute)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    world_lose(w, 2);
    w->member[2].blank = true;
    world_restart(w, 2);
    cr_assert(world_status(w, 2).non_voting);
    cr_assert_eq(world_status(w, 0).voting, 3);
    world_go_on(w);
    world_rounds(w, 100);
    cr_assert(!world_status(w, 2).non_voting, "the others gave it a vote");
    cr_assert_eq(world_status(w, 0).voting, 7);
    world_lose(w, 0);
    world_go_on(w);
    world_end(w);
}

static void damage_record(struct world *w, qn_node_t i)
{
    memset(w->member[i].vote_record, 0x5a, 1024);
}

/* One of three that knows what it has voted for elects nobody. */
Test(driver_lives, a_damaged_record_makes_mute)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    w->member[0].stopped = true;
    for (qn_node_t i = 1; i < 3; i++) {
        world_lose(w, i);
        damage_record(w, i);
        world_restart(w, i);
    }
    world_suspect(w, 1);
    world_load(w, 1);
    world_rounds(w, 5000);
    cr_assert(world_status(w, 1).non_voting && world_status(w, 2).non_voting);
    cr_assert(!world_settled(w));
    world_end(w);
}

/* The others agree that it begins anew; then it votes, and so do its later
 * lives (PROTOCOL.md 4, VOTER). */
static void votes_again(bool memory, bool roles_change)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    for (uint32_t incarnation = 0; incarnation < 3; incarnation++) {
        world_lose(w, 2);
        damage_record(w, 2);
        if (roles_change) {
            world_suspect(w, 1);
        }
        world_restart(w, 2);
        world_suspect(w, 0);
        world_go_on(w);
        world_rounds(w, 100);
        cr_assert(!world_status(w, 2).non_voting);
    }
    world_lose(w, 2);
    world_restart(w, 2);
    cr_assert(!world_status(w, 2).non_voting, "the record was written anew");
    world_go_on(w);
    world_lose(w, 0);
    world_go_on(w);
    world_end(w);
}

Test(driver_lives, who_was_mute_is_given_a_vote)
{
    for (int memory = 0; memory < 2; memory++) {
        votes_again(memory != 0, false);
        votes_again(memory != 0, true);
    }
}

/* M11: were a new incarnation to lead, decide and die while somebody has not
 * mapped its ring, that one would lack what it decided. */
static uint32_t rounds_until_it_leads(bool deaf, bool ordered)
{
    struct world *w = world_begin(5, true);
    world_go_on(w);
    world_lose(w, 1);
    w->member[3].deaf = deaf;
    world_restart(w, 1);
    world_settle(w, 20000);
    if (ordered) {
        qn_driver_lead(w->member[1].driver, 1, w->now);
    } else {
        qn_driver_suspect(w->member[1].driver, 1, w->now);
    }
    uint32_t n = 0;
    while (world_status(w, 1).role != QN_ACTIVE) {
        cr_assert_lt(++n, 1000);
        world_rounds(w, 1);
        if (deaf && n == 20) {
            cr_assert_neq(world_status(w, 1).role, QN_ACTIVE);
        }
    }
    world_end(w);
    return n;
}

Test(driver_lives, a_new_life_waits_until_it_is_mapped_by_all)
{
    const uint32_t t_lead =
        (uint32_t)(qn_params_default(true).t_lead / (100 * QN_US));
    for (int ordered = 0; ordered < 2; ordered++) {
        uint32_t n = rounds_until_it_leads(false, ordered != 0);
        cr_assert_lt(n, t_lead, "%u", n);
        n = rounds_until_it_leads(true, ordered != 0);
        cr_assert_geq(n, t_lead, "%u", n);
        cr_assert_lt(n, 2 * t_lead, "%u", n);
    }
}

/* ---- the utility log is long --------------------------------------------- */

/* Each death is an entry; the newest 256 are kept. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEATHS 270u
#else
#define DEATHS 1000u
#endif

static void many_deaths(bool memory, uint32_t deaths)
{
    struct world *w = world_begin(3, memory);
    for (uint32_t n = 0; n < deaths; n++) {
        qn_node_t i = world_status(w, n % 3).leader;
        world_submit_number(w, (i + 1) % 3, n);
        world_lose(w, i);
        world_settle(w, 2000);
        world_restart(w, i);
        world_settle(w, 2000);
    }
    cr_assert_geq(world_status(w, 0).epoch, deaths);
    world_go_on(w);
    world_end(w);
}

Test(driver_lives, leaders_die_one_after_the_other)
{
    many_deaths(true, DEATHS);
    many_deaths(false, 270);
}

/* Who misses more entries than anybody keeps: the others have come to terms
 * without it, and go on with it. */
static void misses_many(bool memory, uint32_t changes)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    w->member[2].stopped = true;
    for (uint32_t n = 0; n < changes; n++) {
        uint64_t epoch = world_status(w, 0).epoch;
        world_suspect(w, UINT64_C(4) | UINT64_C(1)
                                           << world_status(w, 0).leader);
        for (uint32_t k = 0; k < 1000 && world_status(w, 0).epoch == epoch;
             k++) {
            world_rounds(w, 1);
        }
        world_suspect(w, 4);
        world_submit_number(w, n % 2, n);
        world_settle(w, 2000);
    }
    cr_assert_geq(world_status(w, 0).epoch, changes);
    w->member[2].stopped = false;
    world_suspect(w, 0);
    world_go_on(w);
    cr_assert_eq(world_status(w, 2).epoch, world_status(w, 0).epoch);
    world_lose(w, world_status(w, 2).leader);
    world_go_on(w);
    world_end(w);
}

Test(driver_lives, who_missed_more_entries_than_are_kept_goes_on)
{
    misses_many(true, 300);
}

/* ---- the memory acceptor ------------------------------------------------- */

Test(driver_lives, all_but_one_die_at_once)
{
    for (qn_node_t stays = 0; stays < 5; stays++) {
        struct world *w = world_begin(5, true);
        world_load(w, 60);
        world_settle(w, 20000);
        world_load(w, 3);
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
        world_go_on(w);
        world_end(w);
    }
}

/* The survivor has asked in vain for long: it asks again as soon as somebody
 * can answer. */
Test(driver_lives, the_first_that_comes_back_makes_a_majority_at_once)
{
    struct world *w = world_make(3, true);
    w->shared_cores = true;
    world_start(w);
    world_go_on(w);
    world_lose(w, 0);
    world_lose(w, 1);
    world_rounds(w, 5000);
    world_submit_number(w, 2, 1);
    world_rounds(w, 33);
    world_restart(w, 1);
    world_settle(w, 100); /* 10 ms */
    world_end(w);
}

/* An incarnation that begins while another node is dead waits for it in
 * nothing. */
Test(driver_lives, who_was_dead_at_the_beginning_is_so)
{
    struct world *w = world_begin(5, true);
    world_load(w, 30);
    world_lose(w, 3);
    world_lose(w, 4);
    world_settle(w, 20000);
    world_restart(w, 4);
    world_go_on(w);
    world_rounds(w, 100);
    cr_assert_eq(world_status(w, 4).alive, 0x17);
    cr_assert_eq(world_status(w, 4).log_bytes, 0, "kept for the dead");
    world_end(w);
}

/* The leader decides, publishes, and dies; its LEARNs are in no lane. */
Test(driver_lives, what_only_the_ring_has_is_read_without_a_fail_over)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    qn_driver_hold_learns(w->member[1].driver, true);
    qn_driver_hold_learns(w->member[2].driver, true);
    world_submit_number(w, 0, 7);
    world_turn(w, 0);
    world_turn(w, 0);
    qn_slot_t slot = w->member[0].slot;
    cr_assert_eq(qn_driver_read_index(w->member[1].driver), slot);
    cr_assert_lt(w->member[1].slot, slot);
    for (qn_node_t i = 1; i < 3; i++) {
        world_wipe(w, 0, i, QN_LANE_TREE);
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
    world_go_on(w);
    world_end(w);
}

Test(driver_lives, memory_is_kept_as_long_as_the_word_names_it)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    uint64_t inc = w->member[0].inc;
    w->member[1].stopped = true; /* no majority: nobody takes over */
    world_kill(w, 0);
    world_tell(w, 2, 0);
    world_rounds(w, 100);
    cr_assert(qn_driver_keeps(w->member[2].driver, 0, inc));
    cr_assert(!qn_driver_keeps(w->member[2].driver, 0, inc + 1000));
    w->member[1].stopped = false;
    world_tell(w, 1, 0);
    world_go_on(w);
    cr_assert(!qn_driver_keeps(w->member[2].driver, 0, inc));
    cr_assert(!qn_driver_keeps(w->member[1].driver, 0, inc));
    world_end(w);
}

/* ---- one that was replaced and does not know it writes no vote ------------
 */

/* The leader makes no turn; node 1 is about to write its vote for the next
 * one. */
Test(driver_lives, the_fence_is_asked_before_a_vote_is_written)
{
    struct world *w = world_begin(3, true);
    void *before = malloc(QN_VOTE_RECORD_BYTES);
    jmp_buf fence;
    volatile bool fenced = false;
    world_go_on(w);
    w->member[0].stopped = true;
    memcpy(before, w->member[1].vote_record, QN_VOTE_RECORD_BYTES);
    w->member[1].fence = &fence;
    if (setjmp(fence) == 0) {
        world_suspect(w, 1);
        for (uint32_t r = 0; r < 3000; r++) {
            world_rounds(w, 1);
        }
    } else {
        fenced = true;
        /* The step that it has left, as a process that ends would. */
        qn_step_out_release(&w->member[1].driver->out);
    }
    cr_assert(fenced, "it never came to vote");
    cr_assert_eq(memcmp(before, w->member[1].vote_record, QN_VOTE_RECORD_BYTES),
                 0, "nothing was written");
    free(before);
    world_end(w);
}
