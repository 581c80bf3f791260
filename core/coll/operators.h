#ifndef QN_COLL_OPERATORS_H
#define QN_COLL_OPERATORS_H

/** Operators of reductions over unsigned words (qn_coll_combine); a sum wraps.
 *  Pure, any thread. */

#include <stdint.h>

/** into[i] = into[i] (+) from[i] for i < count. */
void qn_coll_sum(uint64_t *into, const uint64_t *from, uint32_t count);
void qn_coll_min(uint64_t *into, const uint64_t *from, uint32_t count);
void qn_coll_max(uint64_t *into, const uint64_t *from, uint32_t count);

#endif
