#ifndef QN_KVS_REPLICA_SNAPSHOT_CONTENT_OPS_H
#define QN_KVS_REPLICA_SNAPSHOT_CONTENT_OPS_H

/** The content of snapshots (kvs/snapshot/snapshot_content.h) between real
 * replicas. One thread, the loop's.
 */

#include "kvs/replica/replica.h"
#include "kvs/snapshot/snapshot_content.h"

/** The operations of a real replica: its store and facts. */
struct qn_snapshot_content_ops qn_snapshot_content_ops_of(
    struct qn_replica *replica);

#endif
