/* Rejoining while donors and joiners die, stand still, or send what is damaged,
 * late or malformed. */
#include <stdlib.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "tests/unit/kvs/snapshot/state_transfer_world.h"

Test(state_transfer_faults, when_the_donor_dies_another_is_asked)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    struct node *donor = donor_of(n);
    dies(donor);
    cr_assert_eq(n->discards, 1);
    run_until_joined(n, 1, 10);
    world_step(0);
    expect_same(n, &w.node[donor->self == 0 ? 1 : 0]);
    cr_assert_eq(status_of(n).attempts, 2);
    world_end();
}

Test(state_transfer_faults, when_the_joiner_dies_its_cut_ends)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    struct node *donor = donor_of(n);
    cr_assert(qn_snapshot_iter_active(donor->store));
    cr_assert(donor->holds);
    dies(n);
    expect_no_snapshot_iter();
    cr_assert(!donor->holds);
    world_end();
}

Test(state_transfer_faults, a_donor_that_stands_still_is_given_up_after_a_while)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    struct node *donor = donor_of(n);
    donor->stopped = true;
    qn_time_t since = w.now;
    while (status_of(n).attempts == 1) {
        world_step(0);
    }
    cr_assert_geq(w.now - since, QN_STATE_TRANSFER_SILENCE - 20 * QN_MS);
    cr_assert_leq(w.now - since, QN_STATE_TRANSFER_SILENCE + 20 * QN_MS);
    run_until_joined(n, 1, 0);
    /* It wakes, says what nobody wants any more, and ends its cut. */
    donor->stopped = false;
    world_step(0);
    world_step(0);
    world_step(0);
    cr_assert_eq(status_of(n).joined, 1);
    expect_no_snapshot_iter();
    cr_assert(!donor->holds);
    world_end();
}

/* A node that stood still itself finds its messages before it judges. */
Test(state_transfer_faults, standing_still_oneself_is_no_silence_of_others)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    donor_of(n);
    for (uint32_t i = 0; i < 10 && status_of(n).joined == 0; i++) {
        w.now += 2 * QN_STATE_TRANSFER_SILENCE;
        for (qn_node_t k = 0; k < NODES; k++) {
            qn_state_transfer_turn(w.node[k].state_transfer,
                                   w.now); /* before it receives */
        }
        for (uint32_t k = 0; k < 6; k++) {
            world_step(0);
        }
    }
    run_until_joined(n, 1, 0);
    cr_assert_eq(status_of(n).attempts, 1);
    world_end();
}

Test(state_transfer_faults,
     a_joiner_that_stands_still_costs_a_cut_for_a_while_only)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    struct node *donor = donor_of(n);
    n->stopped = true;
    for (uint32_t i = 0; status_of(donor).giving; i++) {
        cr_assert_lt(i, 2 * QN_STATE_TRANSFER_SILENCE / QN_MS);
        world_step(1);
    }
    expect_no_snapshot_iter();
    cr_assert(!donor->holds);
    for (uint32_t i = 0; i < 10 * QN_S / QN_MS; i++) {
        world_step(1);
    }
    n->stopped = false;
    qn_time_t since = w.now;
    run_until_joined(n, 1, 10);
    cr_assert_lt(w.now - since, QN_STATE_TRANSFER_SILENCE,
                 "it was told, and waits for nothing");
    cr_assert_eq(status_of(n).attempts, 2);
    world_step(0);
    expect_same(n, donor);
    world_end();
}

Test(state_transfer_faults, damage_is_found_and_another_is_asked)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    w.damage = 7;
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    run_until_joined(n, 1, 5);
    world_step(0);
    expect_same(n, &w.node[0]);
    cr_assert_eq(status_of(n).attempts, 2);
    world_end();
}

