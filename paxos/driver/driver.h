#ifndef QN_PAXOS_DRIVER_DRIVER_H
#define QN_PAXOS_DRIVER_DRIVER_H

/**
 * The shell around the state machine: it moves bytes and time between one
 * node's struct qn_onepaxos and the queuepairs, and nothing else. It has no
 * thread, no clock and no loop of its own: the program calls it once per turn.
 *
 *     turn:   qn_driver_turn(now, wall)   drain channels, step, apply
 *             ... serve reads, submit writes ...
 *             qn_driver_flush(now)        send what was produced, ring peers
 *             sleep until a doorbell or qn_driver_deadline()
 *
 * What is replicated is a log of batches of commands; a command is a byte
 * string that `apply` understands. Every node applies the same commands in the
 * same order; the origin recognises its own by `mine`.
 *
 * Writes of one origin are applied in the order they were submitted, each
 * exactly once. LEARN goes down a tree over the tree lanes; everything else
 * through the direct lanes.
 *
 * Who leads and who accepts changes when nodes end or stand still. The program
 * says what it sees of the other nodes, each of them once and in this order:
 *
 *     qn_driver_down(peer)       its life has ended for certain
 *     qn_driver_up(next life)    before anything of that one is received
 *     qn_driver_suspect(mask)    who stands still though something waits for
 *                                him (qn_driver_waits_for)
 *
 * The memory of a life that has ended (its outbox) must stay mapped while
 * qn_driver_keeps says so: with the memory acceptor the newest slots may lie
 * there and nowhere else (PROTOCOL.md 5).
 *
 * Threads: one thread per driver. No call blocks. After warm-up the driver
 * allocates only blobs for batches.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/node.h"
#include "core/place/outbox.h"
#include "core/qp.h"
#include "paxos/driver/event.h"
#include "paxos/machine/onepaxos.h"
#include "paxos/machine/verdict.h"

/** One decided command, as given to `apply`. */
struct qn_applied {
    qn_slot_t slot;        /* its position */
    uint64_t stamp_ms;     /* of its batch; never goes back along the log */
    qn_node_t origin;      /* who submitted it */
    uint64_t origin_inc;   /* in which life */
    uint64_t seq;          /* origin's sequence, from 1 */
    bool mine;             /* submitted through this driver, in this life */
    struct qn_slice bytes; /* borrowed for the call */
    /** The blob that they lie in, alone but for a few bytes, if the service may
     *  keep it instead of copying them: by a reference of its own, in this
     *  thread, until the driver is destroyed. NULL: it may not. */
    struct qn_blob *keep;
};

#define QN_AHEAD 16u /* commands announced at once */

/**
 * Work of applying in one turn, so that no turn is long: about so much is done,
 * to the end of the slot that was begun; the rest waits for the next turn. The
 * unit is a small command, about 1 us with 10^7 keys.
 */
#define QN_TURN_WORK 192u

/** Bytes of a batch that a service may keep: of one command, as batches of
 *  several have at most half of it. With the memory acceptor only: its log is
 *  short, the other's long one would leave holes among what is kept. */
#define QN_KEEP_FROM 40960u

/** The replicated service. Called from inside qn_driver_turn only. */
struct qn_service {
    /** These commands [n <= QN_AHEAD] come next: a chance to fetch what they
     *  will touch into the cache. Optional. */
    void (*ahead)(void *ctx, const struct qn_slice *commands, uint32_t n);
    /** @return the work it was, in units of a small command; at least 1. */
    uint32_t (*apply)(void *ctx, const struct qn_applied *a);
    /** After the last command of a slot: everything <= slot is applied. */
    void (*applied)(void *ctx, qn_slot_t slot, uint64_t stamp_ms);
    /** Bytes of another node's qn_driver_tell; borrowed for the call. */
    void (*told)(void *ctx, qn_node_t from, struct qn_slice bytes);
    /** Slot `slot` and what follows can be had from nobody any more: get a
     *  snapshot, then qn_driver_install. Said again while it stays so.
     *  Optional: NULL logs it. */
    void (*need_snapshot)(void *ctx, qn_slot_t slot);
    void *ctx;
};

/** What the memory acceptor consists of (paxos/machine/shared.h). All of it
 * kept. */
