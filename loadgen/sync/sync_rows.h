#ifndef QN_LOADGEN_SYNC_SYNC_ROWS_H
#define QN_LOADGEN_SYNC_SYNC_ROWS_H

/** The subjects that a command measures: one row of each, for each number of
 *  threads. One thread. */

#include "loadgen/sync/sync_table.h"

#define QN_SYNC_ROWS_MAX 64u
#define QN_SYNC_RUNS_MAX 16u

/** All subjects with one number of threads. */
struct qn_sync_run {
    uint32_t threads;
    double probe; /* operations per second, of the yardstick alone */
    struct qn_sync_row *row[QN_SYNC_ROWS_MAX]; /* owned; [0]: the yardstick */
    uint32_t rows;
};

/** List the subjects.
 *  @param command    As of qn_sync_bench.
 *  @param only       Names with commas, as "auto" or "counter/auto"; NULL:
 *                    all.
 *  @param simulated  Those of the system are left out.
 *  @return QN_OK; QN_ENOMEM, then what was made is to be freed, too. */
int qn_sync_run_make(struct qn_sync_run *r, const char *command,
                     const char *only, bool simulated);

/** Behind all rounds: compare each subject with the best other one, that of the
 *  highest median rate. The yardstick is in no comparison. */
void qn_sync_run_compare(struct qn_sync_run *r);

void qn_sync_run_free(struct qn_sync_run *r);

/** Is there a row for each name in `only`? @return exit status: 0, or 2 after a
 *  line. */
int qn_sync_run_has(const struct qn_sync_run *r, const char *only,
                    const char *program);

#endif
