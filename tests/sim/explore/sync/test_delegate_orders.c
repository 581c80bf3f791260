/* Each memory order of combiners and of `auto` weaker, one at a time: some
 * program finds it, or it stays for a reason. */
#include "core/base/bits.h"
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/sync/delegate_world.h"
#include "tests/support/test.h"

static const char *const unreached[] = {NULL};

static bool is_faulty(struct delegate_program p, uint32_t deviations)
{
    struct qn_explored out;
    p.deviations = deviations;
    return !delegate_explore(&p, QN_EXPLORE_C11, &out);
}

static bool explore_all(uint32_t level)
{
    static const struct delegate_program programs[] = {
        {.type = "cc_synch", .clients = 2, .calls = 2},
        {.type = "cc_synch", .clients = 3, .calls = 1, .batch = 1},
        {.type = "cc_synch", .clients = 2, .calls = 2, .own_cores = true},
        {.type = "cc_synch",
         .clients = 2,
         .calls = 2,
         .own_cores = true,
         .only_operations = true},
        {.type = "h_synch", .clients = 2, .calls = 2, .domains = 2},
        {.type = "auto", .clients = 2, .calls = 2, .change_every = 1},
        {.type = "auto",
         .clients = 2,
         .calls = 2,
         .domains = 2,
         .change_every = 1},
    };
    uint32_t i = 0;
    while (i < QN_ARRAY_COUNT(programs) && !is_faulty(programs[i], 1 + level)) {
        i++;
    }
    return i < QN_ARRAY_COUNT(programs);
}

static const char *const files[] = {"core/sync/delegate/backend.h",
                                    "core/sync/delegate/combining.c",
                                    "core/sync/delegate/auto.c", NULL};

static const struct unfound unfound[] = {
    {"serve load", 2,
     "in the explorer no store passes a load in front of it; on a machine "
     "where "
     "one does, a relaxed reply could let the client change its request first"},
    {NULL, 0, NULL},
};

Test(delegate_orders, what_no_exploration_finds_is_known, .timeout = 300)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = unfound,
                                  .least = 7,
                                  .unreached = unreached});
}
