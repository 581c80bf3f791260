/*
 * The history of a stack: values are removed from below.
 *
 * Let a value be certainly in from the response of its push to the invocation
 * of its pop (value_span_internal.h), and the cover be the union of these times
 * over all values. Four facts:
 *
 * 1. A value that is never certainly in can be left out: at an instant that
 *    lies in its push and in its pop, push and pop are put side by side into
 *    any order of the others.
 * 2. At an instant t that the cover leaves free, the history falls into two
 *    that do not depend on each other: each value but those of fact 1 has its
 *    certain time before t or after it. Those before t have invoked their pop
 *    by then, and those after it have not responded to their push: so an order
 *    of the one part, followed by one of the other, agrees with time.
 *    Conversely an order of all contains one of each part. A pop that finds
 *    nothing goes to such a t, and needs one.
 * 3. So let the cover be one interval from l to r. In a valid order the stack
 *    is then never empty in between, or fact 2 would split it: one value is
 *    pushed first and popped last. Its push was invoked by l, or another push
 *    had responded before it; its pop responds at r or later.
 * 4. Any such value will do: no time forbids to put its push first and its pop
 *    last, and an order of all contains one of the others. So all of them are
 *    removed at once; where there is none, there is no order.
 *
 * What is left is cut at its free instants, and so on. A level removes at least
 * one value of each part. So the levels are at most the values that must lie on
 * the stack together, and each one looks once at each value that is left.
 */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/verify/object/value_span_internal.h"

/* Values from .. end - 1, by put_responded. */
struct range {
    size_t from, end;
};

/* The values of `x` whose certain times are connected with that of its first.
 * @param last  Filled: one of them that is taken last. */
static size_t connected(const struct qn_value_span *v, struct range x,
                        const struct qn_value_span **last)
{
    size_t i = x.from;
    *last = &v[i];
    for (i++; i < x.end && v[i].put_responded < (*last)->take_invoked; i++) {
        if (v[i].take_invoked > (*last)->take_invoked) {
            *last = &v[i];
        }
    }
    return i;
}

/* Remove the values of a connected range that may lie below the others; the
 * order of the others stays. @return what is left. */
static struct range remove_lowest(struct qn_value_span *v, struct range x,
                                  qn_time_t last_take)
{
    const qn_time_t first_put = v[x.from].put_responded;
    size_t end = x.from;
    for (size_t i = x.from; i < x.end; i++) {
        if (v[i].put_invoked > first_put || v[i].take_responded < last_take) {
            v[end++] = v[i];
        }
    }
    return (struct range){x.from, end};
}

/* Fact 1. @return the values that are certainly in at some time. */
static size_t leave_out(struct qn_value_spans *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->span[i].put_responded < s->span[i].take_invoked) {
            s->span[kept++] = s->span[i];
        }
    }
    return kept;
}

static int check_nesting(struct qn_value_spans *s,
                         struct qn_object_verdict *out)
{
    /* Ranges do not overlap, and none is empty. */
    struct range *left = malloc((s->count + 1) * sizeof *left);
    size_t ranges = 0;
    if (left == NULL) {
        return QN_ENOMEM;
    }
    left[ranges++] = (struct range){0, leave_out(s)};
    while (ranges > 0 && out->fault == QN_OBJECT_NO_FAULT) {
        const struct range all = left[--ranges];
        for (struct range x = all; x.from < all.end; x.from = x.end) {
            const struct qn_value_span *last;
            x.end = connected(s->span, (struct range){x.from, all.end}, &last);
            const size_t put = s->span[x.from].put, take = last->take;
            const struct range rest =
                remove_lowest(s->span, x, last->take_invoked);
            if (rest.end == x.end) {
                *out =
                    (struct qn_object_verdict){QN_OBJECT_NESTING, {put, take}};
                break;
            }
            if (rest.end > rest.from) {
                left[ranges++] = rest;
            }
        }
    }
    free(left);
    return QN_OK;
}

int qn_stack_history_check(const struct qn_object_record *r, size_t n,
                           struct qn_object_verdict *out)
{
    struct qn_value_spans s;
    int rc = qn_value_spans_init(&s, r, n, out);
    if (rc == QN_OK && out->fault == QN_OBJECT_NO_FAULT) {
        rc = qn_value_spans_check_empty(&s, r, n, out);
    }
    if (rc == QN_OK && out->fault == QN_OBJECT_NO_FAULT) {
        rc = check_nesting(&s, out);
    }
    qn_value_spans_fini(&s);
    return rc;
}
