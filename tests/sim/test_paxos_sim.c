/*
 * The simulator over a range of seeds. QN_SIM_SEED=n runs that one only,
 * QN_SIM_SEEDS=n the first n.
 */
#include <stdlib.h>

#include "tests/sim/sim.h"
#include "tests/support/test.h"

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 100 /* each takes twenty times longer */
#else
#define SEEDS 400
#endif

Test(paxos_sim, invariants_hold_and_progress_comes_after_healing,
     .timeout = 600)
{
    uint64_t one = number("QN_SIM_SEED", 0);
    uint64_t last = one != 0 ? one : number("QN_SIM_SEEDS", SEEDS);
    for (uint64_t seed = one != 0 ? one : 1; seed <= last; seed++) {
        sim_run(seed, "test_paxos_sim");
    }
}
