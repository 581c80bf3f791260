#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_MACHINE_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_MACHINE_H

/** A machine for runs of core/sync: a TILE-Gx, or a coherent machine with
 *  prices.json. Immutable once loaded. */

#include <stdbool.h>

#include "core/sim/timed/coherent_file.h"
#include "core/sim/timed/tiled/tiled.h"

struct qn_locks_machine {
    bool is_tiled;
    struct qn_tiled tiled;
    struct qn_machine *m; /* else: places and pair costs; own */
    struct qn_coherent_file file;
    uint32_t cores;
    qn_ps_t cycle, dispatch, increment, empty_turn;
};

/** @param path  A file of a TILE-Gx, or a folder. @return QN_OK; errors of
 *  qn_tiled_load, qn_machine_load and qn_coherent_file_load, then `e` says
 *  what to do. */
int qn_locks_machine_load(struct qn_locks_machine *out, const char *path,
                          struct qn_parse_error *e);
void qn_locks_machine_free(struct qn_locks_machine *m);

/**
 * Cores of `n` nodes, as the measurements in print have them. A TILE-Gx: in
 * ascending order. Else the first is core 0, and the others are dealt round
 * robin over the sockets, first to one hyper-thread of each core.
 *
 * @param servers  0 to 2: how many of the first nodes have a physical core for
 *                 themselves; the second is on the socket of core 0, too.
 * @param core    [n] filled. @param domain  [n] filled: the socket of each.
 * @return QN_OK, QN_EINVAL: there are fewer.
 */
int qn_locks_machine_cores(const struct qn_locks_machine *m, uint32_t n,
                           uint32_t servers, uint32_t *core, uint32_t *domain);

/** As qn_tiled_prices and qn_coherent_create. */
int qn_locks_machine_prices(const struct qn_locks_machine *m,
                            const uint32_t *core, uint32_t n,
                            struct qn_prices **out);

#endif
