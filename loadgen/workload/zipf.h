#ifndef QN_LOADGEN_WORKLOAD_ZIPF_H
#define QN_LOADGEN_WORKLOAD_ZIPF_H

/**
 * Exact Zipf distribution: rank i of n, counted from 0, has a probability
 * proportional to (i + 1)^-theta. Any theta >= 0, also 1 and above.
 *
 * Rejection-inversion: W. Hoermann and G. Derflinger, "Rejection-inversion to
 * generate variates from monotone discrete distributions", ACM TOMACS 6(3),
 * 1996. No table: 56 bytes, O(1) to make and to draw.
 *
 * Immutable after init; any thread.
 */

#include <stdint.h>

#define QN_ZIPF_N_MAX     (UINT64_C(1) << 48)
#define QN_ZIPF_THETA_MAX 20.0

/** Private. */
struct qn_zipf {
    double theta;
    double n;
    double q;     /* 1 - theta */
    double top;   /* H(n + 1/2) */
    double width; /* width of the area under the hat, down from top */
    double sure;  /* a point this close below its integer needs no test */
};

/** @param n      Ranks, 1..QN_ZIPF_N_MAX.
 *  @param theta  0 (uniform)..QN_ZIPF_THETA_MAX. */
void qn_zipf_init(struct qn_zipf *z, uint64_t n, double theta);

/** Draw a rank in [0, n). @param random  State of qn_random_next. */
uint64_t qn_zipf_draw(const struct qn_zipf *z, uint64_t *random);

#endif
