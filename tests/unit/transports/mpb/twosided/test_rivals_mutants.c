/* Two-sided messages without an invalidate or a drain: some seed of 100 finds
 * it. */
#include "tests/support/test.h"
#include "tests/unit/transports/mpb/twosided/rival_world.h"
#include "transports/mpb/mutant.h"

#define SEEDS 100u

enum qn_mpb_mutant qn_mpb_mutant;

enum finder { STRICT, LIVES, OC, TWO, ASYNC };

static const struct {
    const char *name;
    enum finder by;
} mutants[QN_MPB_MUTANT_COUNT] = {
#define X(id, finder, text) [QN_MPB_MUTANT_##id] = {#id, finder},
    QN_MPB_MUTANT_MAP(X)
#undef X
};

Test(rivals_mutants, each_is_found, .timeout = 60)
{
    for (int m = QN_MPB_MUTANT_NONE + 1; m < QN_MPB_MUTANT_COUNT; m++) {
        bool found = false;
        qn_mpb_mutant = (enum qn_mpb_mutant)m;
        for (uint64_t seed = 0; seed < SEEDS && !found; seed++) {
            found = mutants[m].by == TWO && rival_traffic(seed) != NULL;
        }
        cr_assert(found || mutants[m].by != TWO, "%s", mutants[m].name);
    }
}
