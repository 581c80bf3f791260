#include "core/topo/adaptive.h"

#include <math.h>

#include "core/base/err.h"
#include "core/plan/exact/optimum.h"
#include "core/topo/predict.h"
#include "core/topo/static_trees.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static uint32_t group_count(const struct qn_machine *m, enum qn_level level)
{
    uint32_t groups = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        uint32_t u = 0;
        while (qn_machine_group(m, level, u) != qn_machine_group(m, level, v)) {
            u++;
        }
        groups += u == v;
    }
    return groups;
}

static uint32_t crossings(const struct qn_machine *m, const struct qn_shape *s,
                          enum qn_level level)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < s->n; v++) {
        n += qn_machine_group(m, level, v) !=
             qn_machine_group(m, level, s->parent[v]);
    }
    return n;
}

/* Section 3.5 of the specification, on one machine from one root. */
static void invariants(const struct qn_machine *m, uint32_t root,
                       enum qn_level level)
{
    struct qn_shape base, s;
    double clock[QN_CORES_MAX], at[QN_CORES_MAX];
    cr_assert_eq(qn_adaptive_base(&base, m, root, level, clock), QN_OK);
    cr_assert_eq(qn_shape_check(&base), QN_OK);
    cr_assert_eq(base.root, root);
    cr_assert_eq(crossings(m, &base, level), group_count(m, level) - 1);
    double cost = qn_predict_broadcast(m, &base, at, NULL);
    for (uint32_t v = 0; v < m->n; v++) {
        cr_assert_eq(clock[v], at[v], "core %u: %g %g", v, clock[v], at[v]);
    }
    for (uint32_t key = 0; key < 2; key++) {
        s = base;
        (void)qn_adaptive_reorder(&s, m, (enum qn_key)key);
        cr_assert_eq(qn_shape_check(&s), QN_OK);
        double reordered = qn_predict_broadcast(m, &s, NULL, NULL);
        cr_assert_leq(reordered, cost);
        s = base;
        cr_assert_leq(qn_adaptive_shuffle(&s, m, (enum qn_key)key), 4 * m->n);
        cr_assert_eq(qn_shape_check(&s), QN_OK);
        cr_assert_leq(qn_predict_broadcast(m, &s, NULL, NULL), reordered);
        cr_assert_geq(qn_predict_broadcast(m, &s, NULL, NULL),
                      qn_predict_bound(m));
    }
}

/* QN_MACHINES=FOLDER takes all machines in that folder. */
Test(adaptive, keeps_its_invariants_on_recorded_machines)
{
    struct machines all;
    machines_open(&all);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct qn_machine *m = all.m[i];
        for (uint32_t root = 0; root < m->n; root++) {
            for (uint32_t level = 0; level < QN_LEVELS; level++) {
                invariants(m, root, (enum qn_level)level);
            }
        }
    }
    machines_close(&all);
}

Test(adaptive, keeps_its_invariants_at_every_size)
{
    for (uint32_t n = 1; n <= 50; n++) {
        struct qn_machine *m = scattered(n, n);
        invariants(m, n - 1, QN_LEVEL_NODE);
        qn_machine_destroy(m);
        m = uniform(n, 3, 7, n); /* one group, all equal */
        invariants(m, 0, QN_LEVEL_CACHE);
        qn_machine_destroy(m);
        m = uniform(n, 3, 7, 1); /* one core per group */
        invariants(m, n / 2, QN_LEVEL_SOCKET);
        qn_machine_destroy(m);
    }
}

/* Two groups {0,1} and {2,3}. The root's dearest is 3, but of that group 2 is
 * cheaper to send to; then 0 may only serve its own group. */
Test(adaptive, enters_a_group_at_the_member_that_is_cheapest_to_send_to)
{
    struct qn_machine *m = uniform(4, 10, 20, 2);
    struct qn_shape s;
    m->receive[0 * 4 + 3] = 500;
    m->send[0 * 4 + 2] = 9;
    cr_assert_eq(qn_adaptive_base(&s, m, 0, QN_LEVEL_NODE, NULL), QN_OK);
    cr_expect_eq(s.count[0], 2);
    cr_expect_eq(qn_shape_children(&s, 0)[0], 2);
    cr_expect_eq(qn_shape_children(&s, 0)[1], 1);
    cr_expect_eq(s.parent[3], 2);
    qn_machine_destroy(m);
}

Test(adaptive, the_default_root_sends_at_least_cost)
{
    struct qn_machine *m = uniform(4, 10, 20, 2);
    cr_expect_eq(qn_adaptive_root(m), 0);
    m->send[2 * 4 + 3] = 9;
    m->receive[1 * 4 + 3] = 1; /* does not count */
    cr_expect_eq(qn_adaptive_root(m), 2);
    qn_machine_destroy(m);
}

/* Naive second version: the least latency over all orders of one core's
 * children. */
static double best_order(const struct qn_machine *m, struct qn_shape *s,
                         uint32_t from)
{
    uint16_t *child = s->child + s->first[0];
    if (from == s->count[0]) {
        return qn_predict_broadcast(m, s, NULL, NULL);
    }
    double best = 1e300;
    for (uint32_t i = from; i < s->count[0]; i++) {
        uint16_t x = child[i];
        child[i] = child[from];
        child[from] = x;
        double t = best_order(m, s, from + 1);
        best = t < best ? t : best;
        child[from] = child[i];
        child[i] = x;
    }
    return best;
}