Test(state_transfer_faults, alone_it_tries_again_without_haste)
{
    world_begin(100);
    struct node *n = &w.node[2];
    loses_all(n);
    for (qn_node_t i = 0; i < NODES; i++) {
        if (i != 2) {
            dies(&w.node[i]);
        }
    }
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    qn_time_t before = w.now;
    world_step(0);
    cr_assert_gt(n->at, before, "it does not spin");
    cr_assert_leq(n->at, before + 100 * QN_MS);
    w.node[0].down = false;
    qn_state_transfer_peer_up(n->state_transfer, 0);
    run_until_joined(n, 1, 0);
    world_end();
}

static unsigned refusals;

static void count_refusals(void *ctx, enum qn_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    refusals += strstr(line, "no snapshot from") != NULL;
}

/* Nobody has anything to give, and says so each time: for all of it one line
 * per reason, and one again with a count each QN_RATE_LIMIT_PERIOD. */
Test(state_transfer_faults, refusals_do_not_flood_the_log)
{
    enum { SECONDS = 60 };
    world_begin(100);
    struct node *n = &w.node[2];
    refusals = 0;
    qn_log_set(count_refusals, NULL, QN_LOG_DEBUG);
    for (qn_node_t i = 0; i < NODES; i++) {
        loses_all(&w.node[i]);
    }
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    for (qn_time_t end = w.now + SECONDS * QN_S; w.now < end;) {
        world_step(0);
        w.now += QN_MS;
    }
    cr_assert_gt(status_of(n).attempts, 500, "%llu",
                 (unsigned long long)status_of(n).attempts);
    cr_assert_geq(refusals, 2);
    cr_assert_leq(refusals, SECONDS / 10 + 1);
    qn_log_set(NULL, NULL, QN_LOG_DEBUG);
    world_end();
}

/* ---- the end ---- */

Test(state_transfer_faults, it_is_installed_between_two_slots_only)
{
    world_begin(100);
    struct node *n = &w.node[2];
    loses_all(n);
    n->install = QN_EAGAIN;
    w.node[3].cut_not = true;
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    world_step(0);
    world_step(0);
    cr_assert_eq(status_of(n).keys, 0, "nor does a cut begin otherwise");
    w.node[3].cut_not = false;
    for (uint32_t i = 0; i < 50; i++) {
        world_step(0);
    }
    cr_assert_eq(status_of(n).joined, 0);
    cr_assert_eq(status_of(n).keys, 100);
    n->install = QN_OK;
    run_until_joined(n, 1, 0);
    expect_same(n, &w.node[0]);
    world_end();
}

Test(state_transfer_faults, what_is_not_needed_any_more_is_thrown_away)
{
    world_begin(100);
    struct node *n = &w.node[2];
    n->install = QN_ESTALE;
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    for (uint32_t i = 0; i < 50 && status_of(n).joining; i++) {
        world_step(1);
    }
    cr_assert(!status_of(n).joining);
    cr_assert_eq(n->discards, 1);
    cr_assert_eq(n->installs, 0);
    expect_same(n, &w.node[0]);
    world_end();
}

/* After a recovery by force: what has come is of the group that was. */
Test(state_transfer_faults, what_is_forgotten_is_not_installed)
{
    world_begin(100);
    struct node *n = &w.node[2];
    n->install = QN_EAGAIN;
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    for (uint32_t i = 0; i < 50; i++) {
        world_step(1);
    }
    cr_assert(status_of(n).joining && status_of(n).comes);
    qn_state_transfer_forget(n->state_transfer);
    n->install = QN_OK;
    cr_assert(!status_of(n).joining && !status_of(n).comes);
    cr_assert_eq(n->discards, 1);
    for (uint32_t i = 0; i < 50; i++) {
        world_step(1);
    }
    cr_assert_eq(n->installs, 0);
    world_end();
}

Test(state_transfer_faults, what_does_not_fit_is_asked_of_another)
{
    world_begin(100);
    struct node *n = &w.node[2];
    loses_all(n);
    n->install = QN_EINVAL;
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    while (status_of(n).attempts < 3) {
        world_step(0);
    }
    n->install = QN_OK;
    run_until_joined(n, 1, 0);
    world_end();
}

