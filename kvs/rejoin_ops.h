#ifndef QN_KVS_REJOIN_OPS_H
#define QN_KVS_REJOIN_OPS_H

/** State transfer (kvs/rejoin.h) between real replicas. One thread, the loop's.
 */

#include "kvs/rejoin.h"
#include "kvs/replica.h"

/** The operations of a real replica (kvs/replica.h). */
struct qn_rejoin_ops qn_rejoin_ops_of(struct qn_replica *replica);

#endif
