#ifndef QN_LOADGEN_COMMIT_TABLE_H
#define QN_LOADGEN_COMMIT_TABLE_H

/** What `quoin bench commit` tells: a line on stderr and an object of JSON for
 *  each form. One thread. */

#include <jansson.h>

#include "core/base/histogram.h"
#include "loadgen/base/median.h"
#include "loadgen/commit/commit_form.h"

#define QN_COMMIT_PAIRS_MAX QN_MEDIAN_VALUES_MAX

/** One form, with one kind of nodes and one proposer, over all turns that
 *  counted. */
struct qn_commit_row {
    const struct qn_commit_form *form;
    bool processes, follower;
    uint32_t turns;
    uint64_t operations;               /* measured */
    struct qn_histogram *ns;           /* from propose to own apply; owned */
    double rate[QN_COMMIT_PAIRS_MAX];  /* operations per second, by turn */
    double ratio[QN_COMMIT_PAIRS_MAX]; /* median of the turn over that of the
                                          first form of the same pair */
    uint64_t commands;                 /* warm-up included ... */
    uint64_t sleeps, cpu_ns;           /* ... of all nodes */
};

/** Count a turn. @param base  Median in ns of the first form in this pair.
 *  @param ns  [shared->count] of the turn, in order. */
void qn_commit_row_add(struct qn_commit_row *r, const struct qn_commit_turn *t,
                       double base);

/** Median of a turn in ns. Sorts its times. */
double qn_commit_turn_median(const struct qn_commit_turn *t);

/** The head of the table, on stderr. */
void qn_commit_table_head(void);

/** A row, as a line on stderr. Sorts what it holds.
 *  @return a new object. */
json_t *qn_commit_table_row(struct qn_commit_row *r);

#endif
