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
 * A log of batches of commands is replicated; a command is a byte string that
 * `apply` understands. Every node applies the same commands in the same order.
 * The origin recognises its own by `mine`.
 *
 * Writes of one origin are applied in the order they were submitted, each
 * exactly once. LEARN goes down a tree over the tree lanes; everything else
 * through the direct lanes.
 *
 * The leader and the acceptor change when nodes end or are stalled. The program
 * reports each incarnation of the other nodes once, and in this order:
 *
 *     qn_driver_down(peer)       its incarnation has ended for certain
 *     qn_driver_up(peer)         the next one begins, before anything of it is
 *                                received
 *     qn_driver_suspect(mask)    peers that are stalled though something waits
 *                                for them (qn_driver_waits_for)
 *
 * The memory of an incarnation that has ended (its outbox) must stay mapped
 * while qn_driver_keeps says so: with the memory acceptor the newest slots may
 * lie only there (PROTOCOL.md 5).
 *
 * Threads: one thread per driver. No call blocks. After warm-up the driver
 * allocates only refbufs for batches.
 */

#include <stdbool.h>

#include "core/base/alloc.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/node.h"
#include "core/place/outbox.h"
#include "core/qp.h"
#include "paxos/apply/apply_failure.h"
#include "paxos/dissemination/ring_choice.h"
#include "paxos/driver/event.h"
#include "paxos/halt/verdict.h"
#include "paxos/machine/onepaxos.h"

/** One decided command, as given to `apply`. */
struct qn_applied {
    qn_slot_t slot;        /* its position */
    uint64_t stamp_ms;     /* of its batch; never goes back along the log */
    qn_node_t origin;      /* the node that submitted it */
    uint64_t origin_inc;   /* and its incarnation */
    uint64_t seq;          /* origin's sequence, from 1 */
    bool mine;             /* submitted through this driver */
    struct qn_slice bytes; /* borrowed for the call */
    /** The refbuf that holds `bytes` and little else, if the service may keep
     * it instead of copying: by a reference of its own, in this thread, until
     * the driver is destroyed. NULL: it may not. */
    struct qn_refbuf *keep;
};

#define QN_PREFETCH_MAX 16u /* commands announced at once */

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

/** How often each member looks at the accept register while its owner lives. */
#define QN_DRIVER_REGISTER QN_S

/** The replicated service. Called from inside qn_driver_turn only. */
struct qn_service {
    /** These commands [n <= QN_PREFETCH_MAX] come next: a chance to fetch what
     * they will touch into the cache. Optional. */
    void (*prefetch)(void *ctx, const struct qn_slice *commands, uint32_t n);
    /** @return the work it was, in units of a small command; at least 1. */
    uint32_t (*apply)(void *ctx, const struct qn_applied *a);
    /** The same for a service that may fail; NULL: `apply` is called, and
     *  never fails. @param work  1 at first. @return QN_OK; QN_ENOMEM:
     *  nothing has changed, it is asked again; any other error: the state is
     *  lost (paxos/apply/apply_failure.h). */
    int (*try_apply)(void *ctx, const struct qn_applied *a, uint32_t *work);
    /** After the last command of a slot: everything <= slot is applied. */
    void (*applied)(void *ctx, qn_slot_t slot, uint64_t stamp_ms);
    /** Bytes of another node's qn_driver_send_peer_message; borrowed for the
     * call. */
    void (*on_peer_message)(void *ctx, qn_node_t from, struct qn_slice bytes);
    /** No peer can give slot `slot` and the next ones any more: get a
     *  snapshot, then qn_driver_install. Called again while it stays so.
     *  Optional: NULL logs it. */
    void (*need_snapshot)(void *ctx, qn_slot_t slot);
    void *ctx;
};

/** State transfer beside the service: it takes its messages, and the need of a
 *  snapshot, before the service sees them. From inside qn_driver_turn only. */
