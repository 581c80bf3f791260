#ifndef QN_PAXOS_DISSEMINATION_DISSEMINATION_H
#define QN_PAXOS_DISSEMINATION_DISSEMINATION_H

/**
 * Dissemination: which node sends LEARN to which (PROTOCOL.md 3.4, Tree
 * repair).
 *
 * The tree is a function of which node leads, which accepts and which live:
 *
 *     memory acceptor     the leader is the root, all others are members
 *     process acceptor    the acceptor is the root; the leader is no member of
 *                         the tree: it has the batches and gets ACCEPTED
 *
 * Every node builds it when it learns an epoch, and when it hears that an
 * incarnation has ended or begun. These are not the same moments everywhere, so
 * the root names the members of its tree in each LEARN, and whether it is a
 * ring; a node that gets one with another shape follows it. The root alone
 * chooses between ring and tree (ring_choice.h). Meanwhile a node may hang
 * below one that does not know of it: it gets LEARNs twice, or has to fetch
 * some.
 *
 * A child without room is waited for once, up to QN_STALL. Then it is left
 * behind, until it has room again, and learns what it missed by FETCH or from
 * the ring.
 *
 * Now and then the root times a broadcast (the latency probe): from the send of
 * a LEARN until all members have learned its slot.
 *
 * Invariants: children is 0 unless this node is the root; children is a subset
 * of members, and left_behind one of children; both without this node.
 *
 * Pure: the caller owns channels and the context (core/group/group.h), reads
 * shared memory and the clock. One thread. O(nodes), but for building a tree.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "core/topo/tree.h"

struct qn_machine;

#define QN_DISSEMINATION_RING_MAX 8u /* arity of a ring */

/** How long a child without room is waited for, at most. */
#define QN_STALL                  ((qn_time_t)2 * QN_MS)
/** Between two looks at a broadcast that is timed, at most: a later look cannot
 *  tell when the slot arrived. */
#define QN_LATENCY_PROBE_LOOK     QN_MS
/** From one timed broadcast to the next, at least. */
#define QN_LATENCY_PROBE_INTERVAL ((qn_time_t)10 * QN_MS)

/** Where trees come from: the first of these that is not NULL. Borrowed. */
struct qn_dissemination_source {
    const struct qn_tree *plan;     /* a given tree over all nodes */
    const struct qn_machine *costs; /* between nodes: the tree is planned */
    const char *topology;           /* a shape by name (core/topo/tree.h) */
};

/** What a tree is made of. With a ring it is the links of a diamond ring over
 *  the members, whatever the source says (qn_diamond_ring_edges). */
struct qn_dissemination_shape {
    uint64_t members; /* mask */
    uint32_t ring;    /* its arity, up to QN_DISSEMINATION_RING_MAX; 0: none */
};

/** Fields private; zeroed by qn_dissemination_init. */
struct qn_dissemination {
    qn_node_t self;
    uint32_t nodes;
    struct qn_tree tree;                 /* as adopted last; n = 0: none yet */
    struct qn_dissemination_shape shape; /* the leader may be named though it is
                                no member of the tree (process acceptor) */
    struct qn_dissemination_shape announced; /* to adopt as soon as possible;
                                no members: none */
    uint64_t children;       /* of this node if it is the root: mask */
    uint64_t left_behind;    /* children that are not waited for: mask */
    qn_node_t parent[2];     /* in this tree and in the one before; self: root;
                                QN_NO_MEMBER: no member */
    bool inner;              /* the tree has inner nodes */
    bool delivering;         /* inside a delivery: the tree must not change */
    qn_time_t stalled_since; /* a broadcast waits for a child; 0: none does */
    qn_slot_t latency_probe_slot;    /* timed, not everywhere yet; 0: none */
    qn_time_t latency_probe_sent_at; /* that one, or the last one */
    qn_time_t latency_probe_looked_at;
    qn_time_t broadcast_latency_ns; /* smoothed; 0: not known of this tree */
};

