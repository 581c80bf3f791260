#ifndef QN_PAXOS_MEMBER_MEMBER_INTERNAL_H
#define QN_PAXOS_MEMBER_MEMBER_INTERNAL_H

/**
 * What the parts of a member share:
 *
 *     member.c           the own outbox, the commons, the node's place; turns
 *     member_meet.c      outboxes of peers, queuepairs, ends and beginnings
 *     member_start.c     the driver, made of all that
 *     member_transfer.c  state transfer; driver_transfer.c: what it asks
 *     member_detect.c    the shell of the failure detector
 *     member_said.c      what members say of themselves
 */

#include "core/place/area.h"
#include "core/place/commons.h"
#include "core/place/hold.h"
#include "core/place/outbox.h"
#include "core/wait/doorbell.h"
#include "core/wait/spin.h"
#include "paxos/driver/driver.h"
#include "paxos/feed/feed.h"
#include "paxos/log/arena.h"
#include "paxos/log/ring.h"
#include "paxos/member/driver_transfer.h"
#include "paxos/member/member.h"
#include "paxos/member/peers.h"

struct qn_member {
    struct qn_member_opts o; /* arrays and descriptors as below */
    int doorbell_fd[QN_NODES_MAX];
    int numa_node[QN_NODES_MAX];

    /* Memory shared with the peers: this member's own, and all nodes'. */
    struct qn_outbox *outbox;
    struct qn_ring ring;   /* in it; memory acceptor */
    struct qn_arena arena; /* likewise; more than one node */
    struct qn_commons *commons;
    struct qn_node_hold hold; /* of this node */
    struct qn_area record;    /* of this voter; none: in the commons */
    struct qn_device *device; /* in them; NULL: the transport has lanes */
    struct qn_doorbell doorbell;
    struct qn_yield yield;

    struct qn_peers peers;
    struct qn_failure_detector detector;
    uint64_t signs[QN_NODES_MAX]; /* turns of a peer that is held, when the
                                     kernel was last asked */
    struct qn_driver *driver;     /* NULL: not started */
    struct qn_feed_opts feed_opts;
    struct qn_feed *feed; /* NULL: not started, or none is wanted */
    struct qn_events events;
    bool has_state;
    struct qn_member_state state;
    struct qn_driver_transfer transfer_ops;
    struct qn_state_transfer *transfer; /* NULL: none */
    bool transfer_rests; /* at the last turn, of which the driver was told */
    bool complete;       /* likewise */
    uint64_t turns;
    bool lives;   /* it has begun, as the node's live incarnation */
    bool again;   /* the program must not sleep before the next turn */
    bool leaves;  /* its end is intended */
    bool stopped; /* the service may be gone */
};

/* ---- member.c ------------------------------------------------------------ */

/** True if the memory acceptor decides. */
bool qn_member_by_memory(const struct qn_member *m);

/** Of the device in the commons; 0: the transport has none. */
size_t qn_member_device_bytes(const struct qn_member *m);

/** What its own outbox was made with; those of the others have its shape. */
struct qn_outbox_opts qn_member_shape(const struct qn_member *m);

/** The ring in an outbox, the own one or a mapped one. */
void qn_member_ring_open(struct qn_member *m, struct qn_ring *r,
                         const struct qn_outbox *o);

/** `ctx` is the member. Does not return if a later incarnation has begun. */
void qn_member_fence(void *ctx);

/* ---- member_meet.c ------------------------------------------------------- */

/** Doorbell, device, queuepairs to all peers that were met. */
int qn_member_connect(struct qn_member *m);

/** The present peer of that node has ended. */
void qn_member_retire(struct qn_member *m, qn_node_t node);

/** Unmap the ended peers that the driver does not need any more. */
void qn_member_sweep(struct qn_member *m);

/* ---- member_transfer.c --------------------------------------------------- */

/** What the driver is made with. */
struct qn_driver_snapshots qn_member_snapshots(struct qn_member *m);

/** The driver is there. Nothing, if there is no state. */
int qn_member_transfer_begin(struct qn_member *m);
qn_time_t qn_member_transfer_turn(struct qn_member *m, qn_time_t now);

/* ---- member_detect.c ----------------------------------------------------- */

/** The peers were met; watch them. */
void qn_member_detector_begin(struct qn_member *m);

#endif
