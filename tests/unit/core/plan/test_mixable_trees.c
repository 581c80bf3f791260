#include "core/plan/mixable_trees.h"

#include <math.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/plan/exact/optimum.h"
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
    cr_assert_eq(qn_mixable_tree_build(&t, m, order, m->n), QN_OK);
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
    return qn_mixable_tree_latency(&t, m);
}

Test(mixable_trees, parents_come_before_their_children)
{
    for (uint32_t n = 1; n <= QN_NODES_MAX; n += 1 + n / 3) {
        struct qn_machine *m = scattered(n, 7 * n);
        built(m, 0);
        built(m, n - 1);
        built(m, n / 2);
        qn_machine_destroy(m);
    }
}

Test(mixable_trees, no_named_tree_of_a_small_group_is_faster)
{
    for (uint32_t n = 1; n <= QN_MIXABLE_TREE_EXACT; n++) {
        struct qn_machine *m = scattered(n, n);
        for (qn_node_t root = 0; root < n; root++) {
            struct qn_tree t = built(m, root);
            double latency = qn_mixable_tree_latency(&t, m);
            cr_assert_leq(latency, named(m, "sequential", root) * (1 + 1e-12));
            cr_assert_leq(latency, named(m, "binary", root) * (1 + 1e-12));
        }
        qn_machine_destroy(m);
    }
}

/* Names of equal nodes do not matter, so the order costs nothing. */
Test(mixable_trees, is_the_optimum_where_all_are_equal)
{
    for (uint32_t n = 2; n <= QN_MIXABLE_TREE_EXACT; n++) {
        struct qn_machine *m = uniform(n, 30, 100, n);
        struct qn_shape s;
        double best;
        cr_assert_eq(qn_optimum_build(&s, m, 0, &best), QN_OK);
        struct qn_tree t = built(m, 0);
        cr_assert_lt(fabs(qn_mixable_tree_latency(&t, m) - best), 1e-9);
        qn_machine_destroy(m);
    }
}

/* Eight replicas over a recorded machine: what the order costs at most. */
Test(mixable_trees, costs_little_against_the_optimum)
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
            double ratio = qn_mixable_tree_latency(&t, m) / best;
            cr_assert(ratio >= 1 - 1e-12 && ratio <= 1.25, "%s from %u: %g",
                      m->name, root, ratio);
        }
        qn_machine_destroy(m);
        qn_machine_destroy(all);
    }
}

Test(mixable_trees, members_may_be_any_nodes)
{
    struct qn_machine *m = scattered(9, 3);
    const qn_node_t order[] = {7, 1, 4, 8};
    struct qn_tree t;
    cr_assert_eq(qn_mixable_tree_build(&t, m, order, 4), QN_OK);
    cr_assert_eq(t.n, 4u);
    cr_assert_eq(t.root, 7u);
    cr_assert_eq(t.parent[0], QN_NO_MEMBER);
    qn_machine_destroy(m);
}

/* 0 -> 1, 2; 1 -> 3, 4; 3 -> 5. */
static struct qn_tree given(void)
{
    static const uint16_t edge[][2] = {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {3, 5}};
    const qn_node_t node[] = {0, 1, 2, 3, 4, 5};
    struct qn_edges e;
    struct qn_shape s;
    struct qn_tree t;
    qn_edges_init(&e, 6);
    for (uint32_t i = 0; i < 5; i++) {
        qn_edges_add(&e, edge[i][0], edge[i][1]);
    }
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
    cr_assert_eq(qn_tree_place(&t, &s, node), QN_OK);
    return t;
}

/* The children of each node, as text: "0:12 1:34". */
static const char *said(const struct qn_tree *t)
{
    static char text[64];
    size_t n = 0;
    text[0] = '\0';
    for (qn_node_t v = 0; v < QN_NODES_MAX; v++) {
        for (uint32_t k = 0; k < t->child_count[v]; k++) {
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  k > 0   ? "%u"
                                  : n > 0 ? " %u:%u"
                                          : "%u:%u",
                                  k > 0 ? t->child[t->child_at[v] + k] : v,
                                  t->child[t->child_at[v] + k]);
        }
    }
    return text;
}

