#ifndef QN_KVS_REPLICA_MAIN_H
#define QN_KVS_REPLICA_MAIN_H

/** A replica process: what a child of the supervisor runs. */

#include "kvs/boot.h"

/** A replica's life: defined in kvs/replica_main.c. @return exit status. */
int qn_replica_main(const struct qn_boot *boot);

#endif
