#ifndef QN_COLL_LARGE_TREE_H
#define QN_COLL_LARGE_TREE_H

/**
 * Trees of large collectives over ranks, from where the members are (NUMACol,
 * 3): a binomial tree of one leader per node of a cluster, below each of one
 * leader per NUMA region of its node, below each of the members of its region,
 * or these flat. The root leads its node and its region. A parent serves the
 * child with the deepest subtree first.
 *
 * Pure, any thread.
 */

#include "core/coll/large/large_variant.h"
#include "core/topo/shape.h"

/** Where a member is. */
struct qn_large_place {
    uint16_t node;   /* of a cluster, or package: the outermost level */
    uint16_t region; /* NUMA region, by its number in the node */
};

#define QN_LARGE_MEMBERS_MAX QN_CORES_MAX

/** Build the tree of members 0 .. n-1.
 *  @param s      Filled.
 *  @param place  [n]; NULL: all in one region.
 *  @param kind   QN_LARGE_RING is built as QN_LARGE_FLAT.
 *  O(n * leaders). */
void qn_large_tree_build(struct qn_shape *s, const struct qn_large_place *place,
                         uint32_t n, uint32_t root, enum qn_large_tree kind);

/** Make another member the root of a built tree: it takes the old root as its
 *  child, and leaves its parent. That is the one more copy, on the way to or
 *  from the old root; no message is sent twice. O(n). */
void qn_large_tree_reroot(struct qn_shape *s, uint32_t root);

/** Regions that have members; 1 if place is NULL. O(n^2). */
uint32_t qn_large_tree_regions(const struct qn_large_place *place, uint32_t n);

/* ---- the binomial tree of ranks: positions 0 .. n-1, 0 the root ---- */

/** The parent of position v > 0: its subtree has contiguous positions. */
static inline uint32_t qn_large_rank_parent(uint32_t v)
{
    return v & (v - 1);
}

/** Positions in the subtree of v, which begin with v. */
static inline uint32_t qn_large_rank_span(uint32_t n, uint32_t v)
{
    const uint32_t low = v & (~v + 1);
    return v == 0 || low > n - v ? n - v : low;
}

/** Children of v: v + 1, v + 2, v + 4, ... */
static inline uint32_t qn_large_rank_children(uint32_t n, uint32_t v)
{
    uint32_t count = 0;
    while ((1u << count) < qn_large_rank_span(n, v)) {
        count++;
    }
    return count;
}

#endif
