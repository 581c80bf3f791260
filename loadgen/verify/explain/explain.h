#ifndef QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_H
#define QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_H

/**
 * Why a history is not linearizable: a part of it that is not either, from
 * which nothing more can be left out.
 *
 * Leaving out is not harmless: without its write, a right answer looks wrong.
 * So the part is a *witness*: if the whole history had an order, then its
 * operations in that order would be an order of the part. An operation whose
 * support was left out stays only as far as that remains true:
 *
 *  - what read a value stays with every operation that can have written it;
 *  - what found nothing, something, or another value stays with every
 *    operation that can have come last before it (as far as it matters);
 *  - otherwise a read is left out as well, and a write (cas, add, incr) is
 *    taken as one that needs nothing: `loose`;
 *  - a counter keeps the stretch between two of its values: everything from
 *    the moment it had the first, and nothing above the second.
 *
 * Pure: it allocates and frees. One thread.
 */

#include "loadgen/verify/checker/linear.h"

struct qn_witness_op {
    struct qn_record record; /* as it was recorded */
    bool loose;              /* counted as a write only, whatever it found */
};

struct qn_witness {
    struct qn_witness_op *op; /* [count] by time of the request */
    size_t count;
    size_t of;       /* records of the key */
    const char *why; /* a sentence without its full stop */
    bool minimal;    /* nothing can be left out; false: the budget ended */
    int64_t base;    /* counters: the part begins when it had this value */
};

/**
 * Find a witness.
 *
 * @param records  [n] Of one key, a violation. Borrowed.
 * @param found    What qn_linear_check said of them. Borrowed.
 * @param opts     Of each check; NULL: defaults.
 * @param out      Filled; end it with qn_witness_fini.
 * @return QN_OK, QN_ENOMEM.
 */
int qn_explain(const struct qn_record *records, size_t n,
               const struct qn_linear_result *found,
               const struct qn_linear_opts *opts, struct qn_witness *out);

void qn_witness_fini(struct qn_witness *w);

#endif
