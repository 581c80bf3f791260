#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_REPLAY_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_REPLAY_H

/** Broadcasts, transfers and interrupts on a simulated SCC beside what was
 *  measured on the hardware. */

#include "core/machine/parse_error.h"
#include "loadgen/simulate/row/replay_row.h"

/** Run all rows on the machine of a file, an SCC. @return QN_OK; those of
 *  qn_tiled_load, then `parse_error` is filled; QN_ENOMEM; QN_ECORRUPT: a
 *  broadcast was not complete. */
int qn_scc_replay(const char *path, qn_replay_row_fn *each, void *ctx,
                  struct qn_parse_error *parse_error);

#endif
