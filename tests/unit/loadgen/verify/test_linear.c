#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/verify/linear.h"
#include "loadgen/verify/text.h"
#include "tests/support/test.h"
#include "tests/unit/loadgen/verify/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SMALL_MAX = 7 };

/* The worlds: what is asked of a key. */
static const struct {
    const char *name;
    uint32_t weight[QN_RECORD_KIND_COUNT]; /* get set add cas del incr */
    int64_t values;
    int64_t steps;
} worlds[] = {
    {"register", {5, 5, 0, 0, 0, 0}, 0, 1},
    {"exchanged", {4, 2, 2, 6, 0, 0}, 0, 1},
    {"deleted", {4, 4, 0, 0, 4, 0}, 0, 1},
    {"everything", {3, 2, 2, 4, 2, 0}, 0, 1},
    {"counter", {2, 0, 0, 0, 0, 4}, 0, 1},
    {"counter by steps", {2, 0, 0, 0, 0, 4}, 0, 3},
    {"few values", {3, 2, 2, 4, 2, 0}, 3, 1},
    {"mixed", {3, 2, 1, 2, 2, 3}, 3, 2},
};

static struct world_opts opts_of(size_t world, uint32_t ops)
{
    struct world_opts o = {.ops = ops,
                           .clients = 4,
                           .unknown = 15,
                           .gap_max = 10,
                           .length_max = 30,
                           .values = worlds[world].values,
                           .steps = worlds[world].steps};
    memcpy(o.weight, worlds[world].weight, sizeof o.weight);
    return o;
}

static enum qn_verdict verdict(const struct qn_record *r, uint32_t n,
                               bool plain, bool always_search)
{
    struct qn_linear_result out;
    struct qn_linear_opts o = {.plain = plain, .always_search = always_search};
    int err = qn_linear_check(r, n, &o, &out);
    cr_assert_eq(err, QN_OK);
    return out.verdict;
}

static void show(const struct qn_record *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char text[QN_RECORD_TEXT_MAX];
        qn_record_text(&r[i], text);
        fprintf(stderr, "%s\n", text);
    }
}

/* Compare with the judge; true if it is linearizable. */
static bool agree(const struct qn_record *r, uint32_t n, const char *world)
{
    bool good = world_linearizable(r, n);
    enum qn_verdict want = good ? QN_VERDICT_FINE : QN_VERDICT_VIOLATION;
    enum qn_verdict got = verdict(r, n, false, false);
    enum qn_verdict searched = verdict(r, n, false, true);
    enum qn_verdict plain = verdict(r, n, true, false);
    if (got != want || searched != want || plain != want) {
        show(r, n);
    }
    cr_assert_eq(got, want, "%s: want %d, got %d", world, want, got);
    cr_assert_eq(searched, want, "%s: want %d, search says %d", world, want,
                 searched);
    cr_assert_eq(plain, want, "%s: want %d, plain search says %d", world, want,
                 plain);
    return good;
}

/* 8 worlds, 15000 histories each, of 1 to 7 operations, half of them spoiled
 * once or twice. Of each world both verdicts must occur often. */
Test(linear, agrees_with_the_judge_on_small_histories, .timeout = 100)
{
    for (size_t w = 0; w < QN_ARRAY_COUNT(worlds); w++) {
        uint64_t seed = 1 + w;
        uint32_t good = 0;
        for (uint32_t i = 0; i < 15000; i++) {
            struct qn_record r[SMALL_MAX];
            uint32_t n = 1 + (uint32_t)qn_random_below(&seed, SMALL_MAX);
            struct world_opts o = opts_of(w, n);
            o.clients = 1 + (uint32_t)qn_random_below(&seed, 6);
            o.unknown = i % 4 == 0 ? 0 : 20;
            world_good(&seed, &o, r);
            for (uint32_t k = i % 2 + i % 3 % 2; k > 0; k--) {
                world_spoil(&seed, r, n);
            }
            good += agree(r, n, worlds[w].name);
        }
        cr_assert(good > 5000 && good < 14000, "%s: %u good", worlds[w].name,
                  good);
    }
}
