#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/discover/measure.h"
#include "tests/support/test.h"

enum { MOST = 400 };

static struct qn_round scripted[MOST];
static double scratch[MOST];

/* A reproducible number in [-1, 1]. */
static double noise(uint32_t i)
{
    uint32_t x = i * 2654435761u + 12345u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (double)x / 2147483648.0 - 1;
}

/* What one message costs, what a line. */
static const double cost[QN_QUANTITIES] = {20, 24, 45, 50, 400};
static const double probe[QN_PROBES] = {260, 20, 24};
#define LEVEL_AB (260 + QN_BATCH * 20.0)
#define LEVEL_BA (260 + QN_BATCH * 24.0)

/* Rounds [from, to) on one level: everything is `factor` times as dear, and
 * `spread` is the noise. */
static void level(uint32_t from, uint32_t to, double factor, double spread)
{
    for (uint32_t i = from; i < to; i++) {
        struct qn_round *r = &scripted[i];
        for (uint32_t p = 0; p < QN_PROBES; p++) {
            double of = probe[p] * factor;
            uint32_t k = 3 * i + p;
            r->before[p] = (float)(of * (1 + 0.05 * noise(k)));
            r->after[p] = (float)(of * (1 + 0.05 * noise(k + 5000)));
        }
        for (uint32_t q = 0; q < QN_QUANTITIES; q++) {
            r->value[q] =
                (float)(cost[q] * factor * (1 + spread * noise(7 * i + q)));
        }
    }
}

static struct qn_measured judge(uint32_t n)
{
    struct qn_measured m;
    qn_measured_judge(scripted, n, scratch, &m);
    return m;
}

#define NEAR(x, y) (fabs((x) - (y)) <= 0.03 * (y))

Test(measure, the_midmean_forgets_the_outer_quarters)
{
    double x[] = {1000, 4, 2, 3, 5, -50, 1, 6};
    cr_expect_eq(qn_midmean(x, 8), 3.5); /* of 2 3 4 5 */
    double one[] = {7};
    cr_expect_eq(qn_midmean(one, 1), 7);
    double two[] = {4, 8};
    cr_expect_eq(qn_midmean(two, 2), 6);
}

Test(measure, a_quiet_machine_is_stable_and_right)
{
    level(0, 30, 1, 0.05);
    struct qn_measured m = judge(30);
    cr_expect(m.stable && m.same_level);
    cr_expect_eq(m.counted, 30);
    cr_expect(NEAR(m.level_ab, LEVEL_AB), "%f", m.level_ab);
    cr_expect(NEAR(m.of[QN_SEND_AB].median, 20));
    cr_expect(NEAR(m.of[QN_ROUND_TRIP].median, 400));
    cr_expect_leq(m.of[QN_SEND_BA].low, m.of[QN_SEND_BA].median);
    cr_expect_geq(m.of[QN_SEND_BA].high, m.of[QN_SEND_BA].median);
}

Test(measure, noise_beyond_the_limit_is_said_and_more_rounds_help)
{
    level(0, MOST, 1, 0.6);
    struct qn_measured few = judge(12);
    cr_expect(few.same_level && !few.stable);
    level(0, MOST, 1, 0.2);
    cr_expect(!judge(12).stable);
    cr_expect(judge(MOST).stable);
}

/* Most of the time on the slow level: the result is of the fast one, alone. */
Test(measure, levels_are_not_mixed)
{
    level(0, 70, 5, 0.05);
    level(70, 100, 1, 0.05);
    struct qn_measured m = judge(100);
    cr_expect_eq(m.counted, 30);
    cr_expect(m.stable);
    cr_expect(NEAR(m.of[QN_ROUND_TRIP].median, 400), "%f",
              m.of[QN_ROUND_TRIP].median);
    cr_expect(NEAR(m.level_ba, LEVEL_BA));
}

/* a's sends are dear for most of the time, while lines and b are as before. */
static void slow_side(uint32_t from, uint32_t to, double factor)
{
    for (uint32_t i = from; i < to; i++) {
        struct qn_round *r = &scripted[i];
        r->before[QN_PROBE_SEND_AB] *= (float)factor;
        r->after[QN_PROBE_SEND_AB] *= (float)factor;
        r->value[QN_SEND_AB] *= (float)factor;
    }
}

Test(measure, sends_have_levels_of_their_own)
{
    level(0, 100, 1, 0.05);
    slow_side(0, 70, 2.4);
    struct qn_measured m = judge(100);
    cr_expect_eq(m.counted, 30);
    cr_expect(m.stable);
    cr_expect(NEAR(m.of[QN_SEND_AB].median, 20));
    cr_expect(NEAR(m.level_ab, LEVEL_AB), "%f", m.level_ab);
    slow_side(70, 100, 2.4); /* now all the time: the level tells */
    m = judge(100);
    cr_expect_eq(m.counted, 100);
    cr_expect(NEAR(m.of[QN_SEND_AB].median, 48));
    cr_expect(NEAR(m.level_ab, LEVEL_AB + QN_BATCH * 28.0));
    cr_expect(NEAR(m.level_ba, LEVEL_BA));
}

