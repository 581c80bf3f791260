/*
 * How long a stalled member of a diamond ring may hold up others, between real
 * drivers (paxos/dissemination/ring_choice.h): the time after which the ring is
 * left, and what follows in a tree that has inner nodes.
 *
 * A round is 100 us, and all nodes have their turns in it at the same time.
 */
#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

#define ROUND ((qn_time_t)100 * QN_US)

static qn_node_t root_of(struct world *w)
{
    return qn_driver_topology(w->member[0].driver)->root;
}

static struct qn_ring_choice choice_of(struct world *w)
{
    return world_status(w, root_of(w)).ring_choice;
}

/* Writes in a row until LEARN goes over the ring; and the positions of all are
 * known to all. */
static void take_the_ring(struct world *w)
{
    uint32_t rounds = 0;
    while (world_status(w, root_of(w)).ring == 0 && rounds < 20000) {
        world_submit_number(w, root_of(w), rounds);
        world_rounds(w, 4);
        rounds += 4;
    }
    cr_assert_neq(world_status(w, root_of(w)).ring, 0u);
    world_settle(w, 20000);
    world_rounds(w, 60);
}

static struct world *ring_begin(bool memory, bool shared, uint32_t arity,
                                const char *topology)
{
    struct world *w = world_make(5, memory);
    w->shared_cores = shared;
    w->topology = topology;
    w->ring = arity;
    w->ring_from = 1;
    world_start(w);
    world_go_on(w);
    take_the_ring(w);
    return w;
}

/* By message: members say late what they have learned. */
static qn_time_t limit_of(const struct world *w)
{
    return (qn_time_t)(w->shared_cores ? 10 : 2) * QN_MS +
           (w->messages ? 2 : 0) * QN_MS;
}

/* The last node of a ring of two chains, which holds up no other one. */
static qn_node_t last_of_ring(struct world *w)
{
    const struct qn_tree *t = qn_driver_topology(w->member[root_of(w)].driver);
    qn_node_t last = root_of(w);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        bool told = w->memory || i != world_status(w, i).leader;
        last = told && t->child_count[i] == 0 ? i : last;
    }
    return last;
}

/* One round, in which the root has a turn only if `awake`. */
static void round_of(struct world *w, bool awake)
{
    w->member[root_of(w)].stopped = !awake;
    world_rounds(w, 1);
    w->member[root_of(w)].stopped = false;
}

/* A write is sent in the next rounds. @return the time of its LEARN. */
static qn_time_t write_one(struct world *w)
{
    qn_slot_t before = choice_of(w).sent;
    world_submit_number(w, root_of(w), 1);
    for (uint32_t r = 0; r < 20 && choice_of(w).sent == before; r++) {
        world_rounds(w, 1);
    }
    cr_assert_gt(choice_of(w).sent, before);
    return w->now;
}

/* ---- when the ring is left ----------------------------------------------- */

static void one_write(bool memory, bool shared)
{
    struct world *w = ring_begin(memory, shared, 2, NULL);
    qn_node_t still = last_of_ring(w);
    w->member[still].stopped = true;
    qn_time_t sent = write_one(w);
    while (world_status(w, root_of(w)).ring != 0 && w->now < sent + QN_S) {
        world_rounds(w, 1);
    }
    cr_assert_eq(w->now - sent, limit_of(w), "left after %lu us",
                 (unsigned long)((w->now - sent) / QN_US));
    cr_assert_eq(choice_of(w).reason, QN_RING_BEHIND);
    cr_assert_eq(choice_of(w).members, UINT64_C(1) << still);
    w->member[still].stopped = false;
    take_the_ring(w);
    world_end(w);
}

/* 2 ms with own cores, 10 ms on shared ones, by message 2 ms more; in that
 * round, and in none before. */
Test(ring_limits, the_ring_is_left_when_a_learn_is_as_old_as_the_limit)
{
    for (int shared = 0; shared < 2; shared++) {
        one_write(true, shared != 0);
        one_write(false, shared != 0);
    }
}

/* LEARNs in each round: those of a sixteenth of the limit are one span. By
 * message the oldest that a member lacks may be one that it has, and has not
 * said. */
