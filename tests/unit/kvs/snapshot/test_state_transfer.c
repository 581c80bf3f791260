/* Rejoining, as long as nobody fails. */
#include <stdlib.h>

#include "core/base/err.h"
#include "tests/unit/kvs/snapshot/state_transfer_world.h"

/* ---- getting there ---- */

static void one_joins(uint32_t keys, uint32_t writes)
{
    struct node *n = &w.node[2];
    world_begin(keys);
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    cr_assert(status_of(n).joining);
    run_until_joined(n, 1, writes);
    world_step(0);
    expect_same(n, &w.node[0]);
    cr_assert(!status_of(n).joining);
    cr_assert_eq(status_of(n).attempts, 1);
    expect_no_snapshot_iter();
    world_end();
}

Test(state_transfer, a_new_life_gets_everything_while_others_write,
     .timeout = 120)
{
    one_joins(1, 0);
    one_joins(50, 3);
    one_joins(20000, 40);
}

Test(state_transfer, with_100000_keys_under_writes, .timeout = 120)
{
    one_joins(100000, 200);
}

Test(state_transfer, one_that_fell_behind_serves_until_the_end)
{
    struct node *n = &w.node[1];
    world_begin(20000);
    n->stopped = true;
    world_step(5000);
    n->stopped = false;
    qn_slot_t stood = n->applied;
    struct qn_store *old = n->store;
    qn_state_transfer_begin(n->state_transfer, w.slots, w.now);
    uint64_t keys = 0;
    while (status_of(n).joined == 0) {
        cr_assert_eq(n->store, old);
        n->applied = w.slots; /* the log does not help it */
        world_step(0);
        /* One chunk a turn: an entry has 40 bytes at least. */
        cr_assert_leq(status_of(n).keys, keys + QN_SNAPSHOT_CHUNK / 40);
        keys = status_of(n).keys;
    }
    cr_assert_lt(stood, n->applied);
    expect_same(n, &w.node[0]);
    world_end();
}

/* Turns until it has joined; the donor's CPU clock runs whenever it is looked
 * at, so that half of its time is for others. */
static uint32_t turns_to_join(uint32_t log_used, uint32_t *tells_most)
{
    struct node *n = &w.node[2];
    w.paced = true;
    world_begin(100000);
    w.look_cpu = QN_MS / 2;
    w.log_used = log_used;
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    uint32_t turns = 0;
    *tells_most = 0;
    for (; status_of(n).joined == 0; turns++) {
        cr_assert_lt(turns, 20000);
        world_step(1);
        for (qn_node_t i = 0; i < NODES; i++) {
            *tells_most = QN_MAX(*tells_most, (uint32_t)w.node[i].tells);
        }
    }
    w.paced = false;
    expect_same(n, &w.node[0]);
    world_end();
    return turns;
}

/* The leader never gets further than what has been sent allows: so it does not
 * take a full log to hurry. */
Test(state_transfer, a_donor_spares_its_clients_unless_writes_wait_for_it,
     .timeout = 120)
{
    uint32_t one;
    uint32_t many;
    uint32_t spared = turns_to_join(50, &one);
    uint32_t hurried = turns_to_join(100, &many);
    cr_assert_eq(one, 1);
    cr_assert_gt(many, 1);
    cr_assert_gt(spared, 3 * hurried, "%u turns, %u in a hurry", spared,
                 hurried);
}

Test(state_transfer, a_full_channel_only_slows_it)
{
    struct node *n = &w.node[2];
    world_begin(10000);
    w.lane_room = 1;
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    run_until_joined(n, 1, 5);
    world_step(0);
    expect_same(n, &w.node[0]);
    world_end();
}

Test(state_transfer, long_values_travel)
{
    struct node *n = &w.node[2];
    world_begin(20);
    for (uint32_t i = 0; i < 20; i++) {
        log_add(0, i, 299000);
    }
    world_step(0);
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    run_until_joined(n, 1, 1);
    world_step(0);
    expect_same(n, &w.node[0]);
    world_end();
}

Test(state_transfer, a_flush_does_not_make_it_begin_again)
{
    struct node *n = &w.node[2];
    world_begin(30000);
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    world_step(0);
    world_step(10);
    world_step(10);
    log_add(3, 0, 0);
    run_until_joined(n, 1, 10);
    world_step(0);
    expect_same(n, &w.node[0]);
    cr_assert_eq(status_of(n).attempts, 1);
    cr_assert_eq(n->discards, 0);
    expect_no_snapshot_iter();
    world_end();
}

