#include "core/place/place.h"

#include <sched.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "core/place/place_internal.h"
#include "tests/support/test.h"

/* An invented machine; `usable` is a list as hwloc writes them, NULL: all. */
static int fill(struct qn_places *p, const char *machine, const char *usable)
{
    hwloc_topology_t t;
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    memset(p, 0, sizeof *p);
    hwloc_topology_init(&t);
    cr_assert_eq(hwloc_topology_set_synthetic(t, machine), 0);
    cr_assert_eq(hwloc_topology_load(t), 0);
    if (usable != NULL) {
        hwloc_bitmap_list_sscanf(set, usable);
    }
    int err = qn_places_fill(p, t, usable == NULL ? NULL : set);
    hwloc_bitmap_free(set);
    hwloc_topology_destroy(t);
    return err;
}

static void expect_cpus(const struct qn_places *p, const int *cpu,
                        uint32_t count)
{
    cr_assert_eq(p->count, count, "%u cores", p->count);
    for (uint32_t i = 0; i < count; i++) {
        cr_expect_eq(p->place[i].cpu, cpu[i], "place %u is core %d", i,
                     p->place[i].cpu);
    }
}

Test(place, one_core_takes_everybody)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "core:1 pu:1", NULL), QN_OK);
    expect_cpus(&p, (int[]){0}, 1);
    cr_assert_eq(p.numa_nodes, 1);
    for (uint32_t i = 0; i < 64; i++) {
        cr_assert_eq(qn_places_of(&p, i, QN_BIND_CORE).cpu, 0);
    }
}

Test(place, goes_round_the_numa_nodes)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:2 core:2 pu:1", NULL), QN_OK);
    expect_cpus(&p, (int[]){0, 2, 1, 3}, 4);
    cr_assert_eq(p.numa_nodes, 2);
    cr_assert_eq(p.place[0].numa_node, 0);
    cr_assert_eq(p.place[1].numa_node, 1);
}

Test(place, fills_all_cores_before_any_second_thread)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:2 core:2 pu:2", NULL), QN_OK);
    expect_cpus(&p, (int[]){0, 4, 2, 6, 1, 5, 3, 7}, 8);
}

Test(place, keeps_to_the_affinity_mask)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:2 core:4 pu:1", "1-2,5"), QN_OK);
    expect_cpus(&p, (int[]){1, 5, 2}, 3);
}

Test(place, a_second_thread_alone_counts_as_its_core)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "core:2 pu:2", "1,2,3"), QN_OK);
    expect_cpus(&p, (int[]){1, 2, 3}, 3);
}

Test(place, a_small_numa_node_drops_out_early)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:2 core:3 pu:1", "0,1,2,4"), QN_OK);
    expect_cpus(&p, (int[]){0, 4, 1, 2}, 4);
}

Test(place, counts_only_numa_nodes_with_a_usable_core)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:4 core:2 pu:1", "2,6"), QN_OK);
    cr_assert_eq(p.numa_nodes, 2);
    cr_assert_eq(p.place[1].numa_node, 3);
}

Test(place, without_a_usable_core_is_an_error)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "core:2 pu:1", "7"), QN_EIO);
}

Test(place, lists_at_most_the_maximum)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:8 core:256 pu:1", NULL), QN_OK);
    cr_assert_eq(p.count, QN_PLACES_MAX);
}

Test(place, more_nodes_than_cores_start_again)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:2 core:2 pu:1", NULL), QN_OK);
    for (uint32_t i = 0; i < 12; i++) {
        cr_assert_eq(qn_places_of(&p, i, QN_BIND_CORE).cpu, p.place[i % 4].cpu);
    }
}

Test(place, may_be_a_numa_node_or_anywhere)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "numa:2 core:2 pu:1", NULL), QN_OK);
    struct qn_place numa = qn_places_of(&p, 1, QN_BIND_NUMA);
    struct qn_place none = qn_places_of(&p, 1, QN_BIND_NONE);
    cr_assert(numa.cpu == -1 && numa.numa_node == 1);
    cr_assert(none.cpu == -1 && none.numa_node == -1);
}