struct qn_driver_snapshots {
    /** @return true: the message was its own. NULL: none is. */
    bool (*on_message)(void *ctx, qn_node_t from, struct qn_slice bytes);
    /** As qn_service.need_snapshot, in its place. NULL: the service is asked.
     */
    void (*needed)(void *ctx, qn_slot_t slot);
    void *ctx;
};

/** What the memory acceptor consists of (paxos/machine/memory_acceptor.h). All
 * of it kept. */
struct qn_driver_memory {
    struct qn_pair *word; /* shared, in the commons; NULL: process acceptor */
    struct qn_ring ring;  /* in the own outbox, opened and empty */
    /** As in struct qn_memory_acceptor, with `ctx`; NULL: the word can always
     * be written, and its owner is never asked for. */
    void (*claim)(void *ctx, bool writable);
    bool (*owner)(void *ctx, qn_epoch_t epoch);
    bool (*owned_by)(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc);
    void *ctx;
    const struct qn_ring **peer_ring; /* [nodes] as mapped here, NULL where
                                         there is none; array borrowed, rings
                                         copied */
};

struct qn_feed;

struct qn_driver_opts {
    qn_node_t self;
    uint32_t nodes;  /* 1 .. QN_NODES_MAX; 1: no replication */
    uint64_t voters; /* mask: they begin the group, node 0 among them; the same
                        in all incarnations. 0: all nodes. Others are made
                        voters later (memory acceptor, PROTOCOL.md 4.4) */
    const uint64_t *incarnation; /* [nodes], borrowed. 0: a vacant seat, which
                                    no process has taken yet: no voter, and
                                    nothing else is given for it */
    struct qn_qp **direct;       /* [nodes], [self] NULL, and for those that
                                    have ended; array borrowed, queuepairs kept,
                                    not owned */
    struct qn_qp **tree;         /* [nodes], likewise */
    const char *topology;        /* of core/topo/tree.h; without the next two */
    const struct qn_machine
        *costs;                 /* between nodes, index i is node i: the
                                   tree is planned (core/plan/mixable_trees.h).
                                   Borrowed until destroy; or NULL */
    const struct qn_tree *plan; /* a given tree over all nodes, likewise
                                   (qn_mixable_tree_from); or NULL */
    uint32_t ring;      /* arity of a diamond ring that takes the tree's place
                           while all keep up: 1 .. QN_DISSEMINATION_RING_MAX; 0:
                           none */
    uint32_t ring_from; /* broadcasts that must be under way at once for the
                           ring to be taken; 1: always; 0: never */
    struct qn_service service;
    struct qn_driver_snapshots snapshots;
    qn_a64 *read_index;            /* shared, kept: raised before a reply;
                                      NULL with `peer_state` NULL */
    struct qn_outbox_state *state; /* own outbox, kept: applied and learned are
                                      published there */
    const struct qn_outbox_state **peer_state; /* [nodes], [self] NULL; what
                                      peers publish. Array borrowed, states
                                      kept. NULL: no node reads another's
                                      outbox, they say their state in messages
                                      (PROTOCOL.md 3.7). Process acceptor;
                                      without `arena` and `ended` */
    struct qn_driver_memory memory;
    struct qn_arena *arena; /* in the own outbox, empty; kept. NULL: long
                               commands travel through the lanes */
    const struct qn_arena **peer_arena; /* [nodes] as mapped here, NULL where
                               there is none; array borrowed, arenas copied;
                               NULL without `arena` */
    void *vote_record; /* shared, kept: area of this node's vote
                     (paxos/driver/vote_record.h), which outlives the process.
                     NULL: none; then no incarnation may follow this one */
    size_t vote_record_bytes;
    /** Called before each write of `vote_record`. It does not return if a later
     *  incarnation of this node has begun, of which this process does not know.
     *  NULL: that cannot happen. */
    void (*fence)(void *ctx);
    void *fence_ctx;
    const struct qn_alloc *alloc; /* kept; NULL: malloc's. Of all its memory */
    struct qn_log_sink log; /* where its lines go; each calls it "member" and
                               its number */
    bool first; /* the group begins with this incarnation. Else it is a later
                   one, and `vote_record` holds its node's vote, or nothing if
                   it is the first one to take its seat */
    /** Has that incarnation of a peer ended by now? A look at shared memory:
     *  this node may hear of it (qn_driver_down) much later. Process acceptor;
     *  NULL: none ends unheard. */
    bool (*ended)(void *ctx, qn_node_t node, uint64_t inc);
    void *ended_ctx;
    struct qn_feed *feed;     /* kept: what is applied is recorded there
                                 (paxos/feed); NULL: none */
    struct qn_events *events; /* flight recorder, kept; NULL: none */
    bool own_cores; /* column of the parameter table (PROTOCOL.md 10) */
    struct qn_flow_limits flow; /* how far a leader may run ahead of the
                                   others; all 0: qn_flow_default */
    uint32_t batch_commands;    /* of a slot, at most; 0: MAX_BATCH */
    uint64_t backlog_bytes; /* process acceptor: of its log that are kept for
                               lagging peers; 0: QN_LOG_BYTES */
    uint64_t seed;          /* of everything random inside */
    qn_time_t now;          /* ns */
};

