/* Queuepair and broadcast over message buffers under every schedule, in both
 * memories. */
#include "tests/sim/mpb/mpb_world.h"
#include "tests/sim/mpb/oc_explored.h"
#include "tests/support/test.h"

#define X(name)                                                                \
    Test(mpb_explore, name, .timeout = 300)                                    \
    {                                                                          \
        struct qn_explored out;                                                \
        cr_assert(mpb_##name(&out), "%s at %s", out.fault, out.choices);       \
        cr_assert(out.complete);                                               \
    }
MPB_SCENARIO_MAP(X)

Test(oc_explore, two_that_broadcast_to_each_other_end, .timeout = 300)
{
    struct qn_explored out;
    cr_assert(oc_both_broadcast(&out), "%s at %s", out.fault, out.choices);
    cr_assert(out.complete);
}

Test(oc_explore, a_reader_of_the_dead_gets_nothing_of_the_successor,
     .timeout = 300)
{
    struct qn_explored out;
    cr_assert(oc_a_successor_overwrites(&out), "%s at %s", out.fault,
              out.choices);
    cr_assert(out.complete);
}
