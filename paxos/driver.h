#ifndef QN_PAXOS_DRIVER_H
#define QN_PAXOS_DRIVER_H

/**
 * The shell around the state machine: it moves bytes and time between one
 * node's struct qn_onepaxos and the queuepairs, and nothing else. It has no
 * thread, no clock and no loop of its own: the program calls it once per turn.
 *
 *     turn:   qn_driver_turn(now, wall)   drain channels, step, apply
 *             ... serve reads, submit writes ...
 *             qn_driver_flush(now)        send what was produced, ring peers
 *             sleep until a bell or qn_driver_deadline()
 *
 * What is replicated is a log of batches of commands; a command is a byte
 * string that `apply` understands. Every node applies the same commands in the
 * same order; the origin recognises its own by `mine`.
 *
 * Writes of one origin are applied in the order they were submitted, each
 * exactly once. LEARN goes through the topology of `group`; everything else
 * through the direct lanes.
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

/** One decided command, as given to `apply`. */
struct qn_applied {
    qn_slot_t slot;        /* its position */
    uint64_t stamp_ms;     /* of its batch; never goes back along the log */
    qn_node_t origin;      /* who submitted it */
    uint64_t origin_inc;   /* in which life */
    uint64_t seq;          /* origin's sequence, from 1 */
    bool mine;             /* submitted through this driver, in this life */
    struct qn_slice bytes; /* borrowed for the call */
};

#define QN_AHEAD 16u /* commands announced at once */

/**
 * Work of applying in one turn, so that no turn is long: about so much is done,
 * to the end of the slot that was begun; the rest waits for the next turn. The
 * unit is a small command, about 1 us with 10^7 keys.
 */
#define QN_TURN_WORK 192u

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
    void *ctx;
};

struct qn_driver_opts {
    qn_node_t self;
    uint32_t nodes;              /* 1 .. QN_NODES_MAX; 1: no replication */
    const uint64_t *incarnation; /* [nodes], borrowed */
    struct qn_qp **direct;       /* [nodes], [self] NULL; array borrowed,
                                    queuepairs kept, not owned */
    struct qn_qp **tree;         /* [nodes], likewise */
    const char *topology;        /* "sequential" or "binary" */
    struct qn_service service;
    qn_a64 *read_index; /* shared, kept: raised before anything is exposed */
    struct qn_outbox_state *state; /* own outbox, kept: applied and learned are
                                      published there */
    const struct qn_outbox_state **peer_state; /* [nodes], [self] NULL; what
                                      peers publish. Array borrowed, states
                                      kept */
    bool own_cores; /* column of the parameter table (PROTOCOL.md 10) */
    uint64_t seed;  /* of everything random inside */
    qn_time_t now;  /* ns */
};

struct qn_driver_status {
    uint64_t epoch;
    qn_node_t leader, acceptor;
    qn_slot_t applied, learned, decided_hi;
    uint64_t batches, commands; /* applied so far */
    uint64_t unapplied;         /* own submitted commands not yet applied */
    uint64_t fetches;           /* FETCH sent: LEARNs that were missed */
    uint64_t log_bytes;         /* batches kept for laggards */
};

struct qn_driver;

/** @return QN_OK, QN_EINVAL, QN_ENOMEM. */
int qn_driver_create(struct qn_driver **out, const struct qn_driver_opts *o);
void qn_driver_destroy(struct qn_driver *d);

/** Submit one command, the concatenation of parts[0..count). The bytes are
 *  copied. *seq filled with its sequence. It will be applied once, or the
 *  group ends.
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
 * The shared word lies in the commons, which a wild process can overwrite, so
 * it is checked: nothing above what the acceptor says it has accepted counts.
 */
qn_slot_t qn_driver_read_index(const struct qn_driver *d);

/** Slots <= it are applied here. */
qn_slot_t qn_driver_applied(const struct qn_driver *d);

void qn_driver_status(const struct qn_driver *d, struct qn_driver_status *out);

/** The process of `peer` has ended for certain. */
void qn_driver_down(struct qn_driver *d, qn_node_t peer, qn_time_t now);

/** Test switch: hold back LEARNs that arrive here (DEBUG). */
void qn_driver_hold_learns(struct qn_driver *d, bool hold);

#endif
