#ifndef QN_COLL_COLL_FLOW_H
#define QN_COLL_COLL_FLOW_H

/**
 * The flow machine: one member's part in a sequence of operations, as a pure
 * function of its inputs. Payloads, lanes and clocks are the caller's.
 *
 * Operations are numbered from 1, the same at all members. Each has a kind, an
 * index into the member's wirings (wiring.h). A member works on a window of
 * operations at once, those behind the last that is complete here. In each
 * stage operations fire in the order of their numbers, whichever order their
 * messages come in, and so they are delivered and completed.
 *
 *     begin ------>|              |--> deliver   the operation's payload is
 *     arrive ----->| coll_flow    |              here: do the work
 *     worked ----->|              |--> send      head and successor; `sent`
 *     down ------->|              |              when it has gone
 *                  |              |--> state     complete, failed, under way
 *
 * Room: a send stays the next one until the caller has found room for it. A
 * message of an operation beyond the window is not taken: it stays where it
 * is, and with it what is behind it in its lane. Others are taken, also those
 * of an operation that is not the next one: a member that waits for room to
 * send may have behind it what a third one needs. That cannot block: a member
 * sends for operation k + window only after it has completed k, so behind such
 * a message there is none that an earlier operation here waits for. Hence no
 * backlog is longer than a window, and members need no memory for those that
 * are ahead.
 *
 * Death: `down` says that a member has ended. An operation under way fails if
 * it needs a message from that member that is not in, or must send it one. All
 * later ones fail. Operations before it go on. When the last of these is
 * complete, the member tells its living neighbours (a send of kind
 * QN_FLOW_FAIL), and they take it as its end. So every member that
 * waits learns it from a neighbour, dead or alive.
 *
 * Acknowledgements may be cumulative: a member that has passed several
 * operations since its last acknowledgement sends one for the last of them.
 * It is the last of what is to be sent, so that it stands for as many as
 * possible.
 *
 * Threads: one per machine. Nothing blocks, nothing but create allocates.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/coll/wiring.h"

#define QN_FLOW_WINDOW_MAX 1024u
#define QN_FLOW_KINDS_MAX  15u

/** The head of a message: which operation, and which of the receiver's links it
 *  came by. */
struct qn_flow_head {
    uint32_t number; /* of the operation; it may wrap */
    uint8_t kind;    /* below `kinds`, or QN_FLOW_FAIL */
    uint8_t stage;   /* of the receiver */
    uint16_t link;   /* of that stage's predecessors */
};

#define QN_FLOW_FAIL QN_FLOW_KINDS_MAX /* the sender takes part no more */

struct qn_flow_send {
    qn_node_t to;
    struct qn_flow_head head;
    uint8_t stage; /* of this member: whose payload goes */
    bool bare;     /* without payload */
    bool later;    /* an acknowledgement that may stand for more than one
                      operation if it goes later: with the next flush */
};

struct qn_coll_flow_opts {
    const struct qn_wiring *const *wiring; /* [kinds] of this member by kind;
                                              kept, as the wirings are. All
                                              `called`, or none */
    uint32_t kinds;                        /* 1 .. QN_FLOW_KINDS_MAX */
    uint32_t window; /* operations; a power of two, the same at all members */
    uint32_t before; /* the number before the first: 0 */
    bool cumulative; /* an acknowledgement of an operation is one of all before
                        it. All members say the same. One wiring,
                        QN_WIRING_ACKNOWLEDGED, not `called` */
};

struct qn_coll_flow;

/** @return QN_OK; QN_EINVAL: kinds, window, wirings of both sorts, or one that
 *  is not cumulative; QN_ENOMEM. Memory: 1 byte per operation of the window and
 * link. */
int qn_coll_flow_create(struct qn_coll_flow **out,
                        const struct qn_coll_flow_opts *o);
void qn_coll_flow_destroy(struct qn_coll_flow *f); /* NULL is fine */

/* ---- inputs ---- */

/** This member begins its next operation: its contribution is there, or at a
 *  root that broadcasts, the payload.
 *  @param number  Filled.
 *  @return QN_OK; QN_EAGAIN: the window is full; QN_EPERM: only the root begins
 *  operations of this kind; QN_ECORRUPT: a message says that the next operation
 *  is of another kind; or the error after which none begins. */
int qn_coll_flow_begin(struct qn_coll_flow *f, uint32_t kind, uint32_t *number);

/** Whether a message may be taken now; it changes nothing.
 *  @return QN_OK: call `arrive`; QN_EAGAIN: beyond the window, leave it;
 *  QN_ECORRUPT: it cannot have been sent by this member in this place;
 *  QN_EPEERDEAD: no operation needs it any more, drop it. */
int qn_coll_flow_takes(const struct qn_coll_flow *f, qn_node_t from,
                       const struct qn_flow_head *h);

/** A message that `takes` has said QN_OK to is in.
 *  @return true: it is the first of this stage and operation. */
bool qn_coll_flow_arrive(struct qn_coll_flow *f, const struct qn_flow_head *h);

/** The local work of all operations up to `number` is done; delivered ones
 *  only. At a member that votes: its vote is there. */
void qn_coll_flow_worked(struct qn_coll_flow *f, uint32_t number);

/** A member has ended, or has said QN_FLOW_FAIL behind all that it had sent.
 *  Any node; twice is harmless. O(window * links). */
void qn_coll_flow_down(struct qn_coll_flow *f, qn_node_t node);

/** Whether that was said of it; of no neighbour: true. */
bool qn_coll_flow_gone(const struct qn_coll_flow *f, qn_node_t node);

/** Operations that are not complete here fail with `error`, and so do all later
 *  ones. */
void qn_coll_flow_fail(struct qn_coll_flow *f, int error);

/* ---- outputs ---- */

/** The next operation whose payload is here, in the order of numbers.
 *  @return false: none. */
bool qn_coll_flow_deliver(struct qn_coll_flow *f, uint32_t *number);

/** The next message to send. It stays the next one until `sent`.
 *  @return false: none. */
bool qn_coll_flow_next(struct qn_coll_flow *f, struct qn_flow_send *send);
void qn_coll_flow_sent(struct qn_coll_flow *f);

/** @return QN_OK: operation `number` is complete here: it has passed all
 *  stages, and all its messages are sent. QN_EAGAIN: not yet. Or its error. */
int qn_coll_flow_state(const struct qn_coll_flow *f, uint32_t number);

/** All operations up to this one are complete here. */
uint32_t qn_coll_flow_completed(const struct qn_coll_flow *f);

/** A number that another one follows whenever something of the above may have
 *  changed, or the members that are awaited. */
uint32_t qn_coll_flow_changes(const struct qn_coll_flow *f);

/** Why no operation begins any more, or QN_OK. */
int qn_coll_flow_error(const struct qn_coll_flow *f);

/** The kind of an operation in the window; QN_FLOW_KINDS_MAX: not known yet. */
uint32_t qn_coll_flow_kind(const struct qn_coll_flow *f, uint32_t number);

/** Call `look` for each predecessor that a message is awaited from: of each
 *  stage, those that the next operation to fire in it lacks; all of the stage
 *  if it is of no known kind yet; none where each member begins operations and
 *  this one has not. A node may be named several times. Stops when
 *  `look` says so. @return whether it was stopped. */
bool qn_coll_flow_awaited(const struct qn_coll_flow *f,
                          bool (*look)(void *ctx, qn_node_t node), void *ctx);

#endif
