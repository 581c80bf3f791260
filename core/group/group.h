#ifndef QN_GROUP_GROUP_H
#define QN_GROUP_GROUP_H

/**
 * Contexts: one node's place in a topology, and its queuepairs, on which
 * collectives run.
 *
 * Broadcast: the root sends to its children, every inner node forwards to its
 * own, frame by frame (cut-through: a long message travels on before it has
 * arrived in full).
 *
 * No node waits for a child. A message that finds no room in a child's channel
 * is dropped for that child and counted. Of a long message the rest may wait
 * in the node for room, until the next long one needs its place: then the
 * child gets ABORT. The same goes for all that hangs below when a source dies
 * in the middle. So broadcast is reliable to nodes that keep up, never torn and
 * never twice; a node that misses a message learns it another way (1Paxos:
 * FETCH).
 *
 * The topology may change at any time (qn_context_reroot), node by node and in
 * any order. A context delivers what comes from any living peer, and forwards
 * only what comes from its present parent. Each lane's messages are delivered
 * in order, whole and once; what is under way while nodes disagree
 * about the tree may miss a node, or reach it over two lanes, so messages must
 * say themselves what they are (1Paxos: LEARN names its slot). Trees whose
 * members are in one order behind the root (qn_tree_build, the rest ascending)
 * can be mixed without a message ever going round in a circle; other trees must
 * not be.
 *
 * A node needs queuepairs to its neighbours in the tree. To all others they may
 * be NULL: such a peer is neither looked at nor sent to, as if it were down. A
 * context whose root is to move needs them to the neighbours in every tree to
 * come, and to each peer that may send before it has heard of a change.
 * The price of a turn depends on the peers that have queuepairs and live, not
 * on the number of members, but for one word per 64 of them.
 *
 * A device may bring a broadcast along (core/device_bcast.h). A context that is
 * given one uses no queuepairs; of its tree only the root counts, and nodes
 * that end or come are told to the device. All other nodes deliver what comes
 * of any root, each source in order. What the root has no room for is dropped
 * for all.
 *
 * Two contexts may exist over one set of queuepairs only if they use different
 * lanes. Wire format: README.md of this folder.
 *
 * Threads: one thread per node's context. Nothing blocks, nothing but create
 * and reroot allocates, all calls but these and destroy are wait-free.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/device_bcast.h"
#include "core/node_set.h"
#include "core/qp.h"
#include "core/topo/tree.h"

/** Called for each whole message that arrives, of each peer in the order it
 *  sent them. Bytes borrowed for the call, in memory of this node: they stay as
 *  they are. Must call nothing of the context but qn_context_sender. */
typedef void qn_deliver_fn(void *ctx, const void *msg, size_t len);

struct qn_context_opts {
    qn_node_t self;
    uint32_t members;           /* all nodes are below it, those of any later
                                   tree too: 1 .. QN_MEMBERS_MAX; 0:
                                   QN_NODES_MAX */
    uint32_t msg_max;           /* bytes, as of all its queuepairs (core/qp.h);
                                   0: QN_MSG_MAX */
    const struct qn_tree *tree; /* borrowed: copied */
    struct qn_qp **qp;      /* [members] by node id, kept. NULL with `bcast`.
                               An element that is NULL: there is no way to
                               that node, see qn_context_up */
    qn_deliver_fn *deliver; /* NULL allowed at the root, which then
                               receives nothing */
    void *ctx;              /* for deliver; kept */
    struct qn_device_bcast *bcast; /* how the root broadcasts; kept. NULL: along
                               the tree. All nodes say the same */
    const struct qn_alloc *alloc;  /* kept; NULL: malloc's */
};

struct qn_context;

/** `self` need not be a member of the tree, it then only receives.
 *  @return QN_OK; QN_EINVAL: the tree is not valid or has a node that is not
 *  below `members`, msg_max or members are out of range, or a needed pointer is
 *  NULL; QN_ENOMEM. O(members). */
int qn_context_create(struct qn_context **out, const struct qn_context_opts *o);

/** NULL is fine. The queuepairs stay open; a child that had got a part of a
 *  message must be told: destroy a context only together with them, or after
 *  qn_context_flush said false and no message was under way. */
void qn_context_destroy(struct qn_context *c);

/**
 * Root only: send the concatenation of parts to all below. Never waits; call
 * qn_context_flush afterwards, once for several.
 *
 * @param parts    [count], borrowed.
 * @param dropped  Optional, filled: the children that had no room. A set of
 *                 nodes below `members` of the context.
 * @return QN_OK; QN_EMSGSIZE: longer than msg_max, nothing was sent;
 *         QN_EPERM: not the root.
 */
int qn_context_bcast(struct qn_context *c, const struct qn_slice *parts,
                     uint32_t count, struct qn_node_set *dropped);

/** Receive from the peers, forward and deliver at most `budget` frames or
 *  messages, which the peers share. One call looks at the parent and at some of
 *  the others in turn; qn_context_pending tells of all. @return how many. */
uint32_t qn_context_poll(struct qn_context *c, uint32_t budget);

/** True if poll would receive something, or flush could send what waited for
 *  room. Before a node sleeps: arm the doorbell, flush, and sleep only if this
 * is false (core/qp.h, flush); with more to send, only if that flush said that
 * something waits. */
bool qn_context_pending(struct qn_context *c);

/** Send what waits for room and flush the queuepairs that were used.
 *  @return true while something waits (the peer rings when it made room). */
bool qn_context_flush(struct qn_context *c);

/** The node `peer` ended: abort what it had begun, stop using its queuepair
 *  (which may be closed after this call). What it had sent and poll has not
 *  taken yet is not delivered: poll first to get it. Any peer below `members`
 *  may be named, neighbour or not; twice is harmless. */
void qn_context_down(struct qn_context *c, qn_node_t peer);

/** `peer` is back in a new incarnation, its new queuepair is in qp[peer]. It
 *  gets what is broadcast from now on. */
void qn_context_up(struct qn_context *c, qn_node_t peer);

/**
 * The tree is another one from now on, for this node; at any time.
 *
 * A node that is a child and stays one gets all that is pending for it, if what
 * is under way comes from a parent that stays the same, or is complete here
 * already. Any other message that a node had begun to get from here is ended by
 * ABORT: it receives nothing of it. A message that a former parent had begun to
 * send is delivered here when it is complete, and forwarded no more.
 *
 * @param tree  Borrowed. `self` need not be a member. Members that are down, or
 *              have no queuepair, are skipped as children; what is below them
 *              is the caller's worry.
 * @return QN_OK; QN_EINVAL: not a valid tree, a node that is not below
 *         `members`, or no `deliver` and not its root. On failure nothing
 *         changed.
 *
 * An inner node that finds no memory to forward frame by frame forwards whole
 * messages. O(QN_MEMBERS_MAX).
 */
int qn_context_reroot(struct qn_context *c, const struct qn_tree *tree);

/** During a deliver call: the peer from whose lane the message came; else that
 *  of the last delivery. */
qn_node_t qn_context_sender(const struct qn_context *c);

/** Messages dropped for child `peer` so far. */
uint64_t qn_context_drops(const struct qn_context *c, qn_node_t peer);

#endif
