#ifndef QN_KVS_RESOURCES_RESOURCE_CHECK_H
#define QN_KVS_RESOURCES_RESOURCE_CHECK_H

/**
 * What the machine can hold. Asked before anything is made, because a machine
 * that runs out of memory kills processes instead of refusing.
 *
 * One thread, at start and when a replica is added. qn_resource_check_read and
 * qn_resource_check_used read /proc and the control group and may block; the
 * others only compute.
 */

#include <sys/types.h>

#include "core/qp.h"
#include "kvs/config/config.h"

/** The limits of the machine and of a process. */
struct qn_resource_limits {
    uint64_t memory;  /* bytes free; 0: unknown */
    uint64_t group;   /* bytes that the control group leaves (qn_quota_memory);
                         QN_LIMITS_NONE: no limit */
    uint64_t address; /* bytes a process may map (ulimit -v); likewise */
    uint64_t files;   /* descriptors a process may open: the hard limit */
};

#define QN_LIMITS_NONE    UINT64_MAX
/** A replica before its first key: store, log, session table, buffers. */
#define QN_LIMITS_REPLICA ((uint64_t)8 << 20)

/** Ask the kernel. What cannot be read is filled as unknown or unlimited. */
void qn_resource_check_read(struct qn_resource_limits *l);

/** Bytes that a process has taken: its private memory, and what the file of
 *  `outbox` (-1: none) takes. What cannot be read is not counted. */
uint64_t qn_resource_check_used(pid_t pid, int outbox);

/**
 * Fit a configuration into the limits.
 *
 * @param c           `maxclients` is lowered to what `files` allows, with one
 *                    line in the log.
 * @param channels  What the transport needs.
 * @param why         [cap] Filled on failure.
 * @return QN_OK; QN_ENOMEM: more replicas or cells than memory can hold;
 *         QN_EMFILE: not even one client fits.
 */
int qn_resource_check_fit(const struct qn_resource_limits *l,
                          struct qn_config *c,
                          const struct qn_transport_bytes *channels, char *why,
                          size_t cap);

/** Cells of a lane when `cells` is auto: 4096 as long as all lanes of the
 *  server stay within 32 MiB, and never below QN_CELLS_DEFAULT. A large value
 *  that fits into its lanes passes in one turn of each replica, without
 *  waiting for room. Small messages do not walk through all of a lane (UMP). */
uint32_t qn_resource_check_cells(uint32_t replicas);

/** Raise the soft limit of descriptors to what `c` needs. Processes started
 *  afterwards inherit it. */
void qn_resource_check_raise_files(const struct qn_config *c);

#endif
