/*
 * The driver without faults, or nearly: order, pieces, laggards, bounded turns.
 */
#include <stdlib.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_group.h"

Test(driver, commands_of_all_origins_come_in_one_order)
{
    group_start(3);
    for (uint64_t x = 0; x < 300; x++) {
        submit_number((uint32_t)(x % 3), x);
        rounds(x % 7 == 0);
    }
    rounds(50);
    check_equal_logs(300);
    group_stop();
}

Test(driver, a_group_of_one_decides_by_itself)
{
    group_start(1);
    for (uint64_t x = 0; x < 100; x++) {
        submit_number(0, x);
    }
    rounds(10);
    check_equal_logs(100);
    group_stop();
}

Test(driver, groups_of_two_and_five_agree)
{
    for (uint32_t n = 2; n <= 5; n += 3) {
        memset(node, 0, sizeof node);
        group_start(n);
        for (uint64_t x = 0; x < 200; x++) {
            submit_number((uint32_t)(x % n), x);
        }
        rounds(100);
        check_equal_logs(200);
        group_stop();
    }
}

Test(driver, commands_far_longer_than_a_lane_pass_in_fragments)
{
    static uint8_t big[3u << 20];
    group_start(3);
    for (uint32_t i = 0; i < 3; i++) {
        memset(big, (int)('a' + i), sizeof big);
        cr_assert(submit(i, big, sizeof big - i));
        submit_number(i, i);
    }
    rounds(20000);
    check_equal_logs(6);
    for (uint32_t k = 0; k < 6; k++) {
        const struct logged *l = &node[2].log[k];
        cr_assert_eq(l->len, l->seq == 1 ? sizeof big - l->origin : 8);
    }
    struct qn_driver_status st;
    qn_driver_status(node[2].driver, &st);
    cr_assert_eq(st.fetches, 0, "the pieces came, yet were fetched");
    group_stop();
}

/* The acceptor drops what waits for its children beyond the bound: they ask. */
Test(driver, what_waits_for_the_tree_is_bounded)
{
    enum { BYTES = 9 << 20, COUNT = 3 };
    uint8_t *big = calloc(1, BYTES);
    struct qn_driver_kept k;
    group_start(3);
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert(submit(i, big, BYTES));
    }
    rounds(20000);
    qn_driver_kept(node[1].driver, &k);
    cr_assert_gt(k.bcast_dropped, 0);
    cr_assert_leq(k.bcast.most, k.bcast.max);
    cr_assert_gt(k.bcast.most, k.bcast.max / 2);
    check_equal_logs(COUNT);
    group_stop();
    free(big);
}

/* FILL of this batch takes longer than T_FETCH (50 ms of these rounds). */
Test(driver, a_batch_that_takes_long_to_come_is_asked_for_once)
{
    enum { BYTES = 8 << 20 };
    uint8_t *big = calloc(1, BYTES);
    group_start(3);
    node[2].stopped = true;
    cr_assert(submit(0, big, BYTES));
    rounds(20000);
    cr_assert_eq(node[0].logged, 1);
    node[2].stopped = false;
    uint32_t count = 0;
    for (; node[2].logged == 0 && count < 20000; count++) {
        rounds(1);
    }
    check_equal_logs(1);
    cr_assert_gt(count, 1000, "too fast to show anything: %u rounds", count);
    struct qn_driver_status st;
    qn_driver_status(node[2].driver, &st);
    cr_assert_eq(st.fetches, 1);
    group_stop();
    free(big);
}

