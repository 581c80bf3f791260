/*
 * Which memory orders of a transport an exploration needs: each release,
 * acquire and seq_cst of its sources (lane_kind.files) is made weaker, one at a
 * time, and the scenarios of test_lane_*.c and test_doorbell_explore.c must
 * find it.
 */
#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

#define X(name) void lane_##name(void);
LANE_LIGHT_MAP(X)
LANE_HEAVY_MAP(X)
#undef X

/* The heavy ones with 1 deviation. */
static bool explore_all(uint32_t level)
{
    lane_search = (struct lane_search){.on = true, .deviations = 1 + level};
#define X(name) lane_##name();
    LANE_LIGHT_MAP(X)
    if (level < 1) {
        LANE_HEAVY_MAP(X)
    }
#undef X
    lane_search.on = false;
    return lane_search.found;
}

static struct orders orders_of_kind(void)
{
    return (struct orders){.files = lane_kind.files,
                           .explore = explore_all,
                           .levels = lane_kind.levels,
                           .unfound = lane_kind.unfound,
                           .least = lane_kind.least};
}

Test(lane_orders, what_no_exploration_finds_is_known, .timeout = 3600)
{
    const struct orders orders = orders_of_kind();
    orders_judge(&orders);
}

/* E, the opening of a lane: one weak operation is not found, since its partners
 * order it, but all of them are; as release and acquire they would do. */
Test(lane_orders, the_opening_of_a_lane_needs_release_and_acquire,
     .timeout = 3600)
{
    const struct orders orders = orders_of_kind();
    cr_assert(orders_function_is_found(&orders, lane_kind.opening, false));
    cr_assert(!orders_function_is_found(&orders, lane_kind.opening, true));
}
