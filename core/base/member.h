#ifndef QN_CORE_BASE_MEMBER_H
#define QN_CORE_BASE_MEMBER_H

/**
 * Unsigned members of a struct by their place, for tables that say how a
 * message is encoded.
 *
 * `at` points to the member, `bytes` is its size: 1, 4 or 8. Pure, any thread.
 */

#include <stdint.h>
#include <string.h>

#include "core/base/assert.h"

static inline uint64_t qn_member_get(const void *at, uint32_t bytes)
{
    uint64_t v8;
    uint32_t v4;
    switch (bytes) {
    case 8:
        memcpy(&v8, at, sizeof v8);
        return v8;
    case 4:
        memcpy(&v4, at, sizeof v4);
        return v4;
    default:
        QN_ASSERT(bytes == 1);
        return *(const uint8_t *)at;
    }
}

/** `v` fits into the member. */
static inline void qn_member_set(void *at, uint32_t bytes, uint64_t v)
{
    uint32_t v4 = (uint32_t)v;
    switch (bytes) {
    case 8:
        memcpy(at, &v, sizeof v);
        break;
    case 4:
        QN_ASSERT(v <= UINT32_MAX);
        memcpy(at, &v4, sizeof v4);
        break;
    default:
        QN_ASSERT(bytes == 1);
        QN_ASSERT(v <= UINT8_MAX);
        *(uint8_t *)at = (uint8_t)v;
    }
}

#endif
