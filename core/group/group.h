#ifndef QN_GROUP_GROUP_H
#define QN_GROUP_GROUP_H

/**
 * Contexts: a topology with its queuepairs, on which collectives run.
 *
 * Broadcast: the root sends to its children, every inner node forwards to its
 * own, frame by frame (cut-through: a long message travels on before it has
 * arrived in full). Nobody waits for a child: a message for which a child's
 * channel has no room is dropped for that child and counted; a child dropped
 * in the middle of a long message gets ABORT as soon as there is room for one
 * frame, and so does everything below when a source dies in the middle. So
 * broadcast is reliable to whoever keeps up and never torn for anyone; who
 * misses a message learns it another way (1Paxos: FETCH).
 *
 * Acknowledged form: qn_context_bcast_acked numbers its broadcasts; every node
 * acknowledges (after its own delivery and its children's acknowledgements)
 * up the tree; qn_context_acked tells the root up to which number all have.
 *
 * Several contexts may exist over one set of queuepairs only if they use
 * different lanes. Threads: one thread per node's context. Nothing blocks.
 */

#include "core/base/bits.h"
#include "core/qp.h"
#include "core/topo/tree.h"

/** Called for each whole message that arrives; bytes borrowed for the call. */
typedef void qn_deliver_fn(void *ctx, const void *msg, size_t len);

struct qn_context_opts {
    qn_node_t self;
    const struct qn_tree *tree; /* borrowed: copied */
    struct qn_qp **qp;          /* [QN_NODES_MAX or more] by node id; kept */
    qn_deliver_fn *deliver;
    void *ctx;
};

struct qn_context;

int qn_context_create(struct qn_context **out, const struct qn_context_opts *o);
void qn_context_destroy(struct qn_context *c);

/** Root only: send the concatenation of parts to all below. Never waits.
 *  *dropped (optional) gets the mask of children that had no room.
 *  @return QN_OK, QN_EMSGSIZE, QN_EPERM if not the root. */
int qn_context_bcast(struct qn_context *c, const struct qn_slice *parts,
                     uint32_t count, uint64_t *dropped);

/** As bcast, numbered; *number filled (from 1). QN_EAGAIN if the window of
 *  unacknowledged broadcasts (64) is full or a child has no room (nothing is
 *  sent then: an acknowledged broadcast reaches all or is not begun). */
int qn_context_bcast_acked(struct qn_context *c, const struct qn_slice *parts,
                           uint32_t count, uint64_t *number);

/** Root: all nodes have delivered the acknowledged broadcasts <= it. */
uint64_t qn_context_acked(const struct qn_context *c);

/** Receive from the parent (and acknowledgements from children), forward and
 *  deliver at most `budget` frames. @return how many. */
uint32_t qn_context_poll(struct qn_context *c, uint32_t budget);

/** True if poll would find something. */
bool qn_context_pending(struct qn_context *c);

/** Flush all queuepairs of the context. @return true while cells are staged. */
bool qn_context_flush(struct qn_context *c);

/** The node `peer` ended: abort what it had begun, stop sending to it. */
void qn_context_down(struct qn_context *c, qn_node_t peer);

/** Messages dropped for child `peer` so far. */
uint64_t qn_context_drops(const struct qn_context *c, qn_node_t peer);

#endif
