#ifndef QN_LOADGEN_SIMULATE_LARGE_NUMACOL_REPLAY_H
#define QN_LOADGEN_SIMULATE_LARGE_NUMACOL_REPLAY_H

/** N1: large collectives of NUMACol on a Superdome of 16 cells of 8 cores, row
 *  by row. One thread. */

#include <stdbool.h>

struct qn_numacol_row {
    char what[160];
    const char *published; /* the figure in print; NULL: a claim */
    const char *why;       /* if it does not hold: the reason; or NULL */
    double limit;          /* at least; if `most`, at most */
    bool most;
    double got;
};

/**
 * @param small  Only the rows that take little time: those of 64 KiB and 1 MiB.
 * @param each   Called for each row, in order.
 * @return QN_OK; QN_ENOMEM; QN_EIO: a result is wrong.
 */
int qn_numacol_replay(bool small,
                      void (*each)(void *ctx, const struct qn_numacol_row *r),
                      void *ctx);

#endif
