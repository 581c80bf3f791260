#ifndef QN_LOADGEN_VERIFY_CHECKER_LINEAR_H
#define QN_LOADGEN_VERIFY_CHECKER_LINEAR_H

/**
 * Checks whether the history of one key is linearizable.
 *
 * It is linearizable if its operations can be put in one order such that an
 * operation that responded before another one was invoked comes first, and
 * every answer is the one of a register (absent, or one value) in that order.
 * Operations with unknown outcome may be placed anywhere after their
 * invocation, or left out. Operations with equal times overlap.
 *
 * The verdict is exact: no false alarms and no missed violations. A key that
 * cannot be decided within the budget is undecided. Two parts (see the files):
 *
 * - zones.c, for keys whose values are each written once: two values with
 * interlocked zones prove a violation, in O(n log n). If operations only set,
 * get and exchange, the absence of interlocked pairs proves the opposite, too
 * (Gibbons and Korach, "Testing Shared Memories", 1997).
 *
 * - search.c, for all other keys (deletions, refused exchanges, increments,
 * values written twice): a depth-first search for an order, with rules that
 * leave one candidate in most states, and a table of visited states (Wing and
 * Gong 1993; Lowe, "Testing for Linearizability", 2017).
 *
 * Pure: allocates and frees, no IO, no clock; any thread.
 */

#include "loadgen/verify/history/history.h"

enum qn_linear_verdict {
    QN_LINEARIZABLE,
    QN_NOT_LINEARIZABLE,
    QN_LINEAR_UNDECIDED, /* the budget was used up */
};

/** Form of a violation. */
enum qn_anomaly {
    QN_ANOMALY_NONE,
    QN_ANOMALY_PHANTOM,   /* a value that no operation wrote */
    QN_ANOMALY_FUTURE,    /* read before its write was invoked */
    QN_ANOMALY_TWICE,     /* two operations replaced the same value */
    QN_ANOMALY_CHAIN,     /* values of a chain in conflict with time */
    QN_ANOMALY_INTERLOCK, /* each of two values must come before the other */
    QN_ANOMALY_SEARCH,    /* every order was tried */
};

struct qn_linear_opts {
    uint64_t steps_max;   /* operations placed by the search; 0: default */
    uint64_t visited_max; /* visited states that are kept, 16 bytes each, twice
                             that while the table grows; 0: default */
    /* For tests, which compare the two parts. */
    bool plain;         /* no zones, and search with rules 1 and 5 only */
    bool always_search; /* search even if zones have decided */
};

/** Defaults: seconds and 128 MB for the worst key. */
#define QN_LINEAR_STEPS_MAX   UINT64_C(100000000)
#define QN_LINEAR_VISITED_MAX UINT64_C(4000000)

enum { QN_LINEAR_CORE_MAX = 4 };

struct qn_linear_result {
    enum qn_linear_verdict verdict;
    enum qn_anomaly reason;
    uint64_t steps; /* of the search */
    /* Indices of records that show the violation, where explain.h begins: not
     * always sufficient alone. */
    uint32_t core[QN_LINEAR_CORE_MAX];
    uint32_t core_count;
};

/**
 * Check the records of one key.
 *
 * @param records  [n] In any order; their key is ignored. Borrowed.
 * @param n        0..2^30.
 * @param opts     NULL: defaults. Borrowed.
 * @param out      Filled.
 * @return QN_OK for any verdict; QN_ENOMEM; QN_EINVAL if n is too large.
 */
int qn_linear_check(const struct qn_record *records, size_t n,
                    const struct qn_linear_opts *opts,
                    struct qn_linear_result *out);

#endif
