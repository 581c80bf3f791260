/*
 * Dissemination: see the header.
 *
 * What a peer says about the tree is not asserted. Masks are cut to the group,
 * and a tree is built from them that is valid in itself. Leader and acceptor
 * are of an entry of the utility log, and no entry that names a node outside
 * the group is learned (qn_reconfigure_fits). Asserted is that the trees which
 * core/plan and core/topo build, and the masks that follow from them, agree
 * with each other.
 */
#include "paxos/dissemination/dissemination.h"

#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/plan/mixable_trees.h"

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

static uint64_t group_of(const struct qn_dissemination *d)
{
    return d->nodes == QN_NODES_MAX ? UINT64_MAX : bit(d->nodes) - 1;
}

/* The relations that hold between two calls. */
static void check(const struct qn_dissemination *d)
{
    QN_ASSERT((d->shape.members & ~group_of(d)) == 0);
    QN_ASSERT((d->announced.members & ~group_of(d)) == 0);
    QN_ASSERT((d->children & ~d->shape.members) == 0);
    QN_ASSERT((d->children & bit(d->self)) == 0);
    QN_ASSERT(d->children == 0 || d->tree.root == d->self);
    QN_ASSERT((d->left_behind & ~d->children) == 0);
}

void qn_dissemination_init(struct qn_dissemination *d, qn_node_t self,
                           uint32_t nodes)
{
    QN_ASSERT(nodes <= QN_NODES_MAX);
    QN_ASSERT(self < nodes);
    *d = (struct qn_dissemination){
        .self = self, .nodes = nodes, .parent = {QN_NO_MEMBER, QN_NO_MEMBER}};
}

/* ---- the tree ------------------------------------------------------------ */

uint32_t qn_dissemination_order(const struct qn_dissemination *d,
                                uint64_t members, qn_node_t leader,
                                qn_node_t acceptor, qn_node_t *order)
{
    bool leader_too = leader == acceptor;
    uint32_t n = 0;
    QN_ASSERT(leader < d->nodes);
    QN_ASSERT(acceptor < d->nodes);
    order[n++] = acceptor;
    for (qn_node_t i = 0; i < d->nodes; i++) {
        bool in = (members & bit(i)) != 0;
        if (in && i != acceptor && (leader_too || i != leader)) {
            order[n++] = i;
        }
    }
    QN_ASSERT(n <= d->nodes);
    return n;
}

int qn_dissemination_plan(struct qn_tree *t,
                          const struct qn_dissemination_source *s,
                          uint32_t ring, const qn_node_t *order, uint32_t n)
{
    char name[24];
    QN_ASSERT(n >= 1);
    if (ring != 0) {
        snprintf(name, sizeof name, "ring:k=%u", ring);
        return qn_tree_build(t, name, order, n);
    }
    return s->plan != NULL    ? qn_mixable_tree_from(t, s->plan, order, n)
           : s->costs != NULL ? qn_mixable_tree_build(t, s->costs, order, n)
                              : qn_tree_build(t, s->topology, order, n);
}

bool qn_dissemination_change(struct qn_dissemination *d,
                             struct qn_dissemination_shape shape)
{
    QN_ASSERT((shape.members & ~group_of(d)) == 0);
    QN_ASSERT(shape.ring <= QN_DISSEMINATION_RING_MAX);
    d->announced.members = 0; /* it was of another tree */
    if (d->delivering) {
        d->announced = shape;
        d->children = d->left_behind = 0;
        check(d);
        return false;
    }
    d->shape = shape;
    d->children &= shape.members;
    d->left_behind &= shape.members;
    return true;
}

static uint64_t children_of(const struct qn_tree *t, qn_node_t i)
{
    uint64_t mask = 0;
    for (uint32_t k = 0; k < t->child_count[i]; k++) {
        mask |= bit(t->child[t->child_at[i] + k]);
    }
    return mask;
}

void qn_dissemination_adopt(struct qn_dissemination *d, const struct qn_tree *t,
                            uint64_t living)
{
    bool root = t->root == d->self;
    QN_ASSERT(!d->delivering);
    QN_ASSERT(t->n >= 1);
    QN_ASSERT(t->n <= d->nodes);
    QN_ASSERT(t->root < d->nodes);
    QN_ASSERT(t->parent[t->root] == t->root);
    d->tree = *t;
    d->children = root ? children_of(t, d->self) & living : 0;
    d->left_behind &= d->children;
    d->parent[1] = d->parent[0];
    d->parent[0] = t->parent[d->self];
    d->inner = t->child_count[t->root] + 1u < t->n;
    d->stalled_since = root ? d->stalled_since : 0;
    d->latency_probe_slot = 0;
    d->broadcast_latency_ns = 0;
    QN_ASSERT((d->parent[0] == d->self) == root);
    check(d);
}

