#ifndef QN_KVS_REPLICA_REPLICA_H
#define QN_KVS_REPLICA_REPLICA_H

/**
 * One replica: the store, and the replicated log that feeds it.
 *
 * Front end and replica share two queues only. A front end *submits* writes and
 * deferred reads, in order; the replica *completes* each, in the same order,
 * with the bytes of its reply. The n-th completion answers the n-th submission,
 * so nothing has to be matched.
 *
 *   write goes through the log; its reply is made when this replica applies it
 *   deferred read: a read behind a write of the same connection. It is
 * evaluated inside apply as soon as every submission before it is complete and
 * this replica has applied the index the front end saw. So it sees every
 * earlier and no later write of its connection, and nothing older than what any
 * client was shown before it arrived.
 *
 * Reads that are behind no write do not come here: the front end asks the
 * store directly once qn_replica_applied() has reached the index.
 *
 * The first command of a group carries the hash seed and the start
 * configuration; until it is applied there is no store (LOADING). A later
 * incarnation, or a replica that was stalled for too long, gets its state from
 * another replica (paxos/member/transfer/state_transfer.h, qn_replica_install).
 *
 * A write that is not applied within `commit-timeout` completes with the error
 * "outcome unknown". It stays in the log and is applied once or never; its late
 * reply is dropped. The time is that of this replica: however long the replica
 * itself was stalled, that counts as one tick. A write that lies in an
 * installed snapshot is not applied here: its reply is +OK if no other is
 * possible (qn_cmd_says_ok), and the error otherwise.
 *
 * Threads: one. Nothing blocks.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/base/histogram.h"
#include "kvs/commands/cmd_latency_sample.h"
#include "kvs/commands/command.h"
#include "kvs/config/config.h"
#include "kvs/snapshot/snapshot.h"
#include "paxos/driver/driver.h"

/** Version of the log's entries; the first entry of a group carries it. */
#define QN_ENTRY_VERSION 4u

struct qn_replica;

/** Own writes, from the turn they were submitted in to the turn they were
 *  applied in. */
struct qn_replica_writes {
    struct qn_cmd_latency_sample
        clock;                   /* executing them, and own deferred reads */
    uint64_t writes;             /* applied */
    uint64_t batches;            /* slots that they were in */
    struct qn_histogram latency; /* ns */
    /* Not applied here, or too late. They were answered: */
    uint64_t unknown_timeout;  /* unknown, after commit-timeout or because
                                  the group stopped */
    uint64_t unknown_snapshot; /* unknown, because it lies in a snapshot */
    uint64_t covered_ok;       /* +OK, though it lies in a snapshot */
};

struct qn_replica_opts {
    qn_node_t self;
    uint32_t nodes;
    uint64_t incarnation;           /* of this process */
    bool first;                     /* the group begins with this incarnation */
    uint64_t seed;                  /* of the hash, and of everything random */
    const struct qn_config *config; /* start configuration; copied */
    bool
        submits_first; /* submits the first command: one replica of the group */
    /** A message of another replica's front end (qn_replica_send_peer_message).
     */
    void (*told)(void *ctx, qn_node_t from, struct qn_slice bytes);
    /** Run the deferred read that is the oldest incomplete submission; the
     * reply goes directly to its client. The callee must take the earlier
     * completions first. NULL: the reply is a completion like the others. */
    void (*deferred_read)(void *ctx, struct qn_store *store,
                          struct qn_cmd_call *call);
    /** Completions have many bytes: take them now, within the turn. NULL:
     *  they wait for its end. */
    void (*take)(void *ctx);
    /** Options took effect that came with the log (its first entry, or CONFIG
     *  SET) or with a snapshot. */
    void (*configured)(void *ctx);
    void *ctx;
};

/** Create a replica. A driver is made with its service, and given to it by
 *  qn_replica_begin before its first turn.
 *  @param o  Copied; what it points to is kept.
 *  @return QN_OK; QN_ENOMEM: *out is untouched. */
int qn_replica_create(struct qn_replica **out, const struct qn_replica_opts *o);

/** What a driver of this replica is made with. */
struct qn_service qn_replica_service(struct qn_replica *r);

/** Its driver is there. @param driver  Kept, and destroyed after the replica,
 *  whose stores keep refbufs of it.
 *  @return QN_OK; else as qn_driver_submit: it cannot submit the first command.
 */
int qn_replica_begin(struct qn_replica *r, struct qn_driver *driver);

/** NULL is allowed. */
void qn_replica_destroy(struct qn_replica *r);

/** The store, for reads; NULL until the first command is applied, or until
 *  the state of a snapshot has caught up with what others had shown by then. */
struct qn_store *qn_replica_store(struct qn_replica *r);
/** The configuration in force: start values and later changes. */
const struct qn_config *qn_replica_config(const struct qn_replica *r);
/** The driver that it was given. */
struct qn_driver *qn_replica_driver(struct qn_replica *r);

/** True if the next write or deferred read will be accepted, whatever its size.
 */
