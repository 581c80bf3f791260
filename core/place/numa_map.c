/*
 * The NUMA map (numa_map.h), read by hwloc.
 *
 * hwloc leaves out what this process may not use unless told otherwise.
 * Distances come from the firmware's table (SLIT), which not every machine has;
 * one that is no byte is as far as a byte can say.
 */
#include "core/place/numa_map.h"

#include <hwloc.h>
#include <hwloc/distances.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

enum { NEAR = 10, AWAY = 20 }; /* where the firmware says nothing */

static void read_cpus(hwloc_topology_t t, struct qn_numa_map *out)
{
    hwloc_obj_t pu = NULL;
    memset(out->node, 0xff, sizeof out->node); /* -1 */
    while ((pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, pu)) != NULL) {
        int node = hwloc_bitmap_first(pu->nodeset);
        if (pu->os_index >= QN_PLACES_MAX || node < 0 ||
            node >= (int)QN_NUMA_NODES_MAX) {
            continue;
        }
        out->node[pu->os_index] = (int16_t)node;
        out->cpus = QN_MAX(out->cpus, pu->os_index + 1);
        out->nodes = QN_MAX(out->nodes, (uint32_t)node + 1);
    }
}

static void read_distances(hwloc_topology_t t, struct qn_numa_map *out)
{
    struct hwloc_distances_s *d = NULL;
    unsigned n = 1;
    for (uint32_t i = 0; i < QN_NUMA_NODES_MAX; i++) {
        for (uint32_t k = 0; k < QN_NUMA_NODES_MAX; k++) {
            out->distance[i][k] = i == k ? NEAR : AWAY;
        }
    }
    if (hwloc_distances_get_by_type(t, HWLOC_OBJ_NUMANODE, &n, &d,
                                    HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                    0) != 0 ||
        n == 0) {
        return;
    }
    for (unsigned i = 0; i < d->nbobjs; i++) {
        for (unsigned k = 0; k < d->nbobjs; k++) {
            unsigned from = d->objs[i]->os_index, to = d->objs[k]->os_index;
            if (from < QN_NUMA_NODES_MAX && to < QN_NUMA_NODES_MAX) {
                out->distance[from][to] = (uint8_t)QN_MIN(
                    d->values[i * d->nbobjs + k], (uint64_t)UINT8_MAX);
            }
        }
    }
    hwloc_distances_release(t, d);
}

/* Of a real machine only NUMA nodes are asked for, and not by running on each
 * core in turn: on a busy machine that takes seconds. Invented machines may
 * hang their nodes on levels that are of no other use. */
static bool set_up(hwloc_topology_t t, bool real)
{
    return hwloc_topology_set_flags(
               t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                      HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING) == 0 &&
           (!real || hwloc_topology_set_all_types_filter(
                         t, HWLOC_TYPE_FILTER_KEEP_NONE) == 0);
}

int qn_numa_map_read(struct qn_numa_map *out, const char *synthetic)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0) {
        return QN_EIO;
    }
    int err = QN_EIO;
    if (synthetic != NULL && hwloc_topology_set_synthetic(t, synthetic) != 0) {
        err = QN_EINVAL;
    } else if (set_up(t, synthetic == NULL) && hwloc_topology_load(t) == 0) {
        *out = (struct qn_numa_map){0};
        read_cpus(t, out);
        read_distances(t, out);
        err = QN_OK;
    }
    hwloc_topology_destroy(t);
    return err;
}
