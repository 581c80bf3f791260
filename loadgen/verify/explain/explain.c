#include "loadgen/verify/explain/explain.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/verify/explain/explain_internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * Finds a part that is not linearizable, then leaves out operations as long as
 * it stays so: first halves, then quarters, down to single operations (Zeller
 * and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
 * subhistory.c says what may be left out, and how the rest changes.
 *
 * The first part is small if the checker gives a place: the operations that
 * prove an interlock, with the writers of the values that they read; or a
 * window around the response that no order passed, widened until it is a
 * witness. So explaining even a key with 10^5 operations takes less time than
 * checking it.
 */

enum {
    TESTS_MAX = 20000,   /* maximum of checks of parts */
    WINDOW_MIN = 16,     /* records on each side of the place */
    WHOLE_SHRINK = 4096, /* larger parts are shrunk by chunks only */
};

/* ---- one part ---- */

static bool bad(struct qn_explain *x, size_t checked)
{
    struct qn_linear_result result;
    x->tests++;
    int err = qn_linear_check(x->check, checked, x->opts, &result);
    if (err != QN_OK) {
        x->err = err;
        return false;
    }
    return result.verdict == QN_NOT_LINEARIZABLE;
}

/* Make the records to check for the part list[0..count); false: it proves
 * nothing. kept[] is set for the part. */
static bool prepare(struct qn_explain *x, const uint32_t *list, size_t count,
                    size_t *checked)
{
    *checked = 0;
    for (size_t k = 0; k < count; k++) {
        struct qn_record r = x->all[list[k]];
        enum qn_subhistory_kind kind = QN_SUBHISTORY_WHOLE;
        if (x->counter) {
            kind = qn_counter_window_record(x, list[k], &r)
                       ? kind
                       : QN_SUBHISTORY_NONE;
        } else {
            kind =
                qn_subhistory_of(&x->subhistory, list[k], x->kept, list, count);
        }
        if (kind == QN_SUBHISTORY_WRONG) {
            return false;
        }
        if (kind == QN_SUBHISTORY_LOOSE) {
            r = qn_subhistory_loosen(&r);
        }
        if (kind != QN_SUBHISTORY_NONE) {
            x->check[(*checked)++] = r;
        }
    }
    return true;
}

static void keep(struct qn_explain *x, const uint32_t *list, size_t count,
                 bool kept)
{
    for (size_t k = 0; k < count; k++) {
        x->kept[list[k]] = kept;
    }
}

bool qn_explain_is_witness(struct qn_explain *x, const uint32_t *list,
                           size_t count)
{
    size_t checked;
    keep(x, list, count, true);
    bool yes = prepare(x, list, count, &checked) && bad(x, checked);
    keep(x, list, count, false);
    return yes;
}

static void adopt(struct qn_explain *x, const uint32_t *list, size_t count)
{
    memmove(x->part, list, count * sizeof *list);
    x->count = count;
}

/* ---- the first part ---- */

static int by_index(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static size_t unique(uint32_t *list, size_t count)
{
    size_t to = 0;
    qsort(list, count, sizeof *list, by_index);
    for (size_t k = 0; k < count; k++) {
        if (to == 0 || list[to - 1] != list[k]) {
            list[to++] = list[k];
        }
    }
    return to;
}

/* The value whose writers record r needs; false: none. */
static bool saw(const struct qn_record *r, int64_t *value)
{
    if (r->kind == QN_RECORD_GET && r->outcome == QN_RECORD_OK) {
        *value = r->value;
        return true;
    }
    if (r->kind == QN_RECORD_CAS && r->outcome != QN_RECORD_FAILED) {
        *value = r->other;
        return true;
    }
    return false;
}

/* Add the writers of the values that list[0..count) saw; list has room for
 * all. */
static size_t with_writers(struct qn_explain *x, uint32_t *list, size_t count)
{
    keep(x, list, count, true);
    size_t end = count;
    for (size_t k = 0; k < count; k++) {
        int64_t value;
        if (!saw(&x->all[list[k]], &value)) {
            continue;
        }
        for (size_t w = qn_subhistory_first_writer(&x->subhistory, value);
             qn_subhistory_writes(&x->subhistory, w, value); w++) {
            uint32_t i = x->subhistory.writer[w];
            if (!x->kept[i]) {
                x->kept[i] = true;
                list[end++] = i;
            }
        }
    }
    keep(x, list, end, false);
    return unique(list, end);
}

/* Begin with the records that the checker named, then ever wider windows around
 * them. */
static bool seed(struct qn_explain *x, const uint32_t *core, size_t core_count)
{
    memcpy(x->trial, core, core_count * sizeof *core);
    size_t count = unique(x->trial, core_count);
    count = with_writers(x, x->trial, count);
    if (qn_explain_is_witness(x, x->trial, count)) {
        adopt(x, x->trial, count);
        return true;
    }
    for (size_t side = WINDOW_MIN; side < x->n && core_count > 0; side *= 4) {
        size_t from = core[0] > side ? core[0] - side : 0;
        size_t to = core[0] + side < x->n ? core[0] + side : x->n;
        for (count = 0; count < to - from; count++) {
            x->trial[count] = (uint32_t)(from + count);
        }
        count = with_writers(x, x->trial, count);
        if (qn_explain_is_witness(x, x->trial, count)) {
            adopt(x, x->trial, count);
            return true;
        }
    }
    for (count = 0; count < x->n; count++) {
        x->trial[count] = (uint32_t)count;
    }
    adopt(x, x->trial, count);
    return qn_explain_is_witness(x, x->trial, count);
}

/* ---- leaving out ---- */

/* Try to leave out part[from..to). */
static bool leave_out(struct qn_explain *x, size_t from, size_t to)
{
    size_t count = 0;
    for (size_t k = 0; k < x->count; k++) {
        bool stays = k < from || k >= to;
        bool bound = x->counter && x->all[x->part[k]].kind == QN_RECORD_INCR;
        if (stays || bound) {
            x->trial[count++] = x->part[k];
        }
    }
    if (count == x->count || !qn_explain_is_witness(x, x->trial, count)) {
        return false;
    }
    adopt(x, x->trial, count);
    return true;
}

/* One pass with chunks of `size`; true: something could be left out. */
static bool pass(struct qn_explain *x, size_t size)
{
    bool progress = false;
    for (size_t end = x->count; end > 0 && x->tests < TESTS_MAX;) {
        size_t from = end > size ? end - size : 0;
        progress |= leave_out(x, from, end);
        end = from;
    }
    return progress;
}

/* True: nothing can be left out of the part. */
static bool shrink(struct qn_explain *x)
{
    size_t size = x->count / 2;
    while (size > 1 && x->tests < TESTS_MAX) {
        (void)pass(x, size);
        size = size / 2 < x->count ? size / 2 : x->count / 2;
    }
    if (x->count > WHOLE_SHRINK) {
        return false;
    }
    while (x->tests < TESTS_MAX) {
        if (!pass(x, 1)) {
            return x->tests < TESTS_MAX;
        }
    }
    return false;
}

/* ---- the explanation ---- */

static const char *sentence(const struct qn_explain *x, enum qn_anomaly reason)
{
    if (x->counter) {
        return x->has_base ? "no order of these increments gives these "
                             "answers, beginning with the value that it had"
                           : "no order of these increments gives these answers";
    }
    switch (reason) {
    case QN_ANOMALY_PHANTOM:
        return x->refused ? "a value was seen whose writer had been refused"
                          : "a value was seen that no operation wrote";
    case QN_ANOMALY_FUTURE:
        return "a value was seen before its write was invoked";
    case QN_ANOMALY_TWICE:
        return "two operations replaced the same value";
    case QN_ANOMALY_CHAIN:
        return "values were seen in conflict with the order in which they "
               "replaced each other";
    case QN_ANOMALY_INTERLOCK:
        return "values were seen in an order that the times forbid";
    case QN_ANOMALY_NONE:
    case QN_ANOMALY_SEARCH:
        break;
    }
    return "no order of these operations gives these answers";
}

/* A value that no operation wrote: perhaps its writer was told that it was
 * refused. Adding that operation proves nothing more, but shows where to
 * look. */
static void add_refused(struct qn_explain *x)
{
    int64_t value;
    if (x->count != 1 || !saw(&x->all[x->part[0]], &value)) {
        return;
    }
    for (size_t i = 0; i < x->n; i++) {
        const struct qn_record *r = &x->all[i];
        if (r->outcome == QN_RECORD_FAILED && r->value == value) {
            x->part[x->count++] = (uint32_t)i;
            x->count = unique(x->part, x->count);
            x->refused = true;
            return;
        }
    }
}

static int fill(struct qn_explain *x, struct qn_witness *out)
{
    size_t to = 0;
    out->op = malloc((x->count + 1) * sizeof *out->op);
    if (out->op == NULL) {
        return QN_ENOMEM;
    }
    keep(x, x->part, x->count, true);
    for (size_t k = 0; k < x->count; k++) {
        uint32_t i = x->part[k];
        enum qn_subhistory_kind kind =
            x->counter ? QN_SUBHISTORY_WHOLE
                       : qn_subhistory_of(&x->subhistory, i, x->kept, x->part,
                                          x->count);
        if (kind != QN_SUBHISTORY_NONE) {
            out->op[to++] = (struct qn_witness_op){
                .record = x->all[i], .loose = kind == QN_SUBHISTORY_LOOSE};
        }
    }
    out->count = to;
    out->base = x->counter && x->has_base ? x->above : 0;
    return QN_OK;
}

static int begin(struct qn_explain *x, const struct qn_record *all, size_t n,
                 const struct qn_linear_opts *opts)
{
    *x = (struct qn_explain){.all = all, .n = n, .opts = opts};
    x->counter = qn_counter_window_applies(all, n);
    x->kept = calloc(n + 1, sizeof *x->kept);
    x->check = malloc((n + 1) * sizeof *x->check);
    x->trial = malloc((n + QN_LINEAR_CORE_MAX) * sizeof *x->trial);
    x->part = malloc((n + 1) * sizeof *x->part);
    if (x->kept == NULL || x->check == NULL || x->trial == NULL ||
        x->part == NULL) {
        return QN_ENOMEM;
    }
    return qn_subhistory_init(&x->subhistory, all, n);
}

static void end(struct qn_explain *x)
{
    qn_subhistory_fini(&x->subhistory);
    free(x->kept);
    free(x->check);
    free(x->trial);
    free(x->part);
}

/* Sort a copy, and find the records of the core in it. */
static struct qn_record *sorted(const struct qn_record *records, size_t n,
                                const struct qn_linear_result *found,
                                uint32_t *core)
{
    struct qn_record *all = malloc((n + 1) * sizeof *all);
    if (all == NULL) {
        return NULL;
    }
    memcpy(all, records, n * sizeof *all);
    qn_records_sort(all, n);
    for (uint32_t c = 0; c < found->core_count; c++) {
        const struct qn_record *r = &records[found->core[c]];
        core[c] = 0;
        for (size_t i = 0; i < n; i++) {
            if (memcmp(&all[i], r, sizeof *r) == 0) {
                core[c] = (uint32_t)i;
            }
        }
    }
    return all;
}

int qn_explain(const struct qn_record *records, size_t n,
               const struct qn_linear_result *found,
               const struct qn_linear_opts *opts, struct qn_witness *out)
{
    QN_ASSERT(found->verdict == QN_NOT_LINEARIZABLE);
    struct qn_witness w = {.of = n};
    struct qn_explain x = {0};
    uint32_t core[QN_LINEAR_CORE_MAX];
    struct qn_record *all = sorted(records, n, found, core);
    int err = all == NULL ? QN_ENOMEM : begin(&x, all, n, opts);
    if (err == QN_OK && x.counter) {
        err = qn_counter_window_find(&x);
    } else if (err == QN_OK) {
        (void)seed(&x, core, found->core_count);
    }
    if (err == QN_OK) {
        w.minimal = shrink(&x);
        if (found->reason == QN_ANOMALY_PHANTOM) {
            add_refused(&x);
            w.minimal &= !x.refused;
        }
        w.why = sentence(&x, found->reason);
        err = x.err != QN_OK ? x.err : fill(&x, &w);
    }
    end(&x);
    free(all);
    if (err == QN_OK) {
        *out = w;
    }
    return err;
}

void qn_witness_fini(struct qn_witness *w)
{
    free(w->op);
    *w = (struct qn_witness){0};
}
