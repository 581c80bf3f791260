#ifndef QN_LOADGEN_VERIFY_EXPLAIN_SUBHISTORY_INTERNAL_H
#define QN_LOADGEN_VERIFY_EXPLAIN_SUBHISTORY_INTERNAL_H

/**
 * Subhistories: given a selection of the records of a history, the records to
 * check in their place, so that a violation of them proves one of the whole
 * (see explain.h). One thread.
 */

#include "loadgen/verify/history/history.h"

struct qn_subhistory {
    const struct qn_record *all; /* [n] by time of the request */
    size_t n;
    qn_time_t
        *resp_max; /* [n] latest response of the answered writes up to here */
    uint32_t *unknown; /* [unknown_count] writes without an answer */
    size_t unknown_count;
    uint32_t *writer; /* [writer_count] writes of a value, by value */
    size_t writer_count;
};

/** @param all  [n] Of one key, sorted. Kept until qn_subhistory_fini.
 *  @return QN_OK; QN_ENOMEM, then there is nothing to free. */
int qn_subhistory_init(struct qn_subhistory *s, const struct qn_record *all,
                       size_t n);
void qn_subhistory_fini(struct qn_subhistory *s);

enum qn_subhistory_kind {
    QN_SUBHISTORY_WHOLE, /* as it was recorded */
    QN_SUBHISTORY_LOOSE, /* a write that needs nothing (qn_subhistory_loosen) */
    QN_SUBHISTORY_NONE,  /* left out: a read */
    QN_SUBHISTORY_WRONG, /* the selection proves nothing */
};

/** The record that stands for a loose one: a set of its value, with an answer
 *  or without; for a deletion, one without an answer. */
struct qn_record qn_subhistory_loosen(const struct qn_record *r);

/**
 * How record i may stay if the records of `kept` stay.
 *
 * @param kept  [n] Records that stay, including i.
 * @param list  [count] Their indices, ascending.
 */
enum qn_subhistory_kind qn_subhistory_of(const struct qn_subhistory *s,
                                         size_t i, const bool *kept,
                                         const uint32_t *list, size_t count);

/** Index in s->writer of the first record that writes `value` or more. */
size_t qn_subhistory_first_writer(const struct qn_subhistory *s, int64_t value);

/** Does s->writer[k] exist and write `value`? */
bool qn_subhistory_writes(const struct qn_subhistory *s, size_t k,
                          int64_t value);

#endif
