/* The trees of OC-Bcast, all sets of some sizes against a second version. */
#include "tests/support/test.h"
#include "transports/mpb/ocbcast/oc_tree.h"

/* Members from the root on, one by one. */
static uint32_t list(const struct qn_oc_tree *t, qn_node_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 64; i++) {
        qn_node_t v = (t->root + i) % 64;
        if ((t->members >> v & 1) != 0) {
            out[n++] = v;
        }
    }
    return n;
}

Test(oc_tree, is_that_of_the_ranks)
{
    static const uint64_t sets[] = {
        1,         0x1f, 0xffffffffffff, 0x8000000000000001, 0x123456789abcd,
        UINT64_MAX};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        for (struct qn_oc_tree t = {sets[i], 0, 1}; t.root < 64; t.root++) {
            qn_node_t by_rank[64];
            if ((t.members >> t.root & 1) == 0) {
                continue;
            }
            uint32_t n = list(&t, by_rank);
            for (t.k = 1; t.k < 50; t.k += t.k < 4 ? 1 : 15) {
                uint32_t children = 0;
                for (uint32_t r = 0; r < n; r++) {
                    qn_node_t v = by_rank[r];
                    cr_assert_eq(qn_oc_rank(&t, v), r);
                    cr_assert_eq(qn_oc_member(&t, r), v);
                    for (uint32_t c = 0; c < qn_oc_child_count(&t, v); c++) {
                        uint32_t place;
                        qn_node_t child = qn_oc_child(&t, v, c);
                        children++;
                        cr_assert_eq(child, by_rank[t.k * r + 1 + c]);
                        cr_assert_eq(qn_oc_parent(&t, child, &place), v);
                        cr_assert_eq(place, c);
                    }
                }
                cr_assert_eq(children, n - 1);
                cr_assert_eq(qn_oc_member(&t, n), QN_NO_MEMBER);
            }
        }
    }
}

Test(oc_tree, no_member_has_no_rank)
{
    const struct qn_oc_tree t = {.members = 5, .root = 2, .k = 2};
    cr_assert_eq(qn_oc_rank(&t, 1), QN_OC_NO_RANK);
    cr_assert_eq(qn_oc_rank(&t, 0), 1);
}

/* Published: 1 + k + k^2 ... members in so many levels, for 48. */
Test(oc_tree, depth_of_48_as_published)
{
    static const uint32_t k[] = {2, 7, 47};
    static const uint32_t depth[] = {6, 3, 2};
    for (uint32_t i = 0; i < 3; i++) {
        const struct qn_oc_tree t = {UINT64_MAX >> 16, 5, k[i]};
        uint32_t most = 0;
        for (qn_node_t v = 0; v < 48; v++) {
            uint32_t levels = 1;
            uint32_t place;
            for (qn_node_t at = v; at != t.root; levels++) {
                at = qn_oc_parent(&t, at, &place);
            }
            most = levels > most ? levels : most;
        }
        cr_assert_eq(most, depth[i]);
    }
}
