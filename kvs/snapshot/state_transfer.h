#ifndef QN_KVS_SNAPSHOT_STATE_TRANSFER_H
#define QN_KVS_SNAPSHOT_STATE_TRANSFER_H

/**
 * State transfer: a replica that the log cannot bring up to date any more asks
 * another replica for a snapshot. The joiner is a new incarnation, which has no
 * state, or a replica that was stalled for too long (service.need_snapshot).
 *
 *     joiner                                donor
 *       WANT {attempt, position}  ------->    a cut of its store begins
 *       <-----------------------  CHUNK {attempt, chunk}    at most WINDOW
 *       TAKEN {attempt, count}    ------->                  not taken yet;
 *                                                           taken: the joiner
 *                                                           has room for more
 *       ...                                   the cut ends
 *       store, then log, replaced
 *       <-----------------------  REFUSE {attempt, why}     another is asked
 *       STOP {attempt}            ------->    the cut ends
 *
 * A donor serves one joiner at a time, with at most QN_STATE_TRANSFER_GIVE
 * chunks per turn. It keeps old versions up to a quarter of its store's size
 * (`log_bytes` at least); beyond that the cut is given up and the joiner begins
 * again. A joiner asks the leader last. It asks another donor when one refuses,
 * dies, is silent for QN_STATE_TRANSFER_SILENCE or sends damaged chunks. A
 * joiner that has a store serves from it, and builds the new store beside it:
 * for that time it needs the memory of both.
 *
 * All messages travel by `tell`, beside those of kvs/introspect/fanout_query.h.
 * The first byte tells them apart: qn_state_transfer_on_message says whether a
 * message belongs to this module.
 *
 * How a replica process uses it (ops: kvs/replica/state_transfer_ops.h; `x` is
 * the state transfer; each name begins with qn_state_transfer_):
 *
 *     start          qn_replica_create, then create(&x, ..); peer_down(x, ..)
 *                    for each peer that is not alive; in an incarnation that is
 *                    not its id's first: begin(x, 0, now)
 *     told           if on_message(x, ..) is true, the loop must not block
 *                    before the next turn; else qn_fanout_on_message(..)
 *     need_snapshot  of struct qn_replica_opts: begin(x, slot, now)
 *     each turn      before the driver's flush, beside qn_fanout_turn:
 *                    at = min(at, turn(x, now))
 *     peer down, up  peer_down, peer_up; before anything of the new incarnation
 *                    is received
 *     ready          qn_replica_store() != NULL: the snapshot is installed, and
 *                    the log is applied as far as others had shown by then
 *     end            destroy(x) before qn_replica_destroy
 *
 * Threads: one. Nothing blocks.
 */

#include "core/base/clock.h"
#include "kvs/snapshot/snapshot.h"

#define QN_STATE_TRANSFER_WINDOW                                               \
    6u /* chunks sent and not taken: 3/4 of a lane */
#define QN_STATE_TRANSFER_QUEUE 18u /* received chunks that a joiner keeps */
#define QN_STATE_TRANSFER_GIVE                                                 \
    6u /* chunks made in one turn of a donor; one, if it                       \
          has other things to do (kvs/snapshot/throttle.h) */
#define QN_STATE_TRANSFER_SILENCE ((qn_time_t)1000 * QN_MS)
#define QN_STATE_TRANSFER_RETRY                                                \
    ((qn_time_t)200 * QN_MS) /* longest pause after all donors failed */

