#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/verify/checker/linear.h"
#include "loadgen/verify/history/text.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"
#include "tests/unit/loadgen/verify/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SMALL_MAX = 7,
    LESS = QN_UNSANITIZED(1, 10) /* by which numbers of histories are divided */
};

static enum qn_linear_verdict verdict(const struct qn_record *r, uint32_t n,
                                      bool plain, bool always_search)
{
    struct qn_linear_result out;
    struct qn_linear_opts o = {.plain = plain, .always_search = always_search};
    int err = qn_linear_check(r, n, &o, &out);
    cr_assert_eq(err, QN_OK);
    return out.verdict;
}

/* Compares with the reference checker; true if the history is linearizable. */
static bool agree(const struct qn_record *r, uint32_t n, const char *world)
{
    bool good = world_linearizable(r, n);
    enum qn_linear_verdict want = good ? QN_LINEARIZABLE : QN_NOT_LINEARIZABLE;
    enum qn_linear_verdict got = verdict(r, n, false, false);
    enum qn_linear_verdict searched = verdict(r, n, false, true);
    enum qn_linear_verdict plain = verdict(r, n, true, false);
    if (got != want || searched != want || plain != want) {
        world_show(r, n);
    }
    cr_assert_eq(got, want, "%s: want %d, got %d", world, want, got);
    cr_assert_eq(searched, want, "%s: want %d, search says %d", world, want,
                 searched);
    cr_assert_eq(plain, want, "%s: want %d, plain search says %d", world, want,
                 plain);
    return good;
}

/* 9 models, 15000 histories each, of 1 to 7 operations, half of them corrupted
 * once or twice. For each model both verdicts must be frequent. */
Test(linear, agrees_with_the_reference_checker_on_small_histories,
     .timeout = 100)
{
    for (size_t w = 0; w < WORLD_COUNT; w++) {
        uint64_t seed = 1 + w;
        uint32_t good = 0;
        for (uint32_t i = 0; i < 15000 / LESS; i++) {
            struct qn_record r[SMALL_MAX];
            uint32_t n = 1 + (uint32_t)qn_random_below(&seed, SMALL_MAX);
            struct world_opts o = world_opts(w, n);
            o.clients = 1 + (uint32_t)qn_random_below(&seed, 6);
            o.unknown = i % 4 == 0 ? 0 : 20;
            world_good(&seed, &o, r);
            for (uint32_t k = i % 2 + i % 3 % 2; k > 0; k--) {
                world_spoil(&seed, r, n);
            }
            good += agree(r, n, world_name(w));
        }
        cr_assert(good > 5000 / LESS && good < 14000 / LESS, "%s: %u good",
                  world_name(w), good);
    }
}

/* 100 correct histories of each model: many clients, some without a reply. */
Test(linear, accepts_correct_histories, .timeout = 100)
{
    struct qn_record *r = malloc(2000 * sizeof *r);
    for (size_t w = 0; w < WORLD_COUNT; w++) {
        uint64_t seed = 1000 + w;
        for (uint32_t i = 0; i < QN_UNSANITIZED(100, 25); i++) {
            struct world_opts o = world_opts(w, 2000);
            o.clients = 1 + i % 60;
            o.unknown = i % 3;
            o.length_max = 1 + 20 * (i % 7);
            /* With repeated values the search cannot use its rules. */
            bool rules = o.values == 0;
            o.ops = rules ? o.ops : 60;
            o.clients = rules ? o.clients : 1 + i % 6;
            world_good(&seed, &o, r);
            cr_assert_eq(verdict(r, o.ops, false, false), QN_LINEARIZABLE,
                         "%s, history %u", world_name(w), i);
        }
    }
    free(r);
}

/* Rules 2 to 4 and the names of configurations, on histories too long for the
 * reference checker: many concurrent operations, most of them refused or
 * deleting. */
