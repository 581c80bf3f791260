/* The state of a member is a toy: the transfer knows nothing of it. Donors
 * refuse, die, are silent and send damaged chunks. */
#include <stdlib.h>

#include "core/base/err.h"
#include "paxos/member/transfer/state_transfer_internal.h"
#include "tests/unit/paxos/member/transfer/transfer_world.h"

enum { COUNT = 200000 /* numbers: 25 chunks */, LONG = 5000 /* steps */ };

static struct node *const joiner = &w.node[2];

static void joins(void)
{
    loses_all(joiner);
    qn_state_transfer_begin(joiner->x, 0, w.now);
}

/* Until the joiner has read some chunks. @return the donor. */
static struct node *donor(void)
{
    for (uint32_t i = 0; status_of(joiner).chunks < 2; i++) {
        cr_assert_lt(i, 100);
        world_step(1);
    }
    qn_node_t d = status_of(joiner).donor;
    cr_assert_lt(d, NODES);
    return &w.node[d];
}

Test(transfer_dialogue, any_state_travels_while_commands_are_applied)
{
    static const uint32_t count[] = {0, 1, 8000, 8184, 8185, COUNT};
    for (uint32_t i = 0; i < sizeof count / sizeof count[0]; i++) {
        world_begin(count[i]);
        joins();
        cr_assert(status_of(joiner).joining);
        run_until_joined(joiner, LONG);
        expect_same(joiner, &w.node[0]);
        cr_assert(!status_of(joiner).joining);
        cr_assert_eq(status_of(joiner).attempts, 1);
        cr_assert_eq(joiner->abandons, 0);
        cr_assert_geq(joiner->resumed_last, 100, "the library's state came");
        world_end();
    }
}

Test(transfer_dialogue, a_member_that_has_a_state_keeps_it_until_the_end)
{
    world_begin(COUNT);
    joiner->stopped = true;
    world_step(5000);
    joiner->stopped = false;
    const struct toy *old = joiner->toy;
    qn_state_transfer_begin(joiner->x, w.slots, w.now);
    while (joiner->installs == 0) {
        cr_assert_eq(joiner->toy, old);
        world_step(1);
    }
    world_step(0);
    expect_same(joiner, &w.node[0]);
    world_end();
}

Test(transfer_dialogue, when_the_donor_dies_another_is_asked)
{
    world_begin(COUNT);
    joins();
    struct node *first = donor();
    dies(first);
    cr_assert_eq(joiner->abandons, 1);
    run_until_joined(joiner, LONG);
    expect_same(joiner, &w.node[1 - first->self]);
    cr_assert_eq(status_of(joiner).attempts, 2);
    cr_assert_eq(status_of(joiner).error, QN_OK, "no callback failed");
    world_end();
}

Test(transfer_dialogue, a_silent_donor_is_given_up_after_a_second)
{
    world_begin(COUNT);
    joins();
    struct node *first = donor();
    qn_time_t since = w.now;
    first->stopped = true;
    while (status_of(joiner).attempts == 1) {
        world_step(0);
    }
    cr_assert_geq(w.now - since, QN_STATE_TRANSFER_SILENCE - 20 * QN_MS);
    cr_assert_leq(w.now - since, QN_STATE_TRANSFER_SILENCE + 20 * QN_MS);
    run_until_joined(joiner, LONG);
    first->stopped = false;
    world_step(0);
    world_step(0);
    cr_assert(!first->cuts, "it was told");
    world_end();
}

Test(transfer_dialogue, a_damaged_chunk_is_found_and_another_is_asked)
{
    /* The first one is short; the others as they come. */
    for (uint32_t i = 0; i < 20; i += 3) {
        world_begin(COUNT);
        w.damage = i;
        joins();
        run_until_joined(joiner, LONG);
        expect_same(joiner, &w.node[0]);
        cr_assert_eq(status_of(joiner).attempts, 2);
        cr_assert_eq(joiner->abandons, i > 0, "%u", i);
        world_end();
    }
}

Test(transfer_dialogue, a_donor_without_a_state_refuses)
{
    world_begin(COUNT);
    loses_all(&w.node[0]); /* asked first */
    joins();
    run_until_joined(joiner, LONG);
    expect_same(joiner, &w.node[1]);
    cr_assert_eq(status_of(joiner).attempts, 2);
    cr_assert_eq(w.node[0].begins, 0);
    world_end();
}

