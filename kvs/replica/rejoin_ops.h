#ifndef QN_KVS_REPLICA_REJOIN_OPS_H
#define QN_KVS_REPLICA_REJOIN_OPS_H

/** State transfer (kvs/snapshot/rejoin.h) between real replicas. One thread,
 * the loop's.
 */

#include "kvs/replica/replica.h"
#include "kvs/snapshot/rejoin.h"

/** The operations of a real replica (kvs/replica/replica.h). */
struct qn_rejoin_ops qn_rejoin_ops_of(struct qn_replica *replica);

#endif
