#ifndef QN_BASE_LITTLE_ENDIAN_H
#define QN_BASE_LITTLE_ENDIAN_H

/** Little-endian integers of 1 to 8 bytes, at any address. Pure. With a
 *  constant width the loops become one load or store. */

#include <stdint.h>

static inline void qn_put_le(uint8_t *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(v >> (8 * i));
    }
}

static inline uint64_t qn_get_le(const uint8_t *from, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) {
        v |= (uint64_t)from[i] << (8 * i);
    }
    return v;
}

#endif
