#ifndef QN_KVS_MAIN_REPLICA_MAIN_H
#define QN_KVS_MAIN_REPLICA_MAIN_H

/** A replica process: what a child of the supervisor runs. */

#include "kvs/control/replica_spec.h"

/** A replica's life: defined in kvs/main/replica_main.c. @return exit status.
 */
int qn_replica_main(const struct qn_replica_spec *spec);

#endif
