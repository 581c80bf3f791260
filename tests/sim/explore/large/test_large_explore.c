/*
 * Large collectives under every schedule, in both memories;
 * QN_EXPLORE_DEVIATIONS is another bound for two members, and two less is that
 * of three, or one less if one of them ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "tests/sim/explore/large/large_explore_world.h"
#include "tests/support/test.h"

#ifdef __SANITIZE_ADDRESS__ /* which takes four times as long */
#define USUAL 2u
#else
#define USUAL 3u
#endif

static void explore(struct large_program p, const char *name)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    const uint32_t most = more != NULL ? (uint32_t)atoi(more) : USUAL;
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        const bool clean = large_is_clean(
            &p, m,
            p.members > 2 ? most - QN_MIN(p.ends != 0 ? 1 : 2, most) : most,
            &out);
        cr_expect(clean, "%s of %u, memory %d: %s at %s", name, p.members,
                  (int)m, out.fault, out.choices);
        if (getenv("QN_SHOW_RUNS") != NULL) {
            printf("%s of %u: memory %d, %llu runs\n", name, p.members, (int)m,
                   (unsigned long long)out.runs);
        }
    }
}

static void explore_both(enum qn_large_operation op, const char *name)
{
    for (uint32_t members = 2; members <= 3; members++) {
        explore((struct large_program){.members = members,
                                       .operations = members == 2 ? 2 : 1,
                                       .operation = op,
                                       .entry = QN_LARGE_OWN,
                                       .exit = QN_LARGE_OWN},
                name);
    }
}

Test(large_explore, a_broadcast, .timeout = 300)
{
    explore_both(QN_LARGE_BROADCAST, "broadcast");
}

Test(large_explore, a_reduction, .timeout = 300)
{
    explore_both(QN_LARGE_REDUCE, "reduce");
}

Test(large_explore, members_that_meet_and_leave_waits_behind, .timeout = 300)
{
    explore((struct large_program){.members = 2,
                                   .operations = 2,
                                   .operation = QN_LARGE_BROADCAST,
                                   .entry = QN_LARGE_ALL,
                                   .exit = QN_LARGE_NONE},
            "met broadcast");
}

Test(large_explore, a_member_that_has_ended, .timeout = 300)
{
    struct large_program p = {
        .operations = 1, .entry = QN_LARGE_OWN, .exit = QN_LARGE_OWN};
    for (p.members = 2; p.members <= 3; p.members++) {
        p.operation = QN_LARGE_BROADCAST;
        p.ends = 1; /* for which the root waits first */
        explore(p, "broken broadcast");
        p.operation = QN_LARGE_REDUCE;
        p.ends = p.members - 1; /* of which it takes last */
        explore(p, "broken reduction");
    }
}
