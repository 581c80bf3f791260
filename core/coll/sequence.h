#ifndef QN_COLL_SEQUENCE_H
#define QN_COLL_SEQUENCE_H

/**
 * One member of a sequence: what several sources submit is delivered at every
 * member in one order, once, across the deaths of any members. A pure function
 * of its inputs; sequenced_broadcast.h moves its messages over queuepairs.
 *
 * It joins three parts: the flow machine (coll_flow.h) carries operation k, the
 * message with number k, over the wiring of a view; the sequencer
 * (sequencer.h) gives numbers at the root; and what is delivered is kept
 * (retained.h) until all members are known to have it.
 *
 *     source  submit --- request {tag, message} ---> root
 *     root    gives it the next number k, begins operation k of the flow
 *     all     deliver k; keep it
 *     root    k is complete: all have it --- stable k ---> source
 *
 * Each message carries its tag, and how far it is behind the number up to which
 * all members are known to have everything (*stable*). Members release what is
 * stable. The root begins no message that would be more than a window, in
 * messages or in bytes, after the stable number, so a member never has to keep
 * more.
 *
 * Views (coll_view.h): `leave` ends the present one and reports; `enter` begins
 * the next. The root of a view begins by sending again, with their old numbers,
 * the messages that some members lack; to a member that has them they are
 * operations like others, but are not delivered again. Sources request again
 * what was not delivered at themselves; the root drops what it has seen.
 *
 * What is said to have ended at its source is never lost while one member of
 * each view lives on into the next: all members of the view had delivered it.
 *
 * Threads: one. Nothing blocks; create and enter allocate.
 */

#include "core/coll/coll_flow.h"
#include "core/coll/coll_view.h"
#include "core/coll/retained.h"
#include "core/qp.h"

/** Of each message, at every member, in the order of numbers. `msg` is borrowed
 *  for the call. Must call nothing of the sequence. */
typedef void qn_sequence_deliver_fn(void *ctx, uint32_t number,
                                    const struct qn_retained_message *m);

#define QN_SEQUENCE_LEN_MAX (QN_MSG_MAX - QN_RETAINED_ROOM) /* of a message */

struct qn_sequence_opts {
    qn_node_t self;       /* below `members` */
    uint32_t members;     /* above all nodes of any view; at most
                             QN_MEMBERS_MAX */
    uint32_t incarnation; /* of this member, from 1 */
    uint32_t window;      /* messages; a power of two, at most
                             QN_FLOW_WINDOW_MAX; the same at all members */
    uint32_t len_max;     /* bytes of a message; the same at all members */
    size_t bytes_max;     /* the window in bytes, by qn_retained_cost; the same
                             at all members. 0: `window` of the longest */
    uint32_t credit;      /* submissions that have not ended; 0: this member
                             submits nothing. All members have 0, or none */
    uint32_t delivered;   /* this member's state has all up to this number: one
                             that joins later (coll_view.h), else 0 */
    const struct qn_tag *tag; /* [members] ... and of each source this is the
                                 last; borrowed. NULL: none */
    qn_sequence_deliver_fn *deliver;
    void *ctx; /* kept */
};

struct qn_sequence;

/** @return QN_OK: it is in no view yet; QN_EINVAL; QN_ENOMEM. */
int qn_sequence_create(struct qn_sequence **out,
                       const struct qn_sequence_opts *o);
void qn_sequence_destroy(struct qn_sequence *s); /* NULL is fine */

/* ---- views ---- */

/** Leave the present view: nothing is delivered any more until `enter`, and the
 *  neighbours are told. Twice gives the same report. */
void qn_sequence_leave(struct qn_sequence *s, struct qn_view_report *out);

/** Whether a view is newer than the last one that was entered. */
bool qn_sequence_awaits(const struct qn_sequence *s,
                        const struct qn_view *view);

/** Begin the next view; leaves the present one. The flow machine is a new one.
 *  @param wiring  Of this member: QN_WIRING_ACKNOWLEDGED, not `called`, or
 *                 QN_WIRING_RING, with the view's root. Kept.
 *  @return QN_OK; QN_EINVAL: the view is not newer than the last, and nothing
 *  has changed; or it is not made from this member's report, or another wiring;
 *  QN_ENOMEM. It is in no view then. */
