/*
 * A node that is refused memory, once, at its n-th call of the allocator, for
 * each n until a run needs no more. Meanwhile a voter is added, some are
 * stopped, one is killed, one is removed. The node goes on, or it has failed
 * and says so (qn_driver_failed): then it is killed, and its next incarnation
 * takes part. Then nodes that get no memory for long. The world checks that all
 * apply the same.
 *
 * QN_DRIVER_REFUSALS=1 runs every n; else some.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

enum { SEATS = 4, NEWCOMER = 3, PATIENCE = 20000 };

/* Refuses its n-th call, or all from there on. */
static struct {
    uint64_t calls, refused_at; /* 0: none is */
    bool for_ever;
    size_t refused_bytes;   /* size of the calls that are refused, */
    uint64_t refused_times; /* ... so often; 0: always */
    uint64_t blocks, refused;
} memory;

static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes != 0 && bytes == memory.refused_bytes) {
        memory.refused++;
        memory.refused_bytes =
            memory.refused == memory.refused_times ? 0 : bytes;
        return NULL;
    }
    if (bytes != 0 && memory.refused_at != 0) {
        memory.calls++;
        if (memory.calls == memory.refused_at ||
            (memory.for_ever && memory.calls > memory.refused_at)) {
            memory.refused++;
            return NULL;
        }
    }
    memory.blocks += p == NULL;
    memory.blocks -= bytes == 0;
    return qn_alloc_malloc.resize(NULL, p, bytes);
}

static const struct qn_alloc refusing = {resize, NULL};

static uint64_t failures; /* drivers that have failed */

/* One that has failed ends, and the next incarnation of its node begins. */
static void replace_failed(struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        const struct world_member *m = &w->member[i];
        if (m->driver != NULL && qn_driver_failed(m->driver) != QN_OK) {
            failures++;
            memory.for_ever = false;
            world_lose(w, i);
            world_restart(w, i);
        }
    }
}

static void goes_on(struct world *w, uint32_t commands)
{
    for (uint32_t k = 0; k < commands; k++) {
        world_load(w, 1);
        replace_failed(w);
    }
}

/* Long commands, for a lane that is full. */
static void goes_on_long(struct world *w, uint32_t commands)
{
    static const uint8_t zeros[1500];
    for (uint32_t k = 0; k < commands; k++) {
        for (qn_node_t i = 0; i < SEATS; i++) {
            if (w->member[i].driver != NULL && !w->member[i].stopped) {
                (void)world_submit(w, i, zeros, sizeof zeros);
            }
        }
        world_rounds(w, 1);
        replace_failed(w);
    }
}

static void settles(struct world *w)
{
    for (uint32_t k = 0; k < PATIENCE && !world_settled(w); k++) {
        world_rounds(w, 1);
        replace_failed(w);
    }
    world_settle(w, 1);
}

static bool is_voter(const struct world *w, qn_node_t at, qn_node_t i)
{
    return (world_status(w, at).voters & qn_driver_bit(i)) != 0;
}

/* Ordered again and again at `at`, whatever becomes of it. */
static void becomes(struct world *w, qn_node_t at, qn_node_t node, bool votes)
{
    for (uint32_t k = 0; k < PATIENCE && is_voter(w, at, node) != votes; k++) {
        if (world_status(w, at).change != QN_CHANGE_PENDING) {
            (void)world_order_of(w, at, node, votes);
        }
        world_rounds(w, 1);
        replace_failed(w);
    }
    const struct qn_driver_status st = world_status(w, at);
    cr_assert_eq(is_voter(w, at, node), votes,
                 "call %lu: node %u by node %u: %d, %s; leader %u",
                 (unsigned long)memory.refused_at, node, at, (int)st.change,
                 qn_strerror(st.change_error), st.leader);
}

static void story(struct world *w)
{
    goes_on(w, 10);
    world_restart(w, NEWCOMER);
    settles(w);
    becomes(w, NEWCOMER, NEWCOMER, true);
    for (qn_node_t i = 0; i < 2; i++) {
        w->member[i].stopped = true;
        goes_on_long(w, 10);
        w->member[i].stopped = false;
        settles(w);
    }
    world_lose(w, 0);
    goes_on(w, 10);
    world_restart(w, 0);
    settles(w);
    becomes(w, 2, NEWCOMER, false);
    world_lose(w, NEWCOMER);
    goes_on(w, 10);
    settles(w);
}

/* @return did it come to that call? */
static bool run(qn_node_t victim, uint64_t n)
{
    struct world *w = world_make(SEATS, true);
    memset(&memory, 0, sizeof memory);
    memory.refused_at = n;
    w->voters = 7;
    w->ring_slots = 64;
    w->silent = true;
    w->member[victim].alloc = &refusing;
    world_start(w);
    story(w);
    world_end(w);
    cr_assert_eq(memory.blocks, 0u, "node %u, call %lu: a leak", victim,
                 (unsigned long)n);
    return memory.refused != 0;
}

static void each(qn_node_t victim)
{
    const bool all = getenv("QN_DRIVER_REFUSALS") != NULL;
    uint64_t n = 1;
    while (run(victim, n)) {
        n += all ? 1 : 1 + n;
    }
    cr_assert_gt(n, 20u);
    if (all) {
        fprintf(stderr, "node %u: %lu calls, %lu failures\n", victim,
                (unsigned long)n, (unsigned long)failures);
    }
}

