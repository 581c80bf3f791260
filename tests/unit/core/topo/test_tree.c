#include "core/topo/tree.h"

#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static void identity(qn_node_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
}

Test(tree, every_shape_spans_every_size)
{
    qn_node_t order[QN_MEMBERS_MAX];
    identity(order, QN_MEMBERS_MAX);
    uint32_t shapes = 0;
    for (; qn_tree_name_at(shapes) != NULL; shapes++) {
        for (uint32_t n = 1; n <= QN_MEMBERS_MAX; n += 1 + n / 70) {
            struct qn_tree t;
            const char *name = qn_tree_name_at(shapes);
            cr_assert_eq(qn_tree_build(&t, name, order, n), QN_OK);
            cr_assert_eq(qn_tree_check(&t), QN_OK, "%s, n=%u", name, n);
            cr_assert_eq(t.n, n);
            cr_assert_eq(t.root, 0);
        }
    }
    cr_assert_eq(shapes, 3);
}

Test(tree, sequential_sends_in_the_order_given)
{
    const qn_node_t order[] = {7, QN_MEMBERS_MAX - 1, 0, 64};
    struct qn_tree t;
    cr_assert_eq(qn_tree_build(&t, "sequential", order, 4), QN_OK);
    cr_assert_eq(t.root, 7);
    cr_assert_eq(t.child_count[7], 3);
    for (uint32_t i = 1; i < 4; i++) {
        cr_assert_eq(t.child[t.child_at[7] + i - 1], order[i]);
        cr_assert_eq(t.parent[order[i]], 7);
        cr_assert_eq(t.child_count[order[i]], 0);
    }
    cr_assert_eq(t.parent[1], QN_NO_MEMBER);
    cr_assert_eq(qn_tree_depth(&t), 1);
}

Test(tree, a_ring_spreads_along_its_links)
{
    const qn_node_t order[] = {7, 3, 0, 64, 9};
    struct qn_tree t;
    cr_assert_eq(qn_tree_build(&t, "ring:k=2", order, 5), QN_OK);
    cr_assert_eq(qn_tree_check(&t), QN_OK);
    cr_assert_eq(t.root, 7);
    cr_assert_eq(t.parent[3], 7);
    cr_assert_eq(t.parent[64], 7);
    cr_assert_eq(t.parent[0], 3);
    cr_assert_eq(t.parent[9], 64);
    cr_assert_eq(qn_tree_build(&t, "ring:k=0", order, 5), QN_ENOENT);
}

Test(tree, binary_is_the_heap_on_ranks)
{
    qn_node_t order[QN_MEMBERS_MAX];
    for (uint32_t n = 1; n <= QN_MEMBERS_MAX; n++) {
        for (uint32_t i = 0; i < n; i++) {
            order[i] = QN_MEMBERS_MAX - 1 - i;
        }
        struct qn_tree t;
        cr_assert_eq(qn_tree_build(&t, "binary", order, n), QN_OK);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t want = 2 * i + 2 < n ? 2 : 2 * i + 1 < n ? 1 : 0;
            cr_assert_eq(t.child_count[order[i]], want, "n=%u i=%u", n, i);
            for (uint32_t k = 0; k < want; k++) {
                qn_node_t c = t.child[t.child_at[order[i]] + k];
                cr_assert_eq(c, order[2 * i + 1 + k]);
                cr_assert_eq(t.parent[c], order[i]);
            }
        }
        uint32_t log2n = 31 - (uint32_t)__builtin_clz(n);
        cr_assert_eq(qn_tree_depth(&t), log2n, "n=%u", n);
    }
}

Test(tree, the_second_member_is_the_roots_first_child)
{
    const qn_node_t order[] = {2, 9, 1, 4, 3};
    for (uint32_t i = 0; qn_tree_name_at(i) != NULL; i++) {
        struct qn_tree t;
        cr_assert_eq(qn_tree_build(&t, qn_tree_name_at(i), order, 5), QN_OK);
        cr_assert_eq(t.child[t.child_at[2]], 9, "%s", qn_tree_name_at(i));
    }
}

Test(tree, equal_input_gives_equal_bytes)
{
    const qn_node_t order[] = {2, 9, 1, 4, 3};
    struct qn_tree a;
    struct qn_tree b;
    memset(&a, 0xff, sizeof a);
    memset(&b, 0x55, sizeof b);
    cr_assert_eq(qn_tree_build(&a, "binary", order, 5), QN_OK);
    cr_assert_eq(qn_tree_build(&b, "binary", order, 5), QN_OK);
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
}

