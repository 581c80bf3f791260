/* The map of cores and NUMA nodes, of invented machines and of this one. */
#include "core/place/numa_map.h"

#include <sched.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static struct qn_numa_map map;

Test(numa_map, each_core_has_its_node)
{
    cr_assert_eq(qn_numa_map_read(&map, "numa:4 core:4 pu:2"), QN_OK);
    cr_assert_eq(map.cpus, 32);
    cr_assert_eq(map.nodes, 4);
    for (uint32_t i = 0; i < map.cpus; i++) {
        cr_assert_eq(map.node[i], (int)i / 8);
    }
    cr_assert_eq(map.node[map.cpus], -1);
}

Test(numa_map, a_node_is_nearest_to_itself)
{
    cr_assert_eq(qn_numa_map_read(&map, "numa:4 pu:1"), QN_OK);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            cr_assert_eq(map.distance[i][k], i == k ? 10 : 20);
        }
    }
}

Test(numa_map, more_than_fits_is_left_out)
{
    cr_assert_eq(qn_numa_map_read(&map, "numa:80 pu:16"), QN_OK);
    cr_assert_eq(map.cpus, QN_PLACES_MAX);
    cr_assert_eq(map.nodes, QN_NUMA_NODES_MAX);
}

Test(numa_map, what_is_no_machine_is_refused)
{
    cr_assert_eq(qn_numa_map_read(&map, "numa:banana"), QN_EINVAL);
}

Test(numa_map, this_machine_has_the_core_we_run_on)
{
    cr_assert_eq(qn_numa_map_read(&map, NULL), QN_OK);
    int cpu = sched_getcpu();
    if (cpu >= 0 && cpu < (int)QN_PLACES_MAX) {
        cr_assert_lt((uint32_t)cpu, map.cpus);
        cr_assert_geq(map.node[cpu], 0);
    }
}
