#ifndef QN_LOADGEN_SYNC_SYNC_TABLE_H
#define QN_LOADGEN_SYNC_SYNC_TABLE_H

/** What `quoin bench lock|delegate|queue|stack` tells: a line on stderr and an
 *  object of JSON for each subject. One thread. */

#include <jansson.h>

#include "loadgen/base/median.h"
#include "loadgen/sync/round.h"

/** One subject with one number of threads, over all rounds. */
struct qn_sync_row {
    struct qn_subject_name subject;
    int refused; /* QN_EINVAL, QN_ENOSYS: there is none here; or QN_OK */
    uint32_t rounds;
    double rate[QN_MEDIAN_VALUES_MAX];  /* operations per second */
    double ratio[QN_MEDIAN_VALUES_MAX]; /* to the yardstick of its round */
    const struct qn_sync_row *best;     /* other subject; NULL: none */
    double share[QN_MEDIAN_VALUES_MAX]; /* of the rate of that, in its round */
    double kept[QN_MEDIAN_VALUES_MAX];  /* of the rate with the first number of
                                           threads, in its round */
    double fairness[QN_MEDIAN_VALUES_MAX]; /* most over least, of threads */
    double stalled[QN_MEDIAN_VALUES_MAX];  /* as of qn_sync_round */
    uint64_t operations;
    struct qn_subject_stats stats;
    struct qn_histogram *ns; /* owned; of rounds of their own */
};

/** What a round is compared with, in operations per second. */
struct qn_sync_beside {
    double yardstick; /* in the same round */
    double first;     /* the subject with the first number of threads */
};

/** Count a round. */
void qn_sync_row_add(struct qn_sync_row *r, const struct qn_sync_round *round,
                     const struct qn_sync_beside *beside);

/** Operations per second of a round. */
double qn_sync_round_rate(const struct qn_sync_round *round);

/** The head of the table, on stderr. @param first  The first number of
 *  threads. */
void qn_sync_table_head(uint32_t first);

/** A row, as a line on stderr. Sorts what it holds. @return a new object, or
 *  NULL. */
json_t *qn_sync_table_row(struct qn_sync_row *r);

#endif
