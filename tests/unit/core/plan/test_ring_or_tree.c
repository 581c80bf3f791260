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

Test(ring_or_tree, more_than_a_group_has_is_refused)
{
    struct qn_ring_or_tree r = {.ring = 7};
    struct qn_machine *m = uniform(QN_NODES_MAX + 1, 1, 1);
    cr_assert_eq(qn_ring_or_tree_choose(&r, m), QN_EINVAL);
    cr_assert_eq(r.ring, 0u);
    qn_machine_destroy(m);
}