/** A new incarnation of a peer. */
struct qn_driver_peer_opts {
    qn_node_t node;
    uint64_t inc;                        /* larger than the former one */
    struct qn_qp *direct, *tree;         /* kept, not owned */
    const struct qn_outbox_state *state; /* kept; NULL: by message */
    const struct qn_ring *ring;          /* copied; NULL: not mapped */
    const struct qn_arena *arena;        /* likewise */
};

/** Why the roles changed last. */
enum qn_driver_reason {
    QN_REASON_NONE,      /* they never did */
    QN_REASON_DEATH,     /* `lost` had ended */
    QN_REASON_SUSPECTED, /* `lost` was suspected, here or by another node */
    QN_REASON_ORDER      /* the program appointed another leader */
};

/** A change of the voters, ordered by the program (qn_driver_change). */
struct qn_driver_change {
    qn_node_t node;
    uint64_t inc; /* of the node: of the newcomer; or the one that is removed */
    bool votes;   /* it is to be a voter; or a member no more */
    bool forced;  /* though the voters' living are no majority then, or fewer
                     followers are left than min-replicas-to-write */
};

enum qn_change_state {
    QN_CHANGE_NONE,    /* none was ordered here */
    QN_CHANGE_PENDING, /* a leader is asked */
    QN_CHANGE_DONE,    /* the utility log says so. status.change_error is
                          QN_ESTALE if one is removed, and a later incarnation of
                          its node lives: it may have begun meanwhile, has no
                          vote, and is to be ended or added */
    QN_CHANGE_REFUSED, /* it has not begun; status.change_error says why */
    QN_CHANGE_UNKNOWN  /* it may still be done; change_error: the last reason */
};

