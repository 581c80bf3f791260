/*
 * Which memory orders of UMP and of the doorbell an exploration needs: each
 * release, acquire and seq_cst of their sources is made weaker, one at a time,
 * and the scenarios of test_ump_*.c and test_doorbell_explore.c must find it.
 */
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/ump_world.h"
#include "tests/support/test.h"

#define X(name) void ump_##name(void);
UMP_LIGHT_MAP(X)
UMP_HEAVY_MAP(X)
#undef X

/* Up to 3 deviations; the heavy ones with 1. */
static bool explore_all(uint32_t level)
{
    ump_search = (struct ump_search){.on = true, .deviations = 1 + level};
#define X(name) ump_##name();
    UMP_LIGHT_MAP(X)
    if (level < 1) {
        UMP_HEAVY_MAP(X)
    }
#undef X
    ump_search.on = false;
    return ump_search.found;
}

static const char *const files[] = {"transports/ump/ump", "wait/doorbell.c",
                                    NULL};

static const struct unfound unfound[] = {
    {"qn_ump_accept load ", 10, "each pairs with a store that is strong, too"},
    {"open_lane store ", 14, "likewise: two are weak together or not at all"},
    {"qn_doorbell_wake cas 1", 3, "the epoch publishes nothing"},
    {"qn_doorbell_ring cas 1", 3, "the epoch publishes nothing"},
    {NULL, 0, NULL},
};

static const struct orders orders = {.files = files,
                                     .explore = explore_all,
                                     .levels = 3,
                                     .unfound = unfound,
                                     .least = 40};

Test(ump_orders, what_no_exploration_finds_is_known, .timeout = 3600)
{
    orders_judge(&orders);
}

/* E, the opening of a lane: one weak operation is not found, since its partners
 * order it, but all of them are; as release and acquire they would do. */
Test(ump_orders, the_opening_of_a_lane_needs_release_and_acquire,
     .timeout = 3600)
{
    static const char *const opening[] = {"qn_ump_accept", "open_lane", NULL};
    cr_assert(orders_function_is_found(&orders, opening, false));
    cr_assert(!orders_function_is_found(&orders, opening, true));
}
