#ifndef QN_PAXOS_LOG_UPLOADS_H
#define QN_PAXOS_LOG_UPLOADS_H

/**
 * Commands that stay in their origin's outbox: the arenas of a group, as one
 * node sees them (PROTOCOL.md 3.1, Requests by reference). The shell of the
 * machine fills this struct, and the machine reads through it.
 *
 * Threads: that of the machine.
 */

#include "core/node.h"
#include "paxos/log/arena.h"

struct qn_uploads {
    struct qn_arena *own; /* of this incarnation; kept; the machine writes it */
    /** The arena of an incarnation that has not ended, own included, as mapped
     * by this process; NULL: it is not. Borrowed until the next step. */
    const struct qn_arena *(*arena)(void *ctx, qn_node_t node, uint64_t inc);
    void *ctx;
};

#endif