Test(place, describes_itself)
{
    static const struct {
        struct qn_place place;
        const char *text;
    } row[] = {{{1, 0}, "core 1, NUMA node 0"},
               {{7, -1}, "core 7"},
               {{-1, 3}, "NUMA node 3"},
               {{-1, -1}, "any core"}};
    char text[QN_PLACE_TEXT_MAX];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cr_expect_str_eq(qn_place_describe(&row[i].place, text), row[i].text);
    }
}

Test(place, discovers_this_machine)
{
    struct qn_places p;
    cpu_set_t mask;
    cr_assert_eq(qn_places_discover(&p), QN_OK);
    sched_getaffinity(0, sizeof mask, &mask);
    cr_assert_eq(p.count, (uint32_t)CPU_COUNT(&mask));
    cr_assert_geq(p.numa_nodes, 1);
    for (uint32_t i = 0; i < p.count; i++) {
        cr_expect(CPU_ISSET((size_t)p.place[i].cpu, &mask), "core %d",
                  p.place[i].cpu);
    }
}

/* hwloc takes an invented machine for this one if its variable says so: the
 * whole way, with the filters that discovery sets. */
Test(place, discovery_sees_the_numa_nodes_of_a_package)
{
    static struct qn_places p;
    static const char *const machines[] = {"package:2 [numa] core:2 pu:1",
                                           "package:1 numa:2 core:2 pu:1"};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(setenv("HWLOC_SYNTHETIC", machines[i], 1), 0);
        cr_assert_eq(qn_places_discover(&p), QN_OK);
        cr_assert_eq(unsetenv("HWLOC_SYNTHETIC"), 0);
        cr_expect_eq(p.count, 4, "%s: %u cores", machines[i], p.count);
        cr_expect_eq(p.numa_nodes, 2, "%s: %u", machines[i], p.numa_nodes);
    }
}

Test(place, pins_to_each_core_and_to_a_numa_node)
{
    struct qn_places p;
    cpu_set_t mask;
    cr_assert_eq(qn_places_discover(&p), QN_OK);
    for (uint32_t i = 0; i < p.count; i++) {
        cr_assert_eq(qn_place_pin(&p, &p.place[i]), QN_OK);
        sched_getaffinity(0, sizeof mask, &mask);
        cr_expect_eq(CPU_COUNT(&mask), 1);
        cr_expect(CPU_ISSET((size_t)p.place[i].cpu, &mask));
    }
    struct qn_place numa = qn_places_of(&p, 0, QN_BIND_NUMA);
    cr_assert_eq(qn_place_pin(&p, &numa), QN_OK);
    sched_getaffinity(0, sizeof mask, &mask);
    cr_assert(CPU_ISSET((size_t)p.place[0].cpu, &mask));
    cr_assert(p.numa_nodes > 1 || (uint32_t)CPU_COUNT(&mask) == p.count);
}

Test(place, pinning_nowhere_changes_nothing)
{
    struct qn_places p;
    cpu_set_t before;
    cpu_set_t after;
    cr_assert_eq(qn_places_discover(&p), QN_OK);
    sched_getaffinity(0, sizeof before, &before);
    struct qn_place anywhere = qn_places_of(&p, 0, QN_BIND_NONE);
    cr_assert_eq(qn_place_pin(&p, &anywhere), QN_OK);
    sched_getaffinity(0, sizeof after, &after);
    cr_assert(CPU_EQUAL(&before, &after));
}

Test(place, pinning_to_a_core_that_is_not_ours_fails)
{
    struct qn_places p;
    cr_assert_eq(fill(&p, "core:2 pu:1", NULL), QN_OK);
    struct qn_place missing = {.cpu = 99, .numa_node = 0};
    cr_assert_eq(qn_place_pin(&p, &missing), QN_EINVAL);
}

Test(place, with_more_nodes_than_cores_neighbours_share_one)
{
    struct qn_places p = {.count = 2, .numa_nodes = 1};
    const uint32_t three[] = {0, 0, 1};
    const uint32_t five[] = {0, 0, 0, 1, 1};
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(qn_places_seat(&p, i, 3), three[i]);
    }
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(qn_places_seat(&p, i, 5), five[i]);
    }
    cr_assert_eq(qn_places_seat(&p, 1, 2), 1);
}
