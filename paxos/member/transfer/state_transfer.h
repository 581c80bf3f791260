#ifndef QN_PAXOS_MEMBER_TRANSFER_STATE_TRANSFER_H
#define QN_PAXOS_MEMBER_TRANSFER_STATE_TRANSFER_H

/**
 * State transfer: a member that the log cannot bring up to date any more asks
 * another member for a snapshot. The joiner is a new incarnation, which has no
 * state, or a member that was stalled for too long (service.need_snapshot).
 *
 *     joiner                                donor
 *       WANT {attempt, position,  ------->    `begin`: a cut of its state
 *             alone}
 *       <-----------------------  KEEP {attempt, call}      ... not ready yet
 *       <-----------------------  CHUNK {attempt, chunk}    `next`; at most
 *       `read`                                              WINDOW not taken
 *       TAKEN {attempt, count}    ------->                  yet; taken: the
 *                                                           joiner has room
 *       ...                                   `end`
 *       `finish`, `install`
 *       <-----------------------  REFUSE {attempt, why}     another is asked
 *       STOP {attempt}            ------->    `end`
 *
 * What is transferred is the user's: struct qn_state_transfer_user gives and
 * takes it as bytes in sequence. The library's own state travels as one block
 * before it (library_state.h). Both in chunks (state_transfer_chunk.h).
 *
 * A donor serves one joiner at a time, with at most QN_STATE_TRANSFER_GIVE
 * chunks per turn. A joiner asks the leader last. It asks another donor when
 * one refuses, dies, is silent for QN_STATE_TRANSFER_SILENCE (and what its user
 * may take for a call), has no chunk for QN_STATE_TRANSFER_WAIT or sends
 * damaged chunks. A joiner that has a state serves from it, and builds the new
 * one beside it: for that time it needs the memory of both.
 *
 * Errors of callbacks: a donor whose `begin` or `next` fails refuses; a joiner
 * whose `read` or `finish` fails, or whose library refuses to resume, gives the
 * attempt up. Then the next donor is asked, and after all of them, a pause
 * later, all again. `rounds_max` bounds that: after as many rounds in sequence
 * with such an error the joiner is idle, and its status names the error.
 * QN_ENOMEM of `next`, `read` and `finish` says that nothing has changed: the
 * call is repeated, for QN_STATE_TRANSFER_SILENCE.
 *
 * All messages travel by `tell`, and their first byte is one of 16 to 21:
 * qn_state_transfer_on_message says whether a message belongs to this module.
 *
 * How a member uses it (`x` is the state transfer; each name begins with
 * qn_state_transfer_):
 *
 *     start          create(&x, ..); peer_down(x, ..) for each peer that is not
 *                    alive; in an incarnation that is not its id's first:
 *                    begin(x, 0, now)
 *     told           if on_message(x, ..) is true, the loop must not block
 *                    before the next turn
 *     need_snapshot  of struct qn_service: begin(x, slot, now)
 *     each turn      before the driver's flush: at = min(at, turn(x, now));
 *                    with `no_cut` then qn_driver_suspend_apply(d, suspends(x))
 *     peer down, up  peer_down, peer_up; before anything of the new incarnation
 *                    is received
 *     end            destroy(x) before the user's state
 *
 * Memory: one block of QN_STATE_TRANSFER_BYTES at most, for both ends together,
 * at `create`. Beside it is only what callbacks keep.
 *
 * Threads: one. Nothing blocks. Callbacks run inside the calls below, and must
 * not call them.
 */

#include "core/base/clock.h"
#include "core/base/log.h"
#include "paxos/log/refbuf.h"
#include "paxos/member/transfer/library_state.h"
#include "paxos/member/transfer/state_transfer_chunk.h"

#define QN_STATE_TRANSFER_WINDOW                                               \
    6u /* chunks sent and not taken: 3/4 of a lane */
#define QN_STATE_TRANSFER_QUEUE 18u /* received chunks that a joiner keeps */
#define QN_STATE_TRANSFER_GIVE                                                 \
    6u /* chunks made in one turn of a donor; one, if it                       \
          has other things to do (throttle.h) */
#define QN_STATE_TRANSFER_SILENCE ((qn_time_t)1000 * QN_MS)
/** A donor that has nothing to send yet says as often that it goes on ... */
#define QN_STATE_TRANSFER_KEEP    (QN_STATE_TRANSFER_SILENCE / 4)
/** ... and is waited for no longer, for one chunk. */
#define QN_STATE_TRANSFER_WAIT    ((qn_time_t)60 * QN_S)
/** Longest `call` of a user. */
#define QN_STATE_TRANSFER_CALL    ((qn_time_t)10 * QN_S)
#define QN_STATE_TRANSFER_RETRY                                                \
    ((qn_time_t)200 * QN_MS) /* longest pause after all donors failed */
/* Of both ends: the queue, the chunk under way, the library's state. */
#define QN_STATE_TRANSFER_BYTES (700u << 10)