/** What a state transfer needs of its replica. */
struct qn_state_transfer_ops {
    /** Send bytes to a peer; QN_EAGAIN: no room, or it is not there. */
    int (*tell)(void *ctx, qn_node_t to, struct qn_slice bytes);
    /** The store, complete; NULL: it has none to give, and none to serve. */
    struct qn_store *(*store)(void *ctx);
    /** Fill in resume, ul, config, applied_ms, nodes; the store is exactly at
     *  m->resume.position. @return false: not now; a later turn may succeed. */
    bool (*facts)(void *ctx, struct qn_snapshot_meta *m);
    /** Mask of nodes to be asked last. */
    uint64_t (*busy)(void *ctx);
    /** Install this state. @return QN_OK: store taken; QN_EAGAIN: try in a
     *  later turn; QN_ESTALE: it is not newer than the present state; others:
     *  it contradicts the present state. */
    int (*install)(void *ctx, struct qn_store *store,
                   const struct qn_snapshot_meta *m, qn_time_t now);
    /** Free a store in steps. Taken. */
    void (*discard)(void *ctx, struct qn_store *store);
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
     *  joiner has applied behind `position`, which the donor's replica sees.
     *  Optional. */
    void (*release)(void *ctx, qn_node_t joiner);
    /** The thread's CPU clock, ns; NULL: a donor does not spare its clients. */
    qn_time_t (*cpu)(void);
    void *ctx;
};

struct qn_state_transfer_opts {
    qn_node_t self;
    uint32_t nodes;
    const struct qn_config *config; /* start configuration; kept */
    uint64_t log_bytes; /* kept of the log, and at least of old versions */
    struct qn_state_transfer_ops ops;
};

/** Figures for INFO. */
struct qn_state_transfer_status {
    bool joining;              /* this replica is getting a snapshot */
    bool comes;                /* a useful snapshot is on its way, or has
                                  arrived ... */
    qn_slot_t position;        /* ... of this position; 0: none */
    bool giving;               /* this replica is giving one */
    qn_node_t donor, joiner;   /* the other end then; `nodes`: none yet */
    uint64_t keys, keys_total; /* joining: of the snapshot under way */
    uint64_t joined, given;    /* snapshots installed, given to the end */
    uint64_t attempts;         /* donors asked */
    uint64_t cut_bytes;        /* giving: old versions kept, */
    uint64_t cut_bytes_max;    /* and how many may be */
    uint64_t cut_bytes_most;   /* the most kept by a cut of this store */
    uint64_t cuts_anew;        /* given up, so that the joiner began again */
};

struct qn_state_transfer; /* opaque */

/** Create one; `o` is copied, what it points to is kept. @return QN_OK;
 *  QN_ENOMEM, *out untouched. */
int qn_state_transfer_create(struct qn_state_transfer **out,
                             const struct qn_state_transfer_opts *o);
/** Free it, and end a cut under way. NULL is allowed. */
void qn_state_transfer_destroy(struct qn_state_transfer *r);

/** Begin to get a snapshot at `position` or later. While one is under way
 *  this does nothing, unless `position` is later than that snapshot's. */
void qn_state_transfer_begin(struct qn_state_transfer *r, qn_slot_t position,
                             qn_time_t now);

/** Stop: no snapshot is wanted any more; one under way is discarded. */
void qn_state_transfer_forget(struct qn_state_transfer *r);

/** Handle a message of a peer. @return false: not a message of this module. */
bool qn_state_transfer_on_message(struct qn_state_transfer *r, qn_node_t from,
                                  struct qn_slice bytes, qn_time_t now);

/** The incarnation of `peer` has ended; the next one has begun. */
void qn_state_transfer_peer_down(struct qn_state_transfer *r, qn_node_t peer,
                                 qn_time_t now);
void qn_state_transfer_peer_up(struct qn_state_transfer *r, qn_node_t peer);

/** Do a share of the work: give at most QN_STATE_TRANSFER_GIVE chunks, and read
 * one (QN_STATE_TRANSFER_WINDOW while there is no store to serve from): about
 * 0.5 ms.
 *  @return the time of the next call even if nothing arrives, ns; `now`: at
 *          once; QN_TIME_NEVER. */
qn_time_t qn_state_transfer_turn(struct qn_state_transfer *r, qn_time_t now);

/** Fill *out with the present figures. */
void qn_state_transfer_status(const struct qn_state_transfer *r,
                              struct qn_state_transfer_status *out);

#endif
