#ifndef QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_H
#define QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_H

/**
 * Explains why a history is not linearizable: finds a part of it that is not
 * linearizable either, from which nothing more can be left out.
 *
 * Not every part will do: without its write, a correct answer looks wrong. So
 * the part must be a *witness*: if the whole history had an order, then its
 * operations in that order would be an order of the part. If the operations
 * that support an operation are left out, it stays only as far as this remains
 * true:
 *
 * - an operation that read a value stays with every operation that can have
 * written it;
 *
 * - an operation that found nothing, something, or another value stays with
 * every operation that can have come last before it (as far as that matters);
 *
 * - otherwise a read is left out, too, and a write (cas, add, incr) counts as
 * one that needs nothing: it is `loose`;
 *
 * - a counter keeps the window between two of its values: everything from the
 * moment it had the first, and nothing above the second.
 *
 * Pure: allocates and frees. One thread.
 */

#include "loadgen/verify/checker/linear.h"

struct qn_witness_op {
    struct qn_record record; /* as it was recorded */
    bool loose; /* counts as a write only, regardless of what it found */
};

struct qn_witness {
    struct qn_witness_op *op; /* [count] by time of the request */
    size_t count;
    size_t of;       /* records of the key */
    const char *why; /* a sentence without a full stop */
    bool minimal; /* nothing can be left out; false: the budget was used up */
    int64_t base; /* counters: value with which the part begins */
};

/**
 * Find a witness.
 *
 * @param records  [n] Of one key, a violation. Borrowed.
 * @param found    Result of qn_linear_check for them. Borrowed.
 * @param opts     Options of each check; NULL: defaults.
 * @param out      Filled; free it with qn_witness_fini.
 * @return QN_OK, QN_ENOMEM.
 */
int qn_explain(const struct qn_record *records, size_t n,
               const struct qn_linear_result *found,
               const struct qn_linear_opts *opts, struct qn_witness *out);

void qn_witness_fini(struct qn_witness *w);

#endif