#define QN_STATE_TRANSFER_DONE QN_HOLD_DONE /* the whole of a snapshot */

/** How far a cut is. */
struct qn_state_transfer_progress {
    uint32_t done; /* the part that `next` has given, of QN_STATE_TRANSFER_DONE
                    */
    uint32_t used; /* % used up of what the user will spend on a cut: a donor
                      hurries when it is ahead of the part given */
};

/**
 * The user's state.
 *
 * A snapshot is the state as of one slot. `begin` is called between two slots;
 * `next` gives it in parts while commands are applied; `end` is called exactly
 * once for each `begin` that returned QN_OK.
 *
 * A user that cannot keep a cut while commands are applied sets `no_cut`. While
 * such a donor gives, qn_state_transfer_suspends is true, and the member must
 * apply nothing, count as stalled for flow control, and not propose itself as
 * leader.
 */
struct qn_state_transfer_user {
    bool no_cut;    /* the state must not change from `begin` to `end` */
    qn_time_t call; /* ns that one call of `begin` or `next` may take; 0: far
                       less than QN_STATE_TRANSFER_SILENCE;
                       QN_STATE_TRANSFER_CALL at most. The joiner is told, and
                       waits; but the donor's member makes no turn so long */

    /** True if the state is complete: this member can give it, and serves from
     *  it. */
    bool (*complete)(void *ctx);

    /** Begin a cut: the state is exactly as of `position`. @return QN_OK;
     *  QN_EAGAIN: asked again in a millisecond, for QN_STATE_TRANSFER_WAIT:
     * then the joiner asks another donor; QN_ENOMEM; others: the joiner is
     * refused, and does that at once. */
    int (*begin)(void *ctx, qn_slot_t position);
    /** The next part of the cut. @param bytes  [cap] filled. @param len Filled:
     *  1..cap. @return QN_OK; QN_ENOENT: there is no more; QN_EAGAIN: as of
     *  `begin`; QN_ENOMEM: again; QN_EABORTED: the cut was given up, the joiner
     * begins again; others: as of `begin`. */
    int (*next)(void *ctx, uint8_t *bytes, size_t cap, size_t *len);
    /** The cut ends, complete or not. */
    void (*end)(void *ctx);
    /** In each turn of a cut. @param p  Zeroed; filled. @return QN_OK;
     *  QN_EABORTED: the cut was given up. Optional. */
    int (*progress)(void *ctx, struct qn_state_transfer_progress *p);

    /** The next part of a snapshot of `position`, in the sizes in which `next`
     *  has given them. It builds beside the present state. Borrowed. @return
     *  QN_OK; QN_ENOMEM: nothing has changed, again; others: the attempt is
     *  given up. */
    int (*read)(void *ctx, qn_slot_t position, struct qn_slice part);
    /** All was read: check that it is whole, and prepare `install`. @return as
     *  `read`. */
    int (*finish)(void *ctx);
    /** Replace the present state, between two slots. It cannot fail. */
    void (*install)(void *ctx, qn_slot_t position);
    /** Discard what `read` has built. Called after each attempt that had begun
     *  to read and was not installed. */
    void (*abandon)(void *ctx);
    /** Why the last `read` or `finish` failed: one clause, or NULL. Optional.
     */
    const char *(*why)(void *ctx);
    void *ctx;
};

/** What a state transfer needs of its member. */
struct qn_state_transfer_ops {
    /** Send bytes to a peer; QN_EAGAIN: no room, or it is not there. */
    int (*tell)(void *ctx, qn_node_t to, struct qn_slice bytes);
    /** Mask of nodes to be asked last: the leader. */
    uint64_t (*busy)(void *ctx);
    /** Fill the library's state: qn_driver_cut, qn_driver_ul. @return false:
     * not between two slots; a later turn may succeed. */
    bool (*cut)(void *ctx, struct qn_library_state *s);
    /** False: the user's state is lost, whatever `complete` says; a cut under
     *  way is given up. NULL: it never is. */
    bool (*whole)(void *ctx);
    /** The user's state will be that of `s` in this very turn:
     * qn_driver_install.
     *  @return QN_OK; QN_EAGAIN: try in a later turn; QN_ESTALE: it is not
     * newer than the present state; others: it contradicts the present state.
     */
    int (*resume)(void *ctx, const struct qn_library_state *s, qn_time_t now);
    /** May this member, without a consistent cut, apply nothing for a while?
     *  Not if it leads, unless it is `alone`: all other members have ended, or
     *  have told the joiner that they have no complete state. Asked in each
     *  turn of a donor with `no_cut`. NULL: always. */
    bool (*may_suspend)(void *ctx, bool alone);
    /** The slots behind `position`, in % of the bytes or of the slots that
     *  may be decided while a snapshot is given (stop_bytes, stop_slots of
     *  paxos/flow/flow.h), whichever is more. */
    uint32_t (*log_used)(void *ctx, qn_slot_t position);
    /** A donor: keep the log behind `position`, because `joiner` will
     *  continue from there. `done`: the part sent, of QN_HOLD_DONE
     *  (paxos/flow/flow.h). Called again as `done` grows. Optional. */
    void (*hold)(void *ctx, qn_node_t joiner, qn_slot_t position,
                 uint32_t done);
    /** A donor: the hold is over, because one end has given up or ended. Not
     *  called when the last chunk was sent: then the hold ends when the
     *  joiner has applied behind `position`, which the donor's driver sees.
     *  Optional. */
    void (*release)(void *ctx, qn_node_t joiner);
    /** The thread's CPU clock, ns; NULL: a donor does not spare its clients. */
    qn_time_t (*cpu)(void);
    void *ctx;
};