Test(adaptive, the_optimal_key_is_optimal_for_a_fixed_tree)
{
    for (uint32_t seed = 1; seed <= 60; seed++) {
        struct qn_machine *m = scattered(9, seed);
        static const uint8_t edge[][2] = {{0, 1}, {0, 2}, {0, 3}, {0, 4},
                                          {0, 5}, {2, 6}, {4, 7}, {7, 8}};
        struct qn_shape s = shape_of(9, 0, edge), t = s;
        (void)qn_adaptive_reorder(&s, m, QN_KEY_OPTIMAL);
        cr_expect_eq(qn_predict_broadcast(m, &s, NULL, NULL),
                     best_order(m, &t, 0), "seed %u", seed);
        qn_machine_destroy(m);
    }
}

Test(adaptive, bad_input_is_refused)
{
    struct qn_machine *m = uniform(3, 1, 1, 1);
    struct qn_shape s;
    cr_expect_eq(qn_adaptive_build(&s, m, 3, QN_LEVEL_NODE), QN_EINVAL);
    cr_expect_eq(qn_adaptive_build(&s, m, 0, QN_LEVELS), QN_EINVAL);
    qn_machine_destroy(m);
}

/* For equal costs the lower bound is attained. */
Test(optimum, of_equal_cores_is_the_bound)
{
    for (uint32_t n = 1; n <= 10; n++) {
        struct qn_machine *m = uniform(n, 2, 5, 4);
        struct qn_shape s;
        double t = -1;
        cr_assert_eq(qn_optimum_build(&s, m, n / 2, &t), QN_OK);
        cr_expect_eq(s.root, n / 2);
        cr_expect_eq(qn_predict_broadcast(m, &s, NULL, NULL), t);
        cr_expect_eq(t, qn_predict_bound(m), "n=%u: %g", n, t);
        qn_machine_destroy(m);
    }
}

/* Naive second version: every vector of parents, in its best order. */
static double enumerate(const struct qn_machine *m, uint8_t *parent, uint32_t v)
{
    double best = 1e300;
    if (v == m->n) {
        struct qn_edges e;
        struct qn_shape s;
        qn_edges_init(&e, m->n);
        for (uint32_t i = 1; i < m->n; i++) {
            qn_edges_add(&e, parent[i], i);
        }
        if (qn_shape_from_edges(&s, &e, 0) == QN_OK) {
            (void)qn_adaptive_reorder(&s, m, QN_KEY_OPTIMAL);
            best = qn_predict_broadcast(m, &s, NULL, NULL);
        }
        return best;
    }
    for (parent[v] = 0; parent[v] < m->n; parent[v]++) {
        double t = enumerate(m, parent, v + 1);
        best = t < best ? t : best;
    }
    return best;
}

Test(optimum, is_the_best_of_all_trees)
{
    for (uint32_t seed = 1; seed <= 12; seed++) {
        for (uint32_t n = 2; n <= 6; n++) {
            struct qn_machine *m = scattered(n, seed);
            struct qn_shape s;
            uint8_t parent[6] = {0};
            double t = -1;
            cr_assert_eq(qn_optimum_build(&s, m, 0, &t), QN_OK);
            double want = enumerate(m, parent, 1);
            cr_expect(fabs(t - want) < 1e-9, "seed %u n %u: %g %g", seed, n, t,
                      want);
            qn_machine_destroy(m);
        }
    }
}

Test(optimum, a_free_root_is_the_best_root_and_nothing_beats_it)
{
    struct qn_machine *m = recorded("amd64_sparse_10");
    struct qn_shape s;
    double best = 1e300, t = -1, free_root = -1;
    for (uint32_t root = 0; root < m->n; root++) {
        cr_assert_eq(qn_optimum_build(&s, m, root, &t), QN_OK);
        best = t < best ? t : best;
        cr_expect(fabs(qn_predict_broadcast(m, &s, NULL, NULL) - t) < 1e-9);
        struct qn_shape other;
        cr_assert_eq(qn_adaptive_build(&other, m, root, QN_LEVEL_NODE), QN_OK);
        cr_expect_leq(t, qn_predict_broadcast(m, &other, NULL, NULL) + 1e-9);
        for (uint32_t i = 0; qn_static_name_at(i) != NULL; i++) {
            (void)qn_static_build(&other, m, qn_static_name_at(i), root,
                                  QN_LEVEL_NODE);
            cr_expect_leq(t,
                          qn_predict_broadcast(m, &other, NULL, NULL) + 1e-9);
        }
    }
    cr_assert_eq(qn_optimum_build(&s, m, QN_ROOT_FREE, &free_root), QN_OK);
    cr_expect_eq(free_root, best);
    qn_machine_destroy(m);
}

Test(optimum, large_groups_and_bad_roots_are_refused)
{
    struct qn_machine *m = uniform(15, 1, 1, 1);
    struct qn_shape s;
    cr_expect_eq(qn_optimum_build(&s, m, 0, NULL), QN_EMSGSIZE);
    qn_machine_destroy(m);
    m = uniform(3, 1, 1, 1);
    cr_expect_eq(qn_optimum_build(&s, m, 3, NULL), QN_EINVAL);
    qn_machine_destroy(m);
}

/* Cores 0 and 1 are both free at 2: the lower one sends. */
Test(adaptive, the_lower_of_two_free_cores_sends)
{
    struct qn_machine *m = uniform(4, 1, 1, 4);
    struct qn_shape s;
    double clock[QN_CORES_MAX];
    cr_assert_eq(qn_adaptive_base(&s, m, 0, QN_LEVEL_NODE, clock), QN_OK);
    cr_assert_eq(s.parent[3], 0);
    qn_machine_destroy(m);
}
