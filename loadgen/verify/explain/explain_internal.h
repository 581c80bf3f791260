#ifndef QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_INTERNAL_H
#define QN_LOADGEN_VERIFY_EXPLAIN_EXPLAIN_INTERNAL_H

/** The search for a witness: explain.c makes parts smaller, stretch.c knows
 *  which parts of a counter's history stand on their own. */

#include "loadgen/verify/explain/explain.h"
#include "loadgen/verify/explain/support_internal.h"

struct qn_explain {
    const struct qn_record *all; /* [n] sorted */
    size_t n;
    struct qn_support support;
    const struct qn_linear_opts *opts;
    bool *kept;              /* [n] scratch: the part */
    struct qn_record *check; /* [n] scratch: what is checked for it */
    uint32_t *trial;         /* [n] scratch: list of a part */
    uint32_t *part;          /* [count] the smallest witness so far */
    size_t count;
    uint64_t tests;
    bool counter;
    int64_t above; /* counters: only what saw more than this, */
    int64_t upto;  /* and at most this */
    bool has_base; /* `above` is a limit */
    bool refused;  /* the part ends with who was refused to write what it saw */
    int err;
};

/** Is list[0..count), ascending, a violation by itself? */
bool qn_explain_is_witness(struct qn_explain *x, const uint32_t *list,
                           size_t count);

/* ---- stretch.c ---- */

/** Does the key have increments by more than 0 and gets, nothing else? */
bool qn_stretch_applies(const struct qn_record *all, size_t n);

/** What counts for record i in the stretch of x; false: nothing. */
bool qn_stretch_record(const struct qn_explain *x, size_t i,
                       struct qn_record *out);

/** Make the shortest stretch that is a violation the part. @return QN_OK,
 *  QN_ENOMEM. */
int qn_stretch_find(struct qn_explain *x);

#endif
