/*
 * One row per type and operator. Elements may lie anywhere that their type may;
 * signed sums are made of unsigned words, because those wrap.
 */
#include "core/coll/payload/operators.h"

#include <math.h>

#define OPERATOR(name, type, expr, zero, any_order)                            \
    static void combine_##name(void *into, const void *from, uint32_t count)   \
    {                                                                          \
        type *x = into;                                                        \
        const type *y = from;                                                  \
        for (uint32_t i = 0; i < count; i++) {                                 \
            const type a = x[i], b = y[i];                                     \
            x[i] = (expr);                                                     \
        }                                                                      \
    }                                                                          \
    static const type neutral_##name = (zero);                                 \
    const struct qn_operator qn_##name = {.combine = combine_##name,           \
                                          .neutral = &neutral_##name,          \
                                          .bytes = sizeof(type),               \
                                          .commutes = (any_order)};

OPERATOR(sum_u64, uint64_t, a + b, 0, true)
OPERATOR(min_u64, uint64_t, a < b ? a : b, UINT64_MAX, true)
OPERATOR(max_u64, uint64_t, a > b ? a : b, 0, true)
OPERATOR(and_u64, uint64_t, a &b, UINT64_MAX, true)
OPERATOR(or_u64, uint64_t, a | b, 0, true)
OPERATOR(sum_i64, int64_t, (int64_t)((uint64_t)a + (uint64_t)b), 0, true)
OPERATOR(min_i64, int64_t, a < b ? a : b, INT64_MAX, true)
OPERATOR(max_i64, int64_t, a > b ? a : b, INT64_MIN, true)
OPERATOR(sum_f64, double, a + b, -0.0, false)
OPERATOR(min_f64, double, b < a ? b : a, HUGE_VAL, false)
OPERATOR(max_f64, double, b > a ? b : a, -HUGE_VAL, false)
