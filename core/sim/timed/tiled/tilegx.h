#ifndef QN_SIM_TIMED_TILED_TILEGX_H
#define QN_SIM_TIMED_TILED_TILEGX_H

/** TILE-Gx: coherent lines with a home each, weak order, message queues.
 *  MACHINES.md has the table of prices. */

#include "core/sim/timed/tiled/tiled.h"

/** As qn_tiled_prices. */
int qn_tilegx_create(struct qn_prices **out, const struct qn_tiled *m,
                     const uint32_t *core, uint32_t nodes);

/**
 * Lines that begin in [at, at + bytes) have their home at `core`, instead of at
 * one that a hash names. For runs that begin later; of two ranges with a line
 * in common the later counts. `p` is of qn_tilegx_create.
 *
 * @return QN_OK, QN_EINVAL (core), QN_ENOMEM.
 */
int qn_tilegx_home(struct qn_prices *p, const void *at, size_t bytes,
                   uint32_t core);

#endif
