#ifndef QN_COLL_COLL_H
#define QN_COLL_COLL_H

/**
 * Collective operations over a tree, or over a pair of trees: broadcast,
 * acknowledged broadcast, reduction, all-reduction, barrier, gather, scatter,
 * commit. Blocking and non-blocking, as those of MPI.
 *
 * All members start the same operations in the same order. Each start gives the
 * operation's number; several may be under way, as many as the window allows.
 *
 *     broadcast     the root's input is every member's output
 *     acknowledged  the same, and at the root it is complete only when all
 *                   members have started it and have its bytes
 *     reduce        the inputs of all, combined, are the root's output
 *     all-reduce    ... every member's; complete only when all have started
 *     barrier       an all-reduction of nothing
 *     gather        the inputs of all, in the order of ranks, are the root's
 *                   output
 *     scatter       the part of its rank of the root's input is a member's
 *                   output. The whole input travels to all: for small ones
 *     commit        the inputs are votes, words; every member's output is 1 if
 *                   all have voted 1, else 0. Two-phase commit: the members are
 *                   asked, they vote, they are told
 *
 * A member's rank is its place among the members in ascending order.
 *
 * Exchange (qn_coll_opts.exchange): in an all-reduction or barrier each member
 * sends its contribution to each other one. That is one message on the way
 * where a tree of depth d has 2 d, and n (n - 1) messages in all. With more
 * members than cores it saves half of the changes between those of one core:
 * the last one that comes needs no other to go on. For few members
 * (QN_COLL_EXCHANGE_FEW).
 *
 * Operators (operators.h): those that commute are applied as contributions
 * arrive. Contributions to others are gathered, and combined at the root in the
 * order of ranks: equal inputs give equal bits, over any tree.
 *
 * Buffers: an input is copied by start. An output is written when the operation
 * completes, and must exist until then.
 *
 * Death: qn_coll_down says that a neighbour has ended. An operation under way
 * fails if it needs a message from or to that neighbour; all later ones fail,
 * and the other neighbours are told (coll_flow.h). So no operation waits for
 * ever. A failure here does not say whether the operation was completed
 * elsewhere. To continue, make a new struct qn_coll on a tree of the living
 * members, with the next `view`; or let operations *end alike*:
 *
 * Alike (qn_coll_opts.alike): QN_EPEERDEAD says that the view is over. The
 * program, which decides about views, asks each living member to leave it
 * (qn_coll_leave), decides the next from all reports (qn_view_decide) and tells
 * it to each (qn_coll_enter; coll_view.h). Then each operation ends in the same
 * way at all that live on:
 *
 *     up to the view's `done`  it completes; at a member that lacked it as soon
 *                              as another has handed it on. First it is
 *                              QN_EAGAIN there; if all that had it end before,
 *                              the next view says that it is void
 *     later ones               void: QN_EPEERDEAD. Start again from there, as
 *                              number done + 1: qn_coll_last says where
 *
 * What was QN_OK at a living member before stays so. An operation that has
 * completed where a member has not started it yet has its number there, too,
 * and that member's next start is for it. So the n-th start of a program, but
 * for what was void, is operation n, whichever members die.
 * A group only shrinks so: no member can join it, since it would lack results
 * that the others keep.
 *
 * It costs: a reduction or gather is told to all when it is over, as many
 * messages again; of broadcasts and scatters each 8th, or each window-th if
 * that is more, is acknowledged; and memory (qn_coll_create).
 *
 * A queuepair's lane belongs to one struct qn_coll at a time, and to no other
 * user (no struct qn_context may run on it).
 *
 * Threads: one per struct qn_coll. All calls but create and wait are wait-free;
 * nothing else blocks or allocates, and no clock is read.
 */

#include "core/coll/coll_lanes.h"
#include "core/coll/coll_view.h"
#include "core/coll/payload/coll_call.h"
#include "core/wait/backoff.h"

/** Up to this number of members an exchange takes no longer than any tree. With
 *  a core for each, by the model (core/topo/predict.h) on 15 machines, of the
 * time over the best tree: 0.5 with 2 members, 0.67 to 1.00 with 3, 0.75 to
 * 0.96 with 4, 0.99 to 1.7 with 6. */
#define QN_COLL_EXCHANGE_FEW 4u

#define QN_COLL_WORDS 6u /* of a payload that travels in one cell, at most */

struct qn_coll_opts {
    qn_node_t self;             /* a member */
    const struct qn_tree *down; /* borrowed */
    const struct qn_tree *up;   /* borrowed; the same members and root. NULL:
                                   `down` */
    struct qn_qp **qp;          /* by node; borrowed. Read for the neighbours in
                                   the trees only (`exchange`: all); those queuepairs are
                                   kept          until qn_coll_down, or destroy */
    struct qn_doorbell *doorbell;   /* kept: wait sleeps on it. NULL: no wait */
    struct qn_backoff_opts backoff; /* of wait, before it sleeps */
    uint32_t window;    /* operations under way; a power of two, the same at all
                           members; 0: 1 */
    uint32_t bytes_max; /* of an operation's payload, the same at all members;
                           0: 8 * QN_COLL_WORDS. At most QN_COLL_PAYLOAD_MAX.
                           What is gathered counts as n * (8 + bytes), bytes
                           rounded up to 8; what is scattered as n * bytes */
    uint16_t view;   /* all members say the same. Messages of earlier ones are
                        dropped; it may wrap */
    uint32_t before; /* the number before that of the first operation, the
                        same at all members; it may wrap */
    bool alike;      /* operations end alike, over views: above */
    bool exchange;   /* all-reductions and barriers go from each member to each,
                        not over the trees: above. All members say the same,
                        and `qp` is of all members */
};

