#include "kvs/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

static struct qn_slice slice(const char *text)
{
    return (struct qn_slice){(const uint8_t *)text, strlen(text)};
}

Test(number, integers_are_read_up_to_both_ends)
{
    const int64_t values[] = {0,
                              1,
                              -1,
                              9,
                              10,
                              -10,
                              123456789,
                              INT64_MAX,
                              INT64_MIN,
                              INT64_MAX - 1,
                              INT64_MIN + 1};
    for (size_t i = 0; i < QN_ARRAY_COUNT(values); i++) {
        char text[32];
        int64_t v = 42;
        snprintf(text, sizeof text, "%" PRId64, values[i]);
        cr_expect(qn_number_parse(slice(text), &v), "%s", text);
        cr_expect_eq(v, values[i], "%s", text);
        char back[QN_NUMBER_CHARS];
        size_t n = qn_number_format(back, values[i]);
        cr_expect(n == strlen(text) && memcmp(back, text, n) == 0, "%s", text);
    }
}

Test(number, what_is_not_canonical_is_no_integer)
{
    const char *const bad[] = {"",
                               "-",
                               "+1",
                               "01",
                               "-0",
                               "-01",
                               "00",
                               " 1",
                               "1 ",
                               "1a",
                               "a",
                               "1.0",
                               "--1",
                               "9223372036854775808",
                               "-9223372036854775809",
                               "18446744073709551616",
                               "99999999999999999999",
                               "-99999999999999999999",
                               "100000000000000000000000"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        int64_t v = 42;
        cr_expect_not(qn_number_parse(slice(bad[i]), &v), "%s", bad[i]);
        cr_expect_eq(v, 42, "%s: touched", bad[i]);
    }
    int64_t v;
    cr_expect_not(qn_number_parse((struct qn_slice){NULL, 0}, &v));
    cr_expect_not(
        qn_number_parse((struct qn_slice){(const uint8_t *)"1\0", 2}, &v));
}

Test(number, floats_are_what_strtold_reads_entirely)
{
    long double v = 42;
    cr_assert(qn_number_parse_float(slice("3.0e3"), &v));
    cr_assert(v == 3000);
    cr_assert(qn_number_parse_float(slice("0x10"), &v));
    cr_assert(v == 16);
    cr_assert(qn_number_parse_float(slice("-inf"), &v));
    cr_assert(isinf(v));
    cr_assert(qn_number_parse_float(slice("+1"), &v));
    cr_assert(v == 1);
    const char *const bad[] = {"",    " 1",  "1 ",     "a",      "1a",
                               "nan", "\t1", "1e5000", "1e-6000"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        cr_expect_not(qn_number_parse_float(slice(bad[i]), &v), "%s", bad[i]);
    }
    cr_expect_not(qn_number_parse_float(
        (struct qn_slice){(const uint8_t *)"1\0", 2}, &v));
    cr_assert(v == 1);
}

Test(number, a_float_of_any_length_is_read_or_refused)
{
    static char text[QN_NUMBER_FLOAT_CHARS + 1];
    memset(text, '0', sizeof text - 1);
    text[0] = '1';
    text[1] = '.';
    long double v = 0;
    struct qn_slice s = {(const uint8_t *)text, QN_NUMBER_FLOAT_CHARS - 1};
    cr_assert(qn_number_parse_float(s, &v));
    cr_assert(v == 1);
    s.len++;
    cr_assert_not(qn_number_parse_float(s, &v));
}

static void expect_float(long double v, const char *text)
{
    char got[QN_NUMBER_FLOAT_CHARS];
    size_t n = qn_number_format_float(got, v);
    cr_expect(n == strlen(text) && memcmp(got, text, n) == 0,
              "got %.*s, expected %s", (int)n, got, text);
}

Test(number, floats_are_written_for_people)
{
    expect_float(0, "0");
    expect_float(-0.0L, "0");
    expect_float(-1e-20L, "0");
    expect_float(3200, "3200");
    expect_float(100, "100");
    expect_float(10.6L, "10.6");
    expect_float(-0.5L, "-0.5");
    expect_float(0.1L + 0.2L, "0.3");
    expect_float(1e17L, "100000000000000000");
}

Test(number, the_largest_float_fits)
{
    char got[QN_NUMBER_FLOAT_CHARS];
    long double v = 0;
    size_t n = qn_number_format_float(got, -1.18973149535723176502e4932L);
    cr_assert_eq(n, 4934);
    cr_assert(
        qn_number_parse_float((struct qn_slice){(const uint8_t *)got, n}, &v));
    cr_assert(v < -1e4932L);
}
