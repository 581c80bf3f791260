#ifndef QN_PLACE_NUMA_MAP_H
#define QN_PLACE_NUMA_MAP_H

/**
 * Which NUMA node each core of the machine belongs to, and how far the nodes
 * are from each other: of all cores, also those that this process may not use,
 * since its clients may.
 *
 * Threads: any, each with its own struct.
 */

#include <stdint.h>

#include "core/place/place.h"

#define QN_NUMA_NODES_MAX 64u

struct qn_numa_map {
    uint32_t cpus;               /* their numbers are below it */
    int16_t node[QN_PLACES_MAX]; /* of each core; -1: there is none */
    uint32_t nodes;              /* their numbers are below it */
    uint8_t distance[QN_NUMA_NODES_MAX][QN_NUMA_NODES_MAX]; /* from, to; as the
                                         firmware says (10: itself), else 10
                                         and 20 */
};

/**
 * Look.
 *
 * @param synthetic  A machine as hwloc's synthetic string ("numa:4 pu:8"), for
 *                   tests; NULL: this one.
 * @param out        Filled. Cores and nodes with higher numbers than fit are
 *                   left out.
 * @return QN_OK; QN_EINVAL: not such a string; QN_EIO: the topology cannot be
 *         read.
 *
 * Some milliseconds.
 */
int qn_numa_map_read(struct qn_numa_map *out, const char *synthetic);

#endif