struct qn_coll;

/** @return QN_OK; QN_EINVAL: no valid trees, `self` is no member, the queuepair
 *  of a neighbour is NULL, window or bytes_max are out of range; QN_ENOMEM.
 *  Memory: window * (children + 2) * bytes_max; where operations end alike
 *  3 * window + max(window, 8), rounded up to a power of two, in the place of
 *  one of the two windows of payloads and results.
 *  O(members). */
int qn_coll_create(struct qn_coll **out, const struct qn_coll_opts *o);

/** NULL is fine. Operations under way end here without a result. */
void qn_coll_destroy(struct qn_coll *c);

/** Leave the present view: nothing begins or completes any more until
 *  qn_coll_enter, and the neighbours are told by poll and flush. Twice gives
 * the same report.
 *  @return QN_OK; QN_EPERM: operations do not end alike. */
int qn_coll_leave(struct qn_coll *c, struct qn_view_report *out);

struct qn_coll_view_opts {
    const struct qn_tree *down, *up; /* borrowed; of the view's members, with
                                        any root. `up` as at create */
    struct qn_qp **qp;               /* as at create */
};

/** Enter the next view; leaves the present one. Outputs of operations that are
 *  not complete must still exist.
 *  @return QN_OK; QN_EPERM: operations do not end alike; QN_EINVAL: the view is
 *  not newer, and nothing has changed; or it is not made from this member's
 *  report, of other members than the trees, or a neighbour's queuepair is NULL;
 *  QN_ENOMEM. It is in no view then, a later one may follow; QN_ECORRUPT: an
 *  operation is, or the view. */
int qn_coll_enter(struct qn_coll *c, const struct qn_view *view,
                  const struct qn_coll_view_opts *o);

/**
 * Start the next operation. Sends nothing: poll does.
 *
 * @param number  Filled: for test and wait. NULL: not wanted.
 * @return QN_OK; QN_EINVAL: an input that is needed is NULL; QN_EMSGSIZE:
 *         longer than bytes_max; QN_EAGAIN: the window is full; QN_EPEERDEAD,
 *         QN_ECORRUPT: no operation can complete any more, make a new view.
 */
int qn_coll_start(struct qn_coll *c, const struct qn_coll_call *call,
                  uint32_t *number);

/** Start a barrier. Same results. */
static inline int qn_coll_barrier(struct qn_coll *c, uint32_t *number)
{
    return qn_coll_start(c, &(struct qn_coll_call){.what = QN_COLL_ALLREDUCE},
                         number);
}

/**
 * Receive and send what is possible: one message of each neighbour that is
 * waited for.
 *
 * @return that of the operation that was started last (qn_coll_state); QN_OK if
 *         there was none. Flush before the next poll.
 */
int qn_coll_poll(struct qn_coll *c);

/** The last poll, test or wait has received or sent something: look again
 *  before a pause. */
bool qn_coll_moved(const struct qn_coll *c);

/** The number of the operation that was started last; `before`: none was. The
 * next start is for the one after it. */
uint32_t qn_coll_last(const struct qn_coll *c);

/** @return QN_OK: the operation is complete here: its output is written, and
 *  this member has sent all its messages for it. QN_EAGAIN: not yet.
 *  QN_EPEERDEAD: it needs a node that has ended, or that can take part no more;
 *  where operations end alike, also of one that is void or was not started.
 *  QN_ECORRUPT: a message that does not belong here (members that disagree
 *  about the operation, or a corrupt peer). */
int qn_coll_state(const struct qn_coll *c, uint32_t number);

/** Poll, flush, and say the state of an operation. */
int qn_coll_test(struct qn_coll *c, uint32_t number);

/** As test, again and again while its backoff lasts, then sleeping on the
 * doorbell, until the state is final or `deadline` (ns, monotonic) has passed:
 * QN_ETIMEDOUT, and the operation is still under way. Deaths must be told by
 * another thread's ring and this thread's `down`: a wait that may see one has a
 * deadline. */
int qn_coll_wait(struct qn_coll *c, uint32_t number, qn_time_t deadline);

/** True if poll would get on, if flush could send what waited for room, or if a
 *  flush has sent it since the last poll. Before a node sleeps: arm the
 *  doorbell, flush, and sleep only if this is false (core/qp.h, flush). */
bool qn_coll_pending(struct qn_coll *c);

/** Flush the queuepairs that were used.
 *  @return true while something waits for room in one of them, also a message
 *  to a neighbour that this node takes part no more. */
bool qn_coll_flush(struct qn_coll *c);

/** The node `peer` has ended. Its queuepair is used no more; it may be closed
 *  after this call. What it had sent and poll has not taken is lost: poll first
 *  to get it. Any node may be named, neighbour or not; twice is harmless. */
void qn_coll_down(struct qn_coll *c, qn_node_t peer);

#endif