Test(transfer_dialogue, the_library_s_state_of_another_group_is_refused)
{
    world_begin(COUNT);
    w.node[0].library_nodes = NODES + 1;
    joins();
    run_until_joined(joiner, LONG);
    expect_same(joiner, &w.node[1]);
    cr_assert_eq(status_of(joiner).attempts, 2);
    cr_assert_eq(joiner->abandons, 0, "nothing was read of it");
    world_end();
}

/* A donor that falls behind and joins itself: what it gives is of a state that
 * it has no more. */
Test(transfer_dialogue, a_donor_that_installs_a_snapshot_gives_its_own_up)
{
    world_begin(COUNT);
    joins();
    struct node *first = donor();
    struct node *second = &w.node[1 - first->self];
    joiner->stopped = true; /* so that the donation lasts */
    qn_state_transfer_begin(first->x, w.slots, w.now);
    for (uint32_t i = 0; first->installs == 0; i++) {
        cr_assert_lt(i, 500);
        world_step(1);
    }
    cr_assert_eq(first->begins, first->ends);
    cr_assert_eq(status_of(first).anew, 1);
    joiner->stopped = false;
    run_until_joined(joiner, LONG);
    expect_same(joiner, second);
    world_end();
}

/* Also when the donor makes no chunk, because the joiner takes none. */
Test(transfer_dialogue, a_cut_that_its_user_gives_up_ends_at_once)
{
    world_begin(COUNT);
    joins();
    struct node *d = donor();
    joiner->stopped = true;
    for (uint32_t i = 0; i < 20; i++) {
        world_step(1);
    }
    cr_assert(d->cuts && d->holds);
    fail_at(d, PROGRESS, 1, QN_EABORTED, 0);
    world_step(1);
    cr_assert(!d->cuts && !d->holds);
    cr_assert_eq(status_of(d).anew, 1);
    joiner->stopped = false;
    run_until_joined(joiner, LONG);
    cr_assert(w.node[0].holds != w.node[1].holds, "until it has gone on");
    world_end();
}

/* ---- forged messages ---- */

static void forge(const struct qn_library_state *s, qn_slot_t position,
                  const uint8_t *garbage, size_t bytes)
{
    static struct state_transfer_chunk m;
    struct qn_state_transfer_status st = status_of(joiner);
    uint8_t *content = m.bytes + QN_STATE_TRANSFER_HEAD;
    m.head = (struct state_transfer_head){.kind = TRANSFER_CHUNK,
                                          .attempt = (uint32_t)st.attempts};
    if (s != NULL) {
        bytes = qn_library_state_encode(s, content);
    } else {
        memcpy(content, garbage, bytes);
    }
    size_t len = qn_chunk_seal(m.bytes, QN_CHUNK_LIBRARY, 0, position, bytes);
    cr_assert(qn_state_transfer_on_message(
        joiner->x, st.donor,
        (struct qn_slice){(const uint8_t *)&m, sizeof m.head + len}, w.now));
    (void)qn_state_transfer_turn(joiner->x, w.now);
}

/* The library's state behind a right checksum is not believed. */
Test(transfer_dialogue, garbage_as_the_library_s_state_is_refused)
{
    uint64_t random = 4711;
    world_begin(1);
    joins();
    static struct qn_library_state s;
    s = (struct qn_library_state){.nodes = NODES, .resume.position = 50};
    for (uint32_t i = 0; i < 1000; i++) {
        uint8_t garbage[400];
        for (uint32_t k = 0; k < sizeof garbage; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            garbage[k] = (uint8_t)(random >> 56);
        }
        while (status_of(joiner).donor == NODES) {
            w.now += QN_MS;
            (void)qn_state_transfer_turn(joiner->x, w.now);
        }
        uint64_t attempts = status_of(joiner).attempts;
        if (i % 2 == 0) {
            forge(&s, 51, NULL, 0); /* of another slot than its chunk */
        } else {
            forge(NULL, 50, garbage, random % sizeof garbage);
        }
        cr_assert(!status_of(joiner).comes);
        cr_assert(status_of(joiner).donor == NODES ||
                      status_of(joiner).attempts > attempts,
                  "%u: it asks another one", i);
        lanes_clear(joiner->self);
    }
    while (status_of(joiner).donor == NODES) {
        w.now += QN_MS;
        (void)qn_state_transfer_turn(joiner->x, w.now);
    }
    forge(&s, 50, NULL, 0);
    cr_assert(status_of(joiner).comes, "that one was right");
    world_end();
}

