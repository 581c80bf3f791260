#include <string.h>

#include "core/base/err.h"
#include "core/topo/static_trees.h"
#include "core/topo/tree.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

/* 0 -> 2, 1 and 2 -> 3, 4. */
static const uint8_t five[][2] = {{0, 2}, {2, 3}, {0, 1}, {2, 4}};

Test(shape, edges_keep_each_parents_order)
{
    struct qn_shape s = shape_of(5, 0, five);
    cr_expect_eq(s.count[0], 2);
    cr_expect_eq(qn_shape_children(&s, 0)[0], 2);
    cr_expect_eq(qn_shape_children(&s, 0)[1], 1);
    cr_expect_eq(qn_shape_children(&s, 2)[1], 4);
    cr_expect_eq(s.parent[0], 0);
    cr_expect_eq(qn_shape_depth(&s), 2);
    cr_expect_eq(qn_shape_check(&s), QN_OK);
}

Test(shape, edges_that_are_no_tree_are_refused)
{
    static const uint8_t bad[][4][2] = {
        {{0, 1}, {0, 1}, {0, 2}, {0, 3}}, /* two parents */
        {{0, 1}, {2, 3}, {3, 4}, {4, 2}}, /* a cycle beside the tree */
        {{0, 1}, {0, 2}, {0, 3}, {1, 0}}, /* the root has a parent */
        {{1, 1}, {0, 2}, {0, 3}, {0, 4}}, /* a core sends to itself */
    };
    for (uint32_t i = 0; i < 4; i++) {
        struct qn_edges e;
        struct qn_shape s;
        qn_edges_init(&e, 5);
        for (uint32_t k = 0; k < 4; k++) {
            qn_edges_add(&e, bad[i][k][0], bad[i][k][1]);
        }
        cr_expect_eq(qn_shape_from_edges(&s, &e, 0), QN_EINVAL, "%u", i);
        cr_expect_eq(qn_shape_from_edges(&s, &e, 5), QN_EINVAL);
        e.count = 3; /* a core is missing */
        cr_expect_eq(qn_shape_from_edges(&s, &e, 0), QN_EINVAL);
    }
}

