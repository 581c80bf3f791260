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
#include "tests/support/test.h"

#define BUDGET 1000u

#if defined(__SANITIZE_ADDRESS__)
#define SEEDS 200
#else
#define SEEDS 2000
#endif

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t run(uint64_t seed, struct coverage *c)
{
    replay_by("QN_SIM_SEED=%" PRIu64 " test_supervision_sim", seed);
    return world_run(seed, c);
}

static void expect(const char *what, uint64_t times, bool enough)
{
    fprintf(stderr, "%-22s %10" PRIu64 "\n", what, times);
    cr_expect(!enough || times > 0, "%s was never reached", what);
}

Test(supervision_sim, every_schedule_keeps_the_invariants_and_heals)
{
    struct coverage c = {0};
    const uint64_t one = number("QN_SIM_SEED", 0);
    const uint64_t from = one != 0 ? one : number("QN_SIM_FROM", 1);
    const uint64_t seeds = one != 0 ? 1 : number("QN_SIM_SEEDS", SEEDS);
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        (void)run(seed, &c);
    }
    const bool enough = seeds >= BUDGET;
    expect("seeds", c.seeds, true);
    expect("steps", c.steps, true);
    expect("spawns", c.spawns, true);
    expect("spawn failures", c.spawn_failures, enough);
    expect("ends", c.exits, enough);
    expect("supervisors killed", c.crashes, enough);
    expect("adoptions", c.adoptions, enough);
    expect("late replicas", c.late, enough);
    expect("unreached replicas", c.unreached, enough);
    expect("outbox retained", c.retained, enough);
    expect("hand-overs", c.handovers, enough);
    expect("upgrades done", c.upgrades, enough);
    expect("upgrades stopped", c.upgrades_stopped, enough);
    expect("recoveries", c.recoveries, enough);
    expect("recoveries refused", c.recoveries_refused, enough);
    expect("full channels", c.backlogged, enough);
    expect("obsolete, skipped", c.skipped, enough);
    expect("left for good", c.left, enough);
    expect("data lost", c.lost, enough);
    expect("rebuilt from the ring", c.rebuilt, enough);
    expect("drains", c.drains, enough);
    expect("second signals", c.drains_twice, enough);
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