static void many_writes(bool memory, bool shared)
{
    struct world *w = ring_begin(memory, shared, 2, NULL);
    qn_node_t still = last_of_ring(w);
    for (uint32_t x = 0; x < 300; x++) {
        world_submit_number(w, root_of(w), x);
        world_rounds(w, 1);
    }
    cr_assert_neq(world_status(w, root_of(w)).ring, 0u);
    qn_slot_t before = choice_of(w).sent;
    w->member[still].stopped = true;
    qn_time_t sent = 0;
    for (uint32_t x = 0; choice_of(w).ring && x < 1000; x++) {
        world_submit_number(w, root_of(w), x);
        world_rounds(w, 1);
        sent = sent == 0 && choice_of(w).sent > before ? w->now : sent;
    }
    qn_time_t took = w->now - sent, limit = limit_of(w);
    qn_time_t unsaid = (w->messages ? 2 : 0) * QN_MS;
    cr_assert_leq(took, limit);
    cr_assert_geq(took, limit - limit / QN_RING_SPANS - unsaid - ROUND,
                  "left after %lu us", (unsigned long)(took / QN_US));
    w->member[still].stopped = false;
    world_end(w);
}

Test(ring_limits, with_many_learns_at_most_a_sixteenth_sooner)
{
    for (int shared = 0; shared < 2; shared++) {
        many_writes(true, shared != 0);
        many_writes(false, shared != 0);
    }
}

/* Stalls that are shorter than the limit, again and again, in a pipeline: by
 * message the 2 ms more are for what a member says late. */
static void short_stalls(bool memory, bool shared)
{
    struct world *w = ring_begin(memory, shared, 2, NULL);
    qn_node_t still = last_of_ring(w);
    uint64_t changes = choice_of(w).changes;
    uint32_t limit = (uint32_t)((shared ? 10 : 2) * QN_MS / ROUND);
    uint32_t rounds = limit - limit / QN_RING_SPANS - 3;
    for (uint32_t x = 0; x < 20 * rounds; x++) {
        w->member[still].stopped = x / rounds % 2 == 0;
        world_submit_number(w, root_of(w), x);
        world_rounds(w, 1);
        cr_assert_eq(choice_of(w).changes, changes, "in round %u", x);
    }
    w->member[still].stopped = false;
    world_end(w);
}

Test(ring_limits, stalls_shorter_than_the_limit_leave_no_ring)
{
    for (int shared = 0; shared < 2; shared++) {
        short_stalls(true, shared != 0);
        short_stalls(false, shared != 0);
    }
}

/* Its timer has whole ms, so it wakes up to 1 ms late. */
static bool wakes(struct world *w)
{
    struct qn_driver *d = w->member[root_of(w)].driver;
    qn_time_t next = w->now + ROUND;
    qn_time_t at = qn_driver_deadline(d);
    return qn_driver_pending(d) ||
           (at != QN_TIME_NEVER && (at + QN_MS - 1) / QN_MS * QN_MS <= next);
}

static void sleeping_root(bool memory, bool shared)
{
    struct world *w = ring_begin(memory, shared, 2, NULL);
    qn_node_t still = last_of_ring(w);
    w->member[still].stopped = true;
    qn_time_t sent = write_one(w);
    uint32_t turns = 0;
    while (world_status(w, root_of(w)).ring != 0 && w->now < sent + QN_S) {
        bool awake = wakes(w);
        turns += awake;
        round_of(w, awake);
    }
    cr_assert_geq(w->now - sent, limit_of(w));
    cr_assert_leq(w->now - sent, limit_of(w) + QN_MS, "left after %lu us",
                  (unsigned long)((w->now - sent) / QN_US));
    cr_assert_lt(turns * ROUND, w->now - sent, "it sleeps");
    w->member[still].stopped = false;
    world_end(w);
}

Test(ring_limits, a_root_that_sleeps_leaves_it_one_ms_later_at_most)
{
    for (int shared = 0; shared < 2; shared++) {
        sleeping_root(true, shared != 0);
        sleeping_root(false, shared != 0);
    }
}

/* ---- a tree with inner nodes --------------------------------------------- */

