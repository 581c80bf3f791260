/*
 * A range of seeds.
 *
 *     QN_SIM_SEED=n                    that one only
 *     QN_SIM_FROM=n QN_SIM_SEEDS=m     m of them, from n (1) on
 *
 * From BUDGET seeds on, everything that a schedule may do must have happened.
 * The long form, ten thousand deaths and more: QN_SIM_SEEDS=5000.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/views/view_net.h"
#include "tests/support/replay.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#define BUDGET 300u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 60
#else
#define SEEDS 1000
#endif

static void run(uint64_t seed, struct view_coverage *c)
{
    replay_by("QN_SIM_SEED=%" PRIu64 " test_views_sim", seed);
    view_net_run(seed, c);
}

Test(views_sim, whichever_members_die_the_living_deliver_the_same,
     .timeout = 600)
{
    struct view_coverage c = {0};
    const uint64_t one = seeds_number("QN_SIM_SEED", 0);
    const uint64_t from = one != 0 ? one : seeds_number("QN_SIM_FROM", 1);
    const uint64_t seeds = one != 0 ? 1 : seeds_number("QN_SIM_SEEDS", SEEDS);
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        run(seed, &c);
    }
    const bool enough = seeds >= BUDGET;
    seeds_expect("seeds", c.seeds, true);
    seeds_expect("rounds", c.rounds, true);
    seeds_expect("deliveries", c.delivered, true);
    seeds_expect("deaths", c.kills, enough);
    seeds_expect("  of a root", c.killed_root, enough);
    seeds_expect("  of a source", c.killed_source, enough);
    seeds_expect("  with more to send", c.killed_sending, enough);
    seeds_expect("  after it has left", c.killed_left, enough);
    seeds_expect("  while it is decided", c.killed_deciding, enough);
    seeds_expect("  while others enter", c.killed_entering, enough);
    seeds_expect("  one is left", c.killed_alone, enough);
    seeds_expect("views", c.views, true);
    seeds_expect("  with another root", c.root_moved, enough);
    seeds_expect("  over rings", c.rings, enough);
    seeds_expect("  over trees", c.trees, enough);
    seeds_expect("messages sent again", c.again, enough);
    seeds_expect("sources request again", c.requests_again, enough);
    seeds_expect("new incarnations", c.joined, enough);
    seeds_expect("window full", c.window_full, enough);
    seeds_expect("lane full", c.blocked, enough);
}

Test(views_sim, a_seed_gives_the_same_run_each_time)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct view_coverage a = {0}, b = {0}, other = {0};
        run(seed, &a);
        run(seed, &b);
        run(seed + 1, &other);
        cr_expect_eq(a.hash, b.hash, "seed %" PRIu64, seed);
        cr_expect_neq(a.hash, other.hash);
    }
}
