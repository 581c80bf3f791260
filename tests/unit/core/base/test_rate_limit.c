/* Lines that would be written again and again. */
#include "core/base/rate_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

Test(rate_limit, the_first_is_written_at_once_and_the_next_with_a_count)
{
    struct qn_rate_limit s = {0};
    char more[QN_RATE_LIMIT_TEXT];
    cr_assert(qn_rate_limit(&s, "why", QN_S, more));
    cr_assert_str_eq(more, "");
    for (qn_time_t i = 0; i < 193; i++) {
        cr_assert_not(qn_rate_limit(&s, "why", QN_S + i, more));
    }
    cr_assert(qn_rate_limit(&s, "why", QN_S + QN_RATE_LIMIT_PERIOD, more));
    cr_assert_str_eq(more, "; 193 more like it since");
    cr_assert(qn_rate_limit(&s, "why", QN_S + 3 * QN_RATE_LIMIT_PERIOD, more));
    cr_assert_str_eq(more, "", "none was left out");
}

/* 194 a second for ten minutes: six lines a minute, and each is accounted for.
 */
Test(rate_limit, a_flood_is_bounded_and_nothing_is_lost)
{
    enum { PER_S = 194, SECONDS = 600 };
    struct qn_rate_limit s = {0};
    char more[QN_RATE_LIMIT_TEXT];
    unsigned lines = 0;
    unsigned long told = 0;
    for (qn_time_t i = 0; i < PER_S * SECONDS; i++) {
        if (qn_rate_limit(&s, "why", i * QN_S / PER_S, more)) {
            lines++;
            told += 1 + (more[0] == '\0' ? 0 : strtoul(more + 2, NULL, 10));
        }
    }
    cr_assert_leq(lines, SECONDS / 10);
    cr_assert_geq(lines, SECONDS / 10 - 1);
    cr_assert_eq(told + s.kind[0].left, (unsigned long)PER_S * SECONDS);
}

Test(rate_limit, no_reason_hides_another)
{
    static const char *const why[] = {"a", "b", "c"};
    struct qn_rate_limit s = {0};
    char more[QN_RATE_LIMIT_TEXT];
    for (int i = 0; i < 3; i++) {
        cr_assert(qn_rate_limit(&s, why[i], 0, more));
    }
    for (int i = 0; i < 3; i++) {
        cr_assert_not(qn_rate_limit(&s, why[i], 1, more));
    }
}

/* More kinds than there are: the last ones share a place, and a bound. */
Test(rate_limit, too_many_reasons_are_one)
{
    char name[64][16];
    struct qn_rate_limit s = {0};
    char more[QN_RATE_LIMIT_TEXT];
    unsigned lines = 0;
    for (int i = 0; i < 64; i++) {
        snprintf(name[i], sizeof name[i], "why%d", i);
        lines += qn_rate_limit(&s, name[i], 0, more);
    }
    cr_assert_eq(lines, QN_RATE_LIMIT_KINDS);
}