struct qn_state_transfer_opts {
    qn_node_t self;
    uint32_t nodes;
    uint32_t rounds_max; /* rounds of all donors, in sequence, with an error of
                            a callback; 0: a joiner asks for ever */
    const struct qn_alloc *alloc; /* kept; NULL: qn_alloc_malloc */
    struct qn_log_sink log;
    struct qn_state_transfer_ops ops;
    struct qn_state_transfer_user user;
};

/** Figures, and what went wrong last. */
struct qn_state_transfer_status {
    bool joining;         /* this member is getting a snapshot */
    bool comes;           /* a useful snapshot is on its way, or has
                             arrived ... */
    qn_slot_t position;   /* ... of this position; 0: none */
    bool giving;          /* this member is giving one */
    qn_node_t donor;      /* joining: the other end; `nodes`: none yet */
    qn_node_t joiner;     /* giving: the other end */
    uint64_t chunks;      /* joining: read of the snapshot under way */
    uint64_t joined;      /* snapshots installed */
    uint64_t given;       /* given to the end */
    uint64_t attempts;    /* donors asked */
    uint64_t anew;        /* cuts given up, so that the joiner began again */
    int error;            /* the last error of a callback of an attempt of this
                             joiner, at either end; QN_OK since it installed */
    qn_node_t error_node; /* the member whose callback that was */
    bool gave_up;         /* `rounds_max` was reached: it asks no more */
    int give_error;       /* the last error of an own callback as a donor */
};

struct qn_state_transfer; /* opaque */

/** Create one; `o` is copied. @return QN_OK; QN_ENOMEM, *out untouched. */
int qn_state_transfer_create(struct qn_state_transfer **out,
                             const struct qn_state_transfer_opts *o);
/** Free it, and end a cut under way. NULL is allowed. */
void qn_state_transfer_destroy(struct qn_state_transfer *r);

/** Begin to get a snapshot at `position` or later. While one is under way
 *  this does nothing, unless `position` is later than that snapshot's. After
 *  `gave_up` it only notes `position`, until qn_state_transfer_forget. */
void qn_state_transfer_begin(struct qn_state_transfer *r, qn_slot_t position,
                             qn_time_t now);

/** Stop: no snapshot is wanted any more; one under way is discarded, and
 *  `gave_up` is false again. */
void qn_state_transfer_forget(struct qn_state_transfer *r);

/** Handle a message of a peer. @return false: not a message of this module. */
bool qn_state_transfer_on_message(struct qn_state_transfer *r, qn_node_t from,
                                  struct qn_slice bytes, qn_time_t now);

/** The incarnation of `peer` has ended; the next one has begun. */
void qn_state_transfer_peer_down(struct qn_state_transfer *r, qn_node_t peer,
                                 qn_time_t now);
void qn_state_transfer_peer_up(struct qn_state_transfer *r, qn_node_t peer);

/** Nothing comes, nothing is given, and it has not given up: a turn would do
 *  nothing. */
bool qn_state_transfer_rests(const struct qn_state_transfer *r);

/** The position of the snapshot that comes to this member, as in the status; 0:
 *  none does. */
qn_slot_t qn_state_transfer_coming(const struct qn_state_transfer *r);

/** It has given up, as in the status. */
bool qn_state_transfer_gave_up(const struct qn_state_transfer *r);

/** True while this member gives a snapshot from a state without a consistent
 *  cut (`no_cut`): it must apply nothing. */
bool qn_state_transfer_suspends(const struct qn_state_transfer *r);

/** Do a share of the work: give at most QN_STATE_TRANSFER_GIVE chunks, and read
 *  one (QN_STATE_TRANSFER_WINDOW while there is no state to serve from).
 *  @return the time of the next call even if nothing arrives, ns; `now`: at
 *          once; QN_TIME_NEVER. */
qn_time_t qn_state_transfer_turn(struct qn_state_transfer *r, qn_time_t now);

/** Fill *out with the present figures. */
void qn_state_transfer_status(const struct qn_state_transfer *r,
                              struct qn_state_transfer_status *out);

#endif
