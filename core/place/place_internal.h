#ifndef QN_PLACE_PLACE_INTERNAL_H
#define QN_PLACE_PLACE_INTERNAL_H

/** The parts of qn_places_discover that tests run on invented machines. */

#include <hwloc.h>

#include "core/place/place.h"

/**
 * Fill count, numa_nodes and place[] from a loaded topology.
 *
 * @param usable  Cores that may be used; NULL: all of the topology. Bits
 *                unknown to the topology are ignored.
 * @return QN_OK; QN_ENOMEM; QN_EIO if no core is left.
 */
int qn_places_fill(struct qn_places *out, hwloc_topology_t topology,
                   hwloc_const_cpuset_t usable);

/**
 * The smallest cpu.max on the way from a control group to the root.
 *
 * @param mount  Where the hierarchy is mounted ("/sys/fs/cgroup").
 * @param path   The group ("/a/b" or "/").
 * @return thousandths of a core, at least 1; 0: no quota or not readable.
 */
uint32_t qn_quota_of(const char *mount, const char *path);

/** The same for the calling process: finds its group and the mount. */
uint32_t qn_quota_self(void);

/**
 * The calling process' control group.
 *
 * @param controller  Of version 1 ("memory"); NULL: version 2.
 * @param path        [PATH_MAX] Filled: "/a/b" or "/".
 * @return false: there is no such hierarchy.
 */
bool qn_quota_group(const char *controller, char *path);

/** qn_quota_memory of a group in a hierarchy of that version, 1 or 2, mounted
 *  there. */
uint64_t qn_quota_memory_of(const char *mount, const char *path,
                            unsigned version);

#endif
