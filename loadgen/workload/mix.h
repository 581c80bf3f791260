#ifndef QN_LOADGEN_WORKLOAD_MIX_H
#define QN_LOADGEN_WORKLOAD_MIX_H

/**
 * Operation mix of a load: "get:80,set:20". Pure, any thread.
 *
 *     get set del     of a key with a value
 *     cas             compare-and-set of a key with a value
 *     incr            of a counter
 *     mset            several sets at once
 *     insert          set of a key that did not exist
 *     rmw             read-modify-write: a get, then a set when it is answered
 *     scan            one SCAN from a random cursor
 *     ping            no operation: measures the round trip
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QN_OP_MAP(X)                                                           \
    X(GET, "get")                                                              \
    X(SET, "set")                                                              \
    X(INCR, "incr")                                                            \
    X(MSET, "mset")                                                            \
    X(PING, "ping")                                                            \
    X(DEL, "del")                                                              \
    X(CAS, "cas")                                                              \
    X(INSERT, "insert")                                                        \
    X(RMW, "rmw")                                                              \
    X(SCAN, "scan")

/** All names, for help and error texts. */
#define QN_MIX_NAMES "get set incr mset ping del cas insert rmw scan"

enum qn_op {
#define X(name, text) QN_OP_##name,
    QN_OP_MAP(X)
#undef X
        QN_OP_COUNT
};

/** "get" ... */
const char *qn_mix_op_name(enum qn_op op);

/** True if it only reads the store. PING neither reads nor writes. */
static inline bool qn_op_is_read(enum qn_op op)
{
    return op == QN_OP_GET || op == QN_OP_SCAN;
}

/** True if it may change the store. */
static inline bool qn_op_is_write(enum qn_op op)
{
    return op != QN_OP_PING && !qn_op_is_read(op);
}

struct qn_mix {
    uint32_t upto[QN_OP_COUNT]; /* weights summed up to and including each */
};

/** Largest weight. */
#define QN_MIX_WEIGHT_MAX 1000000

/**
 * Parse NAME[:WEIGHT],...; the default weight is 1. Names may repeat; their
 * weights add up.
 *
 * @param mix    Filled.
 * @param error  [error_size] Filled on failure: what is wrong, with the nearest
 *               valid name; no newline.
 * @return QN_OK; QN_EINVAL for an unknown name, a weight outside
 *         0..QN_MIX_WEIGHT_MAX, or weights that are all 0.
 */
int qn_mix_parse(struct qn_mix *mix, const char *text, char *error,
                 size_t error_size);

/** The weight of one operation. */
static inline uint32_t qn_mix_weight(const struct qn_mix *m, enum qn_op op)
{
    return m->upto[op] - (op > 0 ? m->upto[op - 1] : 0);
}

/** The sum of all weights. */
static inline uint32_t qn_mix_sum(const struct qn_mix *m)
{
    return m->upto[QN_OP_COUNT - 1];
}

/** Part of a mix: only the operations that read, or all others. Its sum may be
 *  0. */
struct qn_mix qn_mix_part(const struct qn_mix *m, bool reads);

/** The operation for a random number in [0, upto[QN_OP_COUNT - 1]). */
static inline enum qn_op qn_mix_pick(const struct qn_mix *m, uint64_t r)
{
    unsigned op = 0;
    while (r >= m->upto[op]) {
        op++;
    }
    return (enum qn_op)op;
}

#endif
