#include "loadgen/verify/object/value_span_internal.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"

/* A record and its place in the history. */
struct mention {
    struct qn_object_record record;
    size_t at;
};

/* By value; the put before the takes. */
static int by_value(const void *a, const void *b)
{
    const struct qn_object_record *x = &((const struct mention *)a)->record;
    const struct qn_object_record *y = &((const struct mention *)b)->record;
    if (x->value != y->value) {
        return x->value < y->value ? -1 : 1;
    }
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static int by_put_responded(const void *a, const void *b)
{
    const struct qn_value_span *x = a, *y = b;
    return (x->put_responded > y->put_responded) -
           (x->put_responded < y->put_responded);
}

/* The puts and takes. @return QN_OK; QN_EINVAL: another kind. */
static int list_mentions(struct mention *m, size_t *count,
                         const struct qn_object_record *r, size_t n)
{
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        if (r[i].kind == QN_OBJECT_PUT || r[i].kind == QN_OBJECT_TAKE) {
            m[(*count)++] = (struct mention){r[i], i};
        } else if (r[i].kind != QN_OBJECT_NOTHING) {
            return QN_EINVAL;
        }
    }
    return QN_OK;
}

/* Pairs up to the first fault. @param m  [n] by value. */
static int pair(struct qn_value_spans *s, const struct mention *m, size_t n,
                struct qn_object_verdict *out)
{
    for (size_t i = 0; i < n && out->fault == QN_OBJECT_NO_FAULT; i++) {
        const struct qn_object_record *r = &m[i].record;
        const bool again = i > 0 && m[i - 1].record.value == r->value;
        if (r->kind == QN_OBJECT_PUT) {
            if (again) {
                return QN_EINVAL;
            }
            s->span[s->count++] = (struct qn_value_span){
                r->invoked,    r->responded, QN_TIME_NEVER,
                QN_TIME_NEVER, m[i].at,      m[i].at};
            continue;
        }
        if (!again) {
            *out = (struct qn_object_verdict){QN_OBJECT_PHANTOM,
                                              {m[i].at, m[i].at}};
            continue;
        }
        /* Its first mention was the put: anything else has ended this. */
        struct qn_value_span *of = &s->span[s->count - 1];
        if (of->take != of->put) {
            *out = (struct qn_object_verdict){QN_OBJECT_TWICE,
                                              {of->take, m[i].at}};
        } else if (r->responded < of->put_invoked) {
            *out = (struct qn_object_verdict){QN_OBJECT_FUTURE,
                                              {m[i].at, of->put}};
        } else {
            of->take = m[i].at;
            of->take_invoked = r->invoked;
            of->take_responded = r->responded;
        }
    }
    return QN_OK;
}

int qn_value_spans_init(struct qn_value_spans *s,
                        const struct qn_object_record *r, size_t n,
                        struct qn_object_verdict *out)
{
    size_t mentions = 0;
    *out = (struct qn_object_verdict){.fault = QN_OBJECT_NO_FAULT};
    *s = (struct qn_value_spans){.span = NULL};
    if (n > QN_OBJECT_RECORDS_MAX) {
        return QN_EINVAL;
    }
    struct mention *m = malloc((n + 1) * sizeof *m);
    s->span = calloc(n + 1, sizeof *s->span);
    int rc = m != NULL && s->span != NULL ? QN_OK : QN_ENOMEM;
    rc = rc == QN_OK ? list_mentions(m, &mentions, r, n) : rc;
    if (rc == QN_OK) {
        qsort(m, mentions, sizeof *m, by_value);
        rc = pair(s, m, mentions, out);
    }
    free(m);
    if (rc != QN_OK) {
        qn_value_spans_fini(s);
        return rc;
    }
    qsort(s->span, s->count, sizeof *s->span, by_put_responded);
    return QN_OK;
}

void qn_value_spans_fini(struct qn_value_spans *s)
{
    free(s->span);
    *s = (struct qn_value_spans){.span = NULL};
}

/* A connected part of the cover, without its ends. */
struct part {
    qn_time_t from, to;
    size_t put; /* of its first value */
};

/* @param part  [spans] Filled, in order of time. @return their number. */
static size_t list_parts(struct part *part, const struct qn_value_spans *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct qn_value_span *v = &s->span[i];
        if (v->put_responded >= v->take_invoked) {
            continue; /* never certainly in */
        }
        if (count > 0 && v->put_responded < part[count - 1].to) {
            part[count - 1].to = QN_MAX(part[count - 1].to, v->take_invoked);
        } else {
            part[count++] =
                (struct part){v->put_responded, v->take_invoked, v->put};
        }
    }
    return count;
}

/* The part that covers a record; NULL: none does. */
static const struct part *covering(const struct part *part, size_t count,
                                   const struct qn_object_record *r)
{
    size_t low = 0, high = count; /* the last one with from < invoked */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (part[middle].from < r->invoked) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && r->responded < part[low - 1].to ? &part[low - 1] : NULL;
}

int qn_value_spans_check_empty(const struct qn_value_spans *s,
                               const struct qn_object_record *r, size_t n,
                               struct qn_object_verdict *out)
{
    struct part *part = malloc((s->count + 1) * sizeof *part);
    if (part == NULL) {
        return QN_ENOMEM;
    }
    const size_t count = list_parts(part, s);
    for (size_t i = 0; i < n && out->fault == QN_OBJECT_NO_FAULT; i++) {
        const struct part *p = r[i].kind == QN_OBJECT_NOTHING
                                   ? covering(part, count, &r[i])
                                   : NULL;
        if (p != NULL) {
            *out = (struct qn_object_verdict){QN_OBJECT_NOT_EMPTY, {i, p->put}};
        }
    }
    free(part);
    return QN_OK;
}
