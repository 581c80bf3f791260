#ifndef QN_COLL_COLL_CALL_H
#define QN_COLL_COLL_CALL_H

/**
 * What a caller says of a collective operation (coll.h).
 */

#include <stdint.h>

#include "core/coll/payload/operators.h"

enum qn_coll_what {
    QN_COLL_BROADCAST,
    QN_COLL_ACKNOWLEDGED,
    QN_COLL_REDUCE,
    QN_COLL_ALLREDUCE,
    QN_COLL_COMMIT,
    QN_COLL_GATHER,
    QN_COLL_SCATTER,
};

/** One operation. All members say the same `what`, `op` and `count`. */
struct qn_coll_call {
    enum qn_coll_what what;
    const struct qn_operator *op; /* of reductions; kept until it has ended.
                                     NULL if count is 0 */
    const void *in; /* borrowed for the call. Reductions: NULL contributes the
                       neutral element. Needed only where it is used */
    void *out;      /* kept until it has ended; NULL: not wanted */
    uint32_t count; /* reductions: elements; gather and scatter: bytes of each
                       member; broadcasts: bytes; commit: unused */
};

#endif
