#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/discover/round_robin.h"
#include "tests/support/test.h"

Test(round_robin, in_a_tournament_each_meets_each_once_and_one_at_a_time)
{
    for (uint32_t n = 1; n <= 65; n++) {
        static uint8_t met[65][65];
        memset(met, 0, sizeof met);
        for (uint32_t r = 0; r < qn_round_robin_rounds(n); r++) {
            uint32_t rest = 0;
            for (uint32_t i = 0; i < n; i++) {
                uint32_t p = qn_round_robin_partner(n, r, i);
                cr_assert_lt(p, n);
                cr_assert_eq(qn_round_robin_partner(n, r, p), i);
                rest += p == i;
                met[i][p]++;
            }
            cr_assert_eq(rest, n % 2, "%u of %u rest", rest, n);
        }
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < n; j++) {
                cr_assert(i == j || met[i][j] == 1, "%u: %u and %u", n, i, j);
            }
        }
    }
}

/* n cores, `threads` of them on a physical one, second threads last. */
static struct qn_machine *cores(uint32_t n, uint32_t threads)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t i = 0; i < n; i++) {
        m->core[i].phys = i % (n / threads);
    }
    return m;
}

static void check_steps(uint32_t n, uint32_t threads, uint32_t limit,
                        uint32_t *steps)
{
    struct qn_machine *m = cores(n, threads);
    static struct qn_round_robin s;
    struct qn_round_robin_pair pair[64];
    uint8_t *met = calloc(n, n);
    uint32_t count, all = 0;
    *steps = 0;
    qn_round_robin_init(&s, m, limit);
    while ((count = qn_round_robin_next(&s, pair, NULL, NULL)) > 0) {
        uint8_t busy[64] = {0};
        cr_assert_leq(count, limit);
        for (uint32_t k = 0; k < count; k++) {
            cr_assert_lt(pair[k].a, pair[k].b);
            uint32_t pa = m->core[pair[k].a].phys, pb = m->core[pair[k].b].phys;
            cr_assert(!busy[pa] && !busy[pb]);
            busy[pa] = busy[pb] = 1;
            cr_assert_eq(met[pair[k].a * n + pair[k].b]++, 0);
        }
        all += count;
        ++*steps;
    }
    cr_expect_eq(all, n * (n - 1) / 2, "%u pairs of %u", all, n);
    free(met);
    qn_machine_destroy(m);
}

Test(round_robin, steps_hold_all_pairs_and_share_no_physical_core)
{
    uint32_t steps;
    check_steps(2, 1, 1, &steps);
    cr_expect_eq(steps, 1);
    check_steps(16, 1, 8, &steps);
    cr_expect_eq(steps, 15, "full rounds are one step each: %u", steps);
    check_steps(17, 1, 8, &steps);
    cr_expect_eq(steps, 17);
    check_steps(16, 1, 1, &steps);
    cr_expect_eq(steps, 120, "one pair at a time: %u", steps);
    check_steps(32, 2, 16, &steps);
    cr_expect_leq(steps, 3 * 31, "two threads: %u", steps);
    check_steps(12, 4, 6, &steps);
}

static bool only_core_3(void *arg, uint32_t a, uint32_t b)
{
    (void)arg;
    return a == 3 || b == 3;
}

Test(round_robin, pairs_that_are_not_wanted_are_left_out)
{
    struct qn_machine *m = cores(6, 1);
    static struct qn_round_robin s;
    struct qn_round_robin_pair pair[3];
    uint32_t all = 0, count;
    qn_round_robin_init(&s, m, 3);
    while ((count = qn_round_robin_next(&s, pair, only_core_3, NULL)) > 0) {
        cr_expect_eq(count, 1);
        cr_expect(only_core_3(NULL, pair[0].a, pair[0].b));
        all += count;
    }
    cr_expect_eq(all, 5);
    qn_machine_destroy(m);
}