void qn_dissemination_init(struct qn_dissemination *d, qn_node_t self,
                           uint32_t nodes);

/* ---- the tree ------------------------------------------------------------ */

/**
 * The order in which a tree takes its members: the root first, then ascending.
 * Trees in such orders can be mixed (core/group/group.h).
 *
 * @param members  Mask.
 * @param order    [QN_NODES_MAX] filled.
 * @return how many; at least the acceptor.
 */
uint32_t qn_dissemination_order(const struct qn_dissemination *d,
                                uint64_t members, qn_node_t leader,
                                qn_node_t acceptor, qn_node_t *order);

/** Build a tree. @param order  [n] distinct nodes, the root first.
 *  @param ring  Arity of the ring, or 0.
 *  @return QN_OK; QN_ENOENT: there is no such topology; QN_EINVAL: the plan or
 *  the costs do not have these nodes. Then `t` is untouched. */
int qn_dissemination_plan(struct qn_tree *t,
                          const struct qn_dissemination_source *s,
                          uint32_t ring, const qn_node_t *order, uint32_t n);

/**
 * The tree is to have this shape from now on.
 *
 * @return true: build it and adopt it now. False: inside a delivery; it is
 *         announced, and until then this node has no children.
 */
bool qn_dissemination_change(struct qn_dissemination *d,
                             struct qn_dissemination_shape shape);

/** This is the tree. What is known of the tree before is forgotten, but for the
 *  parent. @param living  Mask of nodes that have not ended. */
void qn_dissemination_adopt(struct qn_dissemination *d, const struct qn_tree *t,
                            uint64_t living);

/** The root of this node's epoch, which is another node, says the shape of its
 *  tree: any bits. If it differs it is announced. */
void qn_dissemination_hear(struct qn_dissemination *d,
                           struct qn_dissemination_shape shape);

/** The context delivers; it must not be changed meanwhile. */
void qn_dissemination_deliver_begin(struct qn_dissemination *d);
void qn_dissemination_deliver_end(struct qn_dissemination *d);

/**
 * Is a LEARN from this peer believed, for a LEARN decides? Of the root of its
 * epoch, and of a node that is or was above this one; of no other, though its
 * lane is read. In a tree with inner nodes every peer may be above this one in
 * the next tree, of which this node hears by such a LEARN.
 */
bool qn_dissemination_may_tell(const struct qn_dissemination *d, qn_node_t from,
                               bool root_of_its_epoch);

/** A new epoch: all children of its tree are waited for. */
void qn_dissemination_forgive(struct qn_dissemination *d);

/** The incarnation of `peer` has ended. */
void qn_dissemination_peer_down(struct qn_dissemination *d, qn_node_t peer);

/* ---- children without room ----------------------------------------------- */

/** @param full  Mask of children without room; the others are not left behind
 *  any more. @return those that are waited for. */
uint64_t qn_dissemination_room(struct qn_dissemination *d, uint64_t full);

/** May the next broadcast not be sent yet, for children in `full`, which are
 *  waited for, have no room? When they were waited for long enough they are
 *  left behind. */
bool qn_dissemination_wait(struct qn_dissemination *d, uint64_t full,
                           qn_time_t now);

/** These children did not get a broadcast. */
void qn_dissemination_drop(struct qn_dissemination *d, uint64_t children);

/** When qn_dissemination_wait must be asked again; or QN_TIME_NEVER. */
qn_time_t qn_dissemination_deadline(const struct qn_dissemination *d);

/* ---- how long a broadcast takes ------------------------------------------ */

/** The LEARN of `slot` is on its way: it is timed, unless another one is, or
 *  was a short time ago. */
void qn_dissemination_probe_begin(struct qn_dissemination *d, qn_slot_t slot,
                                  qn_time_t now);

/** A look at the broadcast that is timed. @param arrived  All members but this
 *  node have learned its slot. A look that comes late is not counted. */
void qn_dissemination_probe_look(struct qn_dissemination *d, bool arrived,
                                 qn_time_t now);

#endif