struct qn_driver_status {
    enum qn_role role; /* of this node */
    uint64_t epoch;
    qn_node_t leader, acceptor; /* of the epoch; equal: memory acceptor */
    uint64_t alive;             /* mask of nodes believed alive */
    uint64_t voters;  /* mask: of the next entry of the utility log; none if
                         this node knows no entry yet */
    bool is_voter;    /* this node is among them */
    uint32_t entries; /* of the utility log that this node knows: voters of
                         more entries are later ones */
    enum qn_change_state change; /* the last one that was ordered here ... */
    int change_error;            /* ... and why (enum qn_change_state) */
    uint64_t voting;      /* mask of voters that live and have a whole record */
    uint64_t in_sync;     /* mask of voters with which nothing that was decided
                             is lost, if all others end; none whose state is lost
                             is. Process acceptor: of the leader and the acceptor;
                             both are needed */
    uint64_t lost_states; /* mask of living nodes that say that their state is
                           lost (qn_driver_apply_failure) */
    uint64_t failovers;   /* changes of roles that this incarnation has seen */
    enum qn_driver_reason reason; /* of the last one */
    qn_node_t lost;               /* the node that lost its role then */
    bool need_snapshot;           /* it lacks slots that no peer keeps */
    bool served;                  /* a leader takes requests */
    bool halted;                  /* as qn_driver_halted ... */
    bool log_incomplete;          /* ... and that is why */
    qn_slot_t highest_announced; /* ... the highest position that any node, also
                                    an ended one, has said to have learned, or
                                    has made visible, as far as known here */
    uint64_t waiting;            /* as qn_driver_waiting */
    struct qn_verdict verdict; /* memory acceptor: what is kept and lost, as of
                                  now */
    bool non_voting;           /* its vote record is lost, or its seat had
                                  none: it does not vote until the others have
                                  agreed that it may */
    qn_slot_t applied, learned, decided_hi;
    uint64_t batches, commands; /* applied so far */
    uint64_t unapplied;         /* own submitted commands not yet applied */
    uint64_t fetches;           /* FETCH sent: LEARNs that were missed */
    uint64_t log_bytes;         /* batches kept for laggards */
    qn_time_t
        broadcast_latency_ns; /* at the root: from the send of a LEARN until
                  all members had it, smoothed; a probe that the root
                  could not watch to 1 ms does not count. 0: not known */
    uint32_t ring; /* arity of the ring that broadcasts go over, as known here;
                      0: the tree */
    bool is_root;  /* this node broadcasts; then `ring_choice` says why */
    struct qn_ring_choice ring_choice;
    qn_time_t flow_control_delay_ns; /* of the leader: after each slot, so
                                        that ... */
    uint64_t flow_control_for; /* ... these keep up: a mask (flow_control.h) */
};

struct qn_driver;

/** @return QN_OK; QN_EINVAL (a field is out of range, or there is no such
 *  topology); QN_ENOSYS (process acceptor, and not all nodes are voters);
 *  QN_ENOMEM. */
int qn_driver_create(struct qn_driver **out, const struct qn_driver_opts *o);
void qn_driver_destroy(struct qn_driver *d);

/** Submit one command, the concatenation of parts[0..count). The bytes are
 *  copied, those of a long one into the arena. *seq filled with its sequence.
 *  It will be applied once, or the group ends.
 *  @return QN_OK; QN_EAGAIN: no qn_driver_room, nothing was started, try again
 *  after a turn; QN_EMSGSIZE above the largest command; QN_ENOMEM;
 *  QN_EREMOVED: qn_driver_removed. */
int qn_driver_submit(struct qn_driver *d, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq);

/** True if the next submit is taken, whatever its size: this origin has credit
 *  (QUEUE / members commands) and fewer than QUEUE_BYTES / members waiting, and
 * is not about to be removed. Members are those that live; with the process
 * acceptor all nodes. */
bool qn_driver_room(const struct qn_driver *d);

/** Send bytes (at most 60 000) to node `to`, outside the log: FIFO, lost if
 *  either node ends. @return QN_OK, QN_EAGAIN, QN_EMSGSIZE. */
int qn_driver_send_peer_message(struct qn_driver *d, qn_node_t to,
                                struct qn_slice bytes);

/** Receive, step and apply. @return true if anything was received or done. */
bool qn_driver_turn(struct qn_driver *d, qn_time_t now, uint64_t wall_ms);

/** Send what submit and turn have produced and ring sleepers.
 *  @return true while something could not be sent for lack of room (the peer
 *  rings when there is room again). */
bool qn_driver_flush(struct qn_driver *d, qn_time_t now);

/** QN_ENOMEM: this node has lost a message that waited for room, for lack of
 *  memory, and takes no part any more: turns, flushes and submits do nothing.
 *  It is to end. With malloc's allocator that is an assertion. */
int qn_driver_failed(const struct qn_driver *d);

/** Memory is short: free what is kept to be fast, and the older half of what is
 *  kept for others. Between turns and flushes. To be called again while memory
 *  is short. @return false: there was nothing. */
