#ifndef QN_KVS_REPLICA_STATE_TRANSFER_OPS_H
#define QN_KVS_REPLICA_STATE_TRANSFER_OPS_H

/** State transfer (paxos/member/transfer/state_transfer.h) between real
 * replicas. One thread, the loop's.
 */

#include "kvs/replica/replica.h"
#include "kvs/snapshot/snapshot_content.h"
#include "paxos/member/transfer/state_transfer.h"

/** The operations of a real replica (kvs/replica/replica.h). */
struct qn_state_transfer_ops qn_state_transfer_ops_of(
    struct qn_replica *replica);

/** The same for what is transferred: its store and facts. */
struct qn_snapshot_content_ops qn_snapshot_content_ops_of(
    struct qn_replica *replica);

#endif
