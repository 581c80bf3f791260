/*
 * Statistics of a pair.
 *
 * A level is found in the sorted values of a probe: a window from one of them
 * to what is on one level with it is one if it holds QN_ROUNDS_MIN rounds and
 * QN_LEVEL_SHARE of all; the lowest such window wins, and the next probe
 * chooses among its rounds. Not the fullest: which level a hypervisor shows
 * most of the time differs from run to run, the fastest one that lasts does
 * not. The share keeps rare lucky rounds from being one.
 *
 * The interval of a median is that of order statistics: of n sorted values,
 * those at n/2 -+ 0.98 * sqrt(n) bracket it with 95 % probability.
 *
 * Midmean within a round and median over rounds: the counter may move in steps
 * of 26 cycles, so a median of single batches is one of few values (26/8 = 3.25
 * cycles apart) and jumps between them; a mean dithers over the steps.
 */
#include "core/discover/measure.h"

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

/* The highest value of a probe that is on one level with this one. A coarse
 * counter may see sends as a cycle or none. */
static double level_end(uint32_t probe, double low)
{
    return probe == QN_PROBE_LINE ? low * QN_LEVEL_SPREAD
                                  : low * QN_LEVEL_SPREAD + QN_SENDS_STEP;
}

static double probe_of(const struct qn_round *r, uint32_t probe)
{
    return ((double)r->before[probe] + (double)r->after[probe]) / 2;
}

static double value_of(const struct qn_round *r, uint32_t quantity)
{
    return (double)r->value[quantity];
}

/* The line and a batch of one side. */
static double level_of(const struct qn_round *r, uint32_t sends)
{
    return probe_of(r, QN_PROBE_LINE) + QN_BATCH * probe_of(r, sends);
}

static bool is_steady(const struct qn_round *r)
{
    bool steady = r->before[QN_PROBE_LINE] > 0 && r->after[QN_PROBE_LINE] > 0;
    for (uint32_t i = 0; i < QN_PROBES && steady; i++) {
        double low = (double)QN_MIN(r->before[i], r->after[i]);
        double high = (double)QN_MAX(r->before[i], r->after[i]);
        steady = high <= level_end(i, low);
    }
    return steady;
}

/* The lowest level that counts, in sorted values p [n] of a probe. @return its
 * first index, n if there is none; *count filled. */
static uint32_t find_level(const double *p, uint32_t n, uint32_t probe,
                           uint32_t *count)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (end < n && p[end] <= level_end(probe, p[i])) {
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

/* Which rounds count: steady ones, whose first probes are within [low, high].
 * All of them if there is no level. */
struct choice {
    bool all;
    uint32_t probes; /* so far */
    double low[QN_PROBES], high[QN_PROBES];
};

static bool counts(const struct choice *c, const struct qn_round *r)
{
    bool in = c->all || is_steady(r);
    for (uint32_t i = 0; i < c->probes && in; i++) {
        in = probe_of(r, i) >= c->low[i] && probe_of(r, i) <= c->high[i];
    }
    return in;
}

/* One number of each round that counts, into x [n]. @return how many. */
static uint32_t take(const struct qn_round *round, uint32_t n,
                     const struct choice *c,
                     double (*of)(const struct qn_round *r, uint32_t which),
                     uint32_t which, double *x)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (counts(c, &round[i])) {
            x[k++] = of(&round[i], which);
        }
    }
    return k;
}

/* The next probe chooses, too. @return how many rounds count. */
static uint32_t choose(const struct qn_round *round, uint32_t n,
                       struct choice *c, double *x)
{
    uint32_t count;
    uint32_t k = take(round, n, c, probe_of, c->probes, x);
    qsort(x, k, sizeof *x, by_value);
    uint32_t first = find_level(x, k, c->probes, &count);
    if (count > 0) {
        c->low[c->probes] = x[first];
        c->high[c->probes] = x[first + count - 1];
        c->probes++;
    }
    return count;
}

void qn_measured_judge(const struct qn_round *round, uint32_t n,
                       double *scratch, struct qn_measured *out)
{
    QN_ASSERT(n >= 1 && n <= QN_ROUNDS_MAX);
    *out = (struct qn_measured){.rounds = n};
    for (uint32_t i = 0; i < n; i++) {
        out->steady += is_steady(&round[i]);
    }
    struct choice c = {.all = false};
    do {
        out->counted = choose(round, n, &c, scratch);
    } while (out->counted > 0 && c.probes < QN_PROBES);
    out->same_level = out->counted > 0;
    if (!out->same_level) {
        c = (struct choice){.all = true};
    }
    out->stable = out->same_level;
    for (uint32_t q = 0; q < QN_QUANTITIES; q++) {
        uint32_t k = take(round, n, &c, value_of, q, scratch);
        out->of[q] = middle_of(scratch, k);
        out->stable = out->stable && is_known(&out->of[q]);
    }
    uint32_t k = take(round, n, &c, level_of, QN_PROBE_SEND_AB, scratch);
    out->level_ab = middle_of(scratch, k).median;
    (void)take(round, n, &c, level_of, QN_PROBE_SEND_BA, scratch);
    out->level_ba = middle_of(scratch, k).median;
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
