#ifndef QN_PAXOS_MEMBER_MEMBER_H
#define QN_PAXOS_MEMBER_MEMBER_H

/**
 * A member of a group: everything that one incarnation of a node needs to take
 * part in agreement, but for the replicated service itself.
 *
 * It owns its outbox (with ring and arena), its mapping of the commons, its
 * attachment to a device, the peers that it has met, the driver and the failure
 * detector. Its program gives it descriptors, numbers and a transport, tells it
 * of the incarnations of the other nodes, and gives it the service
 * (paxos/driver/driver.h), through which decided commands come back.
 *
 *     qn_member_create         the own outbox is there, and this process is its
 *                              node's live incarnation
 *     qn_member_meet           each peer, by the descriptor of its outbox; also
 *     qn_member_meet_ended     what is needed of those that have ended
 *     qn_member_start          queuepairs, driver, watching, state transfer
 *       turns
 *     qn_member_stop           the service and its state can be destroyed
 *     qn_member_destroy
 *
 * A turn:
 *
 *     at = qn_member_turn_begin          snapshots, given and taken
 *     qn_driver_turn, the service's own work, qn_driver_flush
 *     at = min(at, qn_member_turn_end)   peers that have ended or are stalled
 *
 * and before the program sleeps:
 *
 *     qn_member_arm
 *     if qn_member_again: qn_member_wake, and the next turn
 *     else: wait for the doorbell's descriptor, until `at` or
 *           qn_driver_deadline at the latest; then qn_member_wake and, if the
 *           descriptor is readable, qn_member_drain
 *
 * Peers that begin while it takes turns come by qn_member_peer_up. Their ends
 * are seen by the failure detector, or come by qn_member_peer_down, whichever
 * is first; `ended` is called once for each.
 *
 * It prints nothing (`log`), has no thread and no event loop, and knows no
 * transport by name.
 *
 * Threads: one per member, from qn_member_create on; that thread holds the
 * liveness word, and its end is the member's end (core/place/liveness.h). No
 * call blocks. Several members may be threads of one process. A child of
 * fork(2) has nothing of what a member maps, and calls nothing of it but
 * destroy.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/device.h"
#include "core/node.h"
#include "core/qp.h"
#include "paxos/member/detector/failure_detector.h"
#include "paxos/member/transfer/state_transfer.h"

struct qn_driver;
struct qn_events;
struct qn_feed;
struct qn_feed_opts;
struct qn_machine;
struct qn_member;
struct qn_service;
struct qn_tree;

/** An incarnation of a peer. */
struct qn_member_peer {
    qn_node_t node;
    uint64_t incarnation; /* never 0 */
    int pid; /* of its thread. What that has run tells a long turn from a stall
                (core/place/process.h): by the id of a process all its threads
                count, so a member that is its first thread, and stalled while
                others run, is suspected after QN_DETECTOR_LONG_TURN only. 0:
                unknown; each long turn is a stall then */
    int fd;  /* of its outbox; borrowed */
};

/** What the program is told. Called in the member's thread, from inside its
 *  calls; none may call back into the member but to ask what it knows. */
struct qn_member_callbacks {
    /** A later incarnation of this node has begun, of which this one was never
     *  told; or, with `held`, this one was taken for dead (then it is named).
     *  It must not return: the process ends. */
    void (*superseded)(void *ctx, uint64_t incarnation);
    /** The present incarnation of a peer has ended. What it has said can still
     *  be read; the driver knows of its end. */
    void (*ended)(void *ctx, qn_node_t node, uint64_t incarnation,
                  qn_time_t now);
    /** Its flight recorder (core/place/flight_recorder.h), or that of another
     *  incarnation that has ended before this member started; borrowed. */
    void (*recorded)(void *ctx, qn_node_t node, uint64_t incarnation,
                     const void *flight);
    /** A peer that had lost its role as stalled makes turns again: the
     *  suspicion timeout is `timeout` ns now. */
    void (*resumed)(void *ctx, qn_node_t node, qn_time_t timeout);
    void *ctx;
};

