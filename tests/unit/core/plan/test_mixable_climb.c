#include "core/plan/mixable_climb.h"

#include <math.h>

#include "core/base/err.h"
#include "core/plan/exact/optimum.h"
#include "core/plan/mixable_trees.h"
#include "core/topo/adaptive.h"
#include "core/topo/predict.h"
#include "core/topo/static_trees.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

#define NO_END 1000000u /* more moves than are needed */

static const char *const starts[] = {"sequential", "binary", "tree:k=1"};
#define STARTS (sizeof starts / sizeof starts[0])

static struct qn_edges start(const char *name, uint32_t n)
{
    struct qn_edges e;
    cr_assert_eq(qn_static_ranks(&e, name, n), QN_OK);
    return e;
}

/* A second version of the objective: children sorted by the published rule,
 * times by the prediction. Rank i is core i. */
static double latency(const struct qn_machine *m, const struct qn_edges *e)
{
    struct qn_shape s;
    cr_assert_eq(qn_shape_from_edges(&s, e, 0), QN_OK);
    (void)qn_adaptive_reorder(&s, m, QN_KEY_OPTIMAL);
    return qn_predict_broadcast(m, &s, NULL, NULL);
}

static uint32_t climb(struct qn_edges *e, const struct qn_machine *m,
                      uint32_t moves)
{
    qn_node_t order[QN_NODES_MAX];
    for (uint32_t i = 0; i < m->n; i++) {
        order[i] = i;
    }
    return qn_mixable_climb(e, m, order, moves);
}

static void check_ascends(const struct qn_edges *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        cr_assert_lt(e->parent[i], e->child[i]);
    }
}

/* The edge to rank v. */
static uint32_t edge_to(const struct qn_edges *e, uint32_t v)
{
    uint32_t i = 0;
    while (e->child[i] != v) {
        i++;
    }
    return i;
}

Test(mixable_climb, no_rank_hangs_better_from_another_one_at_the_end)
{
    for (uint32_t seed = 1; seed <= 5; seed++) {
        uint32_t n = 10 + seed;
        struct qn_machine *m = scattered(n, seed);
        for (uint32_t k = 0; k < STARTS; k++) {
            struct qn_edges e = start(starts[k], n);
            double before = latency(m, &e);
            (void)climb(&e, m, NO_END);
            double best = latency(m, &e);
            cr_assert_leq(best, before * (1 + 1e-12));
            check_ascends(&e);
            for (uint32_t v = 1; v < n; v++) {
                uint32_t i = edge_to(&e, v), parent = e.parent[i];
                for (uint32_t u = 0; u < v; u++) {
                    e.parent[i] = (uint16_t)u;
                    cr_assert_geq(latency(m, &e), best * (1 - 1e-6),
                                  "seed %u, %s: %u below %u", seed, starts[k],
                                  v, u);
                }
                e.parent[i] = (uint16_t)parent;
            }
        }
        qn_machine_destroy(m);
    }
}

/* The order of the edges is that of sending. */
Test(mixable_climb, children_are_served_in_the_best_order)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct qn_machine *m = scattered(20, seed);
        struct qn_edges e = start("sequential", 20);
        struct qn_shape s;
        (void)climb(&e, m, 0);
        cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
        double as_given = qn_predict_broadcast(m, &s, NULL, NULL);
        cr_assert_lt(fabs(as_given - latency(m, &e)), 1e-9 * as_given);
        qn_machine_destroy(m);
    }
}

Test(mixable_climb, moves_are_bounded_and_more_of_them_make_nothing_slower)
{
    struct qn_machine *m = scattered(QN_NODES_MAX, 1);
    double before = INFINITY;
    for (uint32_t moves = 0; moves <= 4096; moves = 2 * moves + 1) {
        struct qn_edges e = start("tree:k=1", QN_NODES_MAX);
        cr_assert_eq(climb(&e, m, moves), moves);
        cr_assert_leq(latency(m, &e), before);
        check_ascends(&e);
        before = latency(m, &e);
    }
    struct qn_edges e = start("tree:k=1", QN_NODES_MAX);
    cr_assert_lt(climb(&e, m, NO_END), NO_END, "it ends by itself");
    qn_machine_destroy(m);
}

Test(mixable_climb, one_and_two_ranks_have_nothing_to_move)
{
    struct qn_machine *m = scattered(2, 1);
    struct qn_edges e = start("sequential", 2);
    cr_assert_eq(climb(&e, m, NO_END), 0);
    cr_assert_eq(e.count, 1);
    qn_edges_init(&e, 1);
    cr_assert_eq(climb(&e, m, NO_END), 0);
    cr_assert_eq(e.count, 0);
    qn_machine_destroy(m);
}

/* Groups above the exact recursion: there is nothing left to climb. */
Test(mixable_climb, the_tree_of_a_larger_group_is_climbed)
{
    for (uint32_t seed = 1; seed <= 10; seed++) {
        struct qn_machine *m = scattered(16, seed);
        qn_node_t order[16];
        struct qn_tree t;
        struct qn_edges e;
        for (uint32_t i = 0; i < m->n; i++) {
            order[i] = i;
        }
        cr_assert_eq(qn_mixable_tree_build(&t, m, order, m->n), QN_OK);
        qn_edges_init(&e, m->n);
        for (uint32_t v = 1; v < m->n; v++) {
            qn_edges_add(&e, t.parent[v], v);
        }
        double had = qn_mixable_tree_latency(&t, m);
        (void)climb(&e, m, NO_END);
        cr_assert_geq(latency(m, &e), had * (1 - 1e-6), "seed %u", seed);
        qn_machine_destroy(m);
    }
}

/* Members of a group above the exact recursion, over recorded machines. */
Test(mixable_climb, a_group_of_twelve_gets_nearly_the_best_tree)
{
    for (uint32_t i = 0; i < RECORDED; i++) {
        struct qn_machine *all = recorded(recorded_names[i]), *m;
        uint32_t index[12], n = all->n < 12 ? all->n : 12;
        qn_node_t order[12];
        struct qn_tree t;
        struct qn_shape s;
        double best;
        for (uint32_t k = 0; k < n; k++) {
            index[k] = k * all->n / n;
            order[k] = k;
        }
        cr_assert_eq(qn_machine_restrict(&m, all, index, n), QN_OK);
        cr_assert_eq(qn_optimum_build(&s, m, 0, &best), QN_OK);
        cr_assert_eq(qn_mixable_tree_build(&t, m, order, n), QN_OK);
        double ratio = qn_mixable_tree_latency(&t, m) / best;
        cr_assert(ratio >= 1 - 1e-12 && ratio <= 1.2, "%s: %g", m->name, ratio);
        qn_machine_destroy(m);
        qn_machine_destroy(all);
    }
}

/* Both starts of a search are made, and the faster end is taken. */
Test(mixable_climb, a_larger_group_has_no_slower_tree_than_from_a_balanced_one)
{
    for (uint32_t seed = 1; seed <= 10; seed++) {
        struct qn_machine *m = scattered(16, seed);
        qn_node_t order[16];
        struct qn_tree t;
        for (uint32_t i = 0; i < m->n; i++) {
            order[i] = i;
        }
        struct qn_edges e = start("tree:k=4", m->n);
        (void)climb(&e, m, QN_MIXABLE_CLIMB_MOVES);
        cr_assert_eq(qn_mixable_tree_build(&t, m, order, m->n), QN_OK);
        cr_assert_leq(qn_mixable_tree_latency(&t, m),
                      latency(m, &e) * (1 + 1e-6), "seed %u", seed);
        qn_machine_destroy(m);
    }
}