Test(mixable_trees, a_given_tree_is_kept_and_closes_its_gaps)
{
    static const struct {
        const char *members; /* the root first */
        const char *want;
    } row[] = {
        {"012345", "0:12 1:34 3:5"}, /* the plan */
        {"02345", "0:342 3:5"},      /* 1's children in its place */
        {"0245", "0:542"},           /* 3's as well */
        {"0", ""},
        {"301245", "0:12 1:4 3:05"}, /* who becomes the root keeps its own */
        {"10345", "1:034 3:5"},
        {"512340", "0:12 1:34 5:0"},
        {"31245", "1:4 3:125"}, /* the old root has gone: the new one serves */
        {"5234", "5:342"},
    };
    struct qn_tree plan = given(), t;
    for (uint32_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        qn_node_t order[8];
        uint32_t n = 0;
        for (; row[i].members[n] != '\0'; n++) {
            order[n] = (qn_node_t)(row[i].members[n] - '0');
        }
        cr_assert_eq(qn_mixable_tree_from(&t, &plan, order, n), QN_OK);
        cr_assert_eq(qn_tree_check(&t), QN_OK);
        cr_assert_eq(t.n, n);
        cr_assert_str_eq(said(&t), row[i].want, "%s: %s", row[i].members,
                         said(&t));
    }
}

/* Any members, any root: never downwards but from the root. */
Test(mixable_trees, what_is_left_of_a_given_tree_can_be_mixed)
{
    struct qn_tree plan = given(), t;
    for (uint32_t members = 1; members < 64; members++) {
        for (qn_node_t root = 0; root < 6; root++) {
            qn_node_t order[6] = {root};
            uint32_t n = 1;
            for (qn_node_t v = 0; v < 6; v++) {
                if (v != root && (members >> v & 1)) {
                    order[n++] = v;
                }
            }
            cr_assert_eq(qn_mixable_tree_from(&t, &plan, order, n), QN_OK);
            cr_assert_eq(t.n, n);
            for (uint32_t i = 1; i < n; i++) {
                qn_node_t p = t.parent[order[i]];
                cr_assert(p == root || p < order[i]);
            }
        }
    }
}

Test(mixable_trees, a_given_tree_out_of_order_is_refused)
{
    struct qn_edges e;
    struct qn_shape s;
    struct qn_tree plan, t;
    const qn_node_t node[] = {0, 1, 2}, other[] = {0, 3}, twice[] = {0, 1, 1};
    qn_edges_init(&e, 3);
    qn_edges_add(&e, 0, 2);
    qn_edges_add(&e, 2, 1);
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
    cr_assert_eq(qn_tree_place(&plan, &s, node), QN_OK);
    cr_assert_eq(qn_mixable_tree_from(&t, &plan, node, 3), QN_EINVAL);
    plan = given();
    cr_assert_eq(qn_mixable_tree_from(&t, &plan, twice, 3), QN_EINVAL);
    cr_assert_eq(qn_mixable_tree_from(&t, &plan, node, 0), QN_EINVAL);
    cr_assert_eq(qn_mixable_tree_from(&t, &plan, other, 2), QN_OK);
    const qn_node_t beyond[] = {0, 6};
    cr_assert_eq(qn_mixable_tree_from(&t, &plan, beyond, 2), QN_EINVAL);
    const qn_node_t high[] = {0, 1, QN_NODES_MAX};
    cr_assert_eq(qn_tree_build(&plan, "binary", high, 3), QN_OK);
    cr_assert_eq(qn_mixable_tree_from(&t, &plan, node, 2), QN_EINVAL);
}

Test(mixable_trees, what_cannot_be_is_refused)
{
    struct qn_machine *m = scattered(4, 1);
    const qn_node_t beyond[] = {0, 4}, twice[] = {0, 1, 1};
    struct qn_tree t;
    cr_assert_eq(qn_mixable_tree_build(&t, m, beyond, 2), QN_EINVAL);
    cr_assert_eq(qn_mixable_tree_build(&t, m, twice, 3), QN_EINVAL);
    cr_assert_eq(qn_mixable_tree_build(&t, m, beyond, 0), QN_EINVAL);
    qn_machine_destroy(m);
}
