#include "loadgen/verify/explain/subhistory_internal.h"

#include "core/base/assert.h"
#include "core/base/err.h"

#include <stdlib.h>

/*
 * Let L be an order of the whole history and K the records that stay. L without
 * the other records is an order of K if each record that stays finds what it
 * found in L, or an equivalent. It finds what the last write before it left.
 *
 * - It needs the value v. In L a writer of v came last. If all writers of v
 * stay, that one does, and it still comes last.
 *
 * - It needs the key absent. In L an erasure came last, or nothing at all. If
 * all erasures that can have come last stay, so does that one. (If nothing came
 * before it in L, nothing does without the others.)
 *
 * - It needs the key present: likewise all writes of values.
 *
 * - It needs another value than v: likewise all writes; but if no writer of v
 * stays, it finds another value anyway.
 *
 * A deletion that loses its support may have found nothing, so it becomes one
 * without an answer; an exchange becomes a set of the same value. An increment
 * without an answer has no value to be set: without support it invalidates the
 * selection.
 *
 * A write w can have come last before o unless it was invoked after the
 * response of o, or an answered write lies between the two in time. Only writes
 * that stay count as such a write in between: this may keep one more record
 * than the proof needs, but the part then shows what replaced w.
 */

static bool writes_value(const struct qn_record *r)
{
    return r->kind != QN_RECORD_GET && r->kind != QN_RECORD_DEL &&
           r->outcome != QN_RECORD_FAILED;
}

static bool erases(const struct qn_record *r)
{
    return r->kind == QN_RECORD_DEL && r->outcome != QN_RECORD_NIL;
}

static bool writes(const struct qn_record *r)
{
    return writes_value(r) || erases(r);
}

static bool unknown(const struct qn_record *r)
{
    return r->outcome == QN_RECORD_UNKNOWN;
}

/* Value that r writes, if it writes one for certain. */
static int64_t value_of(const struct qn_record *r)
{
    return r->kind == QN_RECORD_INCR ? r->other : r->value;
}

static bool adds_to_any(const struct qn_record *r)
{
    return r->kind == QN_RECORD_INCR && unknown(r);
}

static int by_value(const void *a, const void *b, void *all)
{
    const struct qn_record *r = all;
    int64_t x = value_of(&r[*(const uint32_t *)a]);
    int64_t y = value_of(&r[*(const uint32_t *)b]);
    return (x > y) - (x < y);
}

static void list_writes(struct qn_subhistory *s)
{
    qn_time_t max = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct qn_record *r = &s->all[i];
        QN_ASSERT(i == 0 || r[-1].invoked <= r->invoked);
        if (writes_value(r) && !adds_to_any(r)) {
            s->writer[s->writer_count++] = (uint32_t)i;
        }
        if (writes(r) && unknown(r)) {
            s->unknown[s->unknown_count++] = (uint32_t)i;
        } else if (writes(r) && r->responded > max) {
            max = r->responded;
        }
        s->resp_max[i] = max;
    }
}

int qn_subhistory_init(struct qn_subhistory *s, const struct qn_record *all,
                       size_t n)
{
    *s = (struct qn_subhistory){.all = all, .n = n};
    s->resp_max = malloc((n + 1) * sizeof *s->resp_max);
    s->unknown = malloc((n + 1) * sizeof *s->unknown);
    s->writer = malloc((n + 1) * sizeof *s->writer);
    if (s->resp_max == NULL || s->unknown == NULL || s->writer == NULL) {
        qn_subhistory_fini(s);
        return QN_ENOMEM;
    }
    list_writes(s);
    qsort_r(s->writer, s->writer_count, sizeof *s->writer, by_value,
            (void *)(uintptr_t)all);
    return QN_OK;
}

void qn_subhistory_fini(struct qn_subhistory *s)
{
    free(s->resp_max);
    free(s->unknown);
    free(s->writer);
    *s = (struct qn_subhistory){0};
}

struct qn_record qn_subhistory_loosen(const struct qn_record *r)
{
    struct qn_record loose = *r;
    if (r->kind == QN_RECORD_DEL) {
        loose.outcome = QN_RECORD_UNKNOWN;
        loose.responded = QN_TIME_NEVER;
        return loose;
    }
    loose.kind = QN_RECORD_SET;
    loose.value = value_of(r);
    loose.other = 0;
    return loose;
}

/* ---- writes that can have come last ---- */

/* Writes that responded before this time were replaced before o was invoked. */
static qn_time_t replaced_before(const struct qn_subhistory *s,
                                 const struct qn_record *o,
                                 const uint32_t *list, size_t count)
{
    qn_time_t latest = 0;
    for (size_t k = 0; k < count; k++) {
        const struct qn_record *w = &s->all[list[k]];
        if (w->invoked > o->invoked) {
            break;
        }
        if (writes(w) && !unknown(w) && w->responded < o->invoked) {
            latest = w->invoked;
        }
    }
    return latest;
}