void qn_dissemination_hear(struct qn_dissemination *d,
                           struct qn_dissemination_shape shape)
{
    shape.members &= group_of(d);
    shape.ring = shape.ring <= QN_DISSEMINATION_RING_MAX ? shape.ring : 0;
    if (shape.members != d->shape.members || shape.ring != d->shape.ring) {
        d->announced = shape;
    }
}

void qn_dissemination_deliver_begin(struct qn_dissemination *d)
{
    QN_DASSERT(!d->delivering);
    d->delivering = true;
}

void qn_dissemination_deliver_end(struct qn_dissemination *d)
{
    QN_DASSERT(d->delivering);
    d->delivering = false;
}

bool qn_dissemination_may_tell(const struct qn_dissemination *d, qn_node_t from,
                               bool root_of_its_epoch)
{
    QN_DASSERT(from < d->nodes);
    QN_DASSERT(from != d->self);
    return d->inner || from == d->parent[0] || from == d->parent[1] ||
           root_of_its_epoch;
}

void qn_dissemination_forgive(struct qn_dissemination *d)
{
    d->left_behind = 0;
    check(d);
}

void qn_dissemination_peer_down(struct qn_dissemination *d, qn_node_t peer)
{
    QN_ASSERT(peer < d->nodes);
    QN_ASSERT(peer != d->self);
    d->children &= ~bit(peer);
    d->left_behind &= ~bit(peer);
    check(d);
}

/* ---- children without room ----------------------------------------------- */

uint64_t qn_dissemination_room(struct qn_dissemination *d, uint64_t full)
{
    QN_DASSERT((full & ~d->children) == 0);
    d->left_behind &= full;
    return full & ~d->left_behind;
}

bool qn_dissemination_wait(struct qn_dissemination *d, uint64_t full,
                           qn_time_t now)
{
    QN_DASSERT((full & ~d->children) == 0);
    QN_DASSERT((full & d->left_behind) == 0);
    QN_ASSERT(now >= d->stalled_since);
    if (full != 0 && d->stalled_since == 0) {
        d->stalled_since = now;
    }
    if (full != 0 && now - d->stalled_since < QN_STALL) {
        return true;
    }
    d->left_behind |= full;
    d->stalled_since = 0;
    return false;
}

void qn_dissemination_drop(struct qn_dissemination *d, uint64_t children)
{
    QN_ASSERT((children & ~d->children) == 0);
    d->left_behind |= children;
}

qn_time_t qn_dissemination_deadline(const struct qn_dissemination *d)
{
    return d->stalled_since != 0 ? d->stalled_since + QN_STALL : QN_TIME_NEVER;
}

/* ---- how long a broadcast takes ------------------------------------------ */

void qn_dissemination_probe_begin(struct qn_dissemination *d, qn_slot_t slot,
                                  qn_time_t now)
{
    QN_DASSERT(slot != 0);
    QN_DASSERT(now >= d->latency_probe_sent_at);
    if (d->latency_probe_slot == 0 &&
        now - d->latency_probe_sent_at >= QN_LATENCY_PROBE_INTERVAL) {
        d->latency_probe_slot = slot;
        d->latency_probe_sent_at = d->latency_probe_looked_at = now;
    }
}

void qn_dissemination_probe_look(struct qn_dissemination *d, bool arrived,
                                 qn_time_t now)
{
    bool late = now - d->latency_probe_looked_at > QN_LATENCY_PROBE_LOOK;
    bool others = (d->shape.members & ~bit(d->self)) != 0;
    QN_ASSERT(d->latency_probe_slot != 0);
    QN_ASSERT(now >= d->latency_probe_looked_at);
    QN_ASSERT(d->latency_probe_looked_at >= d->latency_probe_sent_at);
    d->latency_probe_looked_at = now;
    if (!arrived) {
        return;
    }
    if (!late && others) {
        qn_time_t took = QN_MAX(now - d->latency_probe_sent_at, 1);
        qn_time_t before = d->broadcast_latency_ns;
        d->broadcast_latency_ns = before == 0 ? took : (7 * before + took) / 8;
    }
    d->latency_probe_slot = 0;
}
