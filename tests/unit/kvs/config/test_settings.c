#include "kvs/config/settings.h"

#include "core/base/bits.h"
#include "kvs/config/config.h"
#include "tests/support/test.h"

static uint64_t next(uint64_t newest, qn_node_t node, uint32_t value)
{
    uint64_t word = 0;
    cr_assert(qn_setting_next(newest, node, value, &word));
    return word;
}

Test(settings, a_word_carries_its_value_and_is_newer_than_what_it_overrides)
{
    static const uint32_t values[] = {1, 5, 1000, QN_LAG_TIMEOUT_MAX};
    uint64_t word = 0;
    for (uint32_t i = 0; i < 100; i++) {
        /* Smaller values and lower nodes override larger and higher ones. */
        uint32_t value = values[3 - i % 4];
        uint64_t w = next(word, (qn_node_t)(63 - i % 64), value);
        cr_assert_gt(w, word);
        cr_assert_eq(qn_setting_value(w), value);
        cr_assert(qn_setting_valid(QN_SETTING_LAG_TIMEOUT, w, 64));
        word = w;
    }
}

/* Of the same version, set at two replicas at the same moment. */
Test(settings, of_two_at_one_moment_the_higher_node_wins)
{
    uint64_t before = next(0, 2, 1000);
    cr_assert_gt(next(before, 2, 1), next(before, 1, QN_LAG_TIMEOUT_MAX));
    cr_assert_gt(next(next(before, 1, 1), 0, 1), next(before, 2, 1));
}

/* Whatever one bit of a word is changed by a wild process. */
Test(settings, a_damaged_word_is_not_valid)
{
    uint64_t word = next(next(0, 1, 1000), 1, 500);
    uint32_t taken = 0;
    for (uint32_t bit = 0; bit < 64; bit++) {
        taken += qn_setting_valid(QN_SETTING_LAG_TIMEOUT,
                                  word ^ UINT64_C(1) << bit, 64);
    }
    cr_assert_eq(taken, 0);
    cr_assert_not(qn_setting_valid(QN_SETTING_LAG_TIMEOUT, 0, 64), "none yet");
    cr_assert_not(qn_setting_valid(QN_SETTING_LAG_TIMEOUT, UINT64_MAX, 64));
}

Test(settings, values_and_nodes_out_of_range_are_not_valid)
{
    enum qn_setting lag = QN_SETTING_LAG_TIMEOUT;
    enum qn_setting min = QN_SETTING_MIN_REPLICAS;
    cr_assert_not(qn_setting_valid(lag, next(0, 0, 0), 3));
    cr_assert_not(qn_setting_valid(lag, next(0, 0, QN_LAG_TIMEOUT_MAX + 1), 3));
    cr_assert(qn_setting_valid(min, next(0, 0, 0), 3));
    cr_assert(qn_setting_valid(min, next(0, 0, QN_MIN_REPLICAS_MAX), 3));
    cr_assert_not(
        qn_setting_valid(min, next(0, 0, QN_MIN_REPLICAS_MAX + 1), 3));
    cr_assert(qn_setting_valid(min, next(0, 2, 1), 3));
    cr_assert_not(qn_setting_valid(min, next(0, 3, 1), 3));
}

Test(settings, versions_end_and_do_not_begin_anew)
{
    uint64_t last = UINT64_MAX << 40; /* all bits of the version */
    uint64_t word = 7;
    cr_assert_not(qn_setting_next(last, 0, 1, &word));
    cr_assert_eq(word, 7, "untouched");
    cr_assert(qn_setting_next(last - (UINT64_C(1) << 40), 0, 1, &word));
    cr_assert_not(qn_setting_next(word, 0, 1, &word));
}
