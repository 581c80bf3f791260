#include "core/topo/ordered.h"

#include <math.h>

#include "core/base/err.h"
#include "core/topo/optimum.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static void ascending(qn_node_t *order, uint32_t n, qn_node_t root)
{
    order[0] = root;
    for (uint32_t i = 0, at = 1; i < n; i++) {
        if (i != root) {
            order[at++] = i;
        }
    }
}

/* A tree that may be mixed with others of the same order. */
static struct qn_tree built(const struct qn_machine *m, qn_node_t root)
{
    qn_node_t order[QN_NODES_MAX];
    struct qn_tree t;
    ascending(order, m->n, root);
    cr_assert_eq(qn_ordered_build(&t, m, order, m->n), QN_OK);
    cr_assert_eq(qn_tree_check(&t), QN_OK);
    cr_assert_eq(t.n, m->n);
    cr_assert_eq(t.root, root);
    for (qn_node_t v = 0; v < m->n; v++) {
        cr_assert(v == root || t.parent[v] == root || t.parent[v] < v,
                  "%u is served by %u", v, t.parent[v]);
    }
    return t;
}

static double named(const struct qn_machine *m, const char *name,
                    qn_node_t root)
{
    qn_node_t order[QN_NODES_MAX];
    struct qn_tree t;
    ascending(order, m->n, root);
    cr_assert_eq(qn_tree_build(&t, name, order, m->n), QN_OK);
    return qn_ordered_latency(&t, m);
}

Test(ordered, parents_come_before_their_children)
{
    for (uint32_t n = 1; n <= QN_NODES_MAX; n += 1 + n / 3) {
        struct qn_machine *m = scattered(n, 7 * n);
        built(m, 0);
        built(m, n - 1);
        built(m, n / 2);
        qn_machine_destroy(m);
    }
}

Test(ordered, no_named_tree_of_a_small_group_is_faster)
{
    for (uint32_t n = 1; n <= QN_ORDERED_EXACT; n++) {
        struct qn_machine *m = scattered(n, n);
        for (qn_node_t root = 0; root < n; root++) {
            struct qn_tree t = built(m, root);
            double latency = qn_ordered_latency(&t, m);
            cr_assert_leq(latency, named(m, "sequential", root) * (1 + 1e-12));
            cr_assert_leq(latency, named(m, "binary", root) * (1 + 1e-12));
        }
        qn_machine_destroy(m);
    }
}

/* Names of equal nodes do not matter, so the order costs nothing. */
Test(ordered, is_the_optimum_where_all_are_equal)
{
    for (uint32_t n = 2; n <= QN_ORDERED_EXACT; n++) {
        struct qn_machine *m = uniform(n, 30, 100, n);
        struct qn_shape s;
        double best;
        cr_assert_eq(qn_optimum_build(&s, m, 0, &best), QN_OK);
        struct qn_tree t = built(m, 0);
        cr_assert_lt(fabs(qn_ordered_latency(&t, m) - best), 1e-9);
        qn_machine_destroy(m);
    }
}

/* Eight replicas over a recorded machine: what the order costs at most. */
Test(ordered, costs_little_against_the_optimum)
{
    for (uint32_t i = 0; i < RECORDED; i++) {
        struct qn_machine *all = recorded(recorded_names[i]), *m;
        uint32_t index[8];
        for (uint32_t k = 0; k < 8; k++) {
            index[k] = k * all->n / 8;
        }
        cr_assert_eq(qn_machine_restrict(&m, all, index, 8), QN_OK);
        for (qn_node_t root = 0; root < 8; root++) {
            struct qn_shape s;
            double best;
            cr_assert_eq(qn_optimum_build(&s, m, root, &best), QN_OK);
            struct qn_tree t = built(m, root);
            double ratio = qn_ordered_latency(&t, m) / best;
            cr_assert(ratio >= 1 - 1e-12 && ratio <= 1.25, "%s from %u: %g",
                      m->name, root, ratio);
        }
        qn_machine_destroy(m);
        qn_machine_destroy(all);
    }
}

Test(ordered, members_may_be_any_nodes)
{
    struct qn_machine *m = scattered(9, 3);
    const qn_node_t order[] = {7, 1, 4, 8};
    struct qn_tree t;
    cr_assert_eq(qn_ordered_build(&t, m, order, 4), QN_OK);
    cr_assert_eq(t.n, 4u);
    cr_assert_eq(t.root, 7u);
    cr_assert_eq(t.parent[0], QN_NODES_MAX);
    qn_machine_destroy(m);
}

Test(ordered, what_cannot_be_is_refused)
{
    struct qn_machine *m = scattered(4, 1);
    const qn_node_t beyond[] = {0, 4}, twice[] = {0, 1, 1};
    struct qn_tree t;
    cr_assert_eq(qn_ordered_build(&t, m, beyond, 2), QN_EINVAL);
    cr_assert_eq(qn_ordered_build(&t, m, twice, 3), QN_EINVAL);
    cr_assert_eq(qn_ordered_build(&t, m, beyond, 0), QN_EINVAL);
    qn_machine_destroy(m);
}
