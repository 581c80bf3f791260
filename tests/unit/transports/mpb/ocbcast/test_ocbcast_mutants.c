/*
 * OC-Bcast without one invalidate, drain or correction of the published form:
 * some seed of 100 finds it.
 */
#include "tests/unit/transports/mpb/mpb_mutants.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"

static const char *sync_world(uint64_t seed)
{
    const char *wrong = oc_sync_traffic(seed);
    wrong = wrong != NULL ? wrong : oc_root_change(seed);
    return wrong != NULL ? wrong : oc_old_lines(seed);
}

static const char *async_world(uint64_t seed)
{
    uint32_t most;
    const char *wrong = oc_async_torn_head(seed);
    wrong = wrong != NULL ? wrong : oc_async_old_leaf(seed);
    wrong = wrong != NULL ? wrong : oc_async_old_position(seed);
    wrong = wrong != NULL ? wrong : oc_async_same_count(seed);
    wrong = wrong != NULL ? wrong : oc_async_jump(seed);
    wrong = wrong != NULL ? wrong : oc_async_straggler(seed);
    wrong = wrong != NULL ? wrong : oc_async_traffic(seed, 0);
    wrong = wrong != NULL ? wrong : oc_async_traffic(seed, 24);
    wrong = wrong != NULL ? wrong : oc_async_stall_and_deaths(seed, &most);
    return wrong != NULL ? wrong : oc_async_stall(seed);
}

Test(ocbcast_mutants, each_is_found, .timeout = 60)
{
    mpb_find_all(OC, sync_world);
}

Test(oc_async_mutants, each_is_found, .timeout = 60)
{
    mpb_find_all(ASYNC, async_world);
}
