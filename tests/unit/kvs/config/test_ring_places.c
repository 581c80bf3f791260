/*
 * Where the replicas of a server over a diamond ring are, and whether `auto`
 * takes a ring, by the files of costs of this repository.
 */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/pipeline_sim.h"
#include "kvs/config/topology.h"
#include "tests/support/test.h"

enum { REPLICAS_MAX = 16 };

/* A server whose replicas are spread over all cores of a machine. */
struct seated {
    struct qn_machine *m;
    struct qn_topology t;
    struct qn_place given[REPLICAS_MAX], place[REPLICAS_MAX];
    uint32_t n;
};

static void seat(struct seated *x, const char *topology, const char *machine,
                 uint32_t replicas)
{
    static struct qn_config c; /* its text is kept */
    static struct qn_places places;
    char why[QN_CONFIG_WHY_MAX] = "";
    c = (struct qn_config){.replicas = replicas};
    strcpy(c.topology, topology);
    strcpy(c.machine, QN_ROOT);
    strcat(c.machine, machine);
    *x = (struct seated){.n = replicas};
    cr_assert_eq(qn_machine_load(&x->m, c.machine, NULL), QN_OK, "%s", machine);
    places.count = replicas;
    for (uint32_t i = 0; i < replicas; i++) {
        int cpu = (int)x->m->core[i * x->m->n / replicas].os;
        x->given[i] = x->place[i] = places.place[i] = (struct qn_place){cpu, 0};
    }
    const struct qn_topology_opts o = {&c, &places, x->place, false};
    cr_assert_eq(qn_topology_make(&x->t, &o, why, sizeof why), QN_OK, "%s",
                 why);
}

static void leave(struct seated *x)
{
    qn_topology_fini(&x->t);
    qn_machine_destroy(x->m);
}

/* The costs are those of the cores where the replicas are in the end; and these
 * are the cores that were given. @return how many are at another one. */
static uint32_t moved(const struct seated *x)
{
    uint32_t other = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        uint32_t there = 0;
        for (uint32_t j = 0; j < x->n; j++) {
            uint32_t u = qn_machine_find(x->m, (uint32_t)x->place[i].cpu);
            uint32_t v = qn_machine_find(x->m, (uint32_t)x->place[j].cpu);
            there += x->place[j].cpu == x->given[i].cpu;
            cr_assert(i == j || qn_send_cost(x->t.costs, i, j) ==
                                    qn_send_cost(x->m, u, v));
        }
        cr_assert_eq(there, 1u, "each core once");
        other += x->place[i].cpu != x->given[i].cpu;
    }
    return other;
}

/* Cycles of a burst of 128 over a ring in the order of these places. */
static double burst(const struct seated *x, const struct qn_place *place)
{
    const struct qn_pipeline_sim_opts o = {.ops = 128, .q = 1};
    struct qn_edges ranks;
    struct qn_shape s;
    double cycles = 0;
    cr_assert_eq(qn_diamond_ring_edges(&ranks, x->t.ring, x->n), QN_OK);
    struct qn_config c = {.replicas = x->n};
    struct qn_machine *costs = NULL;
    char why[QN_CONFIG_WHY_MAX];
    cr_assert_eq(qn_topology_costs_on(&costs, x->m, &c, place, why, sizeof why),
                 QN_OK);
    cr_assert_eq(qn_shape_from_edges(&s, &ranks, 0), QN_OK);
    cr_assert_eq(qn_pipeline_sim_tree(costs, &s, false, &o, &cycles), QN_OK);
    qn_machine_destroy(costs);
    return cycles;
}

Test(ring_places, a_given_ring_has_its_replicas_at_the_places_of_the_map)
{
    static const struct {
        const char *machine, *topology;
        uint32_t replicas;
        double part; /* at most */
    } t[] = {
        {"machines/westmere_8x10x2", "ring:k=1", 9, 0.7},
        {"machines/haswell_4x12x2", "ring:k=2", 16, 0.9},
        {"machines/by_formula/xeon_e5_4640v2_4x10x2", "ring:k=1", 5, 0.8},
        {"tests/data/machines/threadripper_1950x_1x16", "ring:k=2", 7, 0.85},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(t); i++) {
        struct seated x;
        seat(&x, t[i].topology, t[i].machine, t[i].replicas);
        cr_assert_gt(x.t.ring_part, 0);
        cr_assert_leq(x.t.ring_part, t[i].part, "%s: %f", t[i].machine,
                      x.t.ring_part);
        cr_assert_gt(moved(&x), 0u);
        cr_assert_float_eq(burst(&x, x.place) / burst(&x, x.given),
                           x.t.ring_part, 1e-9);
        leave(&x);
    }
}

Test(ring_places, where_no_map_is_faster_each_replica_is_where_it_was)
{
    struct seated x;
    seat(&x, "ring:k=1", "machines/syn_ring_1x60", 9);
    cr_assert_eq(x.t.ring_part, 1);
    cr_assert_eq(moved(&x), 0u);
    leave(&x);
}

/* Of the published machines of rings (R1) and all others, what `auto` does with
 * this many replicas: the arity, 0 for none. */
Test(ring_places, auto_chooses_by_files_of_costs)
{
    static const struct {
        const char *machine;
        uint32_t three, nine;
    } t[] = {
        {"machines/by_formula/xeon_e5_4640v2_4x10x2", 0, 3},
        {"machines/by_formula/xeon_phi_5110p_1x60x4", 0, 4},
        {"machines/epyc_7742_2x64", 0, 5},
        {"machines/epyc_9754_1x128", 0, 4},
        {"machines/graviton3_1x64", 0, 4},
        {"machines/haswell_4x12x2", 0, 5},
        {"machines/i9_12900k_8p8e", 0, 4},
        {"machines/ivybridge_2x10x2", 0, 4},
        {"machines/syn_ring_1x60", 0, 1},
        {"machines/uv2000_24x8", 0, 4},
        {"machines/westmere_8x10x2", 0, 3},
        {"machines/xeon_8375c_2x32", 0, 4},
        {"machines/xeon_phi_7210_1x64", 0, 4},
        {"tests/data/machines/amd64_sparse_10", 0, 0},
        {"tests/data/machines/intel_xeon_e5_v2_2x10", 0, 5},
        {"tests/data/machines/syn_8x4x1", 0, 3},
        {"tests/data/machines/threadripper_1950x_1x16", 0, 5},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(t); i++) {
        for (uint32_t n = 3; n <= 9; n += 6) {
            struct seated x;
            uint32_t ring = n == 3 ? t[i].three : t[i].nine;
            seat(&x, "auto", t[i].machine, n);
            cr_assert_eq(x.t.ring, ring, "%s, %u replicas: %u", t[i].machine, n,
                         x.t.ring);
            cr_assert_eq(x.t.ring_from > 1, ring != 0);
            cr_assert_eq(x.t.no_ring == NULL, ring != 0);
            cr_assert_eq(x.t.ring_part > 0, ring != 0);
            cr_assert_eq(moved(&x) > 0, ring != 0 && x.t.ring_part < 1);
            leave(&x);
        }
    }
}
