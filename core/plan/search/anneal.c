/*
 * Metropolis accepts a rise d with probability exp(-d / heat). Drawing u first
 * and comparing d with -heat * ln u is the same, and lets a move be refused as
 * soon as a lower bound of its cost exceeds the limit.
 *
 * The logarithm is taken bit by bit, by squaring the mantissa: integers only,
 * so that no library's rounding changes a plan.
 */
#include "core/plan/search/anneal.h"

#define LOG_BITS 8u
#define LN2      45426u /* ln 2 in 1/65536 */

/* The factor whose steps-th power is `ratio`, by bisection. */
static double root_of(double ratio, uint64_t steps)
{
    double low = 0, high = 1;
    for (uint32_t i = 0; i < 60; i++) {
        double mid = (low + high) / 2, power = 1, base = mid;
        for (uint64_t k = steps; k != 0; k >>= 1) {
            power *= (k & 1) != 0 ? base : 1;
            base *= base;
        }
        if (power < ratio) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return high;
}

void qn_anneal_begin(struct qn_anneal *a, uint64_t moves, double from,
                     double to)
{
    a->heat = from;
    a->cool = root_of(to / from, moves / QN_ANNEAL_EPOCH + 1);
    a->warm = (uint32_t)from;
    a->due = QN_ANNEAL_EPOCH;
}

/* -ln(bits / 2^24) in 1/65536, for 0 < bits < 2^24. */
static uint32_t minus_ln(uint32_t bits)
{
    uint32_t shift = (uint32_t)__builtin_clz(bits) - 7, log2 = 0;
    uint64_t m = (uint64_t)bits << shift; /* [2^24, 2^25) stands for [1, 2) */
    for (uint32_t i = 0; i < LOG_BITS; i++) {
        m = m * m >> 24;
        log2 <<= 1;
        if (m >> 25 != 0) {
            m >>= 1;
            log2 |= 1;
        }
    }
    return (((shift << LOG_BITS) - log2) * LN2) >> LOG_BITS;
}

void qn_anneal_tick(struct qn_anneal *a)
{
    if (a->due-- == 0) {
        a->heat *= a->cool;
        a->warm = (uint32_t)a->heat;
        a->due = QN_ANNEAL_EPOCH;
    }
}

uint32_t qn_anneal_slack(struct qn_anneal *a)
{
    qn_anneal_tick(a);
    uint32_t e = minus_ln((uint32_t)(qn_anneal_random(a) >> 40) | 1);
    return (uint32_t)(((uint64_t)e * a->warm) >> 16);
}
