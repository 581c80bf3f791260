#include "core/base/err.h"
#include "loadgen/verify/explain/explain_internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * An increment in the middle of a counter's history cannot be left out. But all
 * operations that saw at most V form a history of their own, and so do all that
 * saw more than U, if the counter certainly had the value U once: that history
 * begins with U. The smallest V that gives a violation and the largest such U
 * are found by bisection.
 */

/* Increments and values up to this rise and do not wrap. */
static const int64_t SEEN_MAX = INT64_MAX / 4;

bool qn_counter_window_record(const struct qn_explain *x, size_t i,
                              struct qn_record *out)
{
    *out = x->all[i];
    if (out->outcome == QN_RECORD_UNKNOWN) {
        return out->kind == QN_RECORD_INCR;
    }
    if (out->outcome == QN_RECORD_NIL) {
        return !x->has_base;
    }
    int64_t *seen = out->kind == QN_RECORD_GET ? &out->value : &out->other;
    if (*seen > x->upto || (x->has_base && *seen <= x->above)) {
        return false;
    }
    *seen -= x->has_base ? x->above : 0;
    return true;
}

bool qn_counter_window_applies(const struct qn_record *all, size_t n)
{
    size_t increments = 0;
    for (size_t i = 0; i < n; i++) {
        bool adds = all[i].kind == QN_RECORD_INCR && all[i].value > 0 &&
                    all[i].value <= SEEN_MAX && all[i].other <= SEEN_MAX;
        if (all[i].kind != QN_RECORD_GET && !adds) {
            return false;
        }
        increments += adds;
    }
    return increments > 0;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Values that were seen, ascending: by increments only, or also by gets. */
static size_t values_seen(const struct qn_explain *x, bool gets, int64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < x->n; i++) {
        const struct qn_record *r = &x->all[i];
        bool get = r->kind == QN_RECORD_GET;
        if (r->outcome == QN_RECORD_OK && (gets || !get)) {
            out[count++] = get ? r->value : r->other;
        }
    }
    qsort(out, count, sizeof *out, by_number);
    return count;
}

static bool is_witness_between(struct qn_explain *x, bool has_base,
                               int64_t above, int64_t upto)
{
    x->has_base = has_base;
    x->above = above;
    x->upto = upto;
    return qn_explain_is_witness(x, x->part, x->count);
}

static void narrow(struct qn_explain *x, int64_t *value)
{
    size_t high = values_seen(x, true, value);
    size_t low = 0; /* the result is in value[low..high], or beyond the end */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_witness_between(x, false, 0, value[middle])) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    int64_t upto = high < values_seen(x, true, value) ? value[high] : INT64_MAX;
    size_t end = values_seen(x, false, value);
    size_t best = 0; /* number of values that can be bases */
    for (high = end; best < high;) {
        size_t middle = best + (high - best) / 2;
        if (value[middle] < upto &&
            is_witness_between(x, true, value[middle], upto)) {
            best = middle + 1;
        } else {
            high = middle;
        }
    }
    (void)is_witness_between(x, best > 0, best > 0 ? value[best - 1] : 0, upto);
}

/* Drop the operations outside of the window. */
static void drop_rest(struct qn_explain *x)
{
    size_t count = 0;
    for (size_t k = 0; k < x->count; k++) {
        struct qn_record r;
        if (qn_counter_window_record(x, x->part[k], &r)) {
            x->trial[count++] = x->part[k];
        }
    }
    memcpy(x->part, x->trial, count * sizeof *x->part);
    x->count = count;
}

int qn_counter_window_find(struct qn_explain *x)
{
    int64_t *value = malloc((x->n + 1) * sizeof *value);
    if (value == NULL) {
        return QN_ENOMEM;
    }
    for (size_t i = 0; i < x->n; i++) {
        x->part[i] = (uint32_t)i;
    }
    x->count = x->n;
    narrow(x, value);
    drop_rest(x);
    free(value);
    return QN_OK;
}
