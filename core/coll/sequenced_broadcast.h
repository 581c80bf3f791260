#ifndef QN_COLL_SEQUENCED_BROADCAST_H
#define QN_COLL_SEQUENCED_BROADCAST_H

/**
 * Acknowledged broadcast as a pipeline: every member is delivered to, in one
 * order, and a source learns up to which message all have come. Over a tree or
 * a pair of trees (a balanced one is BT of the paper on diamond rings), or over
 * a diamond ring (SDR). A sequence (sequence.h) on queuepairs.
 *
 * Unlike a call of coll.h it is not begun by each member: all poll and are
 * called back.
 *
 * Sources: without `credit` the root alone sends, by _send. With it every
 * member submits, by _submit; requests to the root go over queuepairs of their
 * own (request_lanes.h).
 *
 * Window: a bound on the messages, and on their bytes, that are not known to be
 * at all members; each keeps them. So a lane never holds more than a window,
 * and no member needs a backlog.
 *
 * Death: all members get QN_EPEERDEAD: at once those that are told (_down), the
 * others when they wait for something (coll_flow.h). Then the caller asks each
 * to leave the view, decides the next one from their reports (coll_view.h), and
 * lets each enter it. Nothing that has ended at its source is lost, nothing is
 * delivered twice, and what a living source has submitted is sent again. What
 * _send has sent and no living member was delivered is lost. A queuepair
 * between two living members stays the same in all views; one to a new
 * incarnation is a new one.
 *
 * Threads: one per struct. All calls but create, enter and destroy are
 * wait-free; nothing blocks, nothing but create and enter allocates, and no
 * clock is read.
 */

#include "core/coll/coll_lanes.h"
#include "core/coll/request_lanes.h"

/** Called for each message, at every member, the root included, in the order
 *  of numbers. Bytes borrowed for the call. An acknowledgement that says that
 *  all have worked (qn_wiring_ring_opts.observed) goes out behind it. Must call
 *  nothing of the broadcast. */
typedef void qn_sequenced_deliver_fn(void *ctx, uint32_t number,
                                     const void *msg, size_t len);

/** What goes on in later views; without it there is one view only, and the root
 *  sends. */
struct qn_sequenced_views_opts {
    qn_node_t self;
    uint32_t members;     /* above all nodes of any view */
    uint32_t incarnation; /* of this member, from 1 */
    uint32_t credit;      /* submissions that have not ended; 0: the root alone
                             sends. All members say 0, or none */
    uint32_t delivered;   /* a member that joins later: see sequence.h */
    const struct qn_tag *tag;
    struct qn_view view;    /* the first one */
    struct qn_qp **request; /* by node; borrowed; NULL without credit. Those of
                               the view's members are kept until down or
                               destroy */
};

struct qn_sequenced_broadcast_opts {
    const struct qn_wiring *wiring; /* of this member: QN_WIRING_ACKNOWLEDGED,
                                       not `called`, or QN_WIRING_RING. Kept */
    struct qn_qp **qp; /* by node; borrowed. Read for the neighbours only; those
                          queuepairs are kept until down, enter, or destroy */
    uint32_t window;   /* messages; a power of two, the same at all members */
    uint32_t bytes_max;  /* of a message, the same at all members; at most
                            QN_SEQUENCE_LEN_MAX */
    size_t window_bytes; /* of the messages of a window, each with what
                            qn_retained_cost says; the same at all members. 0:
                            `window` of the longest */
    uint16_t
        view; /* all members say the same; see coll.h. Unused with `views` */
    const struct qn_sequenced_views_opts *views; /* borrowed; may be NULL */
    qn_sequenced_deliver_fn *deliver;
    void *ctx; /* for deliver; kept */
};

struct qn_sequenced_broadcast;

/** @return QN_OK; QN_EINVAL: another wiring, a neighbour without a queuepair,
 *  window or bytes_max out of range, a view without this member; QN_ENOMEM.
 *  Memory: window_bytes, credit * bytes_max, and 24 bytes per node. */
int qn_sequenced_broadcast_create(struct qn_sequenced_broadcast **out,
                                  const struct qn_sequenced_broadcast_opts *o);
void qn_sequenced_broadcast_destroy(
    struct qn_sequenced_broadcast *b); /* NULL too */

/** The root without credit: send to all, and deliver here. Flush afterwards,
 *  once for several.
 *  @param msg     [len] borrowed.
 *  @param number  Filled, from 1, may wrap; NULL: not wanted.
 *  @return QN_OK; QN_EPERM: not the root, or there is credit; QN_EMSGSIZE;
 *  QN_EAGAIN: the window is full; QN_EPEERDEAD, QN_ECORRUPT: none is sent any
 *  more in this view. */
int qn_sequenced_broadcast_send(struct qn_sequenced_broadcast *b,
                                const void *msg, size_t len, uint32_t *number);

/** With credit: have a message delivered at all, in this view or a later one.
 *  Any time, also between views. Flush afterwards.
 *  @param msg     [len] copied.
 *  @param number  Filled, from 1: of this member's submissions; NULL: not
 *                 wanted.
 *  @return QN_OK; QN_EPERM: there is no credit; QN_EMSGSIZE; QN_EAGAIN: all of
 *  it is used. */
int qn_sequenced_broadcast_submit(struct qn_sequenced_broadcast *b,
                                  const void *msg, size_t len,
                                  uint64_t *number);

/** All members of the view have this member's submissions up to this number. */
uint64_t qn_sequenced_broadcast_ended(const struct qn_sequenced_broadcast *b);

/** At the root: all members have the messages up to this number. Elsewhere:
 * this member has no more to do for them. */
uint32_t qn_sequenced_broadcast_acked(const struct qn_sequenced_broadcast *b);

/** Why nothing is sent any more in this view, or QN_OK. */
int qn_sequenced_broadcast_error(const struct qn_sequenced_broadcast *b);

/** Receive at most one message of each neighbour, deliver, send what there is.
 *  @return true if something moved. */
bool qn_sequenced_broadcast_poll(struct qn_sequenced_broadcast *b);

/** As qn_coll_pending and qn_coll_flush. */
bool qn_sequenced_broadcast_pending(struct qn_sequenced_broadcast *b);
bool qn_sequenced_broadcast_flush(struct qn_sequenced_broadcast *b);

/** As qn_coll_down, of any member: it ends the view. */
void qn_sequenced_broadcast_down(struct qn_sequenced_broadcast *b,
                                 qn_node_t peer);

/** Leave the view: nothing is delivered until enter. Neighbours are told with
 *  the next flush. With `views` only.
 *  @param out  Filled: this member's report. */
void qn_sequenced_broadcast_leave(struct qn_sequenced_broadcast *b,
                                  struct qn_view_report *out);

/** Enter the next view.
 *  @param wiring  Of this member in it; kept. That of the former view is used
 *                 no more.
 *  @param qp, request  As in the options, of the members of the view.
 *  @return QN_OK; QN_EINVAL: a view that is not newer, and nothing has changed;
 *  or one that is not made from this member's report, another wiring, a
 *  neighbour without a queuepair; QN_ENOMEM: it is in no view then. */
int qn_sequenced_broadcast_enter(struct qn_sequenced_broadcast *b,
                                 const struct qn_view *view,
                                 const struct qn_wiring *wiring,
                                 struct qn_qp **qp, struct qn_qp **request);

/** As qn_sequence_tags: with a state as of this member's report, and these, a
 *  node joins. */
const struct qn_tag *qn_sequenced_broadcast_tags(
    const struct qn_sequenced_broadcast *b);

#endif
