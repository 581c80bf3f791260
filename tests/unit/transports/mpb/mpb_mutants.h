#ifndef QN_TESTS_UNIT_MPB_MUTANTS_H
#define QN_TESTS_UNIT_MPB_MUTANTS_H

/** Each mutant that one test is to find: some seed of 100 does. For one source
 *  of each test, which it gives the chosen mutant. */

#include <stdint.h>

#include "tests/support/test.h"
#include "transports/mpb/mutant.h"

#define MPB_MUTANT_SEEDS 100u

enum mpb_finder { STRICT, LIVES, OC, TWO, ASYNC };

enum qn_mpb_mutant qn_mpb_mutant;

static const struct {
    const char *name;
    enum mpb_finder by;
} mpb_mutants[QN_MPB_MUTANT_COUNT] = {
#define X(id, finder, text) [QN_MPB_MUTANT_##id] = {#id, finder},
    QN_MPB_MUTANT_MAP(X)
#undef X
};

/** `world` returns NULL, or what went wrong. */
static void mpb_find_all(enum mpb_finder by, const char *(*world)(uint64_t))
{
    for (int m = QN_MPB_MUTANT_NONE + 1; m < QN_MPB_MUTANT_COUNT; m++) {
        bool found = mpb_mutants[m].by != by;
        qn_mpb_mutant = (enum qn_mpb_mutant)m;
        for (uint64_t seed = 0; seed < MPB_MUTANT_SEEDS && !found; seed++) {
            found = world(seed) != NULL;
        }
        cr_assert(found, "%s", mpb_mutants[m].name);
    }
    qn_mpb_mutant = QN_MPB_MUTANT_NONE;
}

#endif