int qn_sequence_enter(struct qn_sequence *s, const struct qn_view *view,
                      const struct qn_wiring *wiring);

/** Whether it is in a view that has not ended. */
bool qn_sequence_runs(const struct qn_sequence *s);

/** A node has ended. If it is a member of this view, neighbour or not, the view
 *  ends. */
void qn_sequence_down(struct qn_sequence *s, qn_node_t node);

/** Up to where each source has come, in what was delivered here: [members]. */
const struct qn_tag *qn_sequence_tags(const struct qn_sequence *s);

uint32_t qn_sequence_delivered(const struct qn_sequence *s);
uint32_t qn_sequence_stable(const struct qn_sequence *s);

/* ---- a source ---- */

/** Submit a message. It is kept here until it has ended, in whichever view.
 *  @param number  Filled: its number among this member's submissions, from 1.
 *  NULL: not wanted.
 *  @return QN_OK; QN_EMSGSIZE; QN_EAGAIN: no credit; QN_EPERM: a credit of 0;
 *  QN_ECORRUPT. Any time, between views as well. */
int qn_sequence_submit(struct qn_sequence *s, const void *msg, size_t len,
                       uint64_t *number);

/** All members have this member's submissions up to this number. */
uint64_t qn_sequence_ended(const struct qn_sequence *s);

/** The root of a group without credit: give a message the next number.
 *  @return QN_OK; QN_EPERM: not the root, or there is credit; QN_EMSGSIZE;
 *  QN_EAGAIN: the window is full; or the error of the view. */
int qn_sequence_send(struct qn_sequence *s, const void *msg, size_t len,
                     uint32_t *number);

/* ---- operations: between the flow machine and its messages ---- */

/** NULL: in no view yet. */
struct qn_coll_flow *qn_sequence_flow(struct qn_sequence *s);

/** The payload of a message that the flow is about to take. Borrowed.
 *  @return QN_OK or QN_ECORRUPT. */
int qn_sequence_take(struct qn_sequence *s, const struct qn_flow_head *h,
                     const void *bytes, size_t len);

/** The payload of a message that goes out, behind 8 bytes that may be written
 *  to. */
uint8_t *qn_sequence_give(struct qn_sequence *s, const struct qn_flow_send *f,
                          size_t *len);

/** The flow had an input. */
void qn_sequence_settled(struct qn_sequence *s);

/* ---- requests ---- */

/** A source: the next request to the view's root, behind 8 bytes that may be
 *  written to. It stays the next one until `requested`.
 *  @return its bytes; NULL: none. */
uint8_t *qn_sequence_next_request(struct qn_sequence *s, size_t *len);
void qn_sequence_requested(struct qn_sequence *s);

/** The root: what it would do with a request; nothing changes. Requests of one
 *  source come in order.
 *  @return QN_OK: take it, or drop an old one; QN_EAGAIN: the window is full,
 *  leave it; QN_ECORRUPT; QN_EPEERDEAD: the view has ended, leave it. */
int qn_sequence_takes_request(const struct qn_sequence *s, qn_node_t from,
                              const void *bytes, size_t len);

/** A request has come. @return likewise. */
int qn_sequence_take_request(struct qn_sequence *s, qn_node_t from,
                             const void *bytes, size_t len);

/** The root: how many sources must hear of the stable number. */
uint32_t qn_sequence_owed(const struct qn_sequence *s);
/** The i-th of them, in any order, i < qn_sequence_owed. */
qn_node_t qn_sequence_owed_to(const struct qn_sequence *s, uint32_t i);
/** The i-th has been told; what was the last one is now the i-th. */
void qn_sequence_told(struct qn_sequence *s, uint32_t i);

/** A source: the root has said so.
 *  @return QN_OK or QN_ECORRUPT. */
int qn_sequence_take_stable(struct qn_sequence *s, uint32_t number);

#endif
