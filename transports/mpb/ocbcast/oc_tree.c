#include "transports/mpb/ocbcast/oc_tree.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

static uint32_t count(uint64_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

static uint64_t below(qn_node_t node)
{
    return (UINT64_C(1) << node) - 1;
}

uint32_t qn_oc_rank(const struct qn_oc_tree *t, qn_node_t node)
{
    QN_ASSERT(node < 64 && t->root < 64);
    if ((t->members >> node & 1) == 0) {
        return QN_OC_NO_RANK;
    }
    uint64_t from_root = t->members & ~below(t->root);
    return node >= t->root ? count(from_root & below(node))
                           : count(from_root) + count(t->members & below(node));
}

qn_node_t qn_oc_member(const struct qn_oc_tree *t, uint32_t rank)
{
    uint64_t set = t->members & ~below(t->root);
    uint32_t left = rank;
    if (rank >= count(t->members)) {
        return QN_NO_MEMBER;
    }
    if (left >= count(set)) {
        left -= count(set);
        set = t->members & below(t->root);
    }
    for (; left > 0; left--) {
        set &= set - 1;
    }
    return (qn_node_t)__builtin_ctzll(set);
}

uint32_t qn_oc_child_count(const struct qn_oc_tree *t, qn_node_t node)
{
    uint32_t first = t->k * qn_oc_rank(t, node) + 1;
    uint32_t members = count(t->members);
    return first >= members ? 0 : QN_MIN(t->k, members - first);
}

qn_node_t qn_oc_child(const struct qn_oc_tree *t, qn_node_t node, uint32_t i)
{
    return qn_oc_member(t, t->k * qn_oc_rank(t, node) + 1 + i);
}

qn_node_t qn_oc_parent(const struct qn_oc_tree *t, qn_node_t node,
                       uint32_t *place)
{
    uint32_t rank = qn_oc_rank(t, node);
    QN_ASSERT(rank != 0 && rank != QN_OC_NO_RANK);
    *place = (rank - 1) % t->k;
    return qn_oc_member(t, (rank - 1) / t->k);
}