struct qn_driver_memory {
    struct qn_pair *word; /* shared, in the commons; NULL: process acceptor */
    struct qn_ring ring;  /* in the own outbox, opened and empty */
    /** As in struct qn_shared, with `ctx`; NULL: the word can always be
     *  written, nobody asks who owns it. */
    void (*claim)(void *ctx, bool writable);
    bool (*owner)(void *ctx, qn_epoch_t epoch);
    bool (*owned_by)(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc);
    void *ctx;
    const struct qn_ring **peer_ring; /* [nodes] as mapped here, NULL where
                                         there is none; array borrowed, rings
                                         copied */
};

struct qn_driver_opts {
    qn_node_t self;
    uint32_t nodes;              /* 1 .. QN_NODES_MAX; 1: no replication */
    const uint64_t *incarnation; /* [nodes], borrowed */
    struct qn_qp **direct;       /* [nodes], [self] NULL; array borrowed,
                                    queuepairs kept, not owned */
    struct qn_qp **tree;         /* [nodes], likewise */
    const char *topology;        /* of core/topo/tree.h; without the next two */
    const struct qn_machine
        *costs;                 /* between nodes, index i is node i: the
                                   tree is planned (core/plan/mixable_trees.h).
                                   Borrowed for ever; or NULL */
    const struct qn_tree *plan; /* a given tree over all nodes, likewise
                                   (qn_mixable_tree_from); or NULL */
    struct qn_service service;
    qn_a64 *read_index; /* shared, kept: raised before anything is exposed */
    struct qn_outbox_state *state; /* own outbox, kept: applied and learned are
                                      published there */
    const struct qn_outbox_state **peer_state; /* [nodes], [self] NULL; what
                                      peers publish. Array borrowed, states
                                      kept */
    struct qn_driver_memory memory;
    struct qn_arena *arena; /* in the own outbox, empty; kept. NULL: long
                               commands travel through the lanes */
    const struct qn_arena **peer_arena; /* [nodes] as mapped here, NULL where
                               there is none; array borrowed, arenas copied;
                               NULL without `arena` */
    void *record; /* shared, kept: area of this node's vote
                     (paxos/driver/record.h), which outlives the process. NULL:
                     none; then no life may follow this one */
    size_t record_bytes;
    /** Said before each write of `record`: a later life of this node may have
     *  begun, and this process does not know that it is over. Then this does
     *  not return. NULL: there is nobody to ask. */
    void (*fence)(void *ctx);
    void *fence_ctx;
    bool first; /* the group begins with this life. Else it is a later life
                   of its id, and `record` says what it voted for */
    /** Has that life of a peer ended by now? A look at shared memory: this
     *  node may hear of it (qn_driver_down) much later. Process acceptor; NULL:
     *  no life ends unheard. */
    bool (*ended)(void *ctx, qn_node_t node, uint64_t inc);
    void *ended_ctx;
    struct qn_events *events; /* flight recorder, kept; NULL: none */
    bool own_cores; /* column of the parameter table (PROTOCOL.md 10) */
    struct qn_flow_limits flow; /* how far a leader may run ahead of the
                                   others; all 0: qn_flow_default */
    uint64_t backlog_bytes; /* process acceptor: of its log kept for those who
                               are behind; 0: QN_LOG_BYTES */
    uint64_t seed;          /* of everything random inside */
    qn_time_t now;          /* ns */
};

/** A new life of a peer. */
struct qn_driver_peer_opts {
    qn_node_t node;
    uint64_t inc;                        /* larger than that of its former */
    struct qn_qp *direct, *tree;         /* kept, not owned */
    const struct qn_outbox_state *state; /* kept */
    const struct qn_ring *ring;          /* copied; NULL: not mapped */
    const struct qn_arena *arena;        /* likewise */
};

/** Why the roles changed last. */
enum qn_driver_reason {
    QN_REASON_NONE,      /* they never did */
    QN_REASON_DEATH,     /* `lost` had ended */
    QN_REASON_SUSPECTED, /* `lost` was suspected, here or by another node */
    QN_REASON_ORDER      /* the program said who leads instead of `lost` */
};

