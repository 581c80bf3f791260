/* The trees of large collectives: three levels, leaders, deepest child first.
 */
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/large/large_tree.h"
#include "tests/support/test.h"

static struct qn_shape s; /* too large for the stack */

/* Two nodes of two regions of three members, in blocks. */
static void place_blocks(struct qn_large_place *place)
{
    for (uint32_t x = 0; x < 12; x++) {
        place[x] =
            (struct qn_large_place){(uint16_t)(x / 6), (uint16_t)(x / 3 % 2)};
    }
}

static bool same_region(const struct qn_large_place *place, uint32_t x,
                        uint32_t y)
{
    return place[x].node == place[y].node && place[x].region == place[y].region;
}

Test(large_tree, each_level_is_left_once_per_group)
{
    struct qn_large_place place[12];
    place_blocks(place);
    for (uint32_t root = 0; root < 12; root++) {
        uint32_t nodes = 0, regions = 0;
        qn_large_tree_build(&s, place, 12, root, QN_LARGE_BINOMIAL_FLAT);
        cr_assert_eq(qn_shape_check(&s), QN_OK);
        cr_assert_eq(s.root, root);
        for (uint32_t x = 0; x < 12; x++) {
            const uint32_t parent = s.parent[x];
            nodes += place[x].node != place[parent].node;
            regions += !same_region(place, x, parent);
        }
        cr_assert_eq(nodes, 1, "root %u: %u edges between nodes", root, nodes);
        cr_assert_eq(regions, 3, "root %u: %u edges between regions", root,
                     regions);
    }
}

Test(large_tree, the_root_leads_its_node_and_its_region)
{
    struct qn_large_place place[12];
    place_blocks(place);
    qn_large_tree_build(&s, place, 12, 4, QN_LARGE_BINOMIAL_FLAT);
    cr_assert_eq(s.parent[6], 4); /* the other node's leader */
    cr_assert_eq(s.parent[0], 4); /* the leader of the other region */
    cr_assert_eq(s.parent[3], 4); /* its own region */
    cr_assert_eq(s.parent[2], 0);
    cr_assert_eq(s.parent[9], 6);
    cr_assert_eq(s.parent[11], 9);
    cr_assert_eq(qn_shape_children(&s, 4)[0], 6); /* the deepest */
    cr_assert_eq(qn_shape_children(&s, 4)[1], 0);
}

Test(large_tree, one_region_of_a_power_of_two_is_a_binomial_tree)
{
    qn_large_tree_build(&s, NULL, 16, 0, QN_LARGE_BINOMIAL);
    cr_assert_eq(qn_shape_depth(&s), 4);
    cr_assert_eq(s.count[0], 4);
    cr_assert_eq(qn_shape_children(&s, 0)[0], 8);
    cr_assert_eq(qn_shape_children(&s, 0)[3], 1);
    qn_large_tree_build(&s, NULL, 16, 5, QN_LARGE_BINOMIAL_FLAT);
    cr_assert_eq(s.count[5], 15);
}

Test(large_tree, a_root_that_changes_places_costs_one_more_edge)
{
    for (uint32_t root = 0; root < 16; root++) {
        qn_large_tree_build(&s, NULL, 16, 0, QN_LARGE_BINOMIAL);
        qn_large_tree_reroot(&s, root);
        cr_assert_eq(qn_shape_check(&s), QN_OK);
        cr_assert_eq(s.root, root);
        cr_assert_eq(s.parent[0], root);
        cr_assert(qn_shape_depth(&s) <= 5);
    }
}

Test(large_tree, a_subtree_of_ranks_has_contiguous_positions)
{
    for (uint32_t n = 1; n <= 40; n++) {
        for (uint32_t v = 1; v < n; v++) {
            const uint32_t parent = qn_large_rank_parent(v);
            cr_assert(parent < v);
            cr_assert(v + qn_large_rank_span(n, v) <=
                      parent + qn_large_rank_span(n, parent));
        }
        for (uint32_t v = 0; v < n; v++) {
            uint32_t below = 1;
            for (uint32_t i = 0; i < qn_large_rank_children(n, v); i++) {
                cr_assert_eq(qn_large_rank_parent(v + (1u << i)), v);
                below += qn_large_rank_span(n, v + (1u << i));
            }
            cr_assert_eq(below, qn_large_rank_span(n, v));
        }
    }
}

Test(large_tree, regions_are_counted_that_have_members)
{
    struct qn_large_place place[12];
    place_blocks(place);
    cr_assert_eq(qn_large_tree_regions(place, 12), 4);
    cr_assert_eq(qn_large_tree_regions(place, 7), 3);
    cr_assert_eq(qn_large_tree_regions(NULL, 12), 1);
}
