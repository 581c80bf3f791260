#include <stdlib.h>

#include "core/base/err.h"
#include "loadgen/verify/object/object_history.h"

static int by_result(const void *a, const void *b)
{
    const struct qn_object_record *x =
        *(const struct qn_object_record *const *)a;
    const struct qn_object_record *y =
        *(const struct qn_object_record *const *)b;
    return (x->value > y->value) - (x->value < y->value);
}

/* @param by  [n] by result: they must be first, first + 1, ..., and none may
 * respond before one with a smaller result is invoked. */
static void check(const struct qn_object_record **by, size_t n, uint64_t first,
                  const struct qn_object_record *r,
                  struct qn_object_verdict *out)
{
    const struct qn_object_record *last = NULL; /* invoked last */
    for (size_t i = 0; i < n; i++) {
        const size_t at = (size_t)(by[i] - r);
        if (i > 0 && by[i]->value == by[i - 1]->value) {
            *out = (struct qn_object_verdict){QN_OBJECT_TWICE,
                                              {(size_t)(by[i - 1] - r), at}};
            return;
        }
        if (by[i]->value - first != i) {
            *out = (struct qn_object_verdict){QN_OBJECT_PHANTOM, {at, at}};
            return;
        }
        if (last != NULL && by[i]->responded < last->invoked) {
            *out = (struct qn_object_verdict){QN_OBJECT_REVERSED,
                                              {(size_t)(last - r), at}};
            return;
        }
        if (last == NULL || by[i]->invoked > last->invoked) {
            last = by[i];
        }
    }
}

int qn_counter_history_check(const struct qn_object_record *r, size_t n,
                             uint64_t first, struct qn_object_verdict *out)
{
    *out = (struct qn_object_verdict){.fault = QN_OBJECT_NO_FAULT};
    if (n > QN_OBJECT_RECORDS_MAX) {
        return QN_EINVAL;
    }
    const struct qn_object_record **by = malloc((n + 1) * sizeof *by);
    if (by == NULL) {
        return QN_ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        by[i] = &r[i];
        if (r[i].kind != QN_OBJECT_ADD) {
            free(by);
            return QN_EINVAL;
        }
    }
    qsort(by, n, sizeof(struct qn_object_record *), by_result);
    check(by, n, first, r, out);
    free(by);
    return QN_OK;
}

const char *qn_object_fault_text(enum qn_object_fault fault)
{
    switch (fault) {
    case QN_OBJECT_NO_FAULT:
        return "linearizable";
    case QN_OBJECT_PHANTOM:
        return "a value that was never put";
    case QN_OBJECT_TWICE:
        return "a value was taken twice";
    case QN_OBJECT_FUTURE:
        return "a value was taken before it was put";
    case QN_OBJECT_REVERSED:
        return "two values in an order that time forbids";
    case QN_OBJECT_NOT_EMPTY:
        return "nothing found while a value was in";
    case QN_OBJECT_NESTING:
        return "no value can lie below the others";
    }
    return "unknown fault";
}