Test(measure, a_side_that_changes_within_a_round_makes_it_straddle)
{
    level(0, 40, 1, 0.05);
    for (uint32_t i = 0; i < 10; i++) {
        scripted[i].before[QN_PROBE_SEND_BA] *= 2.4F;
        scripted[i].value[QN_SEND_BA] *= 1.7F;
    }
    struct qn_measured m = judge(40);
    cr_expect_eq(m.steady, 30);
    cr_expect(m.stable && NEAR(m.of[QN_SEND_BA].median, 24));
}

/* Its steps are longer than a send: levels of lines remain. */
Test(measure, a_coarse_counter_sees_sends_as_nothing_or_a_step)
{
    level(0, 30, 1, 0.01);
    for (uint32_t i = 0; i < 30; i++) {
        struct qn_round *r = &scripted[i];
        r->before[QN_PROBE_SEND_AB] = r->after[QN_PROBE_SEND_BA] = 0;
        r->after[QN_PROBE_SEND_AB] = r->before[QN_PROBE_SEND_BA] = 0.9F;
        r->value[QN_SEND_AB] = r->value[QN_SEND_BA] = i % 2 ? 0 : 0.4F;
    }
    struct qn_measured m = judge(30);
    cr_expect_eq(m.counted, 30);
    cr_expect(m.stable);
}

/* Some lucky rounds are no level. */
Test(measure, a_level_needs_its_share_of_the_rounds)
{
    level(0, 90, 1, 0.05);
    level(90, 100, 0.4, 0.05);
    struct qn_measured m = judge(100);
    cr_expect(NEAR(m.level_ab, LEVEL_AB), "%f", m.level_ab);
    cr_expect_eq(m.counted, 90);
    level(0, 100, 1, 0.05);
    level(0, QN_ROUNDS_MIN - 1, 0.4, 0.05);
    cr_expect(NEAR(judge(30).level_ab, LEVEL_AB), "too few, if 27 %% of all");
}

Test(measure, rounds_that_straddle_a_change_do_not_count)
{
    level(0, 40, 1, 0.05);
    for (uint32_t i = 0; i < 10; i++) {
        scripted[i].after[QN_PROBE_LINE] *= 5;
        scripted[i].value[QN_ROUND_TRIP] *= 3;
    }
    struct qn_measured m = judge(40);
    cr_expect_eq(m.steady, 30);
    cr_expect_eq(m.counted, 30);
    cr_expect(m.stable && NEAR(m.of[QN_ROUND_TRIP].median, 400));
}

Test(measure, pairs_that_never_were_on_one_level_are_unstable)
{
    level(0, 40, 1, 0.01);
    for (uint32_t i = 0; i < 40; i++) {
        scripted[i].after[QN_PROBE_LINE] *= 2;
    }
    struct qn_measured m = judge(40);
    cr_expect(!m.same_level && !m.stable);
    cr_expect_eq(m.steady, 0);
    cr_expect(NEAR(m.of[QN_ROUND_TRIP].median, 400), "still a number");
    memset(scripted, 0, sizeof scripted); /* a counter that stands still */
    m = judge(20);
    cr_expect(!m.stable);
    cr_expect_eq(m.of[QN_SEND_AB].median, 0);
}

Test(measure, one_round_is_a_number_and_not_stable)
{
    level(0, 1, 1, 0);
    struct qn_measured m = judge(1);
    cr_expect(!m.stable);
    cr_expect(NEAR(m.of[QN_ROUND_TRIP].median, 400));
}

Test(measure, costs_add_up_to_the_round_trip)
{
    level(0, 20, 1, 0);
    struct qn_measured m = judge(20);
    struct qn_pair_costs c;
    qn_measured_costs(&m, &c);
    cr_expect_eq(c.send_ab, 20);
    cr_expect_eq(c.send_ba, 24);
    double trip = c.send_ab + c.receive_ab + c.send_ba + c.receive_ba;
    cr_expect(fabs(trip - (400)) <= 1e-3);
    cr_expect(fabs(c.receive_ab / c.receive_ba - (45.0 / 50)) <= 1e-6);
    cr_expect(fabs(c.queued_ab - (45 / c.receive_ab)) <= 1e-9);
}

Test(measure, costs_are_above_zero_whatever_was_seen)
{
    struct qn_measured m = {.level_ab = 0};
    struct qn_pair_costs c;
    qn_measured_costs(&m, &c);
    cr_expect(c.send_ab > 0 && c.receive_ab > 0 && c.receive_ba > 0);
    m.of[QN_SEND_AB].median = 500; /* sends that take longer than a trip */
    m.of[QN_ROUND_TRIP].median = 300;
    m.of[QN_DRAIN_AB].median = m.of[QN_DRAIN_BA].median = 40;
    qn_measured_costs(&m, &c);
    cr_expect(fabs(c.receive_ab - (40)) <= 1e-9);
    cr_expect_eq(c.queued_ab, 1);
}
