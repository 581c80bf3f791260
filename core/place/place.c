/*
 * Usable cores, in the order to fill them.
 *
 * hwloc tells what the machine is, the affinity mask what of it is ours. Each
 * hardware thread gets a rank
 *
 *     (which thread of its core, how many cores of its NUMA node come before)
 *
 * and the list is sorted by rank, then by NUMA node. So equal ranks go round
 * the NUMA nodes, small NUMA nodes simply drop out early, and no core is used
 * twice before all were used once. Counting is done over usable threads only:
 * a mask that leaves one thread of a core makes that its first.
 *
 * Only cores and NUMA nodes are asked of hwloc: without its I/O and cache
 * discovery it takes a few milliseconds, and quoind starts with it.
 *
 * libnuma's own numa_available() says yes where a container's system call
 * filter then refuses mbind, so we try the very calls that outboxes use.
 */
#include "core/place/place_internal.h"

#include <numaif.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"

#define NUMA_NODES_MAX 1024u /* what the kernel can be built for */

struct candidate {
    struct qn_place place;
    uint32_t thread; /* of its core, among usable ones */
    uint32_t nth;    /* core of its NUMA node, among those of equal thread */
};

static int by_rank(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    if (a->thread != b->thread) {
        return a->thread < b->thread ? -1 : 1;
    }
    if (a->nth != b->nth) {
        return a->nth < b->nth ? -1 : 1;
    }
    return a->place.numa_node - b->place.numa_node;
}

/* How many usable threads of `pu`'s core come before it. */
static uint32_t thread_of(hwloc_topology_t t, hwloc_obj_t pu,
                          hwloc_const_cpuset_t usable)
{
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_CORE, pu);
    if (core == NULL) {
        return 0;
    }
    uint32_t before = 0;
    int cpu;
    for (cpu = hwloc_bitmap_first(core->cpuset);
         cpu >= 0 && (unsigned)cpu != pu->os_index;
         cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
        before += usable == NULL || hwloc_bitmap_isset(usable, (unsigned)cpu);
    }
    return before;
}

/* Candidates in topology order; `nth` still 0. @return how many. */
static uint32_t collect(hwloc_topology_t t, hwloc_const_cpuset_t usable,
                        struct candidate *c)
{
    uint32_t count = 0;
    for (hwloc_obj_t pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, NULL);
         pu != NULL && count < QN_PLACES_MAX;
         pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, pu)) {
        if (usable != NULL && !hwloc_bitmap_isset(usable, pu->os_index)) {
            continue;
        }
        c[count++] = (struct candidate){
            .place = {.cpu = (int)pu->os_index,
                      .numa_node = hwloc_bitmap_first(pu->nodeset)},
            .thread = thread_of(t, pu, usable)};
    }
    return count;
}

static bool same_row(const struct candidate *a, const struct candidate *b)
{
    return a->thread == b->thread && a->place.numa_node == b->place.numa_node;
}

/* O(count^2), at most a million steps, once. */
static void number_rows(struct candidate *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            c[i].nth += same_row(&c[i], &c[j]);
        }
    }
}

static uint32_t count_numa_nodes(const struct candidate *c, uint32_t count)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = 0;
        while (c[j].place.numa_node != c[i].place.numa_node) {
            j++;
        }
        distinct += j == i;
    }
    return distinct;
}