/* Any bytes behind a right first one: dropped, or a wish to be served. */
Test(transfer_dialogue, malformed_messages_do_no_harm)
{
    uint64_t random = 42;
    world_begin(2000);
    joins();
    for (uint32_t i = 0; i < 5000; i++) {
        uint8_t bytes[64];
        for (uint32_t k = 0; k < sizeof bytes; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[k] = random >> 62 == 0 ? (uint8_t)(random >> 50) : k == 4;
        }
        bytes[0] = (uint8_t)(16 + (random >> 40) % 6);
        size_t len = 1 + (random >> 33) % sizeof bytes;
        uint8_t *own = malloc(len); /* of exactly its size */
        memcpy(own, bytes, len);
        struct node *to = &w.node[i % NODES];
        qn_node_t from = (qn_node_t)((i + 1 + (random >> 30) % 2) % NODES);
        cr_assert(qn_state_transfer_on_message(
            to->x, from, (struct qn_slice){own, len}, w.now));
        free(own);
        world_step(0);
    }
    if (status_of(joiner).joined == 0) {
        run_until_joined(joiner, LONG);
    }
    world_step(0);
    expect_same(joiner, &w.node[0]);
    world_end();
}

Test(transfer_dialogue, messages_of_others_are_left_alone)
{
    world_begin(1);
    static const uint8_t first[] = {0, 1, 15, 22, 200};
    for (uint32_t i = 0; i < sizeof first; i++) {
        uint8_t bytes[32] = {first[i]};
        cr_assert(!qn_state_transfer_on_message(
            joiner->x, 1, (struct qn_slice){bytes, 32}, w.now));
    }
    cr_assert(!qn_state_transfer_on_message(joiner->x, 1,
                                            (struct qn_slice){NULL, 0}, w.now));
    world_end();
}

/* ---- memory ---- */

Test(transfer_dialogue, both_ends_are_one_block_of_a_known_size)
{
    world_begin(COUNT);
    cr_assert_eq(w.blocks, NODES);
    cr_assert_leq(w.bytes, NODES * QN_STATE_TRANSFER_BYTES);
    cr_assert_gt(w.bytes, NODES * QN_STATE_TRANSFER_BYTES * 9 / 10,
                 "and not far from it");
    joins();
    qn_state_transfer_begin(w.node[0].x, w.slots + 2, w.now);
    run_until_joined(joiner, LONG);
    cr_assert_eq(w.allocations, NODES, "nothing is allocated later");
    world_end();
}

Test(transfer_dialogue, without_memory_there_is_none)
{
    world_begin(1);
    struct qn_state_transfer *x = NULL;
    w.allocation_fails = w.allocations + 1;
    cr_assert_eq(world_member_again(&x), QN_ENOMEM);
    cr_assert_null(x);
    world_end();
}

/* A joiner that reads slowly: the queue fills, and the donor waits. */
Test(transfer_dialogue, a_slow_joiner_keeps_no_more_than_its_queue)
{
    world_begin(COUNT);
    joins();
    fail_at(joiner, READ, 4, QN_ENOMEM, 1); /* it reads nothing more */
    for (uint32_t i = 0; i < 200; i++) {
        world_step(1);
    }
    const struct node *d = &w.node[status_of(joiner).donor];
    const size_t whole =
        (QN_STATE_TRANSFER_QUEUE + 4) * (size_t)QN_STATE_TRANSFER_CHUNK;
    cr_assert_leq(d->given, whole);
    cr_assert_geq(d->given, QN_STATE_TRANSFER_QUEUE / 2 *
                                (size_t)QN_STATE_TRANSFER_CHUNK);
    joiner->fail[READ].at = 0;
    run_until_joined(joiner, LONG);
    expect_same(joiner, &w.node[0]);
    cr_assert_eq(status_of(joiner).attempts, 1);
    world_end();
}

/* ---- a user without a consistent cut ---- */

Test(transfer_dialogue, without_a_consistent_cut_the_donor_applies_nothing)
{
    w.no_cut = true;
    world_begin(COUNT);
    joins();
    struct node *d = donor();
    qn_slot_t at = d->toy->applied;
    cr_assert(qn_state_transfer_suspends(d->x));
    for (uint32_t i = 0; d->cuts; i++) {
        cr_assert_eq(d->toy->applied, at);
        world_step(5);
    }
    cr_assert_gt(d->suspended, 2);
    cr_assert(!qn_state_transfer_suspends(d->x), "over");
    world_step(0);
    cr_assert_eq(d->toy->applied, w.slots, "it catches up");
    while (status_of(joiner).joined == 0) {
        world_step(1);
    }
    world_step(0);
    expect_same(joiner, d);
    cr_assert_eq(w.node[1 - d->self].suspended, 0);
    world_end();
}

