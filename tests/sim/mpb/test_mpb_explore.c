/* The queuepair over message buffers under every schedule, in both memories. */
#include "tests/sim/mpb/mpb_world.h"
#include "tests/support/test.h"

#define X(name)                                                                \
    Test(mpb_explore, name, .timeout = 300)                                    \
    {                                                                          \
        struct qn_explored out;                                                \
        cr_assert(mpb_##name(&out), "%s at %s", out.fault, out.choices);       \
        cr_assert(out.complete);                                               \
    }
MPB_SCENARIO_MAP(X)
