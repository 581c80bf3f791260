/*
 * Statistics of a pair.
 *
 * The level is found in the sorted probes: a window [p, p * QN_LEVEL_SPREAD]
 * is a level if it holds QN_ROUNDS_MIN rounds and QN_LEVEL_SHARE of all; the
 * lowest such window wins. Not the fullest: which level a hypervisor shows most
 * of the time differs from run to run, the fastest one that lasts does not. The
 * share keeps rare lucky rounds from being one.
 *
 * The interval of a median is that of order statistics: of n sorted values,
 * those at n/2 -+ 0.98 * sqrt(n) bracket it with 95 % probability.
 *
 * Midmean within a round and median over rounds: the counter may move in steps
 * of 26 cycles, so a median of single batches is one of few values (26/8 = 3.25
 * cycles apart) and jumps between them; a mean dithers over the steps.
 */
#include "core/machine/measure.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

double qn_midmean(double *x, uint32_t n)
{
    QN_ASSERT(n >= 1);
    qsort(x, n, sizeof *x, by_value);
    uint32_t cut = n / 4;
    double sum = 0;
    for (uint32_t i = cut; i < n - cut; i++) {
        sum += x[i];
    }
    return sum / (n - 2 * cut);
}

static double probe_of(const struct qn_round *r)
{
    return ((double)r->before + (double)r->after) / 2;
}

static bool is_steady(const struct qn_round *r)
{
    double low = QN_MIN((double)r->before, (double)r->after);
    double high = QN_MAX((double)r->before, (double)r->after);
    return low > 0 && high <= low * QN_LEVEL_SPREAD;
}

/* The lowest level that counts, in sorted probes p [n]. @return its first
 * index, n if there is none; *count filled. */
static uint32_t find_level(const double *p, uint32_t n, uint32_t *count)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (end < n && p[end] <= p[i] * QN_LEVEL_SPREAD) {
            end++;
        }
        if (end - i >= QN_ROUNDS_MIN && end - i >= QN_LEVEL_SHARE * n) {
            *count = end - i;
            return i;
        }
    }
    *count = 0;
    return n;
}

/* Median of x [n] and its interval; x is sorted. */
static struct qn_quantity_result middle_of(double *x, uint32_t n)
{
    qsort(x, n, sizeof *x, by_value);
    double reach = 0.98 * sqrt(n);
    int low = (int)floor(n / 2.0 - reach);
    int high = (int)ceil(n / 2.0 + reach);
    return (struct qn_quantity_result){
        .median = n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2,
        .low = x[QN_MAX(low, 0)],
        .high = x[QN_MIN(high, (int)n - 1)]};
}

static bool is_known(const struct qn_quantity_result *q)
{
    double half = (q->high - q->low) / 2;
    return half <= QN_MAX(QN_STABLE_SPREAD * q->median, QN_STABLE_CYCLES);
}

/* Which rounds count: their probes are within [low, high]; high 0: all. */
struct choice {
    double low, high;
};

static bool counts(const struct choice *c, const struct qn_round *r)
{
    return !(c->high > 0) ||
           (is_steady(r) && probe_of(r) >= c->low && probe_of(r) <= c->high);
}

static void take_quantities(const struct qn_round *round, uint32_t n,
                            const struct choice *c, double *x,
                            struct qn_measured *out)
{
    out->stable = out->same_level;
    for (uint32_t q = 0; q < QN_QUANTITIES; q++) {
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (counts(c, &round[i])) {
                x[k++] = (double)round[i].value[q];
            }
        }
        QN_ASSERT(k > 0);
        out->of[q] = middle_of(x, k);
        out->stable = out->stable && is_known(&out->of[q]);
    }
}

void qn_measured_judge(const struct qn_round *round, uint32_t n,
                       double *scratch, struct qn_measured *out)
{
    QN_ASSERT(n >= 1 && n <= QN_ROUNDS_MAX);
    double *probe = scratch, *x = scratch + n;
    uint32_t steady = 0, count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (is_steady(&round[i])) {
            probe[steady++] = probe_of(&round[i]);
        }
    }
    qsort(probe, steady, sizeof *probe, by_value);
    uint32_t first = find_level(probe, steady, &count);
    *out = (struct qn_measured){.rounds = n,
                                .steady = steady,
                                .counted = count,
                                .same_level = count > 0};
    struct choice c = {0, 0};
    if (count > 0) {
        c = (struct choice){probe[first], probe[first + count - 1]};
        out->level = middle_of(probe + first, count).median;
    } else {
        for (uint32_t i = 0; i < n; i++) {
            x[i] = probe_of(&round[i]);
        }
        out->level = middle_of(x, n).median;
    }
    take_quantities(round, n, &c, x, out);
}

void qn_measured_costs(const struct qn_measured *r, struct qn_pair_costs *c)
{
    /* A cost is above 0; a counter may not see so little. */
    const double least = 0.01;
    double value[QN_QUANTITIES];
    for (uint32_t q = 0; q < QN_QUANTITIES; q++) {
        value[q] = QN_MAX(r->of[q].median, least);
    }
    double both = value[QN_DRAIN_AB] + value[QN_DRAIN_BA];
    double waits = value[QN_ROUND_TRIP] - value[QN_SEND_AB] - value[QN_SEND_BA];
    waits = QN_MAX(waits, both);
    c->send_ab = value[QN_SEND_AB];
    c->send_ba = value[QN_SEND_BA];
    c->receive_ab = waits * (value[QN_DRAIN_AB] / both);
    c->receive_ba = waits * (value[QN_DRAIN_BA] / both);
    c->queued_ab = QN_MIN(value[QN_DRAIN_AB] / c->receive_ab, 1.0);
    c->queued_ba = QN_MIN(value[QN_DRAIN_BA] / c->receive_ba, 1.0);
}