/** The state that the service replicates: members that lack more of the log
 *  than the others keep, and later incarnations of a node, get it of one
 *  another. Called as the service is, and from qn_member_turn_begin. */
struct qn_member_state {
    /** Without a consistent cut (`no_cut`) a member applies nothing while it
     *  gives, and gives as leader only if no other member has all. */
    struct qn_state_transfer_user user;
    uint32_t rounds_max; /* as in struct qn_state_transfer_opts: then no state
                            is asked for any more, and one that is lost has
                            ended the member (qn_driver_apply_failure) */
    /** This member lacks what no other one keeps any more, from `slot` on: a
     *  snapshot is asked for. */
    void (*lags)(void *ctx, qn_slot_t slot);
    /** Before user.install: own commands up to sequence `seq` lie in the
     *  snapshot. The log will not bring them. */
    void (*covered)(void *ctx, uint64_t seq);
    /** A snapshot of `position` had come, and the log was faster. */
    void (*caught_up)(void *ctx, qn_slot_t position);
    void *ctx; /* of these three */
};

/** Least `backlog_bytes`: flow control takes an eighth of it as a mark. */
#define QN_MEMBER_BACKLOG_LEAST 8u

/** All pointers are borrowed for qn_member_create, but where it is said. */
struct qn_member_opts {
    qn_node_t self;
    uint32_t nodes;       /* 1 .. QN_NODES_MAX: seats, taken or vacant. A vacant
                             one is as a node that has ended */
    uint64_t seats;       /* mask of nodes that have lanes from the beginning;
                             0: all. To another one they are allocated when it
                             is met or comes up */
    uint64_t voters;      /* mask: they begin the group, node 0 among them, and
                             the same in all incarnations; 0: all, the only way
                             with the process acceptor. Others are made voters
                             later (PROTOCOL.md 4.4) */
    uint64_t incarnation; /* of this member, never 0 */
    bool first;           /* the group begins with this incarnation */
    bool held;            /* it lives as long as its process, and the list of
                             robust mutexes of the thread stays as it is
                             (qn_liveness_begin_held) */
    uint64_t seed;        /* of everything random */
    uint64_t born_ms;     /* ms since 1970, for the flight recorder */

    /* Descriptors, borrowed until destroy. */
    int commons_fd; /* of the group's commons */
    int hold_fd;    /* where nodes are held (core/place/hold.h), the same place
                       for all: the commons, or another file. No descriptor of it
                       is closed in this process meanwhile */
    int record_fd;  /* of an area of QN_COMMONS_RECORD_BYTES with this voter's
                       record; -1: it lies in the commons */
    const int *doorbell_fd; /* [nodes] eventfd of each node, non-blocking; also
                               those of vacant seats are there from the
                               beginning, for any member to hand them on */

    /* Channels. */
    const struct qn_transport *transport; /* kept */
    uint32_t cells;                       /* of a lane */
    struct qn_device_opts device;         /* if the transport has one */
    bool shares; /* members read each other's outboxes for agreement; else they
                    say their state in messages (PROTOCOL.md 3.7), and the
                    program tells of deaths. True for one node */

    /* Agreement. */
    bool memory_acceptor;   /* with more than one node; `shares` */
    uint64_t ring_bytes;    /* of batches in the own ring: address space */
    uint64_t arena_bytes;   /* of long commands in the own arena, likewise */
    uint64_t backlog_bytes; /* of the log that is kept for members that lag;
                               QN_MEMBER_BACKLOG_LEAST or more */
    qn_time_t lag_timeout;  /* ns; flow control, as are both: */
    uint32_t min_awaited;   /* paxos/flow/flow.h */
    bool own_cores;         /* no two nodes share a core, as it begins */
    const int *numa_node;   /* [nodes] home of the pages of each; -1: none */

