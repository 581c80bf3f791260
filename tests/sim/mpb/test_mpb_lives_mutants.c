/* What keeps incarnations apart, taken out: some schedule shows it. */
#include "tests/sim/mpb/mpb_world.h"
#include "tests/sim/mpb/oc_explored.h"
#include "tests/support/test.h"
#include "transports/mpb/mutant.h"

enum qn_mpb_mutant qn_mpb_mutant;

static bool all_good(void)
{
    struct qn_explored out;
    return mpb_a_reader_of_the_dead_gets_nothing_of_the_successor(&out) &&
           mpb_incarnations_never_mix_in_any_order(&out) &&
           oc_a_successor_overwrites(&out);
}

Test(mpb_lives_mutants, each_is_found, .timeout = 300)
{
    enum by { STRICT, LIVES, OC, TWO, ASYNC };
    static const enum by by[] = {STRICT,
#define X(name, finder, text) finder,
                                 QN_MPB_MUTANT_MAP(X)
#undef X
    };
    for (int m = QN_MPB_MUTANT_NONE + 1; m < QN_MPB_MUTANT_COUNT; m++) {
        qn_mpb_mutant = (enum qn_mpb_mutant)m;
        if (by[m] == LIVES) {
            cr_assert(!all_good(), "mutant %d", m);
        }
    }
}
