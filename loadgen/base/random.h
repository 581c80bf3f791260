#ifndef QN_LOADGEN_BASE_RANDOM_H
#define QN_LOADGEN_BASE_RANDOM_H

/** splitmix64: 64 bits of state, any seed is good, a few instructions per
 *  number. Each client has its own stream, so that its requests do not depend
 *  on timing. Pure, one thread per stream. */

#include <stdint.h>

/** A bijection of 64 bits without visible patterns: also a hash of small
 *  numbers. */
static inline uint64_t qn_random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t qn_random_next(uint64_t *state)
{
    return qn_random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/** 64 random bits scaled to [0, n), n in 1..2^32; uniform to within n / 2^64:
 *  the upper half of a 64 x 64 bit product. */
static inline uint64_t qn_random_scale(uint64_t bits, uint64_t n)
{
    uint64_t low = (bits & UINT32_MAX) * n;
    return ((bits >> 32) * n + (low >> 32)) >> 32;
}

/** State of the `number`-th stream of a seed. Adjacent numbers and adjacent
 *  seeds (users type 1 and 2) give different streams. */
static inline uint64_t qn_random_split(uint64_t seed, uint64_t number)
{
    uint64_t state = qn_random_next(&seed) ^ number;
    return qn_random_next(&state);
}

/** In [0, n), n in 1..2^32. */
static inline uint64_t qn_random_below(uint64_t *state, uint64_t n)
{
    return qn_random_scale(qn_random_next(state), n);
}

/** 64 random bits as one of the 2^53 doubles i * 2^-53 in [0, 1). */
static inline double qn_random_fraction(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

#endif
