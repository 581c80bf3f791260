#ifndef QN_BASE_BITS_H
#define QN_BASE_BITS_H

/** Small arithmetic that C lacks. Pure, any thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QN_ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define QN_CONTAINER_OF(ptr, type, member)                                     \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define QN_MIN(a, b) ((a) < (b) ? (a) : (b)) /* evaluates the smaller twice */
#define QN_MAX(a, b) ((a) > (b) ? (a) : (b)) /* evaluates the larger twice */

/** True for 1, 2, 4, 8, ... */
static inline bool qn_is_pow2(uint64_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/** The lowest n bits, n <= 64: of n nodes, all. */
static inline uint64_t qn_low_bits(uint32_t n)
{
    return n == 0 ? 0 : UINT64_MAX >> (64 - n);
}

/** x rounded up to a multiple of `to`, a power of two. */
static inline size_t qn_align_up(size_t x, size_t to)
{
    return (x + (to - 1)) & ~(to - 1);
}

/** Borrowed bytes; `data` may be NULL when len is 0. */
struct qn_slice {
    const uint8_t *data;
    size_t len; /* bytes */
};

#endif