bool qn_driver_give_back(struct qn_driver *d);

/** True if a channel holds a message, or a turn has left something to apply:
 *  the look between arm and sleep. */
bool qn_driver_pending(struct qn_driver *d);

/** When qn_driver_turn must be called even if nothing arrives; ns or
 *  QN_TIME_NEVER. */
qn_time_t qn_driver_deadline(const struct qn_driver *d);

/**
 * The read index: every slot that is visible to a reader of any replica lies at
 * or below it. A linearizable read that was received before this call may be
 * answered once qn_driver_applied() has reached it.
 *
 * The shared word lies in the commons, which a wild process can overwrite. So
 * an index that a reader would have to wait for is checked: what is not decided
 * does not count (PROTOCOL.md 8.2).
 */
qn_slot_t qn_driver_read_index(struct qn_driver *d);

/**
 * What linearizable reads wait for. A read that was received before this call
 * has `index`, and may be answered once `reached` of a later call is not below
 * it. Neither ever falls.
 *
 *     outboxes are read   index is the read index, reached what is applied here
 *     by message          numbers of questions (paxos/machine/read_index.h)
 *
 * By message a question is asked only if a read wants it: see below.
 */
struct qn_read_view {
    uint64_t index, reached;
};
struct qn_read_view qn_driver_read_view(struct qn_driver *d);

/** A read waits for this `index`. By message: the next flush asks, once for all
 *  reads of the turn. Else nothing is to be done. */
void qn_driver_read_wanted(struct qn_driver *d, uint64_t index);

/** States and reads go by message: `peer_state` was NULL, and there are peers.
 */
bool qn_driver_by_message(const struct qn_driver *d);

/** What a living peer says that it has applied and learned; numbers for people,
 *  not checked. @return false: it does not live. */
bool qn_driver_peer_says(const struct qn_driver *d, qn_node_t peer,
                         struct qn_position *out);

/** Slots <= it are applied here. */
qn_slot_t qn_driver_applied(const struct qn_driver *d);

void qn_driver_status(const struct qn_driver *d, struct qn_driver_status *out);

/**
 * The group has halted (paxos/halt/halt.h). Nothing that is submitted is ever
 * decided, until the group is recovered by force (qn_driver_recover).
 *
 * Memory acceptor: the leader has ended, and no member has all slots that the
 * leader's ring does not keep any more (paxos/halt/verdict.h). Withdrawn if
 * a member has them after all. While a stalled member may have more, the group
 * has not halted: it waits for that member (qn_driver_waiting). Or the accept
 * register was overwritten (qn_driver_register_damaged).
 *
 * Process acceptor: leader and acceptor were lost together. Never true of a
 * group that can go on; false for a while of a group that cannot (PROTOCOL.md
 * 6.5). Or the log is incomplete: the successor knows how far the lost ones
 * had decided, but lacks a part of that, and no known peer has it. That is
 * withdrawn if a peer that was stalled has it after all.
 *
 * A compare while the group goes on.
 */
bool qn_driver_halted(const struct qn_driver *d);
bool qn_driver_log_incomplete(const struct qn_driver *d);

/** Memory acceptor: the group has halted because the accept register has a
 *  value that no leader can have stored (qn_onepaxos_damaged): a leader has
 *  overwritten its memory. Found within QN_DRIVER_REGISTER, also if nothing is
 *  proposed, and never withdrawn. Such a group cannot be recovered by force: it
 *  is not known which slots are decided. */
bool qn_driver_register_damaged(const struct qn_driver *d);

/** Memory acceptor: mask of members that may have what the group lacks to go
 *  on, and have not said so for QN_DRIVER_LACKS; 0: the group lacks nothing, or
 *  no member has it. */
uint64_t qn_driver_waiting(const struct qn_driver *d);

