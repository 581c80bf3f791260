#ifndef QN_LOADGEN_VERIFY_OBJECT_VALUE_SPAN_INTERNAL_H
#define QN_LOADGEN_VERIFY_OBJECT_VALUE_SPAN_INTERNAL_H

/**
 * What queue_history.c and stack_history.c share: the values of a history, and
 * the times at which some value is certainly in the object.
 *
 * A value is certainly in between the response of its put and the invocation
 * of its take, without these two instants. The union of these times, over all
 * values, is the cover. A take that finds nothing needs an instant that the
 * cover leaves free.
 */

#include "loadgen/verify/object/object_history.h"

#include <stdbool.h>

struct qn_value_span {
    qn_time_t put_invoked, put_responded;
    qn_time_t take_invoked, take_responded; /* QN_TIME_NEVER: not taken */
    size_t put, take;                       /* records; not taken: put twice */
};

struct qn_value_spans {
    struct qn_value_span *span; /* [count] by put_responded */
    size_t count;
};

/**
 * Pair the puts and takes of a history.
 *
 * @return QN_OK; `out` may have a fault PHANTOM, TWICE or FUTURE. QN_ENOMEM and
 *         QN_EINVAL as in object_history.h: there is nothing to free then.
 */
int qn_value_spans_init(struct qn_value_spans *s,
                        const struct qn_object_record *r, size_t n,
                        struct qn_object_verdict *out);
void qn_value_spans_fini(struct qn_value_spans *s);

/** Is there, for each NOTHING, an instant that the cover leaves free? Else
 *  `out` has the fault NOT_EMPTY. @return QN_OK, QN_ENOMEM. */
int qn_value_spans_check_empty(const struct qn_value_spans *s,
                               const struct qn_object_record *r, size_t n,
                               struct qn_object_verdict *out);

#endif
