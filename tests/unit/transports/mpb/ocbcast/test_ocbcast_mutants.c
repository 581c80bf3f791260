/*
 * OC-Bcast without one invalidate, drain or correction of the published form:
 * some seed of 100 finds it.
 */
#include "tests/support/test.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"
#include "transports/mpb/mutant.h"

#define SEEDS 100u

static const char *sync_world(uint64_t seed)
{
    const char *wrong = oc_sync_traffic(seed);
    return wrong != NULL ? wrong : oc_root_change(seed);
}

static const char *async_world(uint64_t seed)
{
    const char *wrong = oc_async_traffic(seed, 0);
    return wrong != NULL ? wrong : oc_async_stall(seed);
}

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

static void find_all(enum finder by, const char *(*world)(uint64_t seed))
{
    for (int m = QN_MPB_MUTANT_NONE + 1; m < QN_MPB_MUTANT_COUNT; m++) {
        bool found = false;
        qn_mpb_mutant = (enum qn_mpb_mutant)m;
        for (uint64_t seed = 0; seed < SEEDS && !found; seed++) {
            found = mutants[m].by == by && world(seed) != NULL;
        }
        cr_assert(found || mutants[m].by != by, "%s", mutants[m].name);
    }
}

Test(ocbcast_mutants, each_is_found, .timeout = 60)
{
    find_all(OC, sync_world);
}

Test(oc_async_mutants, each_is_found, .timeout = 60)
{
    find_all(ASYNC, async_world);
}
