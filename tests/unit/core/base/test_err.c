#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"

static const int values[] = {QN_OK,
#define X(name, value, text) QN_##name,
                             QN_ERR_MAP(X)
#undef X
};

Test(err, values_are_distinct_and_negative)
{
    for (size_t i = 1; i < QN_ARRAY_COUNT(values); i++) {
        cr_assert_lt(values[i], 0, "entry %zu is %d", i, values[i]);
        for (size_t j = 0; j < i; j++) {
            cr_assert_neq(values[i], values[j], "%zu and %zu", i, j);
        }
    }
}

Test(err, each_value_has_a_text_of_its_own)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(values); i++) {
        for (size_t j = 0; j < i; j++) {
            cr_assert(strcmp(qn_strerror(values[i]), qn_strerror(values[j])) !=
                      0);
        }
    }
}

Test(err, unknown_values_give_a_fixed_text)
{
    cr_assert_str_eq(qn_strerror(1), "unknown error");
    cr_assert_str_eq(qn_strerror(-99999), "unknown error");
}

Test(assert, a_false_assertion_aborts, .signal = SIGABRT)
{
    QN_ASSERT(1 + 1 == 3);
}