/* ---- the log that a joiner needs ---- */

Test(state_transfer, the_log_is_held_from_the_cut_on_until_the_joiner_goes_on)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    struct node *donor = donor_of(n);
    cr_assert(donor->holds);
    cr_assert_eq(donor->hold_for, 2);
    qn_slot_t at = donor->hold_at;
    while (status_of(donor).giving) {
        world_step(3);
    }
    cr_assert_eq(status_of(donor).given, 1);
    cr_assert_eq(donor->hold_done, QN_HOLD_DONE);
    cr_assert(donor->holds, "the joiner has yet to read the last chunks");
    cr_assert_eq(donor->hold_at, at);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(w.node[i].holds, &w.node[i] == donor);
    }
    run_until_joined(n, 1, 0);
    world_end();
}

/* ---- how much a cut may keep ---- */

/* A joiner that gets a turn in eight, and a chunk in it. */
static void slow_step(struct node *n, uint32_t writes)
{
    static uint32_t step;
    w.lane_room = 1;
    n->stopped = ++step % 8 != 0;
    world_step(writes);
    n->stopped = false;
}

/* One joins while each turn replaces `writes` keys, and chunks go one by one.
 * Then the writes stop. @return the donor's numbers. */
static struct world_status join_under_writes(uint64_t log_bytes,
                                             uint32_t writes)
{
    struct node *n = &w.node[2];
    w.log_bytes = log_bytes;
    world_begin(20000);
    loses_all(n);
    dies(&w.node[0]);
    dies(&w.node[1]);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    for (uint32_t i = 0; i < 1000 && status_of(n).joined == 0; i++) {
        struct qn_store_stats st;
        struct qn_snapshot_iter_facts f = {0};
        struct world_status of = status_of(&w.node[3]);
        (void)qn_snapshot_iter_facts(w.node[3].store, &f);
        qn_store_stats(w.node[3].store, &st);
        cr_assert_eq(of.cut_bytes, f.held_bytes);
        cr_assert(f.keys == 0 || of.cut_bytes_max != 0);
        cr_assert_leq(of.cut_bytes, of.cut_bytes_max + 200);
        for (uint32_t k = 0; k < writes; k++) {
            log_add(0, (uint32_t)draw(&w.random) % w.keys, 60);
        }
        slow_step(n, 0);
    }
    run_until_joined(n, 1, 0);
    world_step(0);
    expect_same(n, &w.node[3]);
    expect_no_snapshot_iter();
    struct world_status of = status_of(&w.node[3]);
    cr_assert_eq(of.cut_bytes_max, 0, "it gives none");
    world_end();
    w.log_bytes = 0;
    return of;
}

Test(state_transfer, a_cut_keeps_what_the_log_keeps, .timeout = 120)
{
    enum { QUARTER = 20000 * (16 + 30 + QN_STORE_ENTRY_COST) / 4 };
    struct world_status of = join_under_writes(8 << 20, 600);
    cr_assert_eq(of.cuts_anew, 0);
    cr_assert_gt(of.cut_bytes_most, 3 * QUARTER / 2, "%llu",
                 (unsigned long long)of.cut_bytes_most);
}

Test(state_transfer, a_cut_that_keeps_too_much_is_begun_anew, .timeout = 120)
{
    struct world_status of = join_under_writes(1, 600);
    cr_assert_geq(of.cuts_anew, 1);
    cr_assert_eq(of.given, 1);
}

/* A join takes longer than from one flush to the next. */
static uint32_t attempts_under_flushes(uint64_t log_bytes)
{
    struct node *n = &w.node[2];
    w.log_bytes = log_bytes;
    world_begin(20000);
    loses_all(n);
    dies(&w.node[0]);
    dies(&w.node[1]);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    uint32_t flushes = 0;
    for (uint32_t i = 1; status_of(n).joined == 0; i++) {
        cr_assert_lt(i, 20000);
        if (i % 100 == 0) {
            log_add(3, 0, 0);
            flushes++;
        }
        slow_step(n, 30);
    }
    world_step(0);
    expect_same(n, &w.node[3]);
    expect_no_snapshot_iter();
    cr_assert_geq(flushes, 3);
    uint32_t attempts = (uint32_t)status_of(n).attempts;
    world_end();
    w.log_bytes = 0;
    return attempts;
}