struct qn_driver_status {
    enum qn_role role; /* of this node */
    uint64_t epoch;
    qn_node_t leader, acceptor; /* of the epoch; equal: memory acceptor */
    uint64_t alive;             /* mask of nodes believed alive */
    uint64_t in_sync;   /* mask of nodes with which nothing that was decided
                           is lost, whoever else dies. Process acceptor: the
                           leader and the acceptor; both are needed */
    uint64_t failovers; /* changes of roles that this life has seen */
    enum qn_driver_reason reason; /* of the last one */
    qn_node_t lost;               /* who lost its role then */
    bool need_snapshot;           /* it is behind what anybody keeps */
    bool served;                  /* a leader takes requests */
    bool stopped;                 /* as qn_driver_stopped ... */
    bool incomplete;              /* ... and that is why */
    qn_slot_t said;               /* ... the highest position that anybody, also
                                     who has ended, has said to have learned, or
                                     has shown, as far as it is known here */
    uint64_t waiting; /* mask: who may have what it lacks to go on; so for
                         QN_DRIVER_LACKS at least. 0: nobody, or it goes on */
    struct qn_verdict verdict; /* memory acceptor: what is kept and lost, as of
                                  now */
    bool mute;                 /* its record is lost: it does not vote until
                                  the others have agreed that it may */
    qn_slot_t applied, learned, decided_hi;
    uint64_t batches, commands; /* applied so far */
    uint64_t unapplied;         /* own submitted commands not yet applied */
    uint64_t fetches;           /* FETCH sent: LEARNs that were missed */
    uint64_t log_bytes;         /* batches kept for laggards */
    qn_time_t reach; /* at the root: ns from the send of a LEARN until
                        all members had it, as seen at its turns,
                        smoothed; of those that it saw arrive to 1 ms.
                        0: none */
    qn_time_t pause; /* while it leads: ns after each slot, so that ... */
    uint64_t slow; /* ... these can follow: a mask. See paxos/driver/tempo.h */
};

struct qn_driver;

/** @return QN_OK; QN_EINVAL (a field is out of range, or there is no such
 *  topology); QN_ENOMEM. */
int qn_driver_create(struct qn_driver **out, const struct qn_driver_opts *o);
void qn_driver_destroy(struct qn_driver *d);

/** Submit one command, the concatenation of parts[0..count). The bytes are
 *  copied, those of a long one into the arena. *seq filled with its sequence.
 * It will be applied once, or the group ends.
 *  @return QN_OK; QN_EAGAIN: no qn_driver_room, nothing was started, try again
 *  after a turn; QN_EMSGSIZE above the largest command; QN_ENOMEM. */
int qn_driver_submit(struct qn_driver *d, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq);

/** True if the next submit is taken, whatever its size: this origin has credit
 *  (QUEUE / nodes commands) and fewer than QUEUE_BYTES / nodes waiting. */
bool qn_driver_room(const struct qn_driver *d);

/** Send bytes (at most 60 000) to node `to`, outside the log: FIFO, lost if
 *  either end dies. @return QN_OK, QN_EAGAIN, QN_EMSGSIZE. */
int qn_driver_tell(struct qn_driver *d, qn_node_t to, struct qn_slice bytes);

/** Receive, step and apply. @return true if anything was received or done. */
bool qn_driver_turn(struct qn_driver *d, qn_time_t now, uint64_t wall_ms);

/** Send what submit and turn have produced and ring sleepers.
 *  @return true while something could not be sent for lack of room (the peer
 *  rings when there is room again). */
bool qn_driver_flush(struct qn_driver *d, qn_time_t now);

/** True if a channel holds a message, or a turn has left something to apply:
 * the look between arm and sleep. */
bool qn_driver_pending(struct qn_driver *d);

/** When qn_driver_turn must be called even if nothing arrives; ns or
 *  QN_TIME_NEVER. */
qn_time_t qn_driver_deadline(const struct qn_driver *d);

/**
 * The read index: every slot that any replica has let anybody see lies at or
 * below it. A linearizable read that was received before this call may be
 * answered once qn_driver_applied() has reached it.
 *
 * The shared word lies in the commons, which a wild process can overwrite. So
 * one that a reader would have to wait for is checked: nothing that is not
 * decided counts (PROTOCOL.md 8.2).
 */
qn_slot_t qn_driver_read_index(const struct qn_driver *d);

/** Slots <= it are applied here. */
qn_slot_t qn_driver_applied(const struct qn_driver *d);

void qn_driver_status(const struct qn_driver *d, struct qn_driver_status *out);

