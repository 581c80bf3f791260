/*
 * LEARN over a diamond ring, between real drivers: when the root takes the ring
 * and when it leaves it (paxos/dissemination).
 */
#include <string.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "core/machine/machine.h"
#include "core/place/outbox.h"
#include "paxos/dissemination/dissemination.h"
#include "paxos/log/batch.h"
#include "paxos/wire/msg.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

static qn_node_t root_of(struct world *w)
{
    return qn_driver_topology(w->member[0].driver)->root;
}

/* It runs, and is told by LEARN: no leader without accepting. */
static bool is_told(struct world *w, qn_node_t i)
{
    return w->member[i].driver != NULL && !w->member[i].stopped &&
           (w->memory || i != world_status(w, i).leader);
}

static void expect_ring(struct world *w, uint32_t arity)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (is_told(w, i)) {
            cr_assert_eq(world_status(w, i).ring, arity, "node %u", i);
        }
    }
}

static uint64_t fetches(struct world *w)
{
    uint64_t sum = 0;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        sum += w->member[i].driver != NULL ? world_status(w, i).fetches : 0;
    }
    return sum;
}

/* Rounds until it is the ring, or the tree, everywhere. */
static void load_until(struct world *w, uint32_t arity)
{
    uint32_t rounds = 0;
    for (; rounds < 20000; rounds += 4) {
        world_submit_number(w, root_of(w), rounds);
        world_rounds(w, 4);
        uint32_t others = 0;
        for (qn_node_t i = 0; i < w->nodes; i++) {
            others += is_told(w, i) && world_status(w, i).ring != arity;
        }
        if (others == 0) {
            return;
        }
    }
    cr_assert_fail("it stays with the other one");
}

static struct world *ring_of(bool memory, uint32_t arity, uint32_t cells)
{
    struct world *w = world_make(5, memory);
    w->cells = cells;
    w->ring_bytes = cells > WORLD_CELLS ? 1u << 25 : 0; /* no write waits */
    w->ring = arity;
    w->ring_from = 1;
    world_start(w);
    cr_assert_eq(world_status(w, 0).ring, 0u, "it begins with the tree");
    world_go_on(w);
    load_until(w, arity);
    world_settle(w, 20000);
    return w;
}

static struct world *ring_begin(bool memory, uint32_t arity)
{
    return ring_of(memory, arity, WORLD_CELLS);
}

/* All that run learn soon, while no member tells another. */
static void goes_over_a_ring(bool memory, uint32_t arity)
{
    struct world *w = ring_begin(memory, arity);
    expect_ring(w, arity);
    const struct qn_tree *t = qn_driver_topology(w->member[root_of(w)].driver);
    cr_assert_leq(t->child_count[t->root], arity);
    uint64_t before = fetches(w);
    world_load(w, 500);
    world_settle(w, 20000);
    world_learns_at_once(w);
    cr_assert_eq(fetches(w), before, "all comes over the ring");
    world_end(w);
}

Test(driver_ring, learns_go_over_a_ring)
{
    for (uint32_t arity = 1; arity <= 3; arity++) {
        goes_over_a_ring(true, arity);
        goes_over_a_ring(false, arity);
    }
}

/* Each member but the root and the leader is stalled once. Those behind it
 * learn at once again, and it comes back into the ring. */
static void member_is_stalled(bool memory)
{
    struct world *w = ring_begin(memory, memory ? 2 : 1);
    qn_node_t root = root_of(w);
    for (qn_node_t still = 0; still < w->nodes; still++) {
        if (still == root || still == world_status(w, 0).leader) {
            continue;
        }
        w->member[still].stopped = true;
        world_submit_number(w, root, 1);
        world_rounds(w, 60); /* 6 ms */
        struct qn_driver_status st = world_status(w, root);
        cr_assert_eq(st.ring, 0u);
        cr_assert_eq(st.ring_choice.reason, QN_RING_BEHIND);
        cr_assert_eq(st.ring_choice.members, UINT64_C(1) << still);
        for (uint64_t x = 0; x < 20; x++) {
            world_submit_number(w, root, x);
            world_rounds(w, 4);
            for (qn_node_t i = 0; i < w->nodes; i++) {
                cr_assert(i == still ||
                              w->member[i].slot == w->member[root].slot,
                          "node %u lacks what %u holds up", i, still);
            }
        }
        expect_ring(w, 0);
        w->member[still].stopped = false;
        load_until(w, w->ring);
        world_settle(w, 20000);
    }
    world_end(w);
}

