#ifndef QN_LOADGEN_VERIFY_VERIFY_H
#define QN_LOADGEN_VERIFY_VERIFY_H

/**
 * Checks a whole history, key by key, and reports; used by `quoin verify FILE`
 * and `quoin load --verify`.
 *
 *     qn_history_take(&h, &rec); ...     every recorder
 *     qn_history_group(&h);
 *     struct qn_verify_result result;
 *     int err = qn_verify(&h, &opts, &result);
 *     return err != QN_OK ? 1 : qn_verify_status(&result);
 *
 * Threads: one.
 */

#include "loadgen/verify/checker/linear.h"

#include <stdio.h>

struct qn_verify_opts {
    struct qn_linear_opts linear; /* budget per key; zeros: defaults */
    FILE *report;                 /* findings as text; NULL: none */
    const char *svg; /* file for the timeline of the first violation, - for
                        stdout; NULL: none */
    uint32_t explained_max; /* violations explained in full; some of the others
                               are named, and all are counted */
};

struct qn_verify_result {
    uint64_t records;
    uint64_t unknown; /* records without an answer */
    uint64_t keys;
    uint64_t violations; /* keys */
    uint64_t undecided;  /* keys */
    bool svg_written;
};

/**
 * @param h     After qn_history_group. Borrowed.
 * @param opts  Borrowed.
 * @param out   Filled on success.
 * @return QN_OK for any verdict; QN_ENOMEM; QN_EIO: the report or the SVG could
 *         not be written.
 */
int qn_verify(const struct qn_history *h, const struct qn_verify_opts *opts,
              struct qn_verify_result *out);

/** "linearizable", "not linearizable" or "undecided". */
const char *qn_verify_name(const struct qn_verify_result *r);

/** Exit status: 0 every key is linearizable; 3 a key is not; 4 no violation,
 *  but some keys are undecided. */
int qn_verify_status(const struct qn_verify_result *r);

/** One line: "linearizable: 1000000 operations on 1000 keys (...)". */
void qn_verify_print(FILE *out, const struct qn_verify_result *r);

#endif