Test(driver, a_learner_that_stood_still_catches_up)
{
    group_start(3);
    node[2].stopped = true;
    for (uint64_t x = 0; x < 3000; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    rounds(20);
    cr_assert_eq(node[0].logged, 3000, "others go on: %u", node[0].logged);
    cr_assert_lt(node[2].logged, 3000);
    node[2].stopped = false;
    rounds(3000);
    check_equal_logs(3000);
    struct qn_driver_status st;
    qn_driver_status(node[2].driver, &st);
    cr_assert_gt(st.fetches, 0);
    group_stop();
}

Test(driver, a_node_that_catches_up_submits_meanwhile)
{
    group_start(3);
    node[2].stopped = true;
    for (uint64_t x = 0; x < 3000; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    rounds(20);
    node[2].stopped = false;
    for (uint64_t x = 0; x < 500; x++) {
        submit_number(2, x);
        rounds(x % 5 == 0);
    }
    rounds(3000);
    check_equal_logs(3500);
    group_stop();
}

/* A turn applies as much as QN_TURN_WORK, and finishes a step of two slots. */
static void turns_are_bounded(uint32_t work_of_each)
{
    work = work_of_each;
    group_start(3);
    for (uint64_t x = 0; x < 1200; x++) {
        for (uint32_t i = 0; i < 3; i++) {
            submit_number(i, x);
        }
    }
    for (uint32_t r = 0; r < 4000 && node[2].logged < 3600; r++) {
        now += 100 * QN_US;
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t before = node[i].logged;
            one_turn(i);
            uint32_t did = node[i].logged - before;
            cr_assert_leq(did, QN_TURN_WORK / work + 2 * 64, "node %u", i);
        }
    }
    rounds(100);
    check_equal_logs(3600);
    group_stop();
    work = 1;
}

Test(driver, no_turn_applies_more_than_its_share)
{
    turns_are_bounded(QN_TURN_WORK / 4);
    memset(node, 0, sizeof node);
    turns_are_bounded(QN_TURN_WORK);
}

/* What a turn has left to apply needs no doorbell and no message. */
Test(driver, what_a_turn_left_is_pending)
{
    group_start(1);
    for (uint64_t x = 0; x < 2000; x++) {
        submit_number(0, x);
    }
    one_turn(0);
    cr_assert_leq(node[0].logged, QN_TURN_WORK + 2 * 64);
    for (uint32_t i = 0; i < 100 && qn_driver_pending(node[0].driver); i++) {
        one_turn(0);
    }
    check_equal_logs(2000);
    group_stop();
}

Test(driver, held_learns_are_applied_after_release)
{
    group_start(3);
    qn_driver_hold_learns(node[2].driver, true);
    submit_number(0, 7);
    rounds(500);
    cr_assert_eq(node[0].logged, 1);
    cr_assert_eq(node[2].logged, 0);
    cr_assert(!qn_driver_pending(node[2].driver));
    qn_driver_hold_learns(node[2].driver, false);
    rounds(500);
    check_equal_logs(1);
    group_stop();
}

Test(driver, nothing_is_decided_while_the_acceptor_stands_still)
{
    group_start(3);
    node[1].stopped = true;
    submit_number(0, 1);
    submit_number(2, 2);
    rounds(1000);
    cr_assert_eq(node[0].logged + node[2].logged, 0);
    node[1].stopped = false;
    rounds(100);
    check_equal_logs(2);
    group_stop();
}

Test(driver, credit_ends_and_comes_back)
{
    group_start(3);
    node[1].stopped = true;
    uint32_t taken = 0;
    uint64_t x = 0;
    while (qn_driver_room(node[2].driver)) {
        cr_assert(submit(2, &x, sizeof x), "room, but refused");
        taken++;
        cr_assert_leq(taken, 4096);
    }
    cr_assert(!submit(2, &x, sizeof x), "no room, but taken");
    node[1].stopped = false;
    rounds(300);
    cr_assert_eq(node[2].mine, taken);
    cr_assert(qn_driver_room(node[2].driver));
    group_stop();
}

Test(driver, tell_reaches_the_peer_outside_the_log)
{
    group_start(3);
    const struct qn_slice text = {(const uint8_t *)"hello", 5};
    cr_assert_eq(qn_driver_send_peer_message(node[0].driver, 2, text), QN_OK);
    rounds(2);
    cr_assert_eq(node[2].told, 1);
    cr_assert_str_eq(node[2].told_text, "hello");
    cr_assert_eq(node[1].told, 0);
    group_stop();
}

Test(driver, what_was_received_stays_as_it_is)
{
    group_start(3);
    peers_are_wild = true;
    const struct qn_slice text = {(const uint8_t *)"hello", 5};
    cr_assert_eq(qn_driver_send_peer_message(node[0].driver, 2, text), QN_OK);
    qn_driver_flush(node[0].driver, now);
    one_turn(2);
    cr_assert_str_eq(node[2].told_text, "hello");
    group_stop();
}

Test(driver, the_third_node_may_end_and_the_others_go_on)
{
    group_start(3);
    submit_number(0, 1);
    rounds(20);
    node[2].stopped = true;
    qn_driver_down(node[0].driver, 2, now);
    qn_driver_down(node[1].driver, 2, now);
    for (uint64_t x = 0; x < 500; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    rounds(20);
    cr_assert_eq(node[0].logged, 501);
    cr_assert_eq(node[1].logged, 501);
    group_stop();
}

/* The leader has not read ACCEPTED when the acceptor runs wild: what node 2 has
 * learned tells it, whatever the acceptor has written over its own positions.
 */
Test(driver, what_a_wild_acceptor_has_decided_comes_from_the_others)
{
    group_start(3);
    submit_number(0, 1);
    for (int i = 0; i < 3; i++) {
        one_turn(0);
        one_turn(1);
        one_turn(2);
    }
    submit_number(0, 2);
    one_turn(0);
    one_turn(1);
    one_turn(2);
    cr_assert_eq(node[2].logged, node[0].logged + 1);
    memset(qn_outbox_state(node[1].own), 0, sizeof(struct qn_outbox_state));
    memset(qn_outbox_lane(node[1].own, 0, QN_LANE_DIRECT), 0, CELLS * 64);
    node[1].stopped = true;
    qn_driver_down(node[0].driver, 1, now);
    qn_driver_down(node[2].driver, 1, now);
    rounds(200);
    cr_assert_eq(node[0].logged, 2);
    check_equal_logs(2);
    group_stop();
}