bool qn_replica_can_submit(const struct qn_replica *r);

/** Submit a write. Only while qn_replica_can_submit().
 *  @param call  cmd, argv, argc, db and proto are used; borrowed for the call.
 *  @return QN_OK; QN_ENOMEM: nothing was submitted. */
int qn_replica_submit_write(struct qn_replica *r,
                            const struct qn_cmd_call *call);

/** Submit a deferred read. Only while qn_replica_can_submit().
 *  @param call   As qn_replica_submit_write.
 *  @param index  The read index that the front end has loaded.
 *  @return QN_OK; QN_ENOMEM: nothing was submitted. */
int qn_replica_submit_read(struct qn_replica *r, const struct qn_cmd_call *call,
                           qn_slot_t index);

/** Take the oldest completion. *reply is borrowed until the next turn, or until
 *  a call returns false. An empty reply: memory for it was lacking.
 *  @return false: there is none. */
bool qn_replica_next_completion(struct qn_replica *r, struct qn_slice *reply);

/** Receive and apply; the driver bounds the work.
 *  @param now      ns, monotonic.
 *  @param wall_ms  Wall clock, for stamps of a leader.
 *  @return true if the next turn is due at once, because there is memory to
 *          free. */
bool qn_replica_turn(struct qn_replica *r, qn_time_t now, uint64_t wall_ms);

/** Slot of the last own write that is applied. */
qn_slot_t qn_replica_last_own(const struct qn_replica *r);

/** The last applied slot; 0: none. */
qn_slot_t qn_replica_applied(const struct qn_replica *r);
/** The stamp of that slot, ms of the wall clock. */
uint64_t qn_replica_stamp_ms(const struct qn_replica *r);

/** The facts for a snapshot of the store in its present state: fills refused,
 *  applied_ms, nodes, config. */
void qn_replica_facts(const struct qn_replica *r, struct qn_snapshot_meta *m);

/** Own writes up to sequence `seq` lie in the snapshot that is installed next:
 *  the log will not bring them. */
void qn_replica_covered(struct qn_replica *r, uint64_t seq);

/** A snapshot of `position` is of no use: this replica has its state already,
 *  and serves it once it has caught up. Nothing if it has no state. */
void qn_replica_caught_up(struct qn_replica *r, qn_slot_t position);

/**
 * Continue from the state of a snapshot. The old store is freed in steps. Own
 * writes that lie in the snapshot complete: with +OK if no other reply is
 * possible and no own write from there on was refused, else with the error
 * "outcome unknown".
 *
 * @param store  Taken.
 * @param m      META of the snapshot; borrowed.
 */
void qn_replica_install(struct qn_replica *r, struct qn_store *store,
                        const struct qn_snapshot_meta *m);

/** Free a store in steps, DISCARD_PER_TURN blocks in each turn. Taken. */
void qn_replica_discard(struct qn_replica *r, struct qn_store *store);

/** Counts of own writes, of clients only. */
const struct qn_replica_writes *qn_replica_writes(const struct qn_replica *r);

/** Reset these counts to 0. */
void qn_replica_writes_reset(struct qn_replica *r);

#define QN_COMMIT_TICK (100 * QN_MS)

/** When the next turn is due for `commit-timeout`; ns or QN_TIME_NEVER. */
qn_time_t qn_replica_deadline(const struct qn_replica *r);

/** The present tick, for qn_replica_timed_out. Call it in every turn in which
 *  a client waits. */
uint32_t qn_replica_tick(struct qn_replica *r);

/** True if `commit-timeout` has expired for a request that waits since
 *  `tick`, or if waiting is useless because the group has stopped. */
bool qn_replica_timed_out(const struct qn_replica *r, uint32_t tick);

/** True while a write that was given up after `commit-timeout` is not applied
 *  (no leader, or no quorum), or the group has stopped. A write submitted now
 *  would not be applied either. */
bool qn_replica_unavailable(const struct qn_replica *r);

/** True while writes wait at the leader for a replica that may not be given
 *  up (`min-replicas-to-write`): no write should be submitted. */
bool qn_replica_writes_blocked(const struct qn_replica *r);

/** The error text that says why no write is accepted now, without its dash
 *  (kvs/replica/unavailable.h). */
const char *qn_replica_unavailable_reason(const struct qn_replica *r);

/** Write submissions not yet complete. */
uint64_t qn_replica_pending(const struct qn_replica *r);

/** Use new values of `lag-timeout` (ms) and `min-replicas-to-write`, which
 *  change beside the log (kvs/config/settings.h). */
void qn_replica_limits(struct qn_replica *r, uint32_t lag_timeout,
                       uint32_t min_replicas);

/** Send bytes (at most 60 000) to the front end of replica `to`. @return
 *  QN_OK; QN_EAGAIN: no room, or the replica is not there; nothing was sent. */
int qn_replica_send_peer_message(struct qn_replica *r, qn_node_t to,
                                 struct qn_slice bytes);

#endif