/* The longest time for which a node other than `still` lacked a slot that the
 * root had, in a pipeline. */
static qn_time_t longest_wait(struct world *w, qn_node_t still, uint32_t rounds)
{
    qn_time_t equal_at[WORLD_NODES], longest = 0;
    qn_slot_t had[WORLD_NODES];
    for (qn_node_t i = 0; i < w->nodes; i++) {
        equal_at[i] = w->now;
        had[i] = w->member[i].slot;
    }
    for (uint32_t x = 0; x < rounds; x++) {
        world_submit_number(w, root_of(w), x);
        world_rounds(w, 1);
        for (qn_node_t i = 0; i < w->nodes; i++) {
            if (w->member[i].slot >= had[i]) { /* a later one is awaited */
                equal_at[i] = w->now;
                had[i] = w->member[root_of(w)].slot;
            }
            longest =
                i == still ? longest : QN_MAX(longest, w->now - equal_at[i]);
        }
    }
    return longest;
}

/* 0 or 1 is the root, and two hang below this one in the tree. */
static qn_node_t inner_of(const struct world *w)
{
    return w->memory ? 1 : 2;
}

static void expect_short_waits(struct world *w, bool shared)
{
    qn_time_t waits = longest_wait(w, inner_of(w), 300);
    cr_assert_leq(waits, QN_MS, "memory %d, shared %d: others wait for %lu us",
                  w->memory, shared, (unsigned long)(waits / QN_US));
    cr_assert_eq(qn_driver_topology(w->member[root_of(w)].driver)->n,
                 w->memory ? 4u : 3u, "it is left out of the tree");
    w->member[inner_of(w)].stopped = false;
    world_suspect(w, 0);
    take_the_ring(w);
    world_end(w);
}

static void inner_node_stalls(bool memory, bool shared)
{
    struct world *w = ring_begin(memory, shared, 2, "binary");
    uint64_t changes = choice_of(w).changes;
    w->member[inner_of(w)].stopped = true;
    for (uint32_t x = 0; x < 1000 && choice_of(w).changes == changes; x++) {
        world_submit_number(w, root_of(w), x);
        world_rounds(w, 1);
    }
    cr_assert_eq(choice_of(w).reason, QN_RING_BEHIND);
    expect_short_waits(w, shared);
}

/* It is left out of the tree in the moment in which the ring is left for it:
 * else each LEARN would wait 2 ms, until those below look for it. */
Test(ring_limits, who_ends_the_ring_holds_no_other_up_in_the_tree)
{
    for (int shared = 0; shared < 2; shared++) {
        inner_node_stalls(true, shared != 0);
        inner_node_stalls(false, shared != 0);
    }
}

static void inner_node_is_suspected(bool memory, bool shared)
{
    struct world *w = ring_begin(memory, shared, 2, "binary");
    w->member[inner_of(w)].stopped = true;
    world_suspect(w, UINT64_C(1) << inner_of(w));
    cr_assert_eq(choice_of(w).reason, QN_RING_SUSPECTED);
    expect_short_waits(w, shared);
}

Test(ring_limits, one_that_is_suspected_holds_no_other_up_in_the_tree)
{
    for (int shared = 0; shared < 2; shared++) {
        inner_node_is_suspected(true, shared != 0);
        inner_node_is_suspected(false, shared != 0);
    }
}

/* Without a ring, too. */
Test(ring_limits, a_tree_is_left_by_an_inner_node_that_is_suspected)
{
    for (int memory = 0; memory < 2; memory++) {
        struct world *w = world_make(5, memory != 0);
        w->topology = "binary";
        world_start(w);
        world_go_on(w);
        world_suspect(w, UINT64_C(1) << inner_of(w));
        w->member[inner_of(w)].stopped = true;
        cr_assert_leq(longest_wait(w, inner_of(w), 300), QN_MS);
        w->member[inner_of(w)].stopped = false;
        world_suspect(w, 0);
        world_go_on(w);
        cr_assert_eq(qn_driver_topology(w->member[root_of(w)].driver)->n,
                     w->memory ? 5u : 4u, "it is back");
        world_end(w);
    }
}