/* Number of records invoked by `time`. */
static size_t asked_by(const struct qn_subhistory *s, qn_time_t time)
{
    size_t low = 0;
    size_t high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->all[middle].invoked <= time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct wanted {
    bool values;   /* writes of values matter */
    bool erasures; /* erasures matter */
};

static bool matters(const struct qn_record *w, struct wanted wanted)
{
    return (wanted.values && writes_value(w)) || (wanted.erasures && erases(w));
}

/* Do all writes that matter and can have come last before record i stay? */
static bool last_stay(const struct qn_subhistory *s, size_t i,
                      struct wanted wanted, const bool *kept,
                      const uint32_t *list, size_t count)
{
    const struct qn_record *o = &s->all[i];
    qn_time_t from = replaced_before(s, o, list, count);
    qn_time_t until = unknown(o) ? QN_TIME_NEVER : o->responded;
    for (size_t k = 0; k < s->unknown_count; k++) {
        uint32_t w = s->unknown[k];
        if (!kept[w] && s->all[w].invoked <= until &&
            matters(&s->all[w], wanted)) {
            return false;
        }
    }
    for (size_t k = asked_by(s, until); k-- > 0;) {
        const struct qn_record *w = &s->all[k];
        if (s->resp_max[k] < from) {
            break;
        }
        if (!kept[k] && !unknown(w) && w->responded >= from &&
            matters(w, wanted)) {
            return false;
        }
    }
    return true;
}

size_t qn_subhistory_first_writer(const struct qn_subhistory *s, int64_t value)
{
    size_t low = 0;
    size_t high = s->writer_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (value_of(&s->all[s->writer[middle]]) < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool qn_subhistory_writes(const struct qn_subhistory *s, size_t k,
                          int64_t value)
{
    return k < s->writer_count && value_of(&s->all[s->writer[k]]) == value;
}

/* Number of operations that can write `value` and stay, or do not stay. */
static size_t count_writers(const struct qn_subhistory *s, int64_t value,
                            const bool *kept, bool stay)
{
    size_t found = 0;
    for (size_t k = qn_subhistory_first_writer(s, value);
         qn_subhistory_writes(s, k, value); k++) {
        found += kept[s->writer[k]] == stay;
    }
    for (size_t k = 0; k < s->unknown_count; k++) {
        uint32_t w = s->unknown[k];
        found += adds_to_any(&s->all[w]) && kept[w] == stay;
    }
    return found;
}

static bool writers_stay(const struct qn_subhistory *s, int64_t value,
                         const bool *kept)
{
    return count_writers(s, value, kept, false) == 0;
}

/* ---- by kind ---- */

static enum qn_subhistory_kind read_or(bool supported,
                                       enum qn_subhistory_kind otherwise)
{
    return supported ? QN_SUBHISTORY_WHOLE : otherwise;
}

static enum qn_subhistory_kind of_cas(const struct qn_subhistory *s, size_t i,
                                      const bool *kept, const uint32_t *list,
                                      size_t count)
{
    const struct qn_record *r = &s->all[i];
    if (r->outcome != QN_RECORD_FAILED) {
        return read_or(writers_stay(s, r->other, kept), QN_SUBHISTORY_LOOSE);
    }
    struct wanted all = {.values = true, .erasures = true};
    return read_or(count_writers(s, r->other, kept, true) == 0 ||
                       last_stay(s, i, all, kept, list, count),
                   QN_SUBHISTORY_NONE);
}

/* An increment of unknown outcome adds to the present value, so all writes that
 * can have come last must stay; it cannot be loose, since it has no value. */
static enum qn_subhistory_kind of_incr(const struct qn_subhistory *s, size_t i,
                                       const bool *kept, const uint32_t *list,
                                       size_t count)
{
    const struct qn_record *r = &s->all[i];
    struct wanted erasures = {.erasures = true};
    if (unknown(r)) {
        struct wanted all = {.values = true, .erasures = true};
        return read_or(last_stay(s, i, all, kept, list, count),
                       QN_SUBHISTORY_WRONG);
    }
    int64_t before = (int64_t)((uint64_t)r->other - (uint64_t)r->value);
    bool zero_too = before != 0 || last_stay(s, i, erasures, kept, list, count);
    return read_or(zero_too && writers_stay(s, before, kept),
                   QN_SUBHISTORY_LOOSE);
}

enum qn_subhistory_kind qn_subhistory_of(const struct qn_subhistory *s,
                                         size_t i, const bool *kept,
                                         const uint32_t *list, size_t count)
{
    static const struct wanted values = {.values = true};
    static const struct wanted erasures = {.erasures = true};
    const struct qn_record *r = &s->all[i];
    QN_ASSERT(i < s->n && kept[i]);
    switch ((enum qn_record_kind)r->kind) {
    case QN_RECORD_GET:
        if (unknown(r)) {
            return QN_SUBHISTORY_NONE;
        }
        return read_or(r->outcome == QN_RECORD_NIL
                           ? last_stay(s, i, erasures, kept, list, count)
                           : writers_stay(s, r->value, kept),
                       QN_SUBHISTORY_NONE);
    case QN_RECORD_SET:
        return QN_SUBHISTORY_WHOLE;
    case QN_RECORD_ADD:
        if (r->outcome == QN_RECORD_FAILED) {
            return read_or(last_stay(s, i, values, kept, list, count),
                           QN_SUBHISTORY_NONE);
        }
        return read_or(last_stay(s, i, erasures, kept, list, count),
                       QN_SUBHISTORY_LOOSE);
    case QN_RECORD_CAS:
        return of_cas(s, i, kept, list, count);
    case QN_RECORD_DEL:
        if (r->outcome == QN_RECORD_NIL) {
            return read_or(last_stay(s, i, erasures, kept, list, count),
                           QN_SUBHISTORY_NONE);
        }
        return read_or(unknown(r) || last_stay(s, i, values, kept, list, count),
                       QN_SUBHISTORY_LOOSE);
    case QN_RECORD_INCR:
        return of_incr(s, i, kept, list, count);
    case QN_RECORD_KIND_COUNT:
        break;
    }
    return QN_SUBHISTORY_NONE;
}
