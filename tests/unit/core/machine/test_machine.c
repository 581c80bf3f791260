#include "core/machine/machine.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/machine/csv.h"
#include "tests/support/test.h"

/* Cores 10, 12, 14, ...; costs that name their pair. */
static struct qn_machine *sparse(uint32_t n)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t u = 0; u < n; u++) {
        m->core[u].os = 10 + 2 * u;
        m->core[u].node = u / 2;
        for (uint32_t v = 0; v < n; v++) {
            m->send[u * n + v] = u == v ? 0 : 100 * u + v + 1;
            m->receive[u * n + v] = u == v ? 0 : 1000 * u + v + 1;
        }
    }
    return m;
}

Test(machine, has_from_1_to_1024_cores)
{
    struct qn_machine *m = NULL;
    cr_expect_eq(qn_machine_create(&m, 0), QN_EINVAL);
    cr_expect_eq(qn_machine_create(&m, QN_CORES_MAX + 1), QN_EINVAL);
    cr_expect_eq(qn_machine_create(&m, UINT32_MAX), QN_EINVAL);
    cr_assert_eq(qn_machine_create(&m, 1), QN_OK);
    cr_expect_eq(qn_machine_check(m), QN_OK);
    qn_machine_destroy(m);
    qn_machine_destroy(NULL);
}

Test(machine, finds_cores_by_their_operating_system_numbers)
{
    struct qn_machine *m = sparse(5);
    for (uint32_t i = 0; i < 5; i++) {
        cr_expect_eq(qn_machine_find(m, 10 + 2 * i), i);
        cr_expect_eq(qn_machine_find(m, 9 + 2 * i), 5);
    }
    cr_expect_eq(qn_machine_find(m, 20), 5);
    qn_machine_destroy(m);
}

Test(machine, a_subset_keeps_numbers_groups_and_costs)
{
    struct qn_machine *m = sparse(5), *r = NULL;
    const uint32_t some[] = {1, 2, 4};
    cr_assert_eq(qn_machine_restrict(&r, m, some, 3), QN_OK);
    cr_expect_eq(r->n, 3);
    cr_expect_eq(qn_machine_check(r), QN_OK);
    cr_expect_eq(r->core[2].os, 18);
    cr_expect_eq(qn_machine_group(r, QN_LEVEL_NODE, 2), 2);
    cr_expect_eq(qn_send_cost(r, 0, 2), 105);
    cr_expect_eq(qn_receive_cost(r, 2, 1), 4003);
    qn_machine_destroy(r);
    const uint32_t twice[] = {1, 1}, down[] = {2, 1}, far[] = {0, 5};
    cr_expect_eq(qn_machine_restrict(&r, m, some, 0), QN_EINVAL);
    cr_expect_eq(qn_machine_restrict(&r, m, twice, 2), QN_EINVAL);
    cr_expect_eq(qn_machine_restrict(&r, m, down, 2), QN_EINVAL);
    cr_expect_eq(qn_machine_restrict(&r, m, far, 2), QN_EINVAL);
    qn_machine_destroy(m);
}

Test(machine, check_finds_each_kind_of_damage)
{
    struct qn_machine *m = sparse(3);
    cr_assert_eq(qn_machine_check(m), QN_OK);
    m->core[1].os = 10;
    cr_expect_eq(qn_machine_check(m), QN_EINVAL);
    m->core[1].os = 12;
    const double bad[] = {0, -1, 1.0 / 0.0, 0.0 / 0.0, 2e12};
    for (uint32_t i = 0; i < 5; i++) {
        m->send[1] = bad[i];
        cr_expect_eq(qn_machine_check(m), QN_EINVAL, "%g", bad[i]);
        m->send[1] = 1;
        m->receive[5] = bad[i];
        cr_expect_eq(qn_machine_check(m), QN_EINVAL, "%g", bad[i]);
        m->receive[5] = 1;
    }
    m->send[4] = 1; /* the diagonal */
    cr_expect_eq(qn_machine_check(m), QN_EINVAL);
    qn_machine_destroy(m);
}

/* The parser must round as strtod, on both sides of its fast path. */
Test(decimal, is_the_double_that_strtod_gives)
{
    static const char *const good[] = {"0",
                                       "1",
                                       "63.7",
                                       "0.1",
                                       "225.5",
                                       "1e3",
                                       "1E+3",
                                       "5e-3",
                                       ".5",
                                       "7.",
                                       "1e22",
                                       "1e23",
                                       "1e-22",
                                       "1e-23",
                                       "0.00001",
                                       "1e999",
                                       "1e-999",
                                       "000012",
                                       "9007199254740993",
                                       "123456789012345",
                                       "1234567890123456",
                                       "0.1234567890123456789",
                                       "1.7976931348623157e308",
                                       "2.2250738585072014e-308"};
    for (uint32_t i = 0; i < sizeof good / sizeof *good; i++) {
        double x = -1;
        const char *end = good[i] + strlen(good[i]);
        cr_expect(qn_decimal_parse(good[i], end, &x) == end, "%s", good[i]);
        cr_expect_eq(x, strtod(good[i], NULL), "%s: %.17g", good[i], x);
    }
    static const char *const bad[] = {"",   "-1",  "+1", ".",   "e5", "nan",
                                      " 1", "inf", "1e", "1e+", "x"};
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double x = -1;
        const char *end = bad[i] + strlen(bad[i]);
        cr_expect(qn_decimal_parse(bad[i], end, &x) == NULL, "%s", bad[i]);
    }
}

Test(decimal, reads_every_short_number_exactly)
{
    for (uint32_t i = 0; i < 200000; i += 7) {
        char text[32];
        double x = -1;
        int n = snprintf(text, sizeof text, "%u.%03u", i / 100, i * 13 % 1000);
        cr_assert_not_null(qn_decimal_parse(text, text + n, &x));
        cr_assert_eq(x, strtod(text, NULL), "%s", text);
    }
}

Test(parse_error, is_one_printable_line_whatever_the_file_says)
{
    struct qn_parse_error f;
    char longest[600];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    cr_expect_eq(
        qn_parse_error_set(&f, "a/b.csv", 7, "core", "%u is %s", 3, "bad"),
        QN_EINVAL);
    cr_expect_str_eq(f.text, "a/b.csv:7: core: 3 is bad");
    qn_parse_error_set(&f, "b", 0, NULL, "\033[1m\n%s", "no");
    cr_expect_str_eq(f.text, "b: ?[1m?no");
    qn_parse_error_set(&f, longest, UINT32_MAX, longest, "%s", longest);
    cr_assert_lt(strlen(f.text), sizeof f.text);
    cr_expect_eq(qn_parse_error_set(NULL, "b", 0, NULL, "no"), QN_EINVAL);
}