/**
 * The group has stopped. Nothing that is submitted is ever decided, until the
 * group is recovered by force (qn_driver_recover).
 *
 * Memory acceptor: the leader has ended, and no member has all that the ring
 * which it left does not keep any more (paxos/machine/verdict.h). Withdrawn if
 * a member has it after all. While a stalled member may have more, the group
 * has not stopped: it waits for that member (qn_driver_waiting).
 *
 * Process acceptor: leader and acceptor were lost together. Never true of a
 * group that can go on; false for a while of one that cannot (PROTOCOL.md
 * 6.5). Or `incomplete`: their successor knows how far they had decided, but
 * lacks a part of that, which nobody has who is heard of. That is withdrawn if
 * somebody has it after all, who stood still.
 *
 * A compare while the group goes on.
 */
bool qn_driver_stopped(const struct qn_driver *d);
bool qn_driver_incomplete(const struct qn_driver *d);

/** Memory acceptor: mask of members that may have what the group lacks to go
 *  on, and have not said so for QN_DRIVER_LACKS; 0: it lacks nothing, or nobody
 *  has it. */
uint64_t qn_driver_waiting(const struct qn_driver *d);

/**
 * A group that has stopped: go on from what is learned here. All other lives
 * have ended and are said to be down, and none has begun since. This node leads
 * as soon as a majority votes; what others had decided above
 * qn_driver_status.learned is lost.
 *
 * Process acceptor: it appoints one of the new lives, positions are given anew,
 * and the read index begins anew. Memory acceptor: those positions stay void,
 * and the service goes on behind them: qn_driver_applied jumps.
 *
 * @return QN_OK; QN_EBUSY: another life is not known to have ended, or the
 *         group can go on. Then nothing has changed.
 */
int qn_driver_recover(struct qn_driver *d, qn_time_t now);

/**
 * Could it, but for the lives of others? Nothing changes.
 *
 * @return QN_OK; QN_EBUSY: the group has not stopped, as far as is known here,
 *         or this node can go on without force, or has not applied all that
 *         it has learned.
 */
int qn_driver_recoverable(const struct qn_driver *d);

/** Bytes of the slots above `slot` that are learned here; of those that are not
 *  remembered any more, none. */
uint64_t qn_driver_bytes_above(const struct qn_driver *d, qn_slot_t slot);

/** What this node keeps, in bytes. */
struct qn_driver_kept {
    struct qn_bytes_kept log;      /* batches */
    struct qn_bytes_kept requests; /* own, not yet applied */
    struct qn_bytes_kept arena;    /* long ones of them */
    struct qn_bytes_kept ring;     /* memory acceptor: of the ring, allocated */
    struct qn_bytes_kept bcast;    /* LEARNs that wait for children */
    uint64_t bcast_dropped;        /* for which there was no room */
    struct qn_bytes_kept lanes;    /* messages to peers that wait for room; the
                                 most    that waited for any of them */
};
void qn_driver_kept(const struct qn_driver *d, struct qn_driver_kept *out);

/** Flow control, as the leader sees it (paxos/flow/flow.h). */
struct qn_driver_flow {
    uint64_t awaited;                 /* mask */
    bool held;                        /* writes wait: min_awaited */
    qn_time_t shut;                   /* ns that the gate was shut ... */
    qn_time_t shut_by[QN_NODES_MAX];  /* ... by each */
    uint64_t lag_bytes[QN_NODES_MAX]; /* decided and not applied there */
    uint64_t lag_slots[QN_NODES_MAX];
    uint64_t pace[QN_NODES_MAX];       /* bytes/s while it lacked something;
                                          0: unknown */
    uint64_t given_up, holds_given_up; /* so often */
};

/** Change two of the limits that opts.flow began with, in a leader at once: its
 *  `timeout` (ns) and `min_awaited` (paxos/flow/flow.h). */
void qn_driver_limits(struct qn_driver *d, qn_time_t timeout,
                      uint32_t min_awaited);

/** @param out  Filled. @return false: this node does not lead. */
bool qn_driver_flow(const struct qn_driver *d, struct qn_driver_flow *out);

/** The broadcast tree as this node knows it. Borrowed, until the next turn.
 *  NULL: there is none, the group has one node. */
const struct qn_tree *qn_driver_topology(const struct qn_driver *d);

/* ---- the other nodes ----------------------------------------------------- */

