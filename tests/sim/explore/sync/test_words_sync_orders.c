/* Each memory order of ports, of HybLock, HybComb and MP-Server weaker, one at
 * a time: some program finds it, or it stays for a reason. */
#include "core/base/bits.h"
#include "core/sync/sync_mutant.h"
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/sync/words_sync_world.h"
#include "tests/support/test.h"

/* What another form of HybComb has. */
static const char *const unreached[] = {"QN_SYNC_MUTANT(LATE_RELEASE)", NULL};

#define LEVELS 2u

static const struct words_program *programs;
static uint32_t program_count;
static enum qn_sync_mutant form; /* of what is judged: no defect */

/* Level 0 with a deviation less. */
static bool explore(uint32_t level)
{
    bool fault = false;
    qn_sync_mutant = form;
    for (uint32_t i = 0; i < program_count && !fault; i++) {
        struct qn_explored out;
        fault = !words_sync_is_clean(&programs[i], QN_EXPLORE_C11,
                                     (int)level + 1 - (int)LEVELS, &out);
    }
    return fault;
}

static void judge(const char *file, const struct words_program *p,
                  uint32_t count, const struct unfound *unfound, uint32_t least)
{
    const char *const files[] = {file, NULL};
    programs = p;
    program_count = count;
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore,
                                  .levels = LEVELS,
                                  .unfound = unfound,
                                  .least = least,
                                  .unreached = unreached});
}

Test(words_sync_orders, of_hyblock, .timeout = 300)
{
    static const struct words_program p[] = {
        {.node = {"aa", "aa"}, .deviations = 2},
        {.node = {"a", "tt"}, .deviations = 2},
        {.node = {"a", "a", "a"}, .deviations = 2},
    };
    static const struct unfound unfound[] = {
        {"hyblock_release fence 1", 1,
         "a send of the emulation releases; the hardware's network is not "
         "ordered with memory"},
        {NULL, 0, NULL},
    };
    judge("sync/lock/hyblock.c", p, QN_ARRAY_COUNT(p), unfound, 3);
}

static const struct words_program comb[] = {
    {.node = {"cc", "cc"}, .deviations = 2},
    {.node = {"cc", "cc"}, .batch = 1, .deviations = 2},
    {.node = {"cc", "cc", "c"}, .deviations = 3},
};

Test(words_sync_orders, of_hyb_comb, .timeout = 300)
{
    static const struct unfound unfound[] = {
        {NULL, 0, NULL},
    };
    judge("delegate/hyb_comb.c", comb, QN_ARRAY_COUNT(comb), unfound, 3);
}

/* No bound reaches the exchange behind CAS_MOST failures. */
Test(words_sync_orders, of_hyb_comb_that_exchanges, .timeout = 300)
{
    static const struct unfound unfound[] = {
        {NULL, 0, NULL},
    };
    form = QN_SYNC_MUTANT_EXCHANGE;
    judge("delegate/hyb_comb.c", comb, QN_ARRAY_COUNT(comb), unfound, 3);
}

Test(words_sync_orders, of_mp_server, .timeout = 300)
{
    static const struct words_program p[] = {
        {.node = {"ss", "cxcx"}, .delegate = "mp_server", .deviations = 2},
        {.node = {"s", "xS", "cX"}, .delegate = "mp_server", .deviations = 2},
        {.node = {"s", "cx"}, .delegate = "mp_server", .deviations = 3},
    };
    static const struct unfound unfound[] = {
        {"mp_end rmw 1", 2,
         "the fence of a stop comes right behind it, so only a server that "
         "sees the stop in front of that fence misses a line: more deviations"},
        {NULL, 0, NULL},
    };
    judge("delegate/mp_server.c", p, QN_ARRAY_COUNT(p), unfound, 5);
}

Test(words_sync_orders, of_ports, .timeout = 300)
{
    static const struct words_program p[] = {
        {.node = {"aa", "aa"}, .deviations = 2},
    };
    static const struct unfound unfound[] = {
        {"qn_sync_object cas 1", 1,
         "the number is all that is said; the weakest compare-and-swap "
         "acquires"},
        {NULL, 0, NULL},
    };
    judge("sync/port.c", p, QN_ARRAY_COUNT(p), unfound, 1);
}
