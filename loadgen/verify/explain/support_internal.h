#ifndef QN_LOADGEN_VERIFY_EXPLAIN_SUPPORT_INTERNAL_H
#define QN_LOADGEN_VERIFY_EXPLAIN_SUPPORT_INTERNAL_H

/**
 * What may be left out of a history (see explain.h): given a choice of its
 * records, the records to check in their place. One thread.
 */

#include "loadgen/verify/history/history.h"

struct qn_support {
    const struct qn_record *all; /* [n] by time of the request */
    size_t n;
    qn_time_t *resp_max; /* [n] of the answered writes up to here */
    uint32_t *unknown;   /* [unknown_count] writes without an answer */
    size_t unknown_count;
    uint32_t *writer; /* [writer_count] writes of a value, by value */
    size_t writer_count;
};

/** @param all  [n] Of one key, sorted. Kept until qn_support_fini.
 *  @return QN_OK; QN_ENOMEM, then there is nothing to free. */
int qn_support_init(struct qn_support *s, const struct qn_record *all,
                    size_t n);
void qn_support_fini(struct qn_support *s);

enum qn_support_kind {
    QN_SUPPORT_WHOLE, /* as it was recorded */
    QN_SUPPORT_LOOSE, /* a write that needs nothing; see qn_support_loosen */
    QN_SUPPORT_NONE,  /* not at all: it is a read */
    QN_SUPPORT_WRONG, /* the choice proves nothing */
};

/** What stands for a loose record: a set of its value, with an answer or
 *  without; for a deletion, one without an answer. */
struct qn_record qn_support_loosen(const struct qn_record *r);

/**
 * How record i may stay if the others that stay are those of `kept`.
 *
 * @param kept   [n] which stay, i among them.
 * @param list   [count] their indices, ascending.
 */
enum qn_support_kind qn_support_of(const struct qn_support *s, size_t i,
                                   const bool *kept, const uint32_t *list,
                                   size_t count);

/** Index in s->writer of the first record that writes `value` or more. */
size_t qn_support_first_writer(const struct qn_support *s, int64_t value);

/** Does s->writer[k] exist and write `value`? */
bool qn_support_writes(const struct qn_support *s, size_t k, int64_t value);

#endif