Test(state_transfer_faults, one_that_the_log_has_left_behind_is_begun_anew)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    donor_of(n);
    world_step(10);
    qn_state_transfer_begin(n->state_transfer, 3, w.now);
    cr_assert_eq(n->discards, 0, "it has that");
    qn_slot_t least = w.slots;
    qn_state_transfer_begin(n->state_transfer, least, w.now);
    cr_assert_eq(n->discards, 1);
    run_until_joined(n, 1, 0);
    cr_assert_geq(n->applied, least);
    world_end();
}

Test(state_transfer_faults,
     what_the_log_leaves_behind_before_it_comes_is_refused)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    dies(&w.node[0]);
    dies(&w.node[1]);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    world_turn(n);
    while (!qn_snapshot_iter_active(w.node[3].store)) {
        world_turn(&w.node[3]);
    }
    log_random();
    qn_slot_t least = w.slots;
    qn_state_transfer_begin(n->state_transfer, least, w.now);
    run_until_joined(n, 1, 1);
    cr_assert_eq(status_of(n).attempts, 2);
    cr_assert_geq(n->applied, least);
    world_end();
}

/* ---- messages ---- */

/* Chunks of an attempt that was given up still come, from the same node. */
Test(state_transfer_faults, chunks_of_an_earlier_attempt_are_dropped)
{
    world_begin(20000);
    struct node *n = &w.node[2];
    struct node *donor = &w.node[3];
    loses_all(n);
    dies(&w.node[0]);
    dies(&w.node[1]);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    world_turn(n);
    while (donor->tells == 0) {
        world_turn(donor);
    }
    cr_assert_gt(w.tail[3][2] - w.head[3][2], 0, "chunks are on their way");
    qn_state_transfer_peer_down(n->state_transfer, 3, w.now);
    qn_state_transfer_peer_up(n->state_transfer, 3);
    qn_state_transfer_turn(n->state_transfer,
                           w.now); /* it asks, and then they come */
    run_until_joined(n, 1, 5);
    world_step(0);
    cr_assert_eq(status_of(n).attempts, 2);
    expect_same(n, donor);
    world_end();
}

Test(state_transfer_faults, messages_of_others_are_left_alone)
{
    world_begin(10);
    struct qn_state_transfer *r = w.node[0].state_transfer;
    static const uint8_t ask[32] = {1}, answer[32] = {2}, high[32] = {200};
    cr_assert(
        !qn_state_transfer_on_message(r, 1, (struct qn_slice){ask, 32}, w.now));
    cr_assert(!qn_state_transfer_on_message(r, 1, (struct qn_slice){answer, 32},
                                            w.now));
    cr_assert(!qn_state_transfer_on_message(r, 1, (struct qn_slice){high, 32},
                                            w.now));
    cr_assert(
        !qn_state_transfer_on_message(r, 1, (struct qn_slice){NULL, 0}, w.now));
    world_end();
}

/* Any bytes behind a right first one: dropped, or a wish to be served. */
Test(state_transfer_faults, malformed_messages_do_no_harm)
{
    world_begin(2000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_state_transfer_begin(n->state_transfer, 0, w.now);
    for (uint32_t i = 0; i < 3000; i++) {
        uint8_t bytes[64];
        for (uint32_t b = 0; b < sizeof bytes; b++) {
            bytes[b] = draw(&w.random) % 3 == 0 ? (uint8_t)draw(&w.random)
                                                : (uint8_t)(b == 4);
        }
        bytes[0] = (uint8_t)(16 + draw(&w.random) % 5);
        size_t len = draw(&w.random) % sizeof bytes + 1;
        uint8_t *own = malloc(len); /* of exactly its size */
        memcpy(own, bytes, len);
        struct node *to = &w.node[i % NODES];
        qn_node_t from = (qn_node_t)(draw(&w.random) % NODES);
        if (from != to->self) {
            cr_assert(qn_state_transfer_on_message(
                to->state_transfer, from, (struct qn_slice){own, len}, w.now));
        }
        free(own);
        world_step(0);
    }
    run_until_joined(n, 1, 0);
    world_step(0);
    expect_same(n, &w.node[0]);
    world_end();
}
