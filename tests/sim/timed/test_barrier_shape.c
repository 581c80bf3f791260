/* Barriers on shared lines, on 32 and on 64 cores: which form is above which,
 * and how each grows. */
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
    cr_assert_eq(qn_replay_s2_shared(some, form, GHZ, &ns), QN_OK);
    qn_machine_destroy(some);
    return ns;
}

static struct qn_machine *machine(void)
{
    struct qn_parse_error bad = {""};
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_load(&m, QN_MACHINES "/epyc_7742_2x64", &bad),
                 QN_OK, "%s", bad.text);
    return m;
}

Test(barrier_shape, central_grows_with_members_and_the_others_with_rounds)
{
    struct qn_machine *m = machine();
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

Test(barrier_shape, without_a_name_it_is_dissemination_on_own_cores)
{
    struct qn_machine *m = machine();
    cr_expect_eq(ns_of(m, NULL, 32), ns_of(m, "dissemination", 32));
    cr_expect_eq(ns_of(m, NULL, 2), ns_of(m, "central", 2));
    cr_expect_neq(ns_of(m, "central", 2), ns_of(m, "dissemination", 2));
    qn_machine_destroy(m);
}

Test(barrier_shape, a_form_that_there_is_not_and_one_core_are_refused)
{
    struct qn_machine *m = machine();
    double ns = 7;
    cr_expect_eq(qn_replay_s2_shared(m, "butterfly", GHZ, &ns), QN_EINVAL);
    const uint32_t first = 0;
    struct qn_machine *one;
    cr_assert_eq(qn_machine_restrict(&one, m, &first, 1), QN_OK);
    cr_expect_eq(qn_replay_s2_shared(one, NULL, GHZ, &ns), QN_EINVAL);
    cr_expect_eq(ns, 7);
    qn_machine_destroy(one);
    qn_machine_destroy(m);
}