/* One node, or all. */
static void gets_none(uint64_t nodes)
{
    struct world *w = world_make(SEATS, true);
    memset(&memory, 0, sizeof memory);
    w->voters = 7;
    w->silent = true;
    for (qn_node_t i = 0; i < 3; i++) {
        w->member[i].alloc = (nodes >> i & 1) != 0 ? &refusing : NULL;
    }
    world_start(w);
    goes_on(w, 10);
    memory.refused_at = 1;
    memory.for_ever = true;
    for (uint32_t k = 0; k < 20; k++) {
        for (qn_node_t i = 0; i < 3; i++) {
            (void)world_submit(w, i, &k, sizeof k);
        }
        world_rounds(w, 20);
    }
    cr_expect_gt(memory.refused, 0);
    memory.refused_at = 0;
    replace_failed(w);
    goes_on(w, 10);
    settles(w);
    world_end(w);
    cr_assert_eq(memory.blocks, 0u);
}

Test(driver_memory, nodes_that_get_no_memory_go_on_when_they_do)
{
    for (qn_node_t i = 0; i < 3; i++) {
        gets_none(UINT64_C(1) << i);
    }
    gets_none(7);
}

/* A hole in a channel is worse than a death. */
Test(driver_memory, a_message_that_cannot_wait_for_room_ends_the_node)
{
    struct world *w = world_make(3, true);
    const struct qn_driver *d;
    uint64_t x = 0, seq;
    const struct qn_slice command = {(const uint8_t *)&x, sizeof x};
    memset(&memory, 0, sizeof memory);
    w->silent = true;
    w->member[1].alloc = &refusing;
    world_start(w);
    goes_on(w, 10);
    settles(w);
    const qn_node_t leader = world_status(w, 1).leader;
    cr_assert_neq(leader, 1u);
    w->member[leader].stopped = true;
    memory.refused_bytes = 16 * sizeof(struct qn_msg); /* its first queue */
    d = w->member[1].driver;
    for (uint32_t k = 0; k < 1000 && qn_driver_failed(d) == QN_OK; k++) {
        (void)world_submit(w, 1, &x, sizeof x);
        world_rounds(w, 1);
    }
    cr_assert_eq(qn_driver_failed(d), QN_ENOMEM);
    cr_expect_eq(qn_driver_submit(w->member[1].driver, &command, 1, &seq),
                 QN_ENOMEM);
    cr_expect_not(qn_driver_turn(w->member[1].driver, w->now, 1));
    cr_expect_not(qn_driver_flush(w->member[1].driver, w->now));
    cr_expect_not(qn_driver_pending(w->member[1].driver));
    cr_expect_eq(qn_driver_deadline(d), QN_TIME_NEVER);
    w->member[leader].stopped = false;
    memory.refused_bytes = 0;
    world_lose(w, 1);
    world_go_on(w);
    world_restart(w, 1);
    world_go_on(w);
    world_end(w);
    cr_assert_eq(memory.blocks, 0u);
}

static uint64_t log_bytes(const struct world *w, qn_node_t i)
{
    struct qn_onepaxos_status s;
    qn_onepaxos_status(w->member[i].driver->machine, &s);
    return s.log_bytes;
}

/* What the leader has applied is kept for others; a message that has no memory
 * to wait comes first. */
Test(driver_memory, what_is_kept_for_others_gives_way_to_a_message)
{
    struct world *w = world_make(3, true);
    uint64_t x = 0;
    memset(&memory, 0, sizeof memory);
    w->silent = true;
    w->member[1].alloc = &refusing;
    world_start(w);
    w->member[2].stopped = true; /* for it the log is kept */
    goes_on(w, 10);
    const qn_node_t leader = world_status(w, 1).leader;
    cr_assert_eq(leader, 0u);
    const uint64_t bytes = log_bytes(w, 1);
    cr_assert_gt(bytes, 0u);
    w->member[leader].stopped = true;
    memory.refused_bytes = 16 * sizeof(struct qn_msg); /* its first queue */
    memory.refused_times = 1;
    for (uint32_t k = 0; k < 1000 && memory.refused == 0; k++) {
        (void)world_submit(w, 1, &x, sizeof x);
        world_rounds(w, 1);
    }
    cr_assert_eq(memory.refused, 1u);
    cr_expect_eq(qn_driver_failed(w->member[1].driver), QN_OK);
    cr_expect_leq(log_bytes(w, 1), bytes / 2);
    w->member[leader].stopped = w->member[2].stopped = false;
    goes_on(w, 10);
    settles(w);
    while (qn_driver_give_back(w->member[1].driver)) {
    }
    cr_expect_eq(log_bytes(w, 1), 0u);
    goes_on(w, 10);
    settles(w);
    world_end(w);
    cr_assert_eq(memory.blocks, 0u);
}

Test(driver_memory, a_refusal_at_any_call_costs_at_most_the_node,
     .timeout = 600)
{
    for (qn_node_t victim = 0; victim < SEATS; victim++) {
        each(victim);
    }
}
