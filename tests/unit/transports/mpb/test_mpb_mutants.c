/*
 * Each invalidate and each drain taken out, on strict chips of 100 seeds: one
 * of them finds it. With all of them in place no seed finds anything.
 */
#include "tests/support/test.h"
#include "tests/unit/transports/mpb/strict_traffic.h"
#include "transports/mpb/mutant.h"

#define SEEDS 100u

enum qn_mpb_mutant qn_mpb_mutant;

enum finder { STRICT, LIVES, OC, TWO, ASYNC };

static const struct {
    const char *name;
    enum finder by;
} mutants[QN_MPB_MUTANT_COUNT] = {
#define X(id, by, text) [QN_MPB_MUTANT_##id] = {#id, by},
    QN_MPB_MUTANT_MAP(X)
#undef X
};

static uint64_t seeds_until_found(void)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        if (strict_traffic(seed) != NULL) {
            return seed;
        }
    }
    return SEEDS;
}

Test(mpb_mutants, no_seed_finds_anything_in_the_product, .timeout = 60)
{
    qn_mpb_mutant = QN_MPB_MUTANT_NONE;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = strict_traffic(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(mpb_mutants, each_that_forgets_is_found, .timeout = 60)
{
    for (int m = QN_MPB_MUTANT_NONE + 1; m < QN_MPB_MUTANT_COUNT; m++) {
        if (mutants[m].by == STRICT) {
            qn_mpb_mutant = (enum qn_mpb_mutant)m;
            cr_assert_lt(seeds_until_found(), SEEDS, "%s", mutants[m].name);
        }
    }
}
