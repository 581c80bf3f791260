/*
 * Which memory orders of the words an exploration needs: each one made weaker
 * in turn must be found by the scenarios of udn_world.c.
 */
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/udn/udn_world.h"
#include "tests/support/test.h"
#include "transports/udn/udn_mutant.h"

enum qn_udn_mutant qn_udn_mutant;

static bool explore_all(uint32_t level)
{
    bool clean = true;
    for (uint32_t s = 0; s < UDN_SCENARIOS && clean; s++) {
        struct qn_explored out;
        clean =
            udn_explore((enum udn_scenario)s, QN_EXPLORE_C11, (int)level, &out);
    }
    return !clean;
}

static const char *const files[] = {"transports/udn/", NULL};

static const struct unfound unfound[] = {
    {"inherit ", 4, "an attachment begins before the run"},
    {"attach ", 3, "likewise"},
    {"mark_ended load 1", 1, "its own receiver is told as well"},
    {"mark_ended cas 1", 3, "likewise"},
    {"qn_udn_ring_waiting rmw 1", 2, "a seq_cst load is in front of it"},
    {"try_reserve cas 1: acq_rel to release", 1,
     "a load never takes what is stored later (load buffering)"},
    {NULL, 0, NULL},
};

static const struct orders orders = {.files = files,
                                     .explore = explore_all,
                                     .levels = 1,
                                     .unfound = unfound,
                                     .least = 20};

Test(udn_orders, what_no_exploration_finds_is_known, .timeout = 3600)
{
    orders_judge(&orders);
}
