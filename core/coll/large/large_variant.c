/*
 * The table, and how a message is cut. Gather has no dynamic form: the first
 * half of what a parent sends is more than any child has (NUMACol, 3.2).
 */
#include "core/coll/large/large_variant.h"

#include <string.h>

#include "core/base/bits.h"

#define ROW(o, d, t, f, text)                                                  \
    {                                                                          \
        text, QN_LARGE_##o, QN_LARGE_##d, QN_LARGE_##t, QN_LARGE_##f           \
    }
#define BROADCAST(D, d)                                                        \
    ROW(BROADCAST, D, BINOMIAL, WHOLE, "broadcast/" d "/binomial/whole"),      \
        ROW(BROADCAST, D, BINOMIAL, DYNAMIC,                                   \
            "broadcast/" d "/binomial/dynamic"),                               \
        ROW(BROADCAST, D, BINOMIAL, FIXED, "broadcast/" d "/binomial/fixed"),  \
        ROW(BROADCAST, D, BINOMIAL_FLAT, WHOLE,                                \
            "broadcast/" d "/binomial+flat/whole"),                            \
        ROW(BROADCAST, D, BINOMIAL_FLAT, DYNAMIC,                              \
            "broadcast/" d "/binomial+flat/dynamic"),                          \
        ROW(BROADCAST, D, BINOMIAL_FLAT, FIXED,                                \
            "broadcast/" d "/binomial+flat/fixed")
#define REDUCE(D, d)                                                           \
    ROW(REDUCE, D, BINOMIAL, WHOLE, "reduce/" d "/binomial/whole"),            \
        ROW(REDUCE, D, BINOMIAL_FLAT, WHOLE,                                   \
            "reduce/" d "/binomial+flat/whole")

static const struct qn_large_variant table[] = {
    BROADCAST(PUSH, "push"),
    BROADCAST(PULL, "pull"),
    REDUCE(PUSH, "push"),
    REDUCE(PULL, "pull"),
    ROW(SCATTER, PUSH, RING, WHOLE, "scatter/push/ring"),
    ROW(SCATTER, PUSH, BINOMIAL, WHOLE, "scatter/push/binomial/whole"),
    ROW(SCATTER, PULL, RING, WHOLE, "scatter/pull/ring"),
    ROW(SCATTER, PULL, BINOMIAL, WHOLE, "scatter/pull/binomial/whole"),
    ROW(SCATTER, PULL, BINOMIAL, DYNAMIC, "scatter/pull/binomial/dynamic"),
    ROW(SCATTER, PULL, BINOMIAL, FIXED, "scatter/pull/binomial/fixed"),
    ROW(GATHER, PUSH, RING, WHOLE, "gather/push/ring"),
    ROW(GATHER, PUSH, BINOMIAL, WHOLE, "gather/push/binomial/whole"),
    ROW(GATHER, PUSH, BINOMIAL, FIXED, "gather/push/binomial/fixed"),
    ROW(GATHER, PULL, RING, WHOLE, "gather/pull/ring"),
    ROW(GATHER, PULL, BINOMIAL, WHOLE, "gather/pull/binomial/whole"),
    ROW(BROADCAST, PUSH, FLAT, WHOLE, "broadcast/push/flat"),
    ROW(BROADCAST, PULL, FLAT, WHOLE, "broadcast/pull/flat"),
    ROW(REDUCE, PUSH, FLAT, WHOLE, "reduce/push/flat"),
    ROW(REDUCE, PULL, FLAT, WHOLE, "reduce/pull/flat"),
    ROW(SCATTER, PUSH, FLAT, WHOLE, "scatter/push/flat"),
    ROW(SCATTER, PULL, FLAT, WHOLE, "scatter/pull/flat"),
    ROW(GATHER, PUSH, FLAT, WHOLE, "gather/push/flat"),
    ROW(GATHER, PULL, FLAT, WHOLE, "gather/pull/flat"),
};

const struct qn_large_variant *qn_large_variant_at(uint32_t i)
{
    return i < QN_ARRAY_COUNT(table) ? &table[i] : NULL;
}

const struct qn_large_variant *qn_large_variant_find(const char *name)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        if (strcmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

const char *qn_large_operation_name(enum qn_large_operation op)
{
    static const char *const names[] = {"broadcast", "reduce", "scatter",
                                        "gather"};
    return names[op];
}

/* Within one region each member reads the root's buffer once, and no byte is
 * copied twice. A gather that is pulled leaves all copies to the root. */
const struct qn_large_variant *qn_large_variant_choose(
    enum qn_large_operation op, uint32_t regions, bool push)
{
    static const char *const near[] = {"broadcast/pull/flat",
                                       "reduce/pull/binomial/whole",
                                       "scatter/pull/flat", "gather/pull/flat"};
    static const char *const far[] = {
        "broadcast/pull/binomial+flat/fixed", "reduce/pull/binomial/whole",
        "scatter/pull/ring", "gather/pull/binomial/whole"};
    if (op == QN_LARGE_GATHER && push) {
        return qn_large_variant_find(regions > 1 ? "gather/push/ring"
                                                 : "gather/push/flat");
    }
    return qn_large_variant_find(regions > 1 ? far[op] : near[op]);
}

uint32_t qn_large_fragment_count(const struct qn_large_variant *v,
                                 uint64_t bytes)
{
    if (v->fragments == QN_LARGE_DYNAMIC && bytes > QN_LARGE_DYNAMIC_ABOVE) {
        return 2;
    }
    if (v->fragments == QN_LARGE_FIXED && bytes > QN_LARGE_CHUNK) {
        return (uint32_t)((bytes + QN_LARGE_CHUNK - 1) / QN_LARGE_CHUNK);
    }
    return 1;
}

uint64_t qn_large_fragment_at(const struct qn_large_variant *v, uint64_t bytes,
                              uint32_t i)
{
    const uint32_t count = qn_large_fragment_count(v, bytes);
    if (i == 0 || i == count) {
        return i == 0 ? 0 : bytes;
    }
    return v->fragments == QN_LARGE_DYNAMIC ? bytes / 2
                                            : (uint64_t)i * QN_LARGE_CHUNK;
}

uint32_t qn_large_fragments_of(const struct qn_large_variant *v, uint64_t bytes,
                               uint64_t part)
{
    if (qn_large_fragment_count(v, bytes) == 1 || part == 0) {
        return 1;
    }
    if (v->fragments == QN_LARGE_DYNAMIC) {
        return part <= bytes / 2 ? 1 : 2;
    }
    return (uint32_t)((part + QN_LARGE_CHUNK - 1) / QN_LARGE_CHUNK);
}
