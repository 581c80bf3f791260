/*
 * Which memory orders of the words an exploration needs: each one made weaker
 * in turn must be found by the scenarios of words_scenarios.c.
 */
#include "core/words/words_mutant.h"
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/words/words_scenarios.h"
#include "tests/support/test.h"

enum qn_words_mutant qn_words_mutant;

static bool explore_all(uint32_t level)
{
    bool clean = true;
    for (uint32_t s = 0; s < WORDS_SCENARIOS && clean; s++) {
        struct qn_explored out;
        clean = words_explore((enum words_scenario)s, QN_EXPLORE_C11,
                              (int)level, &out);
    }
    return !clean;
}

static const char *const files[] = {"core/words/", NULL};

static const struct unfound unfound[] = {
    {"inherit ", 4, "an attachment begins before the run"},
    {"qn_words_attach ", 3, "likewise"},
    {"mark_ended load 1", 1, "its own receiver is told as well"},
    {"mark_ended cas 1", 3, "likewise"},
    {"qn_words_ring_waiting rmw 1", 2, "a seq_cst load is in front of it"},
    {"try_reserve cas 1: acq_rel to release", 1,
     "a load never takes what is stored later (load buffering)"},
    {NULL, 0, NULL},
};

static const struct orders orders = {.files = files,
                                     .explore = explore_all,
                                     .levels = 1,
                                     .unfound = unfound,
                                     .least = 20};

Test(words_orders, what_no_exploration_finds_is_known, .timeout = 3600)
{
    orders_judge(&orders);
}