Test(driver_ring, a_ring_is_left_when_a_member_is_stalled)
{
    member_is_stalled(true);
    member_is_stalled(false);
}

/* A member of a chain is stalled with LEARNs unread that name the ring. It
 * forwards them when it goes on: they are older than what the others know. */
static void late_learns(bool memory)
{
    struct world *w = ring_begin(memory, 1);
    qn_node_t root = root_of(w);
    qn_node_t still = memory ? 1 : 2;
    cr_assert_neq(still, root);
    w->member[still].stopped = true;
    for (uint64_t x = 0; x < 30; x++) {
        world_submit_number(w, root, x);
        world_turn(w, root);
        world_turn(w, world_status(w, root).leader);
    }
    world_rounds(w, 60);
    for (uint64_t x = 0; x < 10; x++) {
        world_submit_number(w, root, x);
        world_rounds(w, 4);
    }
    expect_ring(w, 0);
    w->member[still].stopped = false;
    for (uint64_t x = 0; x < 40; x++) {
        world_submit_number(w, root, x);
        world_rounds(w, 2);
        expect_ring(w, 0);
    }
    world_go_on(w);
    world_end(w);
}

Test(driver_ring, learns_of_a_ring_that_was_left_turn_no_member_back)
{
    late_learns(true);
    late_learns(false);
}

/* Bytes; a lane holds three fragments, as those of servers hold several. */
enum { LONG = 2 << 20, CELLS = 512 };

static const uint8_t zeros[LONG];

/* LEARNs that need many turns of 100 us to leave: none is late before it has
 * left, and no member misses a part of one. */
Test(driver_ring, long_learns_end_no_ring)
{
    struct world *w = ring_of(false, 2, CELLS);
    qn_node_t root = root_of(w);
    uint64_t lost = fetches(w);
    uint64_t changes = world_status(w, root).ring_choice.changes;
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(world_submit(w, root, zeros, LONG));
        qn_time_t begun = w->now;
        world_settle(w, 20000);
        cr_assert_gt(w->now - begun, QN_RING_LAG_SHARED, "it is long enough");
        cr_assert_eq(world_status(w, root).ring_choice.changes, changes);
    }
    cr_assert_eq(fetches(w), lost);
    expect_ring(w, 2);
    world_end(w);
}

static qn_node_t last_of_chain(struct world *w)
{
    const struct qn_tree *t = qn_driver_topology(w->member[root_of(w)].driver);
    qn_node_t last = t->root;
    while (t->child_count[last] != 0) {
        last = t->child[t->child_at[last]];
    }
    return last;
}

/* The last of a chain does not go on while a long LEARN leaves. It is late with
 * that one while the next one leaves, of which the others get all. */
Test(driver_ring, a_ring_is_left_behind_a_long_learn_and_not_inside)
{
    struct world *w = ring_of(false, 1, CELLS);
    qn_node_t root = root_of(w), last = last_of_chain(w);
    qn_slot_t before = w->member[root].slot;
    uint64_t lost = fetches(w);
    cr_assert(world_submit(w, root, zeros, LONG));
    cr_assert(world_submit(w, root, zeros, LONG / 2));
    while (w->member[root].slot == before) {
        world_rounds(w, 1);
    }
    world_rounds(w, 20);
    w->member[last].stopped = true;
    world_rounds(w, 400);
    cr_assert_eq(world_status(w, root).ring_choice.reason, QN_RING_BEHIND);
    cr_assert_eq(world_status(w, root).ring_choice.members, 1u << last);
    cr_assert_eq(world_status(w, root).unapplied, 0u);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        cr_assert(i == last || w->member[i].slot == w->member[root].slot);
    }
    cr_assert_eq(fetches(w), lost);
    w->member[last].stopped = false;
    world_go_on(w);
    world_end(w);
}

Test(driver_ring, a_ring_is_left_the_moment_a_member_is_suspected)
{
    struct world *w = ring_begin(true, 2);
    qn_driver_suspect(w->member[0].driver, 4, w->now);
    cr_assert_eq(world_status(w, 0).ring, 0u);
    cr_assert_eq(world_status(w, 0).ring_choice.reason, QN_RING_SUSPECTED);
    world_submit_number(w, 0, 1);
    world_rounds(w, 4);
    expect_ring(w, 0);
    world_suspect(w, 0);
    load_until(w, 2);
    world_end(w);
}