Test(linear, the_rules_exclude_no_valid_order, .timeout = 200)
{
    uint32_t bad = 0;
    for (size_t w = 0; w < 4; w++) {
        uint64_t seed = 3000 + w;
        for (uint32_t i = 0; i < 20000 / LESS; i++) {
            struct qn_record r[16];
            uint32_t n = 8 + (uint32_t)qn_random_below(&seed, 9);
            struct world_opts o = world_opts(w, n);
            o.clients = 12;
            o.length_max = 60;
            o.weight[QN_RECORD_CAS] *= 1 + i % 3;
            world_good(&seed, &o, r);
            for (uint32_t k = i % 4; k > 0; k--) {
                world_spoil(&seed, r, n);
            }
            enum qn_linear_verdict plain = verdict(r, n, true, false);
            enum qn_linear_verdict rules = verdict(r, n, false, true);
            if (plain != rules) {
                world_show(r, n);
            }
            cr_assert_eq(plain, rules, "%s: %d, with rules %d", world_name(w),
                         plain, rules);
            bad += rules == QN_NOT_LINEARIZABLE;
        }
    }
    cr_assert(bad > 20000 / LESS, "%u violations", bad);
}

/* Where zones decide, the search reaches the same verdict. */
Test(linear, zones_and_search_agree_on_longer_histories, .timeout = 100)
{
    uint32_t bad = 0;
    for (size_t w = 0; w < 2; w++) {
        uint64_t seed = 2000 + w;
        for (uint32_t i = 0; i < 2000 / LESS; i++) {
            struct qn_record r[60];
            struct world_opts o = world_opts(w, 60);
            o.clients = 1 + i % 8;
            world_good(&seed, &o, r);
            world_spoil(&seed, r, i % 2 ? o.ops : 1);
            enum qn_linear_verdict zones = verdict(r, o.ops, false, false);
            cr_assert_eq(zones, verdict(r, o.ops, false, true));
            enum qn_linear_verdict plain = verdict(r, o.ops, true, false);
            cr_assert(plain == zones || plain == QN_LINEAR_UNDECIDED);
            bad += zones == QN_NOT_LINEARIZABLE;
        }
    }
    cr_assert(bad > 500 / LESS, "%u violations", bad);
}

/* 16 concurrent writes of two values, then a read of a third one that a refused
 * exchange makes impossible to exclude early: the plain search must try them
 * all, and reports "undecided" when its budget does not allow that. */
Test(linear, is_undecided_when_the_budget_ends)
{
    struct qn_record r[18];
    for (int i = 0; i < 16; i++) {
        r[i] = (struct qn_record){.invoked = 1,
                                  .responded = 100,
                                  .value = 1 + i,
                                  .kind = QN_RECORD_SET,
                                  .outcome = QN_RECORD_OK};
    }
    r[16] = (struct qn_record){.invoked = 200,
                               .responded = 300,
                               .value = 17,
                               .kind = QN_RECORD_GET,
                               .outcome = QN_RECORD_OK};
    struct qn_linear_result out;
    struct qn_linear_opts o = {.plain = true, .steps_max = 1000};
    cr_assert_eq(qn_linear_check(r, 17, &o, &out), QN_OK);
    cr_assert_eq(out.verdict, QN_LINEAR_UNDECIDED);
    o = (struct qn_linear_opts){.plain = true, .visited_max = 100};
    cr_assert_eq(qn_linear_check(r, 17, &o, &out), QN_OK);
    cr_assert_eq(out.verdict, QN_LINEAR_UNDECIDED);
    o = (struct qn_linear_opts){.plain = true};
    cr_assert_eq(qn_linear_check(r, 17, &o, &out), QN_OK);
    cr_assert_eq(out.verdict, QN_NOT_LINEARIZABLE);
}

Test(linear, an_empty_history_is_correct)
{
    cr_assert_eq(verdict(NULL, 0, false, false), QN_LINEARIZABLE);
    struct qn_record r = {.kind = QN_RECORD_GET, .responded = QN_TIME_NEVER};
    cr_assert_eq(verdict(&r, 1, false, false), QN_LINEARIZABLE);
}
