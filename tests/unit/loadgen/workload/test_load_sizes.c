#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/workload/sizes.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

enum { DRAWS = 400000 };

static char error[200];

static int parse(struct qn_sizes *s, const char *text)
{
    error[0] = '\0';
    return qn_sizes_parse(s, QN_SIZES_ETC_VALUE, text, 10000, error,
                          sizeof error);
}

Test(sizes, a_fixed_size_is_always_the_same)
{
    struct qn_sizes s;
    cr_assert_eq(parse(&s, "1k"), QN_OK);
    uint64_t random = 1;
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(qn_sizes_at(&s, qn_random_next(&random)), 1000);
    }
    cr_assert_eq(qn_sizes_mean(&s), 1000);
    cr_assert_eq(parse(&s, "7..7"), QN_OK);
    cr_assert_eq(qn_sizes_at(&s, UINT64_MAX), 7);
}

Test(sizes, what_is_printed_can_be_parsed)
{
    static const char *const texts[][2] = {{"1k", "1000"},
                                           {"7..7", "7"},
                                           {"0..1ki", "0..1024"},
                                           {"etc", "etc"},
                                           {"mixed:16..4ki", "mixed:16..4096"}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(texts); i++) {
        struct qn_sizes s;
        char text[QN_SIZES_TEXT_MAX];
        cr_assert_eq(parse(&s, texts[i][0]), QN_OK);
        qn_sizes_print(&s, text);
        cr_assert_str_eq(text, texts[i][1]);
    }
}

Test(sizes, a_range_has_all_its_sizes_equally_often)
{
    struct qn_sizes s;
    unsigned counts[14] = {0};
    uint64_t random = 1;
    cr_assert_eq(parse(&s, "4..13"), QN_OK);
    for (int i = 0; i < DRAWS; i++) {
        counts[qn_sizes_at(&s, qn_random_next(&random))]++;
    }
    for (int i = 4; i <= 13; i++) {
        cr_assert(fabs(counts[i] - DRAWS / 10.0) < 5 * sqrt(DRAWS / 10.0),
                  "%d bytes: %u", i, counts[i]);
    }
    cr_assert_eq(qn_sizes_at(&s, 0), 4);
    cr_assert_eq(qn_sizes_at(&s, UINT64_MAX), 13);
    cr_assert_eq(qn_sizes_mean(&s), 9);
}

/* P(size > s) and the mean, by their formulas. */
Test(sizes, mixed_sizes_are_mostly_small_and_sometimes_large)
{
    struct qn_sizes s = qn_sizes_mixed_within(1, UINT64_MAX);
    uint64_t random = 1;
    double sum = 0;
    unsigned above[3] = {0};
    static const double bound[3] = {64, 4096, 262144};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t size = qn_sizes_at(&s, qn_random_next(&random));
        cr_assert(size >= 16 && size <= 1 << 20);
        sum += (double)size;
        for (int b = 0; b < 3; b++) {
            above[b] += (double)size > bound[b];
        }
    }
    for (int b = 0; b < 3; b++) {
        double root = 1.0 / 256;
        double p = (sqrt(16 / bound[b]) - root) / (1 - root);
        cr_assert(fabs(above[b] - DRAWS * p) < 5 * sqrt(DRAWS * p),
                  "above %g: %u of %d", bound[b], above[b], DRAWS);
    }
    cr_assert_float_eq(sum / DRAWS / 4096, 1, 0.1);
    cr_assert_eq(qn_sizes_mean(&s), 4096);
    cr_assert_eq(qn_sizes_at(&s, 0), 16);
}

Test(sizes, many_mixed_sizes_are_smaller_so_that_all_have_a_bound)
{
    struct qn_sizes s = qn_sizes_mixed_within(1000000, UINT64_C(256) << 20);
    cr_assert_eq(s.kind, QN_SIZES_MIXED);
    cr_assert_leq(qn_sizes_mean(&s) * 1000000, (UINT64_C(256) << 20) + 1000000);
    s = qn_sizes_mixed_within(4000000000, UINT64_C(256) << 20);
    cr_assert_eq(s.max, 16);
    cr_assert_eq(qn_sizes_at(&s, UINT64_MAX), 16);
}

Test(sizes, mixed_sizes_have_bounds_that_fit)
{
    struct qn_sizes s;
    cr_assert_eq(parse(&s, "mixed"), QN_EINVAL, "1 MiB is above the limit");
    cr_assert_eq(parse(&s, "mixed:0..5"), QN_EINVAL);
    cr_assert_eq(parse(&s, "mixed:9..5"), QN_EINVAL);
    cr_assert_eq(parse(&s, "mixed:5"), QN_EINVAL);
    cr_assert_eq(parse(&s, "mixed:"), QN_EINVAL);
    cr_assert_eq(parse(&s, "mixed:5..5"), QN_OK);
    cr_assert_eq(qn_sizes_at(&s, UINT64_MAX), 5);
}

