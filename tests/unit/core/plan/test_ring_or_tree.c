#include "core/plan/ring_or_tree.h"

#include "core/base/err.h"
#include "core/node.h"
#include "tests/support/test.h"

/* All messages cost the same. */
static struct qn_machine *uniform(uint32_t n, double send, double receive)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t i = 0; i < n * n; i++) {
        bool self = i % (n + 1) == 0;
        m->send[i] = self ? 0 : send;
        m->receive[i] = self ? 0 : receive;
    }
    return m;
}

static struct qn_ring_or_tree choose(struct qn_machine *m)
{
    struct qn_ring_or_tree r;
    cr_assert_eq(qn_ring_or_tree_choose(&r, m), QN_OK);
    qn_machine_destroy(m);
    return r;
}

/* The latency of one is best along the tree, whose root sends to many; of many
 * the root of a ring sends few. */
Test(ring_or_tree, a_ring_wins_in_long_bursts)
{
    for (uint32_t n = 5; n <= 16; n++) {
        struct qn_ring_or_tree r = choose(uniform(n, 100, 100));
        cr_assert_gt(r.ring, 0u, "n=%u", n);
        cr_assert_lt(r.ring, n - 1);
        cr_assert_gt(r.from, 1u, "n=%u", n);
        cr_assert_leq(r.ring_cycles, r.tree_cycles * QN_RING_OR_TREE_GAIN);
    }
}

/* One or two followers: any tree is as good, or nearly. */
Test(ring_or_tree, a_ring_of_two_is_none)
{
    for (uint32_t n = 1; n <= 2; n++) {
        struct qn_ring_or_tree r = choose(uniform(n, 100, 100));
        cr_assert_eq(r.ring, 0u);
        cr_assert_eq(r.from, 0u);
        cr_assert_float_eq(r.ring_cycles, r.tree_cycles, 1e-9);
    }
}

/* Receiving is dear and sending costs nothing: no root is busy. */
Test(ring_or_tree, where_sending_is_cheap_no_ring_is_faster)
{
    struct qn_ring_or_tree r = choose(uniform(5, 1, 400));
    cr_assert_eq(r.ring, 0u);
}

/* A chain: 0 3 1 4 2, where each core is near to the next one only. */
static struct qn_machine *chain(void)
{
    static const uint32_t at[] = {0, 2, 4, 1, 3}; /* place of each */
    struct qn_machine *m = uniform(5, 400, 100);
    for (uint32_t i = 0; i < 25; i++) {
        uint32_t a = at[i / 5], b = at[i % 5];
        m->send[i] = a == b + 1 || b == a + 1 ? 50 : m->send[i];
    }
    return m;
}

/* A ring of arity 1 over 5 nodes is a loop; the root's link back to its end
 * carries no broadcast. */
Test(ring_or_tree, nodes_stand_on_the_ring_as_they_are_near)
{
    struct qn_machine *m = chain();
    qn_node_t order[5];
    double part = 0;
    cr_assert_eq(qn_ring_order(order, &part, m, 1), QN_OK);
    cr_assert_lt(part, 0.5);
    cr_assert_gt(part, 0);
    uint32_t far = 0;
    for (uint32_t i = 0; i + 1 < 5; i++) {
        far += m->send[order[i] * 5 + order[i + 1]] > 50;
    }
    cr_assert_leq(far, 1u);
    cr_assert_eq(qn_ring_order(order, &part, m, 65), QN_EINVAL);
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(order[i], i, "by number");
    }
    cr_assert_eq(part, 1);
    qn_machine_destroy(m);
}

Test(ring_or_tree, where_all_are_equal_the_order_is_by_number)
{
    for (uint32_t n = 3; n <= 16; n++) {
        struct qn_machine *m = uniform(n, 100, 100);
        for (uint32_t k = 1; k < n && k <= QN_RING_OR_TREE_ARITY; k++) {
            qn_node_t order[16];
            double part = 0;
            cr_assert_eq(qn_ring_order(order, &part, m, k), QN_OK);
            cr_assert_eq(part, 1);
            for (uint32_t i = 0; i < n; i++) {
                cr_assert_eq(order[i], i);
            }
        }
        qn_machine_destroy(m);
    }
}

Test(ring_or_tree, more_than_a_group_has_is_refused)
{
    struct qn_ring_or_tree r = {.ring = 7};
    struct qn_machine *m = uniform(QN_NODES_MAX + 1, 1, 1);
    cr_assert_eq(qn_ring_or_tree_choose(&r, m), QN_EINVAL);
    cr_assert_eq(r.ring, 0u);
    qn_machine_destroy(m);
}