/**
 * A group that has halted goes on from what is learned here. All other
 * incarnations have ended and were reported down, and none has begun since.
 * This node leads as soon as a majority votes; what others had decided above
 * qn_driver_status.learned is lost.
 *
 * Process acceptor: it appoints one of the new incarnations; positions and the
 * read index begin anew. Memory acceptor: the lost positions stay void, and the
 * service goes on behind them: qn_driver_applied jumps.
 *
 * @return QN_OK; QN_EBUSY: another incarnation is not known to have ended, or
 *         the group can go on. Then nothing has changed.
 */
int qn_driver_recover(struct qn_driver *d, qn_time_t now);

/**
 * Could it recover the group if all other nodes had ended? Nothing changes.
 *
 * @return QN_OK; QN_EBUSY: the group has not halted, as far as is known here,
 *         or this node can go on without force, or has not applied all that
 *         it has learned.
 */
int qn_driver_recoverable(const struct qn_driver *d);

/** Bytes of the slots above `slot` that are learned and still kept here. */
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

/** Each node has a core of its own from now on, or has not: times go by the
 *  other column of the parameter table (opts.own_cores). */
void qn_driver_own_cores(struct qn_driver *d, bool own_cores);

/** @param out  Filled. @return false: this node does not lead. */
bool qn_driver_flow(const struct qn_driver *d, struct qn_driver_flow *out);

/** The broadcast tree as this node knows it. Borrowed, until the next turn.
 *  NULL: there is none, the group has one node. */
const struct qn_tree *qn_driver_topology(const struct qn_driver *d);

/* ---- the other nodes ----------------------------------------------------- */

/**
 * The incarnation of `peer` has ended for certain. What it had sent whole is
 * received first; then its queuepairs are not touched any more. Its state and
 * ring are, while qn_driver_keeps says so. A second call does nothing.
 */
void qn_driver_down(struct qn_driver *d, qn_node_t peer, qn_time_t now);

/**
 * A new incarnation of a peer, from which nothing was received yet. If the
 * former one was not reported down, it is now.
 *
 * @return QN_OK; QN_EINVAL (a field is missing or out of range); QN_ESTALE: a
 *         later incarnation, or this one, is known already.
 */
int qn_driver_up(struct qn_driver *d, const struct qn_driver_peer_opts *p,
                 qn_time_t now);

/**
 * Memory acceptor: the ring of an incarnation that ended before this one began,
 * and that the accept register may still name.
 *
 * @param ring  Copied.
 * @return QN_OK; QN_EINVAL; QN_ENOMEM.
 */
int qn_driver_remember(struct qn_driver *d, qn_node_t node, uint64_t inc,
                       const struct qn_ring *ring);

/** Must the memory of that incarnation, which has ended, stay mapped? Once
 *  false, it is not touched any more. */
bool qn_driver_keeps(struct qn_driver *d, qn_node_t node, uint64_t inc);

/** The peers that seem to be stalled, as of now (mask of nodes); the others are
 *  trusted again. A wrong suspicion costs a change of roles, nothing else. */
void qn_driver_suspect(struct qn_driver *d, uint64_t peers, qn_time_t now);

/**
 * `heir` shall lead in place of the present leader, which lives and is to be
 * shut down. Called at all nodes: the heir proposes itself if it can, and the
 * others know the reason. No effect at the leader itself, and none once the
 * epoch has changed. It may fail as any proposal may; look at the status.
 */
void qn_driver_lead(struct qn_driver *d, qn_node_t heir, qn_time_t now);

