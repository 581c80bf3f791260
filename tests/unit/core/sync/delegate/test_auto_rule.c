/* The rule of `auto`, as a table: what is seen, and what is chosen. */
#include "core/sync/delegate/auto_rule.h"
#include "tests/support/test.h"

static struct qn_auto_window window(uint32_t waiting_eighths)
{
    return (struct qn_auto_window){
        .operations = QN_AUTO_WINDOW, .batches = 8, .waited = waiting_eighths};
}

Test(auto_rule, one_window_at_first_is_enough)
{
    static const struct {
        uint32_t parts, now, waiting, then;
    } row[] = {
        {2, QN_AUTO_LOCK, 0, QN_AUTO_LOCK},
        {2, QN_AUTO_LOCK, 15, QN_AUTO_LOCK},
        {2, QN_AUTO_LOCK, 16, QN_AUTO_CC_SYNCH},
        {3, QN_AUTO_LOCK, 10000, QN_AUTO_CC_SYNCH},
        {2, QN_AUTO_CC_SYNCH, 7, QN_AUTO_LOCK},
        {2, QN_AUTO_CC_SYNCH, 8, QN_AUTO_CC_SYNCH},
        {2, QN_AUTO_CC_SYNCH, 10000, QN_AUTO_CC_SYNCH},
        {3, QN_AUTO_CC_SYNCH, 95, QN_AUTO_CC_SYNCH},
        {3, QN_AUTO_CC_SYNCH, 96, QN_AUTO_H_SYNCH},
        {3, QN_AUTO_H_SYNCH, 31, QN_AUTO_CC_SYNCH},
        {3, QN_AUTO_H_SYNCH, 32, QN_AUTO_H_SYNCH},
        {3, QN_AUTO_H_SYNCH, 10000, QN_AUTO_H_SYNCH},
    };
    for (uint32_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct qn_auto_state s = {0};
        struct qn_auto_window w = window(row[i].waiting);
        uint32_t then = qn_auto_rule(row[i].parts, row[i].now, &w, &s);
        cr_expect_eq(then, row[i].then, "row %u: %u, not %u", i, then,
                     row[i].then);
    }
}

/* Windows until it changes, at most 1000. */
static uint32_t windows_until(uint32_t now, uint32_t waiting,
                              struct qn_auto_state *s)
{
    const struct qn_auto_window w = window(waiting);
    uint32_t n = 1;
    while (qn_auto_rule(2, now, &w, s) == now && n < 1000) {
        n++;
    }
    return n;
}

Test(auto_rule, one_that_goes_to_and_fro_becomes_patient)
{
    struct qn_auto_state s = {0};
    uint32_t before = 0;
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t n = windows_until(i % 2, i % 2 == 0 ? 100 : 0, &s);
        cr_expect_geq(n, before, "change %u: %u after %u", i, n, before);
        cr_expect_leq(n, QN_AUTO_PATIENCE_MAX);
        before = n;
    }
    cr_expect_geq(before, 16);
}

Test(auto_rule, a_streak_that_breaks_begins_anew)
{
    struct qn_auto_state s = {.doublings = 2};
    const struct qn_auto_window many = window(100);
    const struct qn_auto_window few = window(0);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(qn_auto_rule(2, QN_AUTO_LOCK, &many, &s), QN_AUTO_LOCK);
    }
    cr_assert_eq(qn_auto_rule(2, QN_AUTO_LOCK, &few, &s), QN_AUTO_LOCK);
    cr_expect_eq(windows_until(QN_AUTO_LOCK, 100, &s), 4);
}

Test(auto_rule, calm_makes_it_quick_again)
{
    struct qn_auto_state s = {.doublings = 4};
    const struct qn_auto_window few = window(0);
    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert_eq(qn_auto_rule(2, QN_AUTO_LOCK, &few, &s), QN_AUTO_LOCK);
    }
    cr_expect_eq(windows_until(QN_AUTO_LOCK, 100, &s), 1);
}