Test(transfer_dialogue, a_leader_without_a_consistent_cut_refuses)
{
    w.no_cut = true;
    world_begin(COUNT);
    w.leaders = 2; /* node 1; the other one is asked first, and is silent */
    w.node[1].may_not_suspend = true;
    w.node[0].stopped = true;
    joins();
    for (uint32_t i = 0; i < 5000; i++) {
        world_step(1);
    }
    cr_assert_eq(w.node[1].begins, 0);
    cr_assert_eq(w.node[1].toy->applied, w.slots, "it went on");
    cr_assert_geq(status_of(joiner).attempts, 4);
    w.node[0].stopped = false; /* and has lost its state */
    loses_all(&w.node[0]);
    run_until_joined(joiner, LONG);
    cr_assert_eq(w.node[1].begins, 1, "it is alone");
    expect_same(joiner, &w.node[1]);
    world_end();
}

Test(transfer_dialogue, a_leader_that_is_left_alone_gives_its_state)
{
    w.no_cut = true;
    world_begin(COUNT);
    w.leaders = 2;
    w.node[1].may_not_suspend = true;
    dies(&w.node[0]);
    joins();
    run_until_joined(joiner, LONG);
    cr_assert_eq(status_of(joiner).attempts, 1);
    expect_same(joiner, &w.node[1]);
    world_end();
}

/* What a member said of itself in an earlier round counts no more. */
Test(transfer_dialogue, a_leader_is_not_alone_once_another_one_has_a_state)
{
    w.no_cut = true;
    world_begin(COUNT);
    w.leaders = 2;
    w.node[1].may_not_suspend = true;
    loses_all(&w.node[0]);
    joins();
    run_until_joined(joiner, LONG);
    cr_assert_eq(w.node[1].begins, 1, "it was alone");
    qn_state_transfer_begin(w.node[0].x, 0, w.now);
    run_until_joined(&w.node[0], LONG);
    cr_assert_eq(joiner->begins, 1);
    w.node[0].stopped = true;
    joins();
    for (uint32_t i = 0; i < 4000; i++) {
        world_step(1);
    }
    cr_assert_geq(status_of(joiner).attempts, 4);
    cr_assert_eq(w.node[1].begins, 1);
    w.node[0].stopped = false;
    run_until_joined(joiner, LONG);
    cr_assert_eq(w.node[1].begins, 1);
    expect_same(joiner, &w.node[1]);
    world_end();
}

/* Nor what it said in an earlier round of the same join. */
Test(transfer_dialogue, each_round_finds_out_which_members_have_a_state)
{
    w.no_cut = true;
    world_begin(1);
    w.leaders = 2;
    w.node[1].may_not_suspend = true;
    struct toy *kept = w.node[0].toy;
    w.node[0].toy = NULL;
    fail_at(&w.node[1], BEGIN, 1, QN_EIO, 0);
    joins();
    while (status_of(joiner).error == QN_OK) {
        world_step(0);
    }
    w.node[0].toy = kept;
    w.node[0].stopped = true;
    for (uint32_t i = 0; i < 3000; i++) {
        world_step(1);
    }
    cr_assert_eq(w.node[1].begins, 0);
    w.node[0].stopped = false;
    run_until_joined(joiner, LONG);
    expect_same(joiner, &w.node[1]);
    world_end();
}

Test(transfer_dialogue, a_donor_that_must_go_on_gives_its_snapshot_up)
{
    w.no_cut = true;
    world_begin(COUNT);
    joins();
    struct node *d = donor();
    d->may_not_suspend = true; /* it leads now */
    world_step(5);
    cr_assert(!d->cuts);
    cr_assert_eq(d->toy->applied, w.slots);
    run_until_joined(joiner, LONG);
    cr_assert_eq(status_of(joiner).attempts, 2);
    expect_same(joiner, d);
    world_end();
}

/* With one, the question is not even asked. */
Test(transfer_dialogue, with_a_consistent_cut_no_member_suspends_applying)
{
    world_begin(COUNT);
    for (uint32_t i = 0; i < NODES; i++) {
        w.node[i].may_not_suspend = true;
    }
    joins();
    run_until_joined(joiner, LONG);
    for (uint32_t i = 0; i < NODES; i++) {
        cr_assert_eq(w.node[i].suspended, 0);
    }
    cr_assert_eq(status_of(joiner).attempts, 1);
    world_end();
}