/* Table 5 of the paper, repeated. */
Test(sizes, small_etc_values_have_the_papers_probabilities)
{
    static const double table[15] = {
        0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606,
        0.00023, 0.00837, 0.00837, 0.08989, 0.00092, 0.00326, 0.01980};
    struct qn_sizes s = qn_sizes_etc(QN_SIZES_ETC_VALUE);
    unsigned counts[16] = {0};
    uint64_t random = 3;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t size = qn_sizes_at(&s, qn_random_next(&random));
        counts[QN_MIN(size, 15)]++;
    }
    for (int i = 0; i < 15; i++) {
        double expected = DRAWS * table[i];
        cr_assert(fabs(counts[i] - expected) < 5 * sqrt(expected) + 1,
                  "%d bytes: %u of %g", i, counts[i], expected);
    }
}

/* P(X <= x) of the Pareto part, at sizes all along its range. */
Test(sizes, large_etc_values_follow_the_pareto_law)
{
    static const double at[] = {20, 50, 100, 300, 1000, 5000, 50000};
    struct qn_sizes s = qn_sizes_etc(QN_SIZES_ETC_VALUE);
    unsigned below[QN_ARRAY_COUNT(at)] = {0};
    uint64_t random = 4;
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        double size = (double)qn_sizes_at(&s, qn_random_next(&random));
        sum += size;
        for (size_t j = 0; j < QN_ARRAY_COUNT(at); j++) {
            below[j] += size < at[j];
        }
    }
    for (size_t j = 0; j < QN_ARRAY_COUNT(at); j++) {
        double above =
            pow(1 + 0.348238 * (at[j] - 15) / 214.476, -1 / 0.348238);
        double p = 1 - (1 - 0.44155) * above;
        cr_assert(fabs(below[j] - DRAWS * p) <
                      5 * sqrt(DRAWS * p * (1 - p)) + 1,
                  "below %g: %u of %g", at[j], below[j], DRAWS * p);
    }
    cr_assert(fabs(sum / DRAWS - (double)qn_sizes_mean(&s)) < 5, "%g",
              sum / DRAWS);
}

Test(sizes, etc_keys_follow_the_extreme_value_law)
{
    static const double at[] = {15, 20, 25, 30, 35, 40, 50, 70};
    struct qn_sizes s = qn_sizes_etc(QN_SIZES_ETC_KEY);
    unsigned below[QN_ARRAY_COUNT(at)] = {0};
    uint64_t random = 5;
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        double size = (double)qn_sizes_at(&s, qn_random_next(&random));
        sum += size;
        for (size_t j = 0; j < QN_ARRAY_COUNT(at); j++) {
            below[j] += size < at[j];
        }
    }
    for (size_t j = 0; j < QN_ARRAY_COUNT(at); j++) {
        double t = 1 + 0.078688 * (at[j] - 30.7984) / 8.20449;
        double p = exp(-pow(t, -1 / 0.078688));
        cr_assert(fabs(below[j] - DRAWS * p) <
                      5 * sqrt(DRAWS * p * (1 - p)) + 1,
                  "below %g: %u of %g", at[j], below[j], DRAWS * p);
    }
    cr_assert(fabs(sum / DRAWS - (double)qn_sizes_mean(&s)) < 2, "%g",
              sum / DRAWS);
}

/* The lowest and the highest hash, for all settings of the limits. */
Test(sizes, etc_never_leaves_its_limits)
{
    struct qn_sizes v = qn_sizes_etc(QN_SIZES_ETC_VALUE);
    cr_assert_eq(qn_sizes_at(&v, 0), 0);
    cr_assert_eq(qn_sizes_at(&v, UINT64_MAX), QN_SIZES_ETC_VALUE_MAX);
    v.min = 16;
    cr_assert_eq(qn_sizes_at(&v, 0), 16);
    struct qn_sizes k = qn_sizes_etc(QN_SIZES_ETC_KEY);
    k.min = 13;
    cr_assert_eq(qn_sizes_at(&k, 0), 13);
    cr_assert_eq(qn_sizes_at(&k, UINT64_MAX), QN_SIZES_ETC_KEY_MAX);
}

Test(sizes, etc_uses_the_limits_of_the_caller)
{
    struct qn_sizes s;
    cr_assert_eq(parse(&s, "etc"), QN_OK);
    cr_assert_eq(s.kind, QN_SIZES_ETC_VALUE);
    cr_assert_eq(
        qn_sizes_parse(&s, QN_SIZES_ETC_KEY, "etc", 1, error, sizeof error),
        QN_OK);
    cr_assert_eq(s.kind, QN_SIZES_ETC_KEY);
}

static const struct {
    const char *text;
    const char *error; /* a part of the message */
} bad[] = {
    {"", "'' is not a size up to 10000; for example: 100, 16..4096, etc"},
    {"x", "'x' is not a size"},
    {"-1", "'-1' is not a size"},
    {"10001", "not a size up to 10000"},
    {"1..10001", "not a size up to 10000"},
    {"1..", "'1..' is not a size"},
    {"..5", "'..5' is not a size"},
    {"1...5", "not a size"},
    {"1..2..3", "not a size"},
    {"9..5", "did you mean 5..9?"},
    {"ETC", "not a size"},
    {"11111111111111111111111111111111111111111", "not a size"},
};

Test(sizes, reports_the_error_and_changes_nothing)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct qn_sizes s = qn_sizes_fixed(77);
        cr_assert_eq(parse(&s, bad[i].text), QN_EINVAL, "'%s'", bad[i].text);
        cr_assert(strstr(error, bad[i].error) != NULL, "'%s': %s", bad[i].text,
                  error);
        cr_assert_eq(s.max, 77);
    }
}