    /* The broadcast tree (struct qn_driver_opts), kept. */
    const char *topology;
    const struct qn_machine *costs; /* or NULL */
    const struct qn_tree *plan;     /* or NULL */
    uint32_t ring;                  /* arity of a diamond ring; 0 */
    uint32_t ring_from;

    /** Of private memory, kept: that of the member, of what it knows of peers,
     * of queuepairs and what waits in front of them, of the driver, its
     * machine, tree and batches, and of state transfer. NULL: malloc's. */
    const struct qn_alloc *alloc;

    /** What is applied is kept for subscribers (paxos/feed). `applied` and
     *  `alloc` are the member's. NULL: nothing is. */
    const struct qn_feed_opts *feed;

    struct qn_member_callbacks callbacks;
    /** Lines of driver and state transfer, in the member's thread: `fn` may ask
     *  what the member knows. Each calls a member "member" and its number.
     *  Without it they go to the process's log (core/base/log.h). */
    struct qn_log_sink log;
};

/* ---- begin and end ------------------------------------------------------- */

/**
 * Make the own outbox, and become the node's live incarnation, until the
 * calling thread ends or destroys it. The process holds the node until all of
 * its members that were that node are destroyed.
 *
 * @param out   Filled; destroy it.
 * @return QN_OK; QN_EBUSY: another process is this node, or this one is it as
 *         that incarnation or a later one, or this thread is a member already;
 *         QN_EINVAL; QN_ENOMEM; QN_EMFILE; QN_EPERM or QN_ECORRUPT: the commons
 *         are not those of such a group; QN_ENOSYS: the kernel cannot do it.
 */
int qn_member_create(struct qn_member **out, const struct qn_member_opts *o);

/** To pass to peers; owned by the member. */
int qn_member_outbox_fd(const struct qn_member *m);

/**
 * Before the start: a peer is there; or one of an earlier incarnation of this
 * very node, which has ended and whose ring may be needed.
 *
 * @param p  Its descriptor may be closed afterwards.
 * @return QN_OK; QN_EPERM, QN_ECORRUPT, QN_ESTALE: that is not its outbox, or
 *         it was met already; QN_ENOMEM, also for lanes to its seat; QN_EMFILE.
 *         Then nothing has changed.
 */
int qn_member_meet(struct qn_member *m, const struct qn_member_peer *p);

/** Before the start: that incarnation of a peer has ended. 0: the node never
 *  had one. The end of an earlier one than was met says nothing new. */
void qn_member_meet_ended(struct qn_member *m, qn_node_t node,
                          uint64_t incarnation);

/** Before the start: the group begins with this incarnation (`first`), which
 *  was not known when it was created. */
void qn_member_set_first(struct qn_member *m);

/** Before the start: that peer was met. If it has no lanes for this node's seat
 *  yet, it is as if it was not, and may come up after the start. */
void qn_member_meet_unless_seated(struct qn_member *m, qn_node_t node);

/** Allocate the lanes to that node's seat, before it is told of this member; if
 *  they are, nothing is done. @return QN_OK; QN_ENOMEM. */
int qn_member_seat(struct qn_member *m, qn_node_t node);

/** Before the start: `voters` of the options, which was not known when it was
 *  created. */
void qn_member_set_voters(struct qn_member *m, uint64_t voters);

/** Open queuepairs to all that were met, and make the driver.
 *  @param service  Copied.
 *  @param state    Copied; NULL: the service gets its state by itself, and all
 *                  messages of peers.
 *  @return QN_OK; QN_EAGAIN: a peer has no lanes for this node's seat yet; as
 *          qn_driver_create. Unless QN_OK: destroy the member. */
int qn_member_start(struct qn_member *m, const struct qn_service *service,
                    const struct qn_member_state *state);

/**
 * The `first` incarnation of node 0, after its start and before any other voter
 * hears that the group begins: write the vote records that the others begin
 * with. So if one of them ends before it starts, the next process of its seat
 * votes all the same.
 *
 * @param voters  Mask, without this node; their records lie in the commons.
 * @return QN_OK; QN_ENOMEM.
 */
