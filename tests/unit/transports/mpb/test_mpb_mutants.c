/*
 * Each invalidate and each drain taken out, on strict chips of 100 seeds: one
 * of them finds it. With all of them in place no seed finds anything.
 */
#include "tests/unit/transports/mpb/mpb_mutants.h"
#include "tests/unit/transports/mpb/strict_traffic.h"

Test(mpb_mutants, no_seed_finds_anything_in_the_product, .timeout = 60)
{
    for (uint64_t seed = 0; seed < MPB_MUTANT_SEEDS; seed++) {
        const char *wrong = strict_traffic(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(mpb_mutants, each_that_forgets_is_found, .timeout = 60)
{
    mpb_find_all(STRICT, strict_traffic);
}
