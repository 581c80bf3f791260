#ifndef QN_LOADGEN_SIMULATE_LARGE_NUMACOL_REPLAY_H
#define QN_LOADGEN_SIMULATE_LARGE_NUMACOL_REPLAY_H

/** N1: large collectives of NUMACol on a Superdome of 16 cells of 8 cores, row
 *  by row. One thread. */

#include <stdbool.h>

#include "loadgen/simulate/row/replay_row.h"

/**
 * @param small  Only the rows that take little time: those of 64 KiB and 1 MiB.
 * @param each   Called for each row, in order.
 * @return QN_OK; QN_ENOMEM; QN_EIO: a result is wrong.
 */
int qn_numacol_replay(bool small, qn_replay_row_fn *each, void *ctx);

#endif