int qn_member_begin_records(const struct qn_member *m, uint64_t voters);

/** No state is transferred any more; a snapshot under way is abandoned. The
 *  service and its state may be destroyed after that: the member takes no
 *  further turn, and hears no more of peers. NULL is fine. */
void qn_member_stop(struct qn_member *m);

/** Its end will be intended: no supervisor shall start another incarnation by
 *  itself. */
void qn_member_leave(struct qn_member *m);

/** Its thread ends, and the member cannot be destroyed: as the kernel would
 * mark it. Nothing of it may be called any more. */
void qn_member_mark_end(const struct qn_member *m);

/** The thread of qn_member_create, or any other after its end. What the service
 *  keeps of the driver's is given back before. Another process may be the node
 *  then. NULL is fine. In a child of fork(2), whose parent's member it is, it
 *  does nothing. */
void qn_member_destroy(struct qn_member *m);

/** NULL before the start. Owned by the member. */
struct qn_driver *qn_member_driver(const struct qn_member *m);

/** Its flight recorder, from the start on; the program may note events. */
struct qn_events *qn_member_events(struct qn_member *m);

/** Its change feed, from the start on: for subscribers in the member's thread,
 *  outside of callbacks. NULL: none. Owned by the member. */
struct qn_feed *qn_member_feed(const struct qn_member *m);

/* ---- turns --------------------------------------------------------------- */

/** A turn begins: a sign of life for the others. Looks for a later incarnation
 *  of this node, and does a share of the work for snapshots. @return as
 *  qn_member_turn_end. */
qn_time_t qn_member_turn_begin(struct qn_member *m, qn_time_t now);

/** Look for peers that have ended or are stalled, and forget what is needed no
 *  more. @return when to come again; QN_TIME_NEVER: not before something
 *  happens. A compare, unless a check is due. */
qn_time_t qn_member_turn_end(struct qn_member *m, qn_time_t now);

/** Look for peers that have ended, now. To be called between turns, when there
 *  may be news. Does nothing after qn_member_stop.
 *  @param asks  Also for those of which no process has marked the end: the
 *               kernel is asked about each that is held, by a system call. */
void qn_member_look(struct qn_member *m, bool asks);

/** Another turn is due at once. */
bool qn_member_again(struct qn_member *m);

/** A part of that: what waits is not the driver's alone, so a next turn must be
 *  a whole one, with qn_member_turn_begin and qn_member_turn_end. */
bool qn_member_wants_turn(const struct qn_member *m);

/** Nothing is to be done: let other threads of this core go first, once
 *  (core/wait/spin.h). */
void qn_member_yield(struct qn_member *m, qn_time_t now);

/** Say that this member sleeps, or does not; and empty the descriptor of its
 *  doorbell. */
void qn_member_arm(struct qn_member *m);
void qn_member_wake(struct qn_member *m);
void qn_member_drain(struct qn_member *m);

/* ---- peers --------------------------------------------------------------- */

/**
 * A new incarnation of a peer. If the former one was present, it has ended.
 * What is returned is for the newcomer, too: it may start when all that it is
 * to meet have it.
 *
 * @param p  As in qn_member_meet.
 * @return QN_OK; QN_ECORRUPT: it would be this node; QN_ESTALE: that one, or a
 *         later one, is present or was known, and nothing has changed;
 *         QN_EAGAIN: it has no lanes for this node's seat yet (`seats`, or
 *         qn_member_meet); else as qn_member_meet and qn_driver_up. Then the
 *         node is absent, as it was if no former one was present, and it may be
 *         tried again. QN_EINVAL: after qn_member_stop; nothing has changed.
 */
int qn_member_peer_up(struct qn_member *m, const struct qn_member_peer *p);

/** That incarnation of a peer, and with it each former one, has ended for
 *  certain. Does nothing if that is known, or after qn_member_stop. */
