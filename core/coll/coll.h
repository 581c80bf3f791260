#ifndef QN_COLL_COLL_H
#define QN_COLL_COLL_H

/**
 * Reductions and barriers over a tree: non-blocking collectives beside the
 * broadcast of core/group.
 *
 * A reduction combines one contribution of each member, a vector of words, on
 * the way up: a node waits for its children, combines what they sent with its
 * own vector, and sends the result to its parent. The root ends with the
 * result. An all-reduction then sends the result down again, so each node has
 * it; with no words it is a barrier: no node leaves it before all have entered.
 * Each message is one cell. core/topo/predict.h prices both
 * (QN_COLLECTIVE_REDUCE, QN_COLLECTIVE_BARRIER).
 *
 * Children are received from in the order in which their messages are found,
 * each poll looks at all that are still missing; so the operator must be
 * associative and commutative.
 *
 * All members make the same operations in the same order. Operations are
 * numbered, and each message has its operation's number. A member may be ahead
 * of its parent. In barriers it is ahead by one operation at most, because it
 * ends an operation only with its parent's message; in reductions by as many as
 * the lane has cells, because it ends one when its message is in the lane. A
 * node takes one message of each child per operation, and none before it has
 * started that operation: what is ahead stays in the lane, in order, and no
 * node needs memory for it.
 *
 * Death: every member is needed by every operation. qn_coll_down says that a
 * neighbour has ended. The operation in progress fails if it still needs a
 * message from or to that neighbour; all later ones fail. A node that can take
 * part no more says so to its other neighbours in a message of its own, behind
 * what it has sent before. So each living node that waits learns it from a
 * neighbour, dead or alive, and no operation hangs. A failure here does not
 * tell whether the operation was completed elsewhere. To continue, make a new
 * `struct qn_coll` on a tree of the living members, with the next `instance`.
 *
 * A queuepair's lane belongs to one instance at a time, and to no other user
 * (no struct qn_context may run on it).
 *
 * Threads: one thread per struct qn_coll. All calls but init are wait-free;
 * nothing blocks, nothing allocates, no clock is read.
 */

#include <stdbool.h>

#include "core/qp.h"
#include "core/topo/tree.h"

#define QN_COLL_WORDS 6u /* of a vector, at most: a message is one cell */

enum qn_coll_kind {
    QN_COLL_REDUCE,    /* the root has the result */
    QN_COLL_ALLREDUCE, /* every node has it, and knows that all have started */
};

/** into[i] = into[i] (+) from[i] for i < count; associative and commutative,
 *  the same at all members. Called by poll; must not call the collective. */
typedef void qn_coll_combine(uint64_t *into, const uint64_t *from,
                             uint32_t count);

struct qn_coll_opts {
    qn_node_t self;             /* a member */
    const struct qn_tree *tree; /* borrowed */
    struct qn_qp **qp;          /* by node; borrowed. Read for the neighbours in
                                   the tree only; those queuepairs are kept
                                   until qn_coll_down, or as long as calls are
                                   made */
    uint16_t instance;          /* all members say the same. Messages of earlier
                                   instances are dropped; it may wrap */
};

/** One cell. */
struct qn_coll_message {
    uint16_t instance;
    uint8_t what;    /* see coll.c */
    uint8_t count;   /* words that follow */
    uint32_t number; /* of the operation */
    uint64_t word[QN_COLL_WORDS];
};

/** A neighbour. Fields are private. */
struct qn_coll_peer {
    struct qn_qp *qp; /* NULL: it has ended */
    qn_node_t node;
    uint16_t next;      /* GATHER: the next child that is missing */
    uint16_t used_next; /* the next one to be flushed */
    bool missing;       /* a child whose message is awaited */
    bool used;          /* since its queuepair was flushed */
    bool told;          /* that this node takes part no more */
};

/* What the operation in progress waits for. */
enum qn_coll_phase {
    QN_COLL_IDLE,    /* nothing: none is in progress */
    QN_COLL_GATHER,  /* messages of children */
    QN_COLL_PASS,    /* room for the message to the parent */
    QN_COLL_AWAIT,   /* the parent's message */
    QN_COLL_RELEASE, /* room for the messages to the children */
};

