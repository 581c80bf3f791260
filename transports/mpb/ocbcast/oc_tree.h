#ifndef QN_TRANSPORTS_MPB_OCBCAST_OC_TREE_H
#define QN_TRANSPORTS_MPB_OCBCAST_OC_TREE_H

/**
 * The trees of OC-Bcast. Members are ranked from the root on, ascending and
 * around; the children of rank r are k r + 1 to k r + k, as far as there are
 * members. All that take part compute the same tree from the same set.
 *
 *     k = 2, members 0 to 6, root 5       5
 *                                     6       0
 *                                   1   2   3   4
 *
 * A parent wakes its first two children only, and children wake their siblings:
 * place 0 is the parent, place i its i-th child; place j wakes 2 j + 1 and
 * 2 j + 2.
 *
 * Pure. Source: Petrovic, EPFL thesis, 4.2.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

/** No rank of a set of 64. */
#define QN_OC_NO_RANK 64u

struct qn_oc_tree {
    uint64_t members; /* bit i: node i */
    qn_node_t root;   /* one of them */
    uint32_t k;       /* children of a node, at least 1 */
};

/** 0 at the root; QN_OC_NO_RANK: not a member. */
uint32_t qn_oc_rank(const struct qn_oc_tree *t, qn_node_t node);

/** The member of that rank; or QN_NO_MEMBER. O(rank). */
qn_node_t qn_oc_member(const struct qn_oc_tree *t, uint32_t rank);

/** Children of a member. */
uint32_t qn_oc_child_count(const struct qn_oc_tree *t, qn_node_t node);

/** The i-th child of a member, from 0. */
qn_node_t qn_oc_child(const struct qn_oc_tree *t, qn_node_t node, uint32_t i);

/** The parent of a member that is not the root, and which child it is, from 0.
 */
qn_node_t qn_oc_parent(const struct qn_oc_tree *t, qn_node_t node,
                       uint32_t *place);

#endif
