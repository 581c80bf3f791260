/* Large collectives in virtual time: each variant is right there, and what is
 * slower on a real machine is slower here. */
#include "core/base/err.h"
#include "loadgen/simulate/large/large_run.h"
#include "tests/support/test.h"

static struct qn_machine *machine(uint32_t members)
{
    static uint32_t index[QN_CORES_MAX];
    struct qn_parse_error bad = {""};
    struct qn_machine *all = NULL, *m = NULL;
    cr_assert_eq(qn_machine_load(&all, QN_TEST_MACHINES "/syn_8x4x1", &bad),
                 QN_OK, "%s", bad.text);
    for (uint32_t i = 0; i < members; i++) {
        index[i] = i;
    }
    cr_assert_eq(qn_machine_restrict(&m, all, index, members), QN_OK);
    qn_machine_destroy(all);
    return m;
}

static double ns_of(const struct qn_machine *m, const char *name,
                    uint64_t bytes, double slow)
{
    struct qn_large_run_result r;
    const struct qn_large_run_opts o = {.m = m,
                                        .variant = qn_large_variant_find(name),
                                        .bytes = bytes,
                                        .slow = slow,
                                        .seed = 1};
    cr_assert_not_null(o.variant, "%s", name);
    cr_assert_eq(qn_large_run_timed(&r, &o), QN_OK);
    cr_expect(!r.wrong, "%s", name);
    return r.ns;
}

Test(sim_large, every_variant_gives_the_right_bytes)
{
    struct qn_machine *m = machine(13);
    const struct qn_large_variant *v;
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        struct qn_large_run_result r;
        struct qn_large_run_opts o = {.m = m,
                                      .variant = v,
                                      .bytes = 40000,
                                      .root = 5,
                                      .seed = 1,
                                      .jitter = 0.2};
        cr_assert_eq(qn_large_run_timed(&r, &o), QN_OK);
        cr_expect(!r.wrong, "%s", v->name);
        cr_expect_gt(r.ns, 0);
    }
    qn_machine_destroy(m);
}

Test(sim_large, fragments_overlap_and_one_root_for_all_is_slow)
{
    struct qn_machine *m = machine(32);
    const double whole = ns_of(m, "broadcast/pull/binomial/whole", 1 << 20, 0);
    const double fixed = ns_of(m, "broadcast/pull/binomial/fixed", 1 << 20, 0);
    cr_expect_lt(fixed, 0.6 * whole);
    cr_expect_gt(ns_of(m, "broadcast/push/flat", 1 << 20, 0), 3 * whole);
    qn_machine_destroy(m);
}

Test(sim_large, a_slow_member_delays_the_others)
{
    struct qn_machine *m = machine(8);
    const double usual = ns_of(m, "broadcast/pull/flat", 1 << 20, 0);
    const double slow = ns_of(m, "broadcast/pull/flat", 1 << 20, 10);
    cr_expect_gt(slow, 1.5 * usual);
    qn_machine_destroy(m);
}

Test(sim_large, the_same_run_takes_the_same_time)
{
    struct qn_machine *m = machine(16);
    const char *name = "gather/push/ring";
    cr_expect_eq(ns_of(m, name, 1 << 18, 0), ns_of(m, name, 1 << 18, 0));
    qn_machine_destroy(m);
}

Test(sim_large, one_member_a_root_that_is_none_and_odd_sizes_are_refused)
{
    struct qn_machine *m = machine(4), *one = machine(1);
    struct qn_large_run_result r;
    struct qn_large_run_opts o = {
        .m = m, .variant = qn_large_variant_at(0), .bytes = 64};
    cr_expect_eq(qn_large_run_timed(&r, &o), QN_OK);
    o.bytes = 60;
    cr_expect_eq(qn_large_run_timed(&r, &o), QN_EINVAL);
    o.bytes = QN_LARGE_RUN_MOST + 8;
    cr_expect_eq(qn_large_run_timed(&r, &o), QN_EINVAL);
    o.bytes = 64;
    o.root = 4;
    cr_expect_eq(qn_large_run_timed(&r, &o), QN_EINVAL);
    o.root = 0;
    o.m = one;
    cr_expect_eq(qn_large_run_timed(&r, &o), QN_EINVAL);
    qn_machine_destroy(one);
    qn_machine_destroy(m);
}
