#ifndef QN_PAXOS_DRIVER_INTERNAL_H
#define QN_PAXOS_DRIVER_INTERNAL_H

/**
 * The state of a driver, and the functions of its parts:
 *
 *     driver.c       the turn, outputs, life, what callers ask
 *     driver_send.c  queues, pieces, broadcast
 *     driver_recv.c  direct lanes, the tree, the peers' positions
 */

#include "core/group/group.h"
#include "paxos/driver.h"
#include "paxos/onepaxos.h"
#include "paxos/pool.h"
#include "paxos/sendq.h"

/** Look at the peers' positions. */
#define QN_BEAT_EVERY ((qn_time_t)2 * QN_MS)
/** Wait for a child, at most. */
#define QN_STALL      ((qn_time_t)2 * QN_MS)

struct qn_driver_peer {
    struct qn_qp *qp;
    struct qn_sendq control, bulk;
    struct qn_joiner joiner;
    bool corrupt;
    bool refused;          /* its next message, still in the channel, ... */
    uint64_t refused_step; /* ... when d->steps was this */
    qn_slot_t applied, learned; /* as it said last */
};

struct qn_driver {
    struct qn_driver_opts o;
    struct qn_pool pool; /* of all blobs */
    struct qn_onepaxos *machine;
    struct qn_context *context;
    struct qn_joiner learn_joiner;
    struct qn_sendq bcast;
    uint64_t children;       /* mask */
    uint64_t left_behind;    /* children that are not waited for */
    qn_time_t stalled_since; /* 0: the head of bcast does not wait */
    struct qn_driver_peer peer[QN_NODES_MAX];
    struct qn_qp *tree[QN_NODES_MAX];
    const struct qn_outbox_state *peer_state[QN_NODES_MAX];
    uint64_t touched;   /* peers whose queuepair must be flushed */
    uint64_t transfers; /* peers for which the machine has more */
    qn_time_t now;
    uint64_t wall_ms;
    qn_time_t machine_deadline;
    qn_time_t beat_at; /* next look at the peers' positions; or NEVER */
    qn_slot_t applied; /* all of them */
    qn_slot_t exposed; /* >= applied: at least a part of it is in the state */
    qn_node_t acceptor;
    bool again, did, hold_learns, need_snapshot;
    bool held;       /* the machine has more to apply */
    int64_t left;    /* of QN_TURN_WORK, in this turn */
    bool tree_waits; /* the tree has something to send and no room */
    uint64_t batches, commands;
    uint64_t steps; /* that changed something: what was refused may fit now */
    struct qn_step_out out; /* of the current step; large, so not on stack */
};

static inline uint64_t qn_driver_bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

/* ---- driver.c ------------------------------------------------------------ */

/** Give an input to the machine and execute what it puts out. Errors are those
 *  of qn_onepaxos_step; then nothing was put out. */
int qn_driver_step(struct qn_driver *d, const struct qn_input *in);

/* ---- driver_send.c ------------------------------------------------------- */

/** Send to one peer, at once if possible, else from its queue. */
void qn_driver_send(struct qn_driver *d, qn_node_t to, const struct qn_msg *m);

/** Send a LEARN down the tree, whose root this node is. */
void qn_driver_bcast(struct qn_driver *d, const struct qn_msg *m);

/** Send what is queued; to a peer with an empty queue and room, the next slot
 *  of what it has asked for. @return true if there may be more of that. */
bool qn_driver_queues_send(struct qn_driver *d);

/** Send queued broadcasts as far as the children have room. */
void qn_driver_bcast_send(struct qn_driver *d);

/** @return true while something waits for room in the tree. */
bool qn_driver_tree_flush(struct qn_driver *d);

/** Something waits for room: is there some now? Asks the peers to ring for
 *  what is still missing. */
bool qn_driver_room_came(struct qn_driver *d);

/* ---- driver_recv.c ------------------------------------------------------- */

/** Read the direct lane of a peer that has not ended. */
void qn_driver_receive(struct qn_driver *d, qn_node_t from);

/** A message came down the tree; `ctx` is the driver. */
void qn_driver_deliver(void *ctx, const void *bytes, size_t len);

/** What the acceptor has accepted, as it says itself. */
qn_slot_t qn_driver_accepted(const struct qn_driver *d);

/** Tell the machine the peers' positions. */
void qn_driver_beats_read(struct qn_driver *d);

#endif
