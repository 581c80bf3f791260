/*
 * A range of seeds.
 *
 *     QN_SIM_SEED=n                    that one only
 *     QN_SIM_FROM=n QN_SIM_SEEDS=m     m of them, from n (1) on
 *
 *     QN_SIM_TRACE=1                   print every event and action
 *
 * From BUDGET seeds on, everything that a schedule may do must have happened.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/supervision/world.h"
#include "tests/support/replay.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#define BUDGET 1000u

#if defined(__SANITIZE_ADDRESS__)
#define SEEDS 200
#else
#define SEEDS 2000
#endif

static uint64_t run(uint64_t seed, struct coverage *c)
{
    replay_by("QN_SIM_SEED=%" PRIu64 " test_supervision_sim", seed);
    return world_run(seed, c);
}

Test(supervision_sim, every_schedule_keeps_the_invariants_and_heals)
{
    struct coverage c = {0};
    const uint64_t one = seeds_number("QN_SIM_SEED", 0);
    const uint64_t from = one != 0 ? one : seeds_number("QN_SIM_FROM", 1);
    const uint64_t seeds = one != 0 ? 1 : seeds_number("QN_SIM_SEEDS", SEEDS);
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        (void)run(seed, &c);
    }
    const bool enough = seeds >= BUDGET;
    seeds_expect("seeds", c.seeds, true);
    seeds_expect("steps", c.steps, true);
    seeds_expect("spawns", c.spawns, true);
    seeds_expect("spawn failures", c.spawn_failures, enough);
    seeds_expect("ends", c.exits, enough);
    seeds_expect("supervisors killed", c.crashes, enough);
    seeds_expect("adoptions", c.adoptions, enough);
    seeds_expect("late replicas", c.late, enough);
    seeds_expect("unreached replicas", c.unreached, enough);
    seeds_expect("outbox retained", c.retained, enough);
    seeds_expect("hand-overs", c.handovers, enough);
    seeds_expect("upgrades done", c.upgrades, enough);
    seeds_expect("upgrades stopped", c.upgrades_stopped, enough);
    seeds_expect("recoveries", c.recoveries, enough);
    seeds_expect("recoveries refused", c.recoveries_refused, enough);
    seeds_expect("full channels", c.backlogged, enough);
    seeds_expect("obsolete, skipped", c.skipped, enough);
    seeds_expect("left for good", c.left, enough);
    seeds_expect("data lost", c.lost, enough);
    seeds_expect("rebuilt from the ring", c.rebuilt, enough);
    seeds_expect("changes of the voters", c.entries, enough);
    seeds_expect("members added", c.members_added, enough);
    seeds_expect("members removed", c.members_removed, enough);
    seeds_expect("changes refused", c.members_refused, enough);
    seeds_expect("changes unknown", c.members_unknown, enough);
    seeds_expect("peers absent at first", c.unmet, enough);
    seeds_expect("drains", c.drains, enough);
    seeds_expect("second signals", c.drains_twice, enough);
}

Test(supervision_sim, a_seed_gives_the_same_trace_each_time)
{
    struct coverage c = {0};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const uint64_t hash = run(seed, &c);
        cr_expect_eq(run(seed, &c), hash, "seed %" PRIu64, seed);
        cr_expect_neq(run(seed + 1, &c), hash);
    }
}
