#ifndef QN_COLL_OPERATORS_H
#define QN_COLL_OPERATORS_H

/**
 * Operators of reductions: built-in ones, and what a function of the caller
 * must say.
 *
 * An operator that *commutes* may be applied in any order and grouping, with
 * the same bits as result: contributions are combined as they arrive. For all
 * others, sums of floating point numbers among them, the contributions are
 * gathered and combined at the root in the order of ranks, so that every run
 * has the same result.
 *
 * Pure, any thread.
 */

#include <stdbool.h>
#include <stdint.h>

/** into[i] = into[i] (+) from[i] for i < count elements; associative. `from`
 *  has the higher ranks. Must not call the collective. */
typedef void qn_combine_fn(void *into, const void *from, uint32_t count);

#define QN_ELEMENT_MAX 64u /* bytes */

struct qn_operator {
    qn_combine_fn *combine;
    const void *neutral; /* [bytes] one element: contributed by members without
                            an input */
    uint32_t bytes;      /* of an element, 1 .. QN_ELEMENT_MAX */
    bool commutes; /* and groups as it likes: the same bits in any order */
};

/** Unsigned words: a sum wraps. */
extern const struct qn_operator qn_sum_u64, qn_min_u64, qn_max_u64, qn_and_u64,
    qn_or_u64;
/** Signed words: a sum wraps. */
extern const struct qn_operator qn_sum_i64, qn_min_i64, qn_max_i64;
/** Doubles. Minimum and maximum are in rank order too: of NaN and of zeros with
 *  different signs the order decides. */
extern const struct qn_operator qn_sum_f64, qn_min_f64, qn_max_f64;

#endif