/**
 * The life of `peer` has ended for certain. What it had sent whole is received
 * first; then its queuepairs are not touched any more. Its state and ring are,
 * while qn_driver_keeps. Twice is harmless.
 */
void qn_driver_down(struct qn_driver *d, qn_node_t peer, qn_time_t now);

/**
 * A new life of a peer, from which nothing was received yet. If the former one
 * was not said to be down, it is now.
 *
 * @return QN_OK; QN_EINVAL (a field is missing or out of range); QN_ESTALE: a
 *         later life, or this one, is known already.
 */
int qn_driver_up(struct qn_driver *d, const struct qn_driver_peer_opts *p,
                 qn_time_t now);

/**
 * Memory acceptor: the ring of a life that ended before this one began, and
 * that the word may still name.
 *
 * @param ring  Copied.
 * @return QN_OK; QN_EINVAL; QN_ENOMEM.
 */
int qn_driver_remember(struct qn_driver *d, qn_node_t node, uint64_t inc,
                       const struct qn_ring *ring);

/** Must the memory of that life, which has ended, stay mapped? Once false, it
 *  is not touched any more. */
bool qn_driver_keeps(struct qn_driver *d, qn_node_t node, uint64_t inc);

/** Who seems to stand still, as of now (mask of nodes); the others are trusted
 *  again. A wrong suspicion costs a change of roles, nothing else. */
void qn_driver_suspect(struct qn_driver *d, uint64_t peers, qn_time_t now);

/**
 * `heir` shall lead in place of the present leader, who lives and is to be
 * ended in order. Said to all nodes: it proposes itself if it can, and the
 * others know why. No effect on the leader itself, and none once the epoch has
 * changed. It may fail as any proposal may; look at the status.
 */
void qn_driver_lead(struct qn_driver *d, qn_node_t heir, qn_time_t now);

/** Whose standing still would hold this node up now: mask of living nodes; 0 if
 *  nothing of its own waits. */
uint64_t qn_driver_waits_for(const struct qn_driver *d);

/* ---- snapshots ----------------------------------------------------------- */

/** For a snapshot of the service's state: it has exactly the slots <=
 *  r->position. @return false: it is in the middle of a slot; after the next
 *  turn perhaps. */
bool qn_driver_cut(const struct qn_driver *d, struct qn_resume *r);

/** The newest entries of the utility log, oldest first, for a snapshot.
 *  @param entries  [cap] filled. @return how many; QN_UL_KEPT is enough. */
uint32_t qn_driver_ul(const struct qn_driver *d, struct qn_ul_entry *entries,
                      uint32_t cap);

/**
 * The service's state is now that of a snapshot: go on behind it.
 *
 * @param ul  [count] consecutive entries, borrowed; count may be 0.
 * @return QN_OK; otherwise nothing has changed: QN_EINVAL (the entries are not
 *         consecutive, or disagree with known ones); QN_ESTALE: this node has
 *         applied as much already; QN_EAGAIN: it is in the middle of a slot
 *         (qn_driver_cut), ask again after a turn.
 */
int qn_driver_install(struct qn_driver *d, const struct qn_resume *r,
                      const struct qn_ul_entry *ul, uint32_t count,
                      qn_time_t now);

/**
 * This node gives `joiner` a snapshot of `position`: what is decided behind it
 * is to be kept, and the leader goes no faster than the part `done` (of
 * QN_HOLD_DONE) that is sent allows (PROTOCOL.md 3.6). Said again as that
 * grows; one at a time. It is over when the joiner has applied up to there,
 * when its life ends, or by qn_driver_release.
 */
void qn_driver_hold(struct qn_driver *d, qn_node_t joiner, qn_slot_t position,
                    uint32_t done);
void qn_driver_release(struct qn_driver *d);

/** A snapshot of `position` is on its way to this node, and will be installed
 *  though its giver may have ended; 0: none is (any more). */
void qn_driver_coming(struct qn_driver *d, qn_slot_t position);

/** Do writes wait, at the leader, for a member that may not be given up? */
bool qn_driver_held(const struct qn_driver *d);

/* ---- tests --------------------------------------------------------------- */

/** Test switch: hold back LEARNs that arrive here (DEBUG). */
void qn_driver_hold_learns(struct qn_driver *d, bool hold);

#endif
