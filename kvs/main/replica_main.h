#ifndef QN_KVS_MAIN_REPLICA_MAIN_H
#define QN_KVS_MAIN_REPLICA_MAIN_H

/** A replica process: what a child of the supervisor runs. */

#include "kvs/control/replica_spec.h"

/** Run one incarnation of a replica; blocks until it ends. `spec` is borrowed.
 * @return the exit status: 0, or 1 after FAILED was sent.
 */
int qn_replica_main(const struct qn_replica_spec *spec);

#endif
