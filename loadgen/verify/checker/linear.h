#ifndef QN_LOADGEN_VERIFY_CHECKER_LINEAR_H
#define QN_LOADGEN_VERIFY_CHECKER_LINEAR_H

/**
 * Is the history of one key linearizable?
 *
 * It is, if its operations can be put in one order such that an operation that
 * was answered before another was asked comes first, and every answer is what
 * a register (absent, or one value) gives when asked in that order. Operations
 * with unknown outcome may be put anywhere after they were asked, or left out.
 * Times that are equal count as overlapping.
 *
 * The answer is exact: never a false alarm, never a miss. What cannot be
 * decided within the budget is called undecided. Two parts (see the files):
 *
 *  - zones.c, for keys whose values are written once each: two values whose
 *    lives are interlocked prove a violation, in O(n log n). Where operations
 *    only set, get and exchange, no interlocked pair proves the contrary too
 *    (Gibbons and Korach, "Testing Shared Memories", 1997).
 *  - search.c, for everything else (deletions, refused exchanges, increments,
 *    values written twice): a depth-first search for an order, with rules that
 *    leave one choice in most places and a table of what has failed before
 *    (Wing and Gong 1993; Lowe, "Testing for Linearizability", 2017).
 *
 * Pure: it allocates and frees, no IO, no clock; any thread.
 */

#include "loadgen/verify/history/history.h"

enum qn_linear_verdict {
    QN_LINEARIZABLE,
    QN_NOT_LINEARIZABLE,
    QN_LINEAR_UNDECIDED, /* the budget was used up */
};

/** How a violation showed itself. */
enum qn_anomaly {
    QN_ANOMALY_NONE,
    QN_ANOMALY_PHANTOM,   /* a value that no operation wrote */
    QN_ANOMALY_FUTURE,    /* answered before its writer asked */
    QN_ANOMALY_TWICE,     /* two operations replaced the same value */
    QN_ANOMALY_CHAIN,     /* values follow from each other against time */
    QN_ANOMALY_INTERLOCK, /* each of two values must come before the other */
    QN_ANOMALY_SEARCH,    /* every order was tried */
};

struct qn_linear_opts {
    uint64_t steps_max;  /* operations placed by the search; 0: default */
    uint64_t failed_max; /* remembered dead ends, 16 bytes each, doubled while
                            the table grows; 0: default */
    /* The tests compare the ways to a verdict. */
    bool plain;         /* no zones, and search with rules 1 and 5 only */
    bool always_search; /* search even if zones have decided "fine" */
};

/** Defaults: seconds and 128 MB for the worst key. */
#define QN_LINEAR_STEPS_MAX  UINT64_C(100000000)
#define QN_LINEAR_FAILED_MAX UINT64_C(4000000)

enum { QN_LINEAR_CORE_MAX = 4 };

struct qn_linear_result {
    enum qn_linear_verdict verdict;
    enum qn_anomaly reason;
    uint64_t steps; /* of the search */
    /* Indices of records that show the violation, for explain.h to begin
     * with: perhaps with others, not always alone. */
    uint32_t core[QN_LINEAR_CORE_MAX];
    uint32_t core_count;
};

/**
 * Judge the records of one key.
 *
 * @param records  [n] In any order; their key is not looked at. Borrowed.
 * @param n        0..2^30.
 * @param opts     NULL: defaults. Borrowed.
 * @param out      Filled.
 * @return QN_OK whatever the verdict; QN_ENOMEM; QN_EINVAL if n is too large.
 */
int qn_linear_check(const struct qn_record *records, size_t n,
                    const struct qn_linear_opts *opts,
                    struct qn_linear_result *out);

#endif
