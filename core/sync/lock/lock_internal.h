#ifndef QN_SYNC_LOCK_INTERNAL_H
#define QN_SYNC_LOCK_INTERNAL_H

/**
 * The memory of a lock, for its types.
 *
 *     line 0   what it is             constant once formatted, and joined
 *     line 1   the lock's word        all clients
 *     lines    places                 join and leave
 *     lines    nodes, one line each   two clients each
 */

#include "core/sync/clients.h"
#include "core/sync/lock/lock.h"

struct qn_lock_memory {
    alignas(QN_CACHELINE) qn_a32 type; /* qn_sync_says, of qn_lock_types */
    qn_a32 clients;
    qn_a32 object; /* hyblock: its number at the device, once one has joined */
    qn_a32 own_cores;
    alignas(QN_CACHELINE) qn_a32 word; /* tas, ttas, mcs; locks over words */
    qn_a64 tail;                       /* clh */
    alignas(QN_CACHELINE) struct qn_sync_place place[]; /* [clients] */
};

/* What a client has in a queue. */
struct qn_lock_node {
    alignas(QN_CACHELINE) struct qn_baton go; /* the lock is handed over */
    struct qn_baton link; /* mcs: the successor, + QN_BATON_GO */
    qn_a64 version;       /* clh: of its next use; written by its owner */
};

/** Of types without a deadline. @return QN_ENOSYS. */
int qn_lock_untimed(struct qn_lock_client *c, qn_time_t deadline);

extern const struct qn_lock_type qn_lock_tas;
extern const struct qn_lock_type qn_lock_ttas;
extern const struct qn_lock_type qn_lock_mcs;
extern const struct qn_lock_type qn_lock_clh;
extern const struct qn_lock_type qn_lock_hyblock;

#endif
