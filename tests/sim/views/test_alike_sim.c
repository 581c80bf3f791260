/*
 * Operations that end alike: a range of seeds, as in test_views_sim.c.
 *
 *     QN_SIM_SEED=n                    that one only
 *     QN_SIM_FROM=n QN_SIM_SEEDS=m     m of them, from n (1) on
 *     QN_SIM_STATES=1 QN_SIM_SEEDS=m   m of them, and on until a member was
 *                                      killed in each state that there is
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/coll/payload/coll_call.h"
#include "tests/sim/views/alike_net.h"
#include "tests/support/replay.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#define BUDGET      400u
#define MAX_SEEDS   60000u /* of QN_SIM_STATES */
#define LONG_BUDGET 2500u  /* few are of long payloads */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 100
#else
#define SEEDS 2500
#endif

static void run(uint64_t seed, struct alike_coverage *c)
{
    replay_by("QN_SIM_SEED=%" PRIu64 " test_alike_sim", seed);
    alike_net_run(seed, c);
}

static const char *row_name(uint32_t row)
{
    static const char *const name[] = {[QN_COLL_BROADCAST] = "broadcast",
                                       [QN_COLL_ACKNOWLEDGED] = "acknowledged",
                                       [QN_COLL_REDUCE] = "reduce",
                                       [QN_COLL_ALLREDUCE] = "all-reduce",
                                       [QN_COLL_COMMIT] = "commit",
                                       [QN_COLL_GATHER] = "gather",
                                       [QN_COLL_SCATTER] = "scatter",
                                       [ALIKE_ROW_AGAIN] = "handed on",
                                       [ALIKE_ROW_EXCHANGE] = "exchange"};
    return name[row];
}

Test(alike_sim, whichever_members_die_operations_end_alike, .timeout = 600)
{
    struct alike_coverage c = {.states = {.all_fail = true, .name = row_name}};
    const uint64_t one = seeds_number("QN_SIM_SEED", 0);
    const uint64_t from = one != 0 ? one : seeds_number("QN_SIM_FROM", 1);
    const uint64_t seeds = one != 0 ? 1 : seeds_number("QN_SIM_SEEDS", SEEDS);
    const bool states = seeds_number("QN_SIM_STATES", 0) != 0;
    for (uint64_t seed = from;
         seed < from + seeds ||
         (states && flow_states_left(&c.states) > 0 && seed < from + MAX_SEEDS);
         seed++) {
        run(seed, &c);
    }
    const bool enough = seeds >= BUDGET;
    const bool many = seeds >= LONG_BUDGET;
    seeds_expect("seeds", c.seeds, true);
    seeds_expect("rounds", c.rounds, true);
    seeds_expect("results", c.operations, true);
    seeds_expect("deaths", c.kills, enough);
    seeds_expect("  of a root", c.killed_root, enough);
    seeds_expect("  with more to send", c.killed_sending, enough);
    seeds_expect("  after it has left", c.killed_left, enough);
    seeds_expect("  while others enter", c.killed_entering, enough);
    seeds_expect("  while it lacks", c.killed_again, enough);
    seeds_expect("  with long payloads", c.kills_long, many);
    seeds_expect("views", c.views, true);
    seeds_expect("  further than a window", c.far, enough);
    seeds_expect("operations handed on", c.handed, enough);
    seeds_expect("  of 60 000 bytes", c.handed_long, many);
    seeds_expect("  to a root", c.root_lacked, enough);
    seeds_expect("  before they started", c.outran, enough);
    seeds_expect("  and started later", c.late, enough);
    seeds_expect("void at a member", c.voided, enough);
    seeds_expect("rounds to hear", c.heard, enough);
    flow_states_expect(&c.states, states);
}

Test(alike_sim, a_seed_gives_the_same_run_each_time)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct alike_coverage a = {0}, b = {0}, other = {0};
        run(seed, &a);
        run(seed, &b);
        run(seed + 1, &other);
        cr_expect_eq(a.hash, b.hash, "seed %" PRIu64, seed);
        cr_expect_neq(a.hash, other.hash);
    }
}
