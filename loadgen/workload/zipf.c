#include "loadgen/workload/zipf.h"

#include "core/base/assert.h"
#include "loadgen/base/random.h"

#include <math.h>
#include <stdbool.h>

/*
 * The hat is h(x) = x^-theta on [1/2, n + 1/2], its integral
 *
 *     H(x) = (x^q - 1) / q,  q = 1 - theta;   log(x) if q = 0
 *
 * inverts in closed form. h is convex, so the area of h over [k - 1/2, k + 1/2]
 * is at least h(k): draw u evenly below H, let k be the integer nearest to x =
 * H^-1(u), and accept it if u lies in the last h(k) of k's area, that is u >=
 * H(k + 1/2) - h(k). The area of k = 1 is cut to h(1) exactly, so the most
 * common rank is never rejected. Every k is accepted with an area of exactly
 * h(k): exact, up to the 2^-53 steps of u.
 *
 * `sure` saves the test for most points: at the steepest place, k = 2, all x >=
 * k - sure are accepted, and so for all others (paper, section 3).
 *
 * Why not the generator of YCSB (Gray et al., 1994): it is exact for the first
 * two ranks only, needs O(n) to sum zeta(n), and fails at theta >= 1.
 *
 * Near q = 0 the power needs log1p and expm1; elsewhere the plain functions are
 * twice as fast and lose no more than 2^-53 / NEAR.
 */

#define NEAR 1e-3

static double integral(const struct qn_zipf *z, double x)
{
    double l = log(x);
    if (fabs(z->q) > NEAR) {
        return (exp(z->q * l) - 1) / z->q;
    }
    return z->q == 0 ? l : expm1(z->q * l) / z->q;
}

static double inverse(const struct qn_zipf *z, double u)
{
    if (fabs(z->q) > NEAR) {
        /* Rounding may give less than 0, in the tail of theta > 1. */
        return exp(log(fmax(1 + u * z->q, 0)) / z->q);
    }
    return exp(z->q == 0 ? u : log1p(u * z->q) / z->q);
}

static double hat(const struct qn_zipf *z, double x)
{
    return exp(-z->theta * log(x));
}

void qn_zipf_init(struct qn_zipf *z, uint64_t n, double theta)
{
    QN_ASSERT(n >= 1 && n <= QN_ZIPF_N_MAX);
    QN_ASSERT(theta >= 0 && theta <= QN_ZIPF_THETA_MAX);
    *z = (struct qn_zipf){.theta = theta, .n = (double)n, .q = 1 - theta};
    z->top = integral(z, z->n + 0.5);
    z->width = z->top - (integral(z, 1.5) - 1);
    z->sure = 2 - inverse(z, integral(z, 2.5) - hat(z, 2));
}

uint64_t qn_zipf_draw(const struct qn_zipf *z, uint64_t *random)
{
    for (;;) {
        double fraction = qn_random_fraction(qn_random_next(random));
        double u = z->top - fraction * z->width;
        double x = inverse(z, u);
        double k = fmin(fmax(floor(x + 0.5), 1), z->n);
        bool sure = k - x <= z->sure;
        if (sure || u >= integral(z, k + 0.5) - hat(z, k)) {
            return (uint64_t)k - 1;
        }
    }
}