void qn_member_peer_down(struct qn_member *m, qn_node_t node,
                         uint64_t incarnation);

/** @param p  Filled: the present incarnation, its `fd` valid while it is; or
 *            the last one that was known (0: none), with pid 0 and fd -1.
 *  @return is one present? Not of this node itself. */
bool qn_member_peer(const struct qn_member *m, qn_node_t node,
                    struct qn_member_peer *p);

/** Mask of nodes with a present peer. O(nodes). */
uint64_t qn_member_peers(const struct qn_member *m);

/** Call `each` for every incarnation that has ended and is still needed. */
void qn_member_each_retained(const struct qn_member *m,
                             void (*each)(void *ctx,
                                          const struct qn_member_peer *p),
                             void *ctx);

/** Is the node's present incarnation there, and alive as far as can be seen
 *  now? (By message, deaths are told.) */
bool qn_member_lives(const struct qn_member *m, qn_node_t node);

/** Ring the doorbell of a present peer. */
void qn_member_ring(struct qn_member *m, qn_node_t node);

/** That node has lost its role because it was stalled: was that false? */
void qn_member_deposed(struct qn_member *m, qn_node_t node, qn_time_t now);

/** What may be asked about peers; `stopped` about any node. Valid as long as
 *  the member. */
struct qn_peer_facts qn_member_facts(struct qn_member *m);

/** ns: the silence that makes a peer suspected now. */
qn_time_t qn_member_suspicion_timeout(const struct qn_member *m, qn_time_t now);

/** Snapshots from and to other members. There is a state. */
void qn_member_transfer_status(const struct qn_member *m,
                               struct qn_state_transfer_status *out);
/** Likewise, of its status: no snapshot comes any more. */
bool qn_member_transfer_gave_up(const struct qn_member *m);

/** No snapshot is wanted any more; one that is coming is discarded. */
void qn_member_transfer_forget(struct qn_member *m);

/** What all its queuepairs of that backend have moved. O(nodes). */
struct qn_qp_traffic qn_member_traffic(const struct qn_member *m,
                                       const struct qn_qp_ops *ops);

/** The flight recorder of a present peer, or the own one. @param incarnation
 *  Filled. @return NULL: the node is absent. */
const void *qn_member_flight(const struct qn_member *m, qn_node_t node,
                             uint64_t *incarnation);

/* ---- what members say of themselves -------------------------------------- *
 *
 * For people and programs, not for agreement: anything may stand there if a
 * process has overwritten its memory. Of this node, or a present peer. After
 * the start. */

/** The program's phase (QN_PHASE_* of its own); 0 at first. */
uint64_t qn_member_phase(const struct qn_member *m, qn_node_t node);
void qn_member_phase_set(struct qn_member *m, uint64_t phase);

/** A counter of the program. @param k  Below QN_MEMBER_COUNTERS; by message
 *  only those below QN_PEER_STATE_COUNTERS are said (paxos/wire). */
#define QN_MEMBER_COUNTERS        57u
/** Counters of one line travel between cores together. */
#define QN_MEMBER_COUNTER_LINE(k) (((unsigned)(k) + 7u) / 8u)
uint64_t qn_member_counter(const struct qn_member *m, qn_node_t node,
                           uint32_t k);
void qn_member_counter_set(struct qn_member *m, uint32_t k, uint64_t value);

/** This member answers clients from here on: its thread gets a slice that is
 *  long enough for several turns (core/place/process.h). Older kernels ignore
 *  it. */
void qn_member_serves(struct qn_member *m);

/** Turns that the node has made: signs of life. */
uint64_t qn_member_turns(const struct qn_member *m, qn_node_t node);

/** No two nodes share a core from now on, or some do. */
void qn_member_own_cores(struct qn_member *m, bool own_cores);

/** The epoch that this member knows; cheap. */
uint64_t qn_member_epoch(const struct qn_member *m);

#endif
