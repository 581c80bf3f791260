/*
 * Each memory order of shm_server and of the endpoint, one at a time weaker.
 */
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/sync/server_world.h"
#include "tests/support/test.h"

static const char *const unreached[] = {NULL};

static bool explore_all(uint32_t level)
{
    static const struct {
        const struct program *p;
        uint32_t deviations; /* of level 1; one more of the move in level 2 */
    } all[] = {{&calls, 2},  {&submits, 2}, {&streams, 2},
               {&groups, 1}, {&moves, 1},   {&two_clients, 1}};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct qn_explored out;
        const uint32_t d = level == 0 ? 1 : all[i].deviations + (level == 2);
        if (level == 2 && all[i].p != &moves) {
            continue;
        }
        if (!server_clean(all[i].p, QN_EXPLORE_C11, d, &out)) {
            return true;
        }
    }
    return false;
}

static const char *const files[] = {"core/sync/delegate/server.c",
                                    "core/sync/delegate/shm_scan.c",
                                    "core/sync/delegate/shm_server.c", NULL};

static const struct unfound unfound[] = {
    {"leave_endpoint store 1", 1,
     "the last fence in front of it is one of it, too"},
    {"qn_delegate_stop cas 1", 1,
     "a stop publishes nothing; the weakest "
     "compare-and-swap acquires"},
    {NULL, 0, NULL},
};

Test(server_orders, what_no_exploration_finds_is_known, .timeout = 200)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = unfound,
                                  .least = 10,
                                  .unreached = unreached});
}
