/* Large collectives in virtual time: each variant is right there, and what is
 * slower on a real machine is slower here; and the one that is predicted to
 * take least takes hardly more than the best. */
#include <math.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/large/large_predict.h"
#include "loadgen/simulate/large/large_run.h"
#include "tests/support/sanitized.h"
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
    for (uint32_t i = 0; (v = qn_large_variant_at(i / 2)) != NULL; i++) {
        struct qn_large_run_result r;
        struct qn_large_run_opts o = {.m = m,
                                      .variant = v,
                                      .bytes = i % 2 == 0 ? 4 : 40000,
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

/* 64 MiB to each of 31 members at 1 MB/s. */
Test(sim_large, what_takes_more_than_an_hour_is_said_to)
{
    struct qn_machine *m = machine(32);
    struct qn_large_run_result r;
    const struct qn_large_run_opts o = {
        .m = m,
        .variant = qn_large_variant_find("broadcast/push/flat"),
        .bytes = QN_LARGE_RUN_MOST};
    m->facts.bandwidth[QN_BANDWIDTH_COPY] = QN_BANDWIDTH_LEAST;
    cr_expect_eq(qn_large_run_timed(&r, &o), QN_ETIMEDOUT);
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
    o.bytes = 62;
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

/* ---- predictions ---- */

/* Every `step`-th core. */
static struct qn_machine *spread(const char *path, uint32_t members,
                                 uint32_t step)
{
    static uint32_t index[QN_CORES_MAX];
    struct qn_parse_error bad = {""};
    struct qn_machine *all = NULL, *m = NULL;
    cr_assert_eq(qn_machine_load(&all, path, &bad), QN_OK, "%s", bad.text);
    for (uint32_t i = 0; i < members; i++) {
        index[i] = i * step;
    }
    cr_assert_eq(qn_machine_restrict(&m, all, index, members), QN_OK);
    qn_machine_destroy(all);
    return m;
}

static void expect_a_good_choice(const struct qn_machine *m,
                                 enum qn_large_operation op, uint64_t bytes)
{
    static struct qn_large_place place[QN_CORES_MAX];
    const struct qn_large_variant *v, *chosen = NULL;
    double best = INFINITY, of_chosen = 0;
    qn_large_places(m, place);
    cr_assert_eq(qn_large_predict_best(m, place, op, bytes, true, &chosen),
                 QN_OK);
    for (uint32_t i = 0; (v = qn_large_variant_at(i)) != NULL; i++) {
        if (v->operation == op) {
            const double ns = ns_of(m, v->name, bytes, 0);
            best = QN_MIN(best, ns);
            of_chosen = v == chosen ? ns : of_chosen;
        }
    }
    cr_expect_leq(of_chosen, 1.1 * best, "%s, %llu bytes: %s takes %f of %f",
                  m->name, (unsigned long long)bytes, chosen->name, of_chosen,
                  best);
}

/* QN_LARGE_FULL=1: also 16 MiB. */
static void expect_good_choices(const char *path, uint32_t members,
                                uint32_t step)
{
    struct qn_machine *m = spread(path, members, step);
    const uint64_t most = getenv("QN_LARGE_FULL") != NULL
                              ? 16u << 20
                              : QN_UNSANITIZED(1u << 20, 1u << 16);
    for (uint64_t bytes = 1 << 16; bytes <= most; bytes *= 16) {
        for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
            expect_a_good_choice(m, (enum qn_large_operation)op, bytes);
        }
    }
    qn_machine_destroy(m);
}

Test(sim_large, the_choice_is_near_the_best, .timeout = 100)
{
    expect_good_choices(QN_MACHINES "/epyc_7742_2x64", 8, 16);
    expect_good_choices(QN_MACHINES "/uv2000_24x8", 12, 4);
    expect_good_choices(QN_TEST_MACHINES "/syn_8x4x1", 8, 2);
}

Test(sim_large, a_prediction_is_what_a_run_takes)
{
    static struct qn_large_place place[QN_CORES_MAX];
    struct qn_machine *m = machine(16);
    static const char *const names[] = {
        "broadcast/pull/binomial+flat/fixed", "broadcast/push/binomial/whole",
        "reduce/pull/binomial/whole", "scatter/pull/ring",
        "gather/push/binomial/fixed"};
    qn_large_places(m, place);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(names); i++) {
        const struct qn_large_variant *v = qn_large_variant_find(names[i]);
        const double is = ns_of(m, names[i], 1 << 20, 0);
        double ns = 0;
        cr_assert_eq(qn_large_predict(m, place, v, 0, 1 << 20, &ns), QN_OK);
        cr_expect_lt(fabs(ns / is - 1), 0.05, "%s: %f, predicted %f", names[i],
                     is, ns);
    }
    qn_machine_destroy(m);
}

Test(sim_large, choices_are_by_size_and_isolated_ones_never_push)
{
    static struct qn_large_place place[QN_CORES_MAX];
    struct qn_machine *m = machine(4), *one = machine(1);
    struct qn_large_choices c;
    double ns = 0;
    qn_large_places(m, place);
    cr_assert_eq(qn_large_choices_make(&c, m, place, false), QN_OK);
    for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
        for (uint32_t i = 0; i < QN_LARGE_CHOICES; i++) {
            cr_expect_eq(c.of[op][i]->operation, op);
            cr_expect_eq(c.of[op][i]->direction, QN_LARGE_PULL);
        }
    }
    c.of[0][1] = qn_large_variant_at(5);
    cr_expect_eq(qn_large_choices_of(&c, 0, 1), c.of[0][0]);
    cr_expect_eq(qn_large_choices_of(&c, 0, 16385), c.of[0][1]);
    cr_expect_eq(qn_large_choices_of(&c, 0, 65536), c.of[0][1]);
    cr_expect_eq(qn_large_choices_of(&c, 0, 1 << 30),
                 c.of[0][QN_LARGE_CHOICES - 1]);
    cr_expect_eq(qn_large_choices_make(&c, one, place, true), QN_EINVAL);
    cr_expect_eq(qn_large_predict(m, place, qn_large_variant_at(0), 4, 64, &ns),
                 QN_EINVAL);
    qn_machine_destroy(one);
    qn_machine_destroy(m);
}