Test(driver_ring, a_ring_goes_on_without_a_dead_member_and_a_dead_root)
{
    for (int memory = 0; memory < 2; memory++) {
        struct world *w = ring_begin(memory != 0, 2);
        qn_node_t dead = memory != 0 ? 1 : 2;
        world_lose(w, dead);
        world_load(w, 30);
        world_settle(w, 20000);
        world_learns_at_once(w);
        world_restart(w, dead);
        load_until(w, 2);
        world_settle(w, 20000);
        world_lose(w, root_of(w));
        world_load(w, 30);
        world_settle(w, 20000);
        expect_ring(w, 0);
        world_end(w);
    }
}

/* For pipelines only: one write at a time goes along the tree. */
Test(driver_ring, a_ring_for_pipelines_is_not_taken_for_single_writes)
{
    struct world *w = world_make(5, true);
    w->ring = 1;
    w->ring_from = 2;
    world_start(w);
    for (uint32_t x = 0; x < 400; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 8);
    }
    expect_ring(w, 0);
    cr_assert_eq(world_status(w, 0).ring_choice.reason, QN_RING_SHALLOW);
    for (uint32_t x = 0; x < 2000 && world_status(w, 0).ring == 0; x++) {
        for (uint32_t k = 0; k < 4; k++) {
            world_submit_number(w, 0, x);
            world_turn(w, 0);
        }
        world_rounds(w, 1);
    }
    expect_ring(w, 1);
    world_end(w);
}

static uint32_t tree_lines, ring_lines;

static void count_lines(void *ctx, enum qn_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    tree_lines += strstr(line, "along the tree now") != NULL;
    ring_lines += strstr(line, "along the ring now") != NULL;
}

Test(driver_ring, a_ring_that_is_left_often_says_so_once)
{
    struct world *w = ring_begin(true, 2);
    qn_log_set(count_lines, NULL, QN_LOG_INFO);
    for (uint32_t i = 0; i < 3; i++) {
        qn_driver_suspect(w->member[0].driver, 4, w->now);
        qn_driver_suspect(w->member[0].driver, 0, w->now);
        load_until(w, 2);
        cr_assert_eq(tree_lines, 1u);
        cr_assert_eq(ring_lines, 1u, "its end was told");
    }
    world_settle(w, 20000);
    w->now += 10 * QN_S;
    qn_driver_suspect(w->member[0].driver, 4, w->now);
    cr_assert_eq(tree_lines, 2u);
    cr_assert_eq(world_status(w, 0).ring_choice.changes, 8u);
    qn_driver_suspect(w->member[0].driver, 0, w->now);
    load_until(w, 2);
    cr_assert_eq(ring_lines, 2u);
    qn_driver_suspect(w->member[0].driver, 4, w->now);
    world_rounds(w, 1);
    cr_assert_eq(tree_lines, 2u, "it was told a short time ago");
    w->now += 10 * QN_S;
    world_rounds(w, 1);
    cr_assert_eq(tree_lines, 3u, "it is the tree for long");
    qn_driver_suspect(w->member[0].driver, 0, w->now);
    qn_log_set(NULL, NULL, QN_LOG_INFO);
    world_end(w);
}

/* The choice is made while nothing is sent: no line says so before a batch
 * leaves that way. And one that is no root any more has left its ring. */
Test(driver_ring, lines_say_what_is_so)
{
    struct world *w = world_make(5, true);
    w->ring = 2;
    w->ring_from = 1;
    world_start(w);
    world_go_on(w);
    qn_log_set(count_lines, NULL, QN_LOG_INFO);
    ring_lines = tree_lines = 0;
    w->now += 10 * QN_S;
    world_rounds(w, 4);
    cr_assert(world_status(w, 0).ring_choice.ring);
    cr_assert_eq(world_status(w, 0).ring, 0u);
    cr_assert_eq(ring_lines, 0u);
    load_until(w, 2);
    cr_assert_eq(ring_lines, 1u);
    for (qn_node_t i = 1; i < w->nodes; i++) {
        qn_driver_suspect(w->member[i].driver, 1, w->now);
    }
    for (uint32_t r = 0; r < 2000 && root_of(w) == 0; r++) {
        world_rounds(w, 1);
    }
    cr_assert_neq(root_of(w), 0u);
    cr_assert_eq(tree_lines, 1u);
    qn_log_set(NULL, NULL, QN_LOG_INFO);
    world_end(w);
}

Test(driver_ring, an_arity_out_of_range_is_refused)
{
    struct qn_driver_opts o = {.nodes = 1,
                               .ring = QN_DISSEMINATION_RING_MAX + 1};
    struct qn_driver *d = NULL;
    cr_assert_eq(qn_driver_create(&d, &o), QN_EINVAL);
}
