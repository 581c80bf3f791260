#include "core/plan/diamond_ring_map.h"

#include <math.h>
#include <string.h>

#include "core/base/err.h"
#include "core/topo/pipeline_sim.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static struct qn_diamond_ring *ring_of(uint32_t n, uint32_t k, bool full,
                                       bool companion)
{
    struct qn_diamond_ring *r = NULL;
    struct qn_diamond_ring_opts o = {
        .n = n, .k = k, .full = full, .companion = companion};
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
    return r;
}

static bool is_a_permutation(const struct qn_diamond_ring *r)
{
    bool seen[QN_CORES_MAX] = {false};
    for (uint32_t i = 0; i < r->o.n; i++) {
        if (r->core[i] >= r->o.n || seen[r->core[i]]) {
            return false;
        }
        seen[r->core[i]] = true;
    }
    return true;
}

Test(ring_map, latency_is_that_of_the_event_rules)
{
    static const double factor[] = {1, 0.125};
    for (uint32_t n = 1; n <= 40; n += 3) {
        struct qn_machine *m = scattered(n, n);
        for (uint32_t i = 0; i < 24; i++) {
            bool companion = (i & 1) != 0 && n >= 3;
            struct qn_diamond_ring *r =
                ring_of(n, 1 + i % 3, (i & 2) != 0, companion);
            struct qn_pipeline_sim_opts once = {.ops = 1, .q = factor[i & 1]};
            double want = -1;
            cr_assert_eq(qn_pipeline_sim_ring(m, r, &once, &want), QN_OK);
            double got = qn_diamond_ring_latency(m, r, once.q);
            cr_assert(fabs(got - want) < 1e-9 * (want + 1),
                      "n %u, case %u: %g %g", n, i, want, got);
            qn_diamond_ring_destroy(r);
        }
        qn_machine_destroy(m);
    }
}

/* Work of the busiest core for a broadcast along the links of `edges` only. */
static double one_way(const struct qn_machine *m,
                      const struct qn_diamond_ring *r)
{
    double busy[QN_CORES_MAX] = {0}, most = 0;
    struct qn_edges e;
    cr_assert_eq(qn_diamond_ring_edges(&e, r->o.k, r->o.n), QN_OK);
    for (uint32_t i = 0; i < e.count; i++) {
        uint32_t u = r->core[(r->o.n - e.parent[i]) % r->o.n];
        uint32_t v = r->core[(r->o.n - e.child[i]) % r->o.n];
        busy[u] += qn_send_cost(m, u, v);
        busy[v] += qn_receive_cost(m, u, v);
    }
    for (uint32_t i = 0; i < m->n; i++) {
        most = busy[i] > most ? busy[i] : most;
    }
    return most;
}

Test(ring_map, without_acknowledgements_only_links_of_the_broadcast_count)
{
    for (uint32_t n = 2; n <= 64; n += 5) {
        for (uint32_t k = 1; k <= 8; k += 2) {
            struct qn_machine *m = scattered(n, n + k);
            struct qn_diamond_ring *r = ring_of(n, k, false, false);
            struct qn_diamond_ring_map_opts o = {.busy = true,
                                                 .one_way = true,
                                                 .root = QN_ROOT_FREE,
                                                 .seed = n,
                                                 .moves = 500};
            double before = one_way(m, r), cost = 0;
            cr_assert_eq(qn_diamond_ring_map(r, m, &o, &cost), QN_OK);
            cr_assert(is_a_permutation(r));
            cr_assert(fabs(one_way(m, r) - cost) < 1e-9 * cost, "n %u k %u", n,
                      k);
            cr_assert(cost <= before * (1 + 1e-9));
            o.busy = false;
            cr_assert_eq(qn_diamond_ring_map(r, m, &o, &cost), QN_EINVAL);
            qn_diamond_ring_destroy(r);
            qn_machine_destroy(m);
        }
    }
}

static void maps_well(const struct qn_machine *m, uint32_t k, bool busy,
                      uint32_t root)
{
    struct qn_diamond_ring *r = ring_of(m->n, k, false, m->n > 3 && k == 2);
    struct qn_diamond_ring_map_opts o = {
        .busy = busy, .root = root, .seed = 1, .moves = 1500, .q = 1};
    double before = busy ? qn_diamond_ring_occupancy(m, r)
                         : qn_diamond_ring_latency(m, r, 1);
    double cost = -1;
    cr_assert_eq(qn_diamond_ring_map(r, m, &o, &cost), QN_OK);
    cr_assert(is_a_permutation(r));
    double now = busy ? qn_diamond_ring_occupancy(m, r)
                      : qn_diamond_ring_latency(m, r, 1);
    cr_assert(fabs(now - cost) <= 1e-9 * cost, "%g %g", now, cost);
    cr_assert(root == QN_ROOT_FREE || r->core[0] == root);
    if (root == QN_ROOT_FREE || root == 0) {
        cr_assert_leq(now, before);
    }
    qn_diamond_ring_destroy(r);
}

Test(ring_map, is_never_worse_than_the_map_it_begins_with)
{
    for (uint32_t i = 0; i < RECORDED; i++) {
        struct qn_machine *m = recorded(recorded_names[i]);
        for (uint32_t k = 1; k <= 3; k++) {
            maps_well(m, k, false, QN_ROOT_FREE);
            maps_well(m, k, true, QN_ROOT_FREE);
            maps_well(m, k, false, 0);
            maps_well(m, k, true, m->n - 1);
        }
        qn_machine_destroy(m);
    }
}

Test(ring_map, of_the_same_seed_is_the_same)
{
    struct qn_machine *m = recorded("syn_8x4x1");
    struct qn_diamond_ring *a = ring_of(m->n, 2, false, false);
    struct qn_diamond_ring *b = ring_of(m->n, 2, false, false);
    struct qn_diamond_ring_map_opts o = {
        .root = QN_ROOT_FREE, .seed = 5, .moves = 900, .q = 1};
    cr_assert_eq(qn_diamond_ring_map(a, m, &o, NULL), QN_OK);
    cr_assert_eq(qn_diamond_ring_map(b, m, &o, NULL), QN_OK);
    cr_expect_eq(memcmp(a->core, b->core, m->n * sizeof *a->core), 0);
    qn_diamond_ring_destroy(a);
    qn_diamond_ring_destroy(b);
    qn_machine_destroy(m);
}

Test(ring_map, bad_options_are_refused)
{
    struct qn_machine *m = uniform(4, 1, 1, 1);
    struct qn_diamond_ring *r = ring_of(5, 1, false, false);
    struct qn_diamond_ring_map_opts o = {.root = QN_ROOT_FREE, .q = 1};
    cr_expect_eq(qn_diamond_ring_map(r, m, &o, NULL), QN_EINVAL);
    qn_diamond_ring_destroy(r);
    r = ring_of(4, 1, false, false);
    o.root = 4;
    cr_expect_eq(qn_diamond_ring_map(r, m, &o, NULL), QN_EINVAL);
    o = (struct qn_diamond_ring_map_opts){.root = QN_ROOT_FREE, .q = 2};
    cr_expect_eq(qn_diamond_ring_map(r, m, &o, NULL), QN_EINVAL);
    qn_diamond_ring_destroy(r);
    qn_machine_destroy(m);
}