Test(tree, bad_input_is_refused_and_leaves_the_tree_alone)
{
    qn_node_t order[QN_MEMBERS_MAX + 1];
    identity(order, QN_MEMBERS_MAX + 1);
    const qn_node_t twice[] = {1, 2, 1};
    const qn_node_t far[] = {0, QN_MEMBERS_MAX};
    struct qn_tree t;
    struct qn_tree before;
    memset(&t, 0x55, sizeof t);
    before = t;
    cr_expect_eq(qn_tree_build(&t, "round", order, 3), QN_ENOENT);
    cr_expect_eq(qn_tree_build(&t, "", order, 3), QN_ENOENT);
    cr_expect_eq(qn_tree_build(&t, "binary", order, 0), QN_EINVAL);
    cr_expect_eq(qn_tree_build(&t, "binary", order, QN_MEMBERS_MAX + 1),
                 QN_EINVAL);
    cr_expect_eq(qn_tree_build(&t, "binary", twice, 3), QN_EINVAL);
    cr_expect_eq(qn_tree_build(&t, "binary", far, 2), QN_EINVAL);
    cr_expect_eq(memcmp(&t, &before, sizeof t), 0);
}

Test(tree, the_bound_is_above_the_highest_member)
{
    const qn_node_t order[] = {5, 0, 64, 700};
    struct qn_tree t;
    cr_assert_eq(qn_tree_build(&t, "binary", order, 2), QN_OK);
    cr_assert_eq(qn_tree_bound(&t), 6);
    cr_assert_eq(qn_tree_build(&t, "binary", order, 3), QN_OK);
    cr_assert_eq(qn_tree_bound(&t), 65);
    cr_assert_eq(qn_tree_build(&t, "binary", order, 4), QN_OK);
    cr_assert_eq(qn_tree_bound(&t), 701);
    cr_assert(qn_tree_has(&t, 700));
    cr_assert(!qn_tree_has(&t, 699));
    cr_assert(!qn_tree_has(&t, QN_NO_MEMBER));
    cr_assert(!qn_tree_has(&t, UINT32_MAX));
    const qn_node_t last[] = {QN_MEMBERS_MAX - 1};
    cr_assert_eq(qn_tree_build(&t, "binary", last, 1), QN_OK);
    cr_assert_eq(qn_tree_bound(&t), QN_MEMBERS_MAX);
}

static struct qn_tree five(void)
{
    qn_node_t order[5];
    identity(order, 5);
    struct qn_tree t;
    cr_assert_eq(qn_tree_build(&t, "binary", order, 5), QN_OK);
    return t;
}

/* Binary on 0..4: 0 -> 1, 2 and 1 -> 3, 4. One field is damaged each time. */
Test(tree, check_finds_each_kind_of_damage)
{
#define DAMAGED(statement)                                                     \
    do {                                                                       \
        struct qn_tree t = five();                                             \
        statement;                                                             \
        cr_expect_eq(qn_tree_check(&t), QN_EINVAL, #statement);                \
    } while (0)
    DAMAGED(t.n = 0);
    DAMAGED(t.n = QN_MEMBERS_MAX + 1);
    DAMAGED(t.n = 4);
    DAMAGED(t.n = 6);
    DAMAGED(t.root = QN_MEMBERS_MAX);
    DAMAGED(t.root = 1);
    DAMAGED(t.parent[0] = 1);
    DAMAGED(t.parent[1] = 3); /* a cycle 1 -> 3 -> 1 */
    DAMAGED(t.parent[4] = 2); /* list of 1 says otherwise */
    DAMAGED(t.parent[4] = 4);
    /* A sound list of 3 and 4, which the root does not reach. */
    DAMAGED((t.parent[3] = 4, t.parent[4] = 3, t.child_count[1] = 0,
             t.child_count[3] = 1, t.child_at[3] = 3, t.child_count[4] = 1,
             t.child_at[4] = 2));
    DAMAGED(t.parent[4] = QN_MEMBERS_MAX + 1);
    DAMAGED(t.parent[4] = QN_NO_MEMBER);
    DAMAGED(t.parent[5] = 0);
    DAMAGED(t.child_count[1] = 1);
    DAMAGED(t.child_count[1] = 3);
    DAMAGED(t.child_count[1] = UINT16_MAX);
    DAMAGED(t.child_count[9] = 1);
    DAMAGED(t.child_at[1] = 3);
    DAMAGED(t.child_at[1] = UINT16_MAX);
    DAMAGED(t.child[3] = 3); /* named twice, 4 never */
    DAMAGED(t.child[3] = 0);
    DAMAGED(t.child[3] = QN_MEMBERS_MAX);
#undef DAMAGED
}
