/*
 * The history of a queue: four patterns.
 *
 * Three of them are found when values are paired (a value that was never put,
 * was taken twice, or before it was put) and by the cover (nothing was found
 * while some value was certainly in). The fourth one is here: a was put
 * entirely before b, and b taken entirely before a, or a never. A history of
 * distinct values without any of these is linearizable (the proofs are in the
 * papers that object_history.h names).
 */
#include <stdlib.h>

#include "core/base/err.h"
#include "loadgen/verify/object/value_span_internal.h"

static int by_put_invoked(const void *a, const void *b)
{
    const struct qn_value_span *x = *(const struct qn_value_span *const *)a;
    const struct qn_value_span *y = *(const struct qn_value_span *const *)b;
    return (x->put_invoked > y->put_invoked) -
           (x->put_invoked < y->put_invoked);
}

/* Each b, by the invocation of its put, beside the values that were put before:
 * of those the one that is taken last is the one that may be in conflict. */
static int check_order(const struct qn_value_spans *s,
                       struct qn_object_verdict *out)
{
    const struct qn_value_span **b = malloc((s->count + 1) * sizeof *b);
    const struct qn_value_span *last = NULL;
    if (b == NULL) {
        return QN_ENOMEM;
    }
    for (size_t i = 0; i < s->count; i++) {
        b[i] = &s->span[i];
    }
    qsort(b, s->count, sizeof(struct qn_value_span *), by_put_invoked);
    for (size_t i = 0, a = 0; i < s->count; i++) {
        while (s->span[a].put_responded < b[i]->put_invoked) {
            if (last == NULL || s->span[a].take_invoked > last->take_invoked) {
                last = &s->span[a];
            }
            a++; /* b itself is not before b: a stays below count */
        }
        if (last != NULL && b[i]->take_responded < last->take_invoked) {
            *out = (struct qn_object_verdict){QN_OBJECT_REVERSED,
                                              {last->take, b[i]->take}};
            break;
        }
    }
    free(b);
    return QN_OK;
}

int qn_queue_history_check(const struct qn_object_record *r, size_t n,
                           struct qn_object_verdict *out)
{
    struct qn_value_spans s;
    int rc = qn_value_spans_init(&s, r, n, out);
    if (rc == QN_OK && out->fault == QN_OBJECT_NO_FAULT) {
        rc = check_order(&s, out);
    }
    if (rc == QN_OK && out->fault == QN_OBJECT_NO_FAULT) {
        rc = qn_value_spans_check_empty(&s, r, n, out);
    }
    qn_value_spans_fini(&s);
    return rc;
}
