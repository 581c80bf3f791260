/* Two-sided messages without an invalidate or a drain: some seed of 100 finds
 * it. */
#include "tests/unit/transports/mpb/mpb_mutants.h"
#include "tests/unit/transports/mpb/twosided/rival_world.h"

Test(rivals_mutants, each_is_found, .timeout = 60)
{
    mpb_find_all(TWO, rival_traffic);
}
