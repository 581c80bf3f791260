#ifndef QN_LOADGEN_BASE_DIGITS_H
#define QN_LOADGEN_BASE_DIGITS_H

/**
 * Numbers as text of constant length: a few multiplications instead of a loop
 * of divisions. Pure, any thread.
 */

#include <stdint.h>
#include <string.h>

#define QN_DIGITS 16

/** Eight decimal digits of n < 10^8, in memory order. The two halves, then four
 *  pairs, then eight digits are divided side by side in one word. */
static inline uint64_t qn_digits8(uint64_t n)
{
    uint64_t v = n / 10000 | (n % 10000) << 32;
    uint64_t hundreds = (v * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    v = hundreds | (v - hundreds * 100) << 16;
    uint64_t tens = (v * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    v = tens | (v - tens * 10) << 8;
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) {
        v = __builtin_bswap64(v);
    }
    return v | UINT64_C(0x3030303030303030);
}

/** The last 16 decimal digits of n. */
static inline void qn_digits16(uint8_t to[QN_DIGITS], uint64_t n)
{
    uint64_t upper = qn_digits8(n / 100000000 % 100000000);
    uint64_t lower = qn_digits8(n % 100000000);
    memcpy(to, &upper, 8);
    memcpy(to + 8, &lower, 8);
}

/** Decimal digits of n without leading zeros, 1..20. */
static inline uint32_t qn_digits_count(uint64_t n)
{
    uint32_t digits = 1;
    for (; n >= 10; n /= 10) {
        digits++;
    }
    return digits;
}

#endif
