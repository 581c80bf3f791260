#ifndef QN_KVS_SNAPSHOT_STATE_TRANSFER_H
#define QN_KVS_SNAPSHOT_STATE_TRANSFER_H

/**
 * Rejoining: a replica that the log cannot bring up to date any more asks
 * another for a snapshot. It is a new life, which has nothing, or one that
 * stood still for too long (service.need_snapshot).
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
 * A donor serves one joiner at a time, at most QN_STATE_TRANSFER_GIVE chunks a
 * turn, and keeps at most a quarter of its store's size of old versions
 * (`log_bytes` at least); beyond, the cut is given up and the joiner begins
 * again. A joiner asks the leader last, and another donor when one refuses,
 * dies, is silent for QN_STATE_TRANSFER_SILENCE or sends what is damaged. A
 * joiner that serves goes on serving what it has, and builds the new store
 * beside the old one: for that time it needs the memory of both.
 *
 * All messages travel by `tell`, beside those of kvs/introspect/fanout_query.h;
 * the first byte tells them apart: qn_state_transfer_on_message says whether a
 * message was of here.
 *
 * How a replica process uses it (ops: kvs/replica/state_transfer_ops.h):
 *
 *     start        qn_replica_create, qn_state_transfer_create;
 * qn_state_transfer_peer_down for each peer that is not alive; in a life that
 * is not its id's first: qn_state_transfer_begin(.., 0, now) on told      if
 * (qn_state_transfer_on_message(..)) the loop must not block before the next
 * turn; else qn_fanout_on_message(..) need_snapshot (struct qn_replica_opts)
 * qn_state_transfer_begin(.., slot, now) each turn    before the driver's
 * flush, as qn_fanout_turn: at = min(at, qn_state_transfer_turn(.., now)) peer
 * down, up   qn_state_transfer_peer_down, qn_state_transfer_peer_up; before
 * anything of the new life is received ready        qn_replica_store() != NULL:
 * the snapshot is there and the log was applied as far as anybody had seen by
 * then end          qn_state_transfer_destroy before qn_replica_destroy
 *
 * Threads: one. Nothing blocks.
 */

#include "core/base/clock.h"
#include "kvs/snapshot/snapshot.h"

#define QN_STATE_TRANSFER_WINDOW                                               \
    6u /* chunks sent and not taken: 3/4 of a lane */
#define QN_STATE_TRANSFER_QUEUE                                                \
    18u /* chunks that a joiner keeps to be read                               \
         */
#define QN_STATE_TRANSFER_GIVE                                                 \
    6u /* chunks made in one turn of a donor; one, if it                       \
          has other things to do (kvs/snapshot/throttle.h) */
#define QN_STATE_TRANSFER_SILENCE ((qn_time_t)1000 * QN_MS)
#define QN_STATE_TRANSFER_RETRY                                                \
    ((qn_time_t)200 * QN_MS) /* when nobody could help: at most so long */

/** What rejoining needs of its replica. */
struct qn_state_transfer_ops {
    /** Send bytes to a peer; QN_EAGAIN: no room, or it is not there. */
    int (*tell)(void *ctx, qn_node_t to, struct qn_slice bytes);
    /** The store, complete; NULL: it has none to give, and none to serve. */
    struct qn_store *(*store)(void *ctx);
    /** The store is exactly at m->resume.position, which is filled in, as are
     *  ul, config, applied_ms, nodes. @return false: not now, in a later turn
     *  perhaps. */
    bool (*facts)(void *ctx, struct qn_snapshot_meta *m);
    /** Mask of nodes to be asked last. */
    uint64_t (*busy)(void *ctx);
    /** The state is to be this one. QN_OK: store taken. QN_EAGAIN: in a later
     *  turn; QN_ESTALE: it is not newer than what is there; others: it does not
     *  fit. */
    int (*install)(void *ctx, struct qn_store *store,
                   const struct qn_snapshot_meta *m, qn_time_t now);
    /** Throw a store away, in steps. Taken. */
    void (*discard)(void *ctx, struct qn_store *store);
    /** How much the slots behind `position` are, in % of the bytes or slots
     *  that may be decided while a snapshot is given (stop_bytes, stop_slots of
     *  paxos/flow/flow.h), whichever is more. */
    uint32_t (*log_used)(void *ctx, qn_slot_t position);
    /** A donor: the log behind `position` is needed, since `joiner` will go on
     *  from there; so much is sent, of QN_HOLD_DONE (paxos/flow/flow.h). Said
     * again as it grows. Optional. */
    void (*hold)(void *ctx, qn_node_t joiner, qn_slot_t position,
                 uint32_t done);
    /** It is not, for the joiner gets no such snapshot: one end has given up or
     *  ended. Not called when the last chunk was sent: then the hold is over
     *  when the joiner has applied behind `position`, which its replica sees.
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
    uint64_t log_bytes; /* kept of the log, and so of old versions */
    struct qn_state_transfer_ops ops;
};

/** What a person wants to know (INFO). */
struct qn_state_transfer_status {
    bool joining;            /* it is getting a snapshot */
    bool comes;              /* one that helps is on its way, or is there ... */
    qn_slot_t position;      /* ... of this position; 0: none */
    bool giving;             /* it is giving one */
    qn_node_t donor, joiner; /* then: from or to whom; nodes: nobody yet */
    uint64_t keys, keys_total; /* joining: of the snapshot under way */
    uint64_t joined, given;    /* snapshots installed, given to the end */
    uint64_t attempts;         /* donors asked */
    uint64_t cut_bytes;        /* giving: old versions kept, */
    uint64_t cut_bytes_max;    /* and how many may be */
    uint64_t cut_bytes_most;   /* kept at a time, by any cut of this store */
    uint64_t cuts_anew;        /* given up, so that the joiner began again */
};

struct qn_state_transfer; /* opaque */

/** @return QN_OK, QN_ENOMEM. */
int qn_state_transfer_create(struct qn_state_transfer **out,
                             const struct qn_state_transfer_opts *o);
void qn_state_transfer_destroy(struct qn_state_transfer *r);

/** Get a snapshot at `position` or later. While one is under way: nothing,
 *  unless it is for a later position than that one has. */
void qn_state_transfer_begin(struct qn_state_transfer *r, qn_slot_t position,
                             qn_time_t now);

/** No snapshot is wanted any more; one that is under way is thrown away. */
void qn_state_transfer_forget(struct qn_state_transfer *r);

/** A message of a peer. @return false: not one of these. */
bool qn_state_transfer_on_message(struct qn_state_transfer *r, qn_node_t from,
                                  struct qn_slice bytes, qn_time_t now);

/** `peer`'s life has ended; its next one has begun. */
void qn_state_transfer_peer_down(struct qn_state_transfer *r, qn_node_t peer,
                                 qn_time_t now);
void qn_state_transfer_peer_up(struct qn_state_transfer *r, qn_node_t peer);

/** A share of the work: at most QN_STATE_TRANSFER_GIVE chunks are given, and
 * one read (QN_STATE_TRANSFER_WINDOW while there is no store to serve from):
 * about 0.5 ms.
 *  @return when to come again even if nothing arrives; `now`: at once;
 *  QN_TIME_NEVER. */
qn_time_t qn_state_transfer_turn(struct qn_state_transfer *r, qn_time_t now);

void qn_state_transfer_status(const struct qn_state_transfer *r,
                              struct qn_state_transfer_status *out);

#endif