/**
 * A node is to become a voter, or to be a member no more (memory acceptor,
 * PROTOCOL.md 4.4). The order goes to the leader, whichever node that is, from
 * the next flush on, until the outcome is known: see `change` of the status. A
 * leader that is to be removed has another voter lead first. A member that
 * lives takes no command before it is removed (submit: QN_EAGAIN), and the
 * leader waits until its own have ended, for 1 s at most. It may be given
 * again at any time, in any node: what is so already is done. And it is done
 * for ever once this node has learned its entry, whatever follows.
 *
 * Only a vote can be taken away. Of a node without one that is so already: a
 * newcomer lives on as it is. So does a later incarnation, if the voter had
 * ended and began again while its entry was under way: its seat has no vote,
 * and it may be added.
 *
 * @param c  Copied. Of a node that has ended the last incarnation is named.
 * @return QN_OK: it is pending; QN_EBUSY: another one is, here; QN_ENOSYS:
 *         process acceptor; QN_EINVAL: no such node, or no incarnation;
 *         QN_EREMOVED: this node is no member any more.
 *
 * A refused one has not begun, and changes nothing. One whose outcome is
 * unknown may still be done: a leader has taken it, or has ended or was
 * replaced before it answered, or has not answered for 5 s. The reason in both
 * cases is what a leader said last:
 *
 *     QN_EAGAIN       the newcomer is not in sync yet, does not live, or is not
 *                     known to the leader; or no other voter leads yet instead
 *                     of the one that is removed, or that one has commands
 *                     under way. It was asked for 5 s
 *     QN_EBUSY        another change is under way at the leader; or that
 *                     incarnation was removed, and has not ended
 *     QN_ENOQUORUM    the living voters are no majority, or would be none then
 *     QN_EPERM        fewer followers than min-replicas-to-write would be left
 *     QN_ESTALE       the seat has a later incarnation
 *     QN_EINVAL       no voter would be left
 *     QN_EREMOVED     this node was removed meanwhile
 *     QN_ENOTLEADER   no leader has answered for 5 s
 *     QN_ETIMEDOUT    the entry has not come for 5 s
 */
int qn_driver_change(struct qn_driver *d, const struct qn_driver_change *c,
                     qn_time_t now);

/** Mask of the voters of the next entry of the utility log; 0: this node knows
 *  no entry yet. As in the status, by a look. */
uint64_t qn_driver_voters(const struct qn_driver *d);

/** The last one that was ordered here, as in the status, by a look.
 *  @param err  NULL, or filled: `change_error`. */
enum qn_change_state qn_driver_change_state(const struct qn_driver *d,
                                            int *err);

/** The group's first incarnation writes the vote record with which another
 *  voter begins: that one has not voted on anything, and was not told yet that
 *  the group begins. @param record  [bytes] of that voter, writable here. */
void qn_driver_begin_record(const struct qn_driver *d, void *record,
                            size_t bytes);

/** This incarnation was removed: it is a member no more, for ever. Submit says
 *  QN_EREMOVED; whether what was submitted before is applied by the others is
 *  not known here. */
bool qn_driver_removed(const struct qn_driver *d);

/** Where states are said in messages: how often the peer has said its own. It
 *  answers soon while this node waits for it (qn_driver_waits_for): signs of
 *  life, as the turns in an outbox are. */
uint64_t qn_driver_signs(const struct qn_driver *d, qn_node_t peer);

/** Likewise: what the peer's present or last incarnation has said last, in the
 *  form of its outbox, with phase and the first QN_PEER_STATE_COUNTERS counters
 *  of the program. Valid as long as the driver. */
const struct qn_outbox_state *qn_driver_said(const struct qn_driver *d,
                                             qn_node_t peer);

/** Living peers that this node waits for now: if one of them were stalled, this
 *  node could not go on. Mask; 0 if nothing of its own waits. */
uint64_t qn_driver_waits_for(const struct qn_driver *d);

/* ---- snapshots ----------------------------------------------------------- */

/** For a snapshot of the service's state: it has exactly the slots <=
 *  r->position. @return false: it is in the middle of a slot; after the next
 *  turn perhaps. */
bool qn_driver_cut(const struct qn_driver *d, struct qn_resume *r);

/** Does this node lack slots that no peer keeps any more? Then it applies
 *  nothing until a snapshot is installed, or a peer has given them after all.
 *  As in the status. */
bool qn_driver_needs_snapshot(const struct qn_driver *d);

/** The newest entries of the utility log, oldest first, for a snapshot.
 *  @param entries  [cap] filled. @return how many; QN_UL_KEPT is enough. */