/** The bytes are the caller's, qn_coll_bytes of them. Fields are private. */
struct qn_coll {
    enum qn_coll_phase phase;
    enum qn_coll_kind kind; /* of the operation in progress, or the last */
    qn_coll_combine *combine;
    uint32_t number;  /* of that operation; from 1, wraps */
    int result;       /* of the last operation; QN_OK before the first */
    int error;        /* why no operation can start any more, or QN_OK */
    uint32_t missing; /* children */
    uint32_t untold;  /* neighbours, once `error` is set */
    uint16_t instance;
    uint16_t children; /* peer[0 ..] in send order; behind them the parent */
    uint16_t peers;    /* children, and 1 unless this node is the root */
    uint16_t first;    /* missing child */
    uint16_t used;     /* first neighbour to be flushed */
    uint16_t at;       /* RELEASE: the next child */
    struct qn_coll_message mine; /* the vector, combined so far */
    struct qn_coll_message in;   /* received last */
    struct qn_coll_peer peer[];
};

/** Bytes of the struct qn_coll of a member of a valid tree. */
size_t qn_coll_bytes(const struct qn_tree *tree, qn_node_t self);

/** @param c  Filled: qn_coll_bytes, aligned as malloc does. There is nothing to
 *            finish: the caller frees the bytes when it makes no call any more.
 *  @return QN_OK; QN_EINVAL: no valid tree, `self` is no member, or the
 *  queuepair of a neighbour is NULL. O(members). */
int qn_coll_init(struct qn_coll *c, const struct qn_coll_opts *o);

/**
 * Start the next operation; none may be in progress. Sends nothing: poll does.
 *
 * @param combine  Kept until the operation has ended; NULL is fine if count is
 *                 0.
 * @param word     [count] the contribution. Borrowed.
 * @param count    0 .. QN_COLL_WORDS, the same at all members.
 * @return QN_OK; QN_EINVAL: count; QN_EPEERDEAD, QN_ECORRUPT: no operation can
 *         complete any more, make a new instance. O(children).
 */
int qn_coll_start(struct qn_coll *c, enum qn_coll_kind kind,
                  qn_coll_combine *combine, const uint64_t *word,
                  uint32_t count);

/** Start a barrier. Same results. */
static inline int qn_coll_barrier(struct qn_coll *c)
{
    return qn_coll_start(c, QN_COLL_ALLREDUCE, NULL, NULL, 0);
}

/**
 * Receive and send what is possible.
 *
 * @return QN_OK: the operation is complete here, or none was started. At a node
 *         that is not the root a reduction is complete when its message is in
 *         the parent's lane.
 *         QN_EAGAIN: call again; flush in between.
 *         QN_EPEERDEAD: the operation needs a node that has ended, or that can
 *         take part no more. QN_ECORRUPT: a message that does not belong here
 *         (members that disagree about the operation, or a corrupt peer). All
 *         later calls of start fail; poll repeats its answer until then.
 *         O(children that are missing).
 */
int qn_coll_poll(struct qn_coll *c);

/** The result, after poll has returned QN_OK: at the root, and of an
 *  all-reduction at every node. [count] words, until the next start. */
const uint64_t *qn_coll_value(const struct qn_coll *c);

/** True if poll would get on, or flush could send what waited for room. Before
 *  a node sleeps: arm the doorbell, flush, and sleep only if this is false
 *  (core/qp.h, flush). */
bool qn_coll_pending(struct qn_coll *c);

/** Flush the queuepairs that were used.
 *  @return true while something waits for room in one of them, also a message
 *  to a neighbour that this node takes part no more. */
bool qn_coll_flush(struct qn_coll *c);

/** The node `peer` has ended. Its queuepair is used no more; it may be closed
 *  after this call. What it had sent and poll has not taken is lost: poll first
 *  to get it. Any node may be named, neighbour or not; twice is harmless.
 *  O(children). */
void qn_coll_down(struct qn_coll *c, qn_node_t peer);

#endif
