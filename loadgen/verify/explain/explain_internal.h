#ifndef QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_INTERNAL_H
#define QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_INTERNAL_H

/** The search for a witness: explain.c makes parts smaller, counter_window.c
 *  finds the parts of the history of a counter that form a history of their
 *  own. */

#include "loadgen/verify/explain/explain.h"
#include "loadgen/verify/explain/subhistory_internal.h"

struct qn_explain {
    const struct qn_record *all; /* [n] sorted */
    size_t n;
    struct qn_subhistory subhistory;
    const struct qn_linear_opts *opts;
    bool *kept;              /* [n] scratch: the part */
    struct qn_record *check; /* [n] scratch: records that are checked for it */
    uint32_t *trial;         /* [n] scratch: list of a part */
    uint32_t *part;          /* [count] the smallest witness so far */
    size_t count;
    uint64_t tests;
    bool counter;
    int64_t above; /* counters: lower limit, exclusive */
    int64_t upto;  /* counters: upper limit, inclusive */
    bool has_base; /* `above` is a limit */
    bool refused;  /* the part contains the operation that was refused to write
                      the value */
    int err;
};

/** Is list[0..count), ascending, a violation by itself? */
bool qn_explain_is_witness(struct qn_explain *x, const uint32_t *list,
                           size_t count);

/* ---- counter_window.c ---- */

/** Does the key have only gets and increments by more than 0? */
bool qn_counter_window_applies(const struct qn_record *all, size_t n);

/** The record that stands for record i in the window of x; false: none. */
bool qn_counter_window_record(const struct qn_explain *x, size_t i,
                              struct qn_record *out);

/** Make the shortest window with a violation the part. @return QN_OK,
 *  QN_ENOMEM. */
int qn_counter_window_find(struct qn_explain *x);

#endif