uint32_t qn_driver_ul(const struct qn_driver *d, struct qn_ul_entry *entries,
                      uint32_t cap);

/**
 * The service's state is now that of a snapshot: go on behind it.
 *
 * @param ul  [count] consecutive entries, borrowed; count may be 0.
 * @return QN_OK; otherwise nothing has changed: QN_EINVAL (the entries are not
 *         consecutive, disagree with known ones, or name a node outside
 *         the group); QN_ESTALE: this node has
 *         applied as much already, or its lost state had more (it has learned
 *         from it which incarnations were removed); QN_EAGAIN: it
 *         is in the middle of a slot (qn_driver_cut), ask again after a turn;
 *         QN_EAPPLY: it has ended for what it could not apply.
 */
int qn_driver_install(struct qn_driver *d, const struct qn_resume *r,
                      const struct qn_ul_entry *ul, uint32_t count,
                      qn_time_t now);

/**
 * This node gives `joiner` a snapshot of `position`: what is decided behind it
 * is to be kept, and the leader goes no faster than the part `done` (of
 * QN_HOLD_DONE) that is sent allows (PROTOCOL.md 3.6). Called again as that
 * grows; one joiner at a time. It is over when the joiner has applied up to
 * there, when its incarnation ends, or by qn_driver_release.
 */
void qn_driver_hold(struct qn_driver *d, qn_node_t joiner, qn_slot_t position,
                    uint32_t done);
void qn_driver_release(struct qn_driver *d);

/**
 * The service gives a snapshot and has no consistent cut: apply nothing, and do
 * not propose this node as leader, from now on until it is called with false.
 * Everything else goes on. To the leader this is a member that has stopped: it
 * waits for it as long as for any (flow control, PROTOCOL.md 3.6). Reads and
 * own commands wait. Between two slots (qn_driver_cut), and not inside a turn.
 */
void qn_driver_suspend_apply(struct qn_driver *d, bool suspended);

/**
 * What the service could not apply. If that cost its state, this node applies
 * nothing, gives no snapshot (qn_driver_cut) and does not propose itself as
 * leader, until qn_driver_install; if it leads, another voter is to lead
 * (memory acceptor). It votes as before, and its log counts as before, but it
 * is not in_sync. A snapshot is asked for as by need_snapshot, all the time.
 * Valid as long as the driver.
 */
const struct qn_apply_failure *qn_driver_apply_failure(
    const struct qn_driver *d);

/** Has the service a state, or does it wait for the first snapshot? It has one
 *  at first. The others are told, so that none of them waits for it as a donor.
 */
void qn_driver_has_state(struct qn_driver *d, bool has);

/** State transfer has given up, with that error. Nothing is done while the
 *  state is whole. */
void qn_driver_apply_gave_up(struct qn_driver *d, int err);

/** A snapshot of `position` is on its way to this node, and will be installed
 *  even if its donor ends; 0: none is on its way (any more). */
void qn_driver_coming(struct qn_driver *d, qn_slot_t position);

/** Does this node lead or accept, as far as it knows? Then nothing is decided
 *  while it makes no turn. */
bool qn_driver_has_role(const struct qn_driver *d);

/** Do writes wait at the leader for a member that may not be given up? */
bool qn_driver_held(const struct qn_driver *d);

/* ---- tests --------------------------------------------------------------- */

/** Is the page of the accept register writable to this process? What it then
 *  writes at random may stop the group (DEBUG). */
bool qn_driver_claims(const struct qn_driver *d);

/** What a leader does that misbehaves (DEBUG): the accept register gets that
 *  value. @return false: its page is not writable to this process. */
bool qn_driver_overwrite_register(struct qn_driver *d, uint64_t epoch,
                                  uint64_t hi);

/** Test switch: hold back LEARNs that arrive here (DEBUG). */
void qn_driver_hold_learns(struct qn_driver *d, bool hold);

#endif
