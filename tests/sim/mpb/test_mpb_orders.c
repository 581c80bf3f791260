/*
 * Which memory orders of the emulated chip an exploration needs: each operation
 * of chip.c is made weaker, one at a time, and the scenarios must find it.
 */
#include "tests/sim/explore/orders.h"
#include "tests/sim/mpb/mpb_world.h"
#include "tests/sim/mpb/oc_explored.h"
#include "tests/support/test.h"

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    mpb_search = (struct mpb_search){.c11 = true, .deviations = 1 + level};
    /* What is put and got over again needs three. */
    if (level == 2) {
        return !mpb_a_reader_of_the_dead_gets_nothing_of_the_successor(&out) ||
               !oc_a_successor_overwrites(&out);
    }
    return !mpb_a_sender_that_waits_for_room_is_woken(&out) ||
           !mpb_messages_pass_between_sleepers(&out) ||
           !oc_both_broadcast(&out);
}

static const char *const files[] = {"transports/mpb/chip.c", NULL};

static const struct unfound unfound[] = {
    {"plain_take rmw 1: seq_cst to acq_rel", 1,
     "what a core announces lies before its interrupt, and is looked at behind "
     "it; whether the target sleeps meanwhile, the doorbell decides"},
    {"qn_mpb_serve rmw 1: seq_cst to acq_rel", 1, "the other end of that"},
    {NULL, 0, NULL}};

Test(mpb_orders, what_no_exploration_finds_is_known, .timeout = 3600)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = unfound,
                                  .least = 10});
}
