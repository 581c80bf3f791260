#ifndef QN_LOADGEN_RANDOM_H
#define QN_LOADGEN_RANDOM_H

/** splitmix64: 64 bits of state, any seed is good, a few instructions. One
 *  stream per client, so that what a client asks does not depend on timing. */

#include <stdint.h>

static inline uint64_t qn_random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** In [0, n), n in 1..2^32; uniform to within n / 2^32. */
static inline uint64_t qn_random_below(uint64_t *state, uint64_t n)
{
    return ((qn_random_next(state) >> 32) * n) >> 32;
}

#endif