Test(state_transfer, ends_while_all_is_flushed_again_and_again, .timeout = 120)
{
    cr_assert_eq(attempts_under_flushes(64 << 20), 1);
}

Test(state_transfer, ends_under_flushes_with_a_small_log_too, .timeout = 120)
{
    uint32_t attempts = attempts_under_flushes(1);
    cr_assert_geq(attempts, 2);
    cr_assert_leq(attempts, 20);
}

/* The only donor tells the second one to come again, and it does. */
Test(state_transfer, a_second_one_comes_again_until_it_is_served,
     .timeout = 120)
{
    world_begin(20000);
    dies(&w.node[3]);
    dies(&w.node[0]);
    struct node *a = &w.node[2];
    struct node *b = NULL;
    loses_all(a);
    qn_state_transfer_begin(a->state_transfer, 0, w.now);
    donor_of(a);
    w.node[0].down = false; /* a new incarnation */
    b = &w.node[0];
    loses_all(b);
    for (qn_node_t i = 1; i < 3; i++) {
        qn_state_transfer_peer_up(w.node[i].state_transfer, 0);
    }
    qn_time_t since = w.now;
    qn_state_transfer_begin(b->state_transfer, 0, w.now);
    while (status_of(a).joined == 0) {
        slow_step(a, 5);
        cr_assert_lt(w.now - since, 20 * QN_S);
    }
    w.lane_room = LANE_MAX;
    /* Each pause is for two who cannot help: a donor, and who joins. */
    uint64_t pauses = (w.now - since) / QN_STATE_TRANSFER_RETRY;
    cr_assert_geq(pauses, 2);
    cr_assert_leq(status_of(b).attempts, 2 * (pauses + 5));
    qn_time_t free_at = w.now;
    while (status_of(b).keys == 0) {
        world_step(5);
        cr_assert_leq(w.now - free_at, 2 * QN_STATE_TRANSFER_RETRY);
    }
    run_until_joined(b, 1, 5);
    world_step(0);
    expect_same(a, &w.node[1]);
    expect_same(b, &w.node[1]);
    expect_no_snapshot_iter();
    world_end();
}

Test(state_transfer, two_at_once_are_served_one_after_the_other)
{
    world_begin(5000);
    for (uint32_t i = 1; i < 3; i++) {
        loses_all(&w.node[i]);
        qn_state_transfer_begin(w.node[i].state_transfer, 0, w.now);
    }
    dies(&w.node[3]);
    run_until_joined(&w.node[1], 1, 5);
    run_until_joined(&w.node[2], 1, 5);
    world_step(0);
    expect_same(&w.node[1], &w.node[0]);
    expect_same(&w.node[2], &w.node[0]);
    cr_assert_eq(status_of(&w.node[0]).given + status_of(&w.node[1]).given +
                     status_of(&w.node[2]).given,
                 2);
    cr_assert_lt(w.now, QN_STATE_TRANSFER_SILENCE, "nobody was given up");
    expect_no_snapshot_iter();
    world_end();
}

/* ---- whom it asks ---- */

Test(state_transfer, the_busy_one_is_asked_last)
{
    world_begin(3000);
    struct node *n = &w.node[2];
    w.node[3].busy = true;
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    cr_assert_eq(donor_of(n), &w.node[0], "3 would be the next");
    dies(&w.node[0]);
    dies(&w.node[1]);
    run_until_joined(n, 1, 0);
    cr_assert_eq(status_of(&w.node[3]).given, 1);
    world_end();
}

Test(state_transfer, who_is_loading_or_behind_helps_nobody)
{
    world_begin(3000);
    struct node *n = &w.node[2];
    loses_all(n);
    loses_all(&w.node[3]);
    qn_state_transfer_begin(n->state_transfer, w.slots + 1, w.now);
    for (uint32_t i = 0; i < 20; i++) {
        world_step(0);
        expect_no_snapshot_iter_active();
    }
    cr_assert_geq(status_of(n).attempts, 3);
    cr_assert_eq(status_of(n).joined, 0);
    log_random();
    log_random();
    run_until_joined(n, 1, 0);
    expect_same(n, &w.node[1]);
    world_end();
}
