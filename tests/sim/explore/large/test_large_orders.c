/* Each memory order of core/coll/large weaker, one at a time: some program
 * finds it, or it stays for a reason. */
#include "core/base/bits.h"
#include "tests/sim/explore/large/large_explore_world.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

static const struct large_program programs[] = {
    {2, 2, QN_LARGE_BROADCAST, QN_LARGE_OWN, QN_LARGE_OWN, 0},
    {2, 2, QN_LARGE_REDUCE, QN_LARGE_OWN, QN_LARGE_OWN, 0},
    {2, 1, QN_LARGE_BROADCAST, QN_LARGE_OWN, QN_LARGE_OWN, 1},
    {3, 1, QN_LARGE_REDUCE, QN_LARGE_OWN, QN_LARGE_OWN, 2},
};

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(programs); i++) {
        if (!large_is_clean(&programs[i], QN_EXPLORE_C11, 1 + level, &out)) {
            return true;
        }
    }
    return false;
}

static const struct unfound unfound[] = {
    {"raise_word rmw 1: seq_cst to acq_rel", 1,
     "C11 lets the load of the count behind it come first in the order of "
     "seq_cst operations; the explorer runs them in the order of the program"},
    {NULL, 0, NULL}};

Test(large_orders, of_words_and_sleepers, .timeout = 300)
{
    const char *const files[] = {"core/coll/large/large.c", NULL};
    const char *const unreached[] = {NULL};
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = unfound,
                                  .least = 6,
                                  .unreached = unreached});
}
