#include "core/coll/operators.h"

#include "core/base/bits.h"

void qn_coll_sum(uint64_t *into, const uint64_t *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        into[i] += from[i];
    }
}

void qn_coll_min(uint64_t *into, const uint64_t *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        into[i] = QN_MIN(into[i], from[i]);
    }
}

void qn_coll_max(uint64_t *into, const uint64_t *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        into[i] = QN_MAX(into[i], from[i]);
    }
}
