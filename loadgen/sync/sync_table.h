#ifndef QN_LOADGEN_SYNC_SYNC_TABLE_H
#define QN_LOADGEN_SYNC_SYNC_TABLE_H

/** What `quoin bench lock|delegate|queue|stack` tells: a line on stderr and an
 *  object of JSON for each subject. One thread. */

#include <jansson.h>

#include "loadgen/base/median.h"
#include "loadgen/sync/round.h"

/** One subject over all rounds. */
struct qn_sync_row {
    struct qn_subject_name subject;
    uint32_t rounds;
    double rate[QN_MEDIAN_VALUES_MAX];     /* operations per second */
    double ratio[QN_MEDIAN_VALUES_MAX];    /* to the yardstick of its round */
    double fairness[QN_MEDIAN_VALUES_MAX]; /* most over least, of threads */
    uint64_t operations;
    struct qn_subject_stats stats;
    struct qn_histogram *ns; /* owned; of rounds of their own */
};

/** Count a round. @param yardstick  Operations per second of the yardstick in
 *  the same round. */
void qn_sync_row_add(struct qn_sync_row *r, const struct qn_sync_round *round,
                     double yardstick);

/** Operations per second of a round. */
double qn_sync_round_rate(const struct qn_sync_round *round);

/** The head of the table, on stderr. */
void qn_sync_table_head(void);

/** A row, as a line on stderr. Sorts what it holds. @return a new object. */
json_t *qn_sync_table_row(struct qn_sync_row *r);

#endif