Test(shape, check_finds_each_kind_of_damage)
{
#define DAMAGED(statement)                                                     \
    do {                                                                       \
        struct qn_shape s = shape_of(5, 0, five);                              \
        statement;                                                             \
        cr_expect_eq(qn_shape_check(&s), QN_EINVAL, #statement);               \
    } while (0)
    DAMAGED(s.n = 0);
    DAMAGED(s.n = 4);
    DAMAGED(s.n = 6);
    DAMAGED(s.n = QN_CORES_MAX + 1);
    DAMAGED(s.root = 1);
    DAMAGED(s.root = 5);
    DAMAGED(s.parent[0] = 2);
    DAMAGED(s.parent[3] = 0);
    DAMAGED(s.count[2] = 1);
    DAMAGED(s.count[2] = 65535);
    DAMAGED(s.count[4] = 1);
    DAMAGED(s.first[2] = 1);
    DAMAGED(s.child[0] = 3);
    DAMAGED(s.child[0] = 1000);
    DAMAGED(s.child[1] = 2);
#undef DAMAGED
}

Test(shape, a_moved_subtree_becomes_the_last_child)
{
    struct qn_shape s = shape_of(5, 0, five);
    qn_shape_move(&s, 2, 1);
    static const uint8_t want[][2] = {{0, 1}, {1, 2}, {2, 3}, {2, 4}};
    struct qn_shape t = shape_of(5, 0, want);
    cr_expect(qn_shape_equal(&s, &t));
    cr_expect_eq(qn_shape_check(&s), QN_OK);
    qn_shape_move(&s, 3, 0);
    qn_shape_move(&s, 3, 0); /* to where it is */
    cr_expect_eq(qn_shape_check(&s), QN_OK);
    cr_expect_eq(qn_shape_children(&s, 0)[1], 3);
    cr_expect(!qn_shape_equal(&s, &t));
}

static void expect_children(const struct qn_shape *s, uint32_t v,
                            const char *want)
{
    char got[200] = "";
    size_t n = 0;
    for (uint32_t k = 0; k < s->count[v]; k++) {
        n += (size_t)snprintf(got + n, sizeof got - n, " %u",
                              qn_shape_children(s, v)[k]);
    }
    cr_expect_str_eq(got, want);
}

Test(static_trees, span_every_machine_from_every_root_at_every_level)
{
    for (uint32_t n = 1; n <= 40; n++) {
        struct qn_machine *m = scattered(n, n);
        for (uint32_t i = 0; qn_static_name_at(i) != NULL; i++) {
            struct qn_shape s;
            const char *name = qn_static_name_at(i);
            uint32_t root = n * 7 / 11;
            enum qn_level level = (enum qn_level)(n % QN_LEVELS);
            cr_assert_eq(qn_static_build(&s, m, name, root, level), QN_OK);
            cr_assert_eq(qn_shape_check(&s), QN_OK, "%s %u", name, n);
            cr_assert_eq(s.root, root);
            for (uint32_t v = 0; v < n && name[strlen(name) - 1] == '2'; v++) {
                cr_assert_leq(s.count[v], 2);
            }
        }
        qn_machine_destroy(m);
    }
}

Test(static_trees, plain_trees_have_their_shape_with_the_root_first)
{
    struct qn_machine *m = uniform(8, 1, 1, 4);
    struct qn_shape s;
    cr_assert_eq(qn_static_build(&s, m, "binary", 2, QN_LEVEL_NODE), QN_OK);
    /* ranks: 2 0 1 3 4 5 6 7 */
    expect_children(&s, 2, " 0 1");
    expect_children(&s, 0, " 3 4");
    expect_children(&s, 1, " 5 6");
    expect_children(&s, 3, " 7");
    cr_assert_eq(qn_static_build(&s, m, "sequential", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 0, " 1 2 3 4 5 6 7");
    /* Order 4 has 7 cores, so order 5 (12 cores): depth 0: 0; depth 1: 1
     * (order 4), 2 (3); depth 2: 3 (3), 4 (2), 5 (2), 6 (1); depth 3: 7. */
    cr_assert_eq(qn_static_build(&s, m, "fibonacci", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 0, " 1 2");
    expect_children(&s, 1, " 3 4");
    expect_children(&s, 2, " 5 6");
    expect_children(&s, 3, " 7");
    qn_machine_destroy(m);
    m = uniform(7, 1, 1, 4); /* order 4, whole: F-trees are lopsided */
    cr_assert_eq(qn_static_build(&s, m, "fibonacci", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 0, " 1 2");
    expect_children(&s, 1, " 3 4");
    expect_children(&s, 2, " 5");
    expect_children(&s, 3, " 6");
    qn_machine_destroy(m);
}

Test(static_trees, clusters_serve_coordinators_first)
{
    struct qn_machine *m = uniform(10, 1, 1, 3); /* groups 012 345 678 9 */
    struct qn_shape s;
    m->core[9].socket = 0;
    cr_assert_eq(qn_static_build(&s, m, "cluster", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 0, " 3 6 1 2");
    expect_children(&s, 3, " 9 4 5");
    expect_children(&s, 6, " 7 8");
    cr_assert_eq(qn_static_build(&s, m, "cluster", 0, QN_LEVEL_SOCKET), QN_OK);
    expect_children(&s, 0, " 3 6 1 2 9");
    cr_assert_eq(qn_static_build(&s, m, "cluster", 4, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 4, " 0 6 3 5");
    expect_children(&s, 0, " 9 1 2");
    qn_machine_destroy(m);
}

/* Ties: the sender that was attached first, then the lower core. */
Test(static_trees, spanning_trees_take_the_cheapest_or_the_dearest_edge)
{
    struct qn_machine *m = uniform(5, 10, 10, 8);
    struct qn_shape s;
    m->send[0 * 5 + 3] = 1; /* 0 -> 3 */
    m->send[3 * 5 + 4] = 2; /* 3 -> 4 */
    m->send[4 * 5 + 3] = 0.5;
    m->receive[0 * 5 + 2] = 30;
    cr_assert_eq(qn_static_build(&s, m, "mst", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 0, " 3 1");
    expect_children(&s, 3, " 4 2");
    cr_assert_eq(qn_static_build(&s, m, "bad", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 0, " 2 1 4");
    expect_children(&s, 2, " 3");
    qn_machine_destroy(m);
    m = uniform(6, 10, 10, 8);
    cr_assert_eq(qn_static_build(&s, m, "mst2", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 0, " 1 2");
    expect_children(&s, 1, " 3 4");
    expect_children(&s, 2, " 5");
    cr_assert_eq(qn_static_build(&s, m, "bad2", 0, QN_LEVEL_NODE), QN_OK);
    expect_children(&s, 2, " 5");
    qn_machine_destroy(m);
}

Test(static_trees, bad_input_is_refused)
{
    struct qn_machine *m = uniform(3, 1, 1, 1);
    struct qn_shape s;
    struct qn_edges e;
    cr_expect_eq(qn_static_build(&s, m, "round", 0, QN_LEVEL_NODE), QN_ENOENT);
    cr_expect_eq(qn_static_build(&s, m, "mst", 3, QN_LEVEL_NODE), QN_EINVAL);
    cr_expect_eq(qn_static_build(&s, m, "mst", 0, QN_LEVELS), QN_EINVAL);
    cr_expect_eq(qn_static_ranks(&e, "mst", 3), QN_ENOENT);
    cr_expect_eq(qn_static_ranks(&e, "binary", 0), QN_EINVAL);
    cr_expect_eq(qn_static_ranks(&e, "binary", 1025), QN_EINVAL);
    qn_machine_destroy(m);
}

Test(shape, is_placed_onto_the_nodes_of_a_group)
{
    struct qn_shape s = shape_of(5, 0, five);
    const qn_node_t node[] = {7, 63, 0, 5, 9}, twice[] = {1, 2, 3, 4, 1};
    struct qn_tree t;
    cr_assert_eq(qn_tree_place(&t, &s, node), QN_OK);
    cr_assert_eq(qn_tree_check(&t), QN_OK);
    cr_expect_eq(t.root, 7);
    cr_expect_eq(t.child[t.child_at[7]], 0);
    cr_expect_eq(t.child[t.child_at[7] + 1], 63);
    cr_expect_eq(t.child[t.child_at[0]], 5);
    cr_expect_eq(t.child[t.child_at[0] + 1], 9);
    cr_expect_eq(qn_tree_place(&t, &s, twice), QN_EINVAL);
    const qn_node_t last[] = {0, 1, 2, 3, QN_MEMBERS_MAX - 1};
    cr_expect_eq(qn_tree_place(&t, &s, last), QN_OK);
    cr_expect_eq(t.child[t.child_at[2] + 1], QN_MEMBERS_MAX - 1);
    const qn_node_t beyond[] = {0, 1, 2, 3, QN_MEMBERS_MAX};
    cr_expect_eq(qn_tree_place(&t, &s, beyond), QN_EINVAL);
}
