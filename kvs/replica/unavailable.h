#ifndef QN_KVS_REPLICA_UNAVAILABLE_H
#define QN_KVS_REPLICA_UNAVAILABLE_H

/**
 * Which error a client gets whose request cannot be served now, by what its
 * replica knows of itself and of its group (kvs/resp/RESP.md, Errors). Several
 * facts may hold at once: the first condition that holds (unavailable.c)
 * counts.
 *
 * Pure. Any thread.
 */

#include <stdbool.h>

#include "core/base/bits.h"

struct qn_unavailable {
    bool removed;          /* qn_driver_removed */
    bool held;             /* qn_driver_held */
    bool halted;           /* qn_driver_halted ... */
    bool log_incomplete;   /* ... qn_driver_log_incomplete: why */
    bool register_damaged; /* ... qn_driver_register_damaged: why */
    bool memory_acceptor;  /* --acceptor memory */
    bool waiting;          /* qn_driver_waiting: for a stalled member */
    bool needs_snapshot;   /* qn_driver_needs_snapshot: its machine lacks slots
                              now; not that a snapshot was asked for before */
};

/** The text of the error, without its dash. A constant. */
const char *qn_unavailable_reason(const struct qn_unavailable *u);

#endif