int qn_places_fill(struct qn_places *out, hwloc_topology_t topology,
                   hwloc_const_cpuset_t usable)
{
    struct candidate *c = calloc(QN_PLACES_MAX, sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    uint32_t count = collect(topology, usable, c);
    number_rows(c, count);
    qsort(c, count, sizeof *c, by_rank);
    for (uint32_t i = 0; i < count; i++) {
        out->place[i] = c[i].place;
    }
    out->count = count;
    out->numa_nodes = count_numa_nodes(c, count);
    free(c);
    return count > 0 ? QN_OK : QN_EIO;
}

/* True if the kernel lets us say where pages live: asked with a real page. */
static bool probe_numa_calls(void)
{
    unsigned long mask[NUMA_NODES_MAX / (8 * sizeof(unsigned long))] = {0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    bool ok = get_mempolicy(NULL, mask, NUMA_NODES_MAX, NULL,
                            MPOL_F_MEMS_ALLOWED) == 0 &&
              mbind(at, page, MPOL_BIND, mask, NUMA_NODES_MAX, 0) == 0;
    munmap(at, page);
    if (!ok) {
        qn_log(QN_LOG_WARN,
               "NUMA calls are not permitted here: memory stays where the "
               "kernel puts it");
    }
    return ok;
}

static int load_topology(hwloc_topology_t *t)
{
    if (hwloc_topology_init(t) != 0) {
        return QN_ENOMEM;
    }
    hwloc_topology_set_all_types_filter(*t, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(*t, HWLOC_OBJ_CORE,
                                   HWLOC_TYPE_FILTER_KEEP_ALL);
    /* Without groups hwloc hangs each NUMA node above or beside the kept types
     * under the machine, and all cores seem to be of the first one. */
    hwloc_topology_set_type_filter(*t, HWLOC_OBJ_GROUP,
                                   HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    /* Discovery would bind itself to each core in turn, which on a busy
     * machine waits for each of them. */
    hwloc_topology_set_flags(*t, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING |
                                     HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                     HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                     HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
    if (hwloc_topology_load(*t) != 0) {
        hwloc_topology_destroy(*t);
        return QN_EIO;
    }
    return QN_OK;
}

int qn_places_discover(struct qn_places *out)
{
    hwloc_topology_t topology;
    int err = load_topology(&topology);
    if (err != QN_OK) {
        return err;
    }
    hwloc_cpuset_t usable = hwloc_bitmap_alloc();
    bool masked =
        usable != NULL &&
        hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_THREAD) == 0;
    err = qn_places_fill(out, topology, masked ? usable : NULL);
    hwloc_bitmap_free(usable);
    hwloc_topology_destroy(topology);
    if (err != QN_OK) {
        return err;
    }
    out->quota_milli = qn_quota_self();
    out->numa_calls = probe_numa_calls();
    return QN_OK;
}

struct qn_place qn_places_of(const struct qn_places *p, uint32_t index,
                             enum qn_bind bind)
{
    QN_ASSERT(p->count > 0 && p->count <= QN_PLACES_MAX);
    struct qn_place place = p->place[index % p->count];
    if (bind != QN_BIND_CORE) {
        place.cpu = -1;
    }
    if (bind == QN_BIND_NONE) {
        place.numa_node = -1;
    }
    return place;
}

uint32_t qn_places_seat(const struct qn_places *p, uint32_t index,
                        uint32_t nodes)
{
    QN_ASSERT(index < nodes);
    if (nodes <= p->count) {
        return index;
    }
    return (uint32_t)((uint64_t)index * p->count / nodes);
}

static bool within(const struct qn_place *core, const struct qn_place *place)
{
    return place->cpu >= 0 ? core->cpu == place->cpu
                           : core->numa_node == place->numa_node;
}

int qn_place_pin(const struct qn_places *p, const struct qn_place *place)
{
    if (place->cpu < 0 && place->numa_node < 0) {
        return QN_OK;
    }
    size_t cpus = 1;
    for (uint32_t i = 0; i < p->count; i++) {
        cpus = QN_MAX(cpus, (size_t)p->place[i].cpu + 1);
    }
    cpu_set_t *set = CPU_ALLOC(cpus);
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (set == NULL) {
        return QN_ENOMEM;
    }
    CPU_ZERO_S(bytes, set);
    for (uint32_t i = 0; i < p->count; i++) {
        if (within(&p->place[i], place)) {
            CPU_SET_S((size_t)p->place[i].cpu, bytes, set);
        }
    }
    int r = sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
    return r == 0 ? QN_OK : QN_EINVAL;
}

const char *qn_place_describe(const struct qn_place *place, char *text)
{
    if (place->cpu >= 0 && place->numa_node >= 0) {
        snprintf(text, QN_PLACE_TEXT_MAX, "core %d, NUMA node %d", place->cpu,
                 place->numa_node);
    } else if (place->cpu >= 0) {
        snprintf(text, QN_PLACE_TEXT_MAX, "core %d", place->cpu);
    } else if (place->numa_node >= 0) {
        snprintf(text, QN_PLACE_TEXT_MAX, "NUMA node %d", place->numa_node);
    } else {
        snprintf(text, QN_PLACE_TEXT_MAX, "any core");
    }
    return text;
}
