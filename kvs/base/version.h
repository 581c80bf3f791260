#ifndef QN_KVS_BASE_VERSION_H
#define QN_KVS_BASE_VERSION_H

/** The versions that INFO and HELLO report. Clients choose features by the
 *  version of Redis that the server is compatible with. */
#define QN_REDIS_VERSION  "7.0.15"
#define QN_QUOIND_VERSION "0.1.0"

#endif
