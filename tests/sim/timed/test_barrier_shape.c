/* Barriers on shared lines, on 32 and on 64 cores: which form is above which,
 * and how each grows. */
#include <math.h>
#include <stdio.h>

#include "core/barrier/barrier.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/machine.h"
#include "loadgen/simulate/replay.h"
#include "tests/support/test.h"

#define GHZ 2.0

static double ns_of(const struct qn_machine *m, const char *form, uint32_t n)
{
    static uint32_t index[QN_CORES_MAX];
    struct qn_machine *some;
    double ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        index[i] = i;
    }
    cr_assert_eq(qn_machine_restrict(&some, m, index, n), QN_OK);
    cr_assert_eq(qn_replay_s2_shared(some, form, GHZ, 0, &ns), QN_OK);
    qn_machine_destroy(some);
    return ns;
}

static struct qn_machine *machine(const char *name)
{
    struct qn_parse_error bad = {""};
    struct qn_machine *m = NULL;
    char path[256];
    snprintf(path, sizeof path, QN_MACHINES "/%s", name);
    cr_assert_eq(qn_machine_load(&m, path, &bad), QN_OK, "%s", bad.text);
    return m;
}

Test(barrier_shape, central_grows_with_members_and_the_others_with_rounds)
{
    struct qn_machine *m = machine("epyc_7742_2x64");
    const double central = ns_of(m, "central", 32);
    const double dissemination = ns_of(m, "dissemination", 32);
    const double mcs = ns_of(m, "mcs", 32);
    cr_expect_lt(dissemination, mcs);
    cr_expect_lt(mcs, central);
    cr_expect_gt(ns_of(m, "central", 64), 1.7 * central);
    cr_expect_lt(ns_of(m, "dissemination", 64), 1.7 * dissemination);
    cr_expect_lt(ns_of(m, "mcs", 64), 1.7 * mcs);
    qn_machine_destroy(m);
}

Test(barrier_shape,
     the_chosen_form_takes_at_most_a_twentieth_more_than_the_best)
{
    const char *const machines[] = {"epyc_7742_2x64", "westmere_8x10x2",
                                    "graviton3_1x64"};
    const uint32_t sizes[] = {2, 32, 64};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(machines); i++) {
        struct qn_machine *m = machine(machines[i]);
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(sizes); k++) {
            double best = INFINITY;
            /* central, the first one, is the slowest by far: see above. */
            for (uint32_t f = 1; qn_barrier_forms[f] != NULL; f++) {
                const double ns = ns_of(m, qn_barrier_forms[f]->name, sizes[k]);
                best = QN_MIN(best, ns);
            }
            const double chosen = ns_of(m, NULL, sizes[k]);
            cr_expect_leq(chosen, 1.05 * best, "%s, %u: %.0f, best %.0f",
                          machines[i], sizes[k], chosen, best);
        }
        qn_machine_destroy(m);
    }
}

Test(barrier_shape, a_form_that_there_is_not_and_one_core_are_refused)
{
    struct qn_machine *m = machine("epyc_7742_2x64");
    double ns = 7;
    cr_expect_eq(qn_replay_s2_shared(m, "butterfly", GHZ, 0, &ns), QN_EINVAL);
    const uint32_t first = 0;
    struct qn_machine *one;
    cr_assert_eq(qn_machine_restrict(&one, m, &first, 1), QN_OK);
    cr_expect_eq(qn_replay_s2_shared(one, NULL, GHZ, 0, &ns), QN_EINVAL);
    cr_expect_eq(ns, 7);
    qn_machine_destroy(one);
    qn_machine_destroy(m);
}
