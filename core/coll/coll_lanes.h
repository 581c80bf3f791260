#ifndef QN_COLL_COLL_LANES_H
#define QN_COLL_COLL_LANES_H

/**
 * The flow machine on queuepairs: moves messages between lanes and a struct
 * qn_coll_flow, and knows when a node may sleep. What the payloads are says its
 * user (coll.c).
 *
 * A message is a head of 8 bytes and the payload:
 *
 *     4 bytes  number  of the operation
 *     2        view    of all members; earlier ones are dropped, for a later
 *                      one the sender counts as gone
 *     2        kind (4 bits), the receiver's stage (2) and link (10)
 *
 * all as the machine stores them. So a payload of up to 48 bytes travels in one
 * cell.
 *
 * Threads: one. Nothing blocks; nothing but init allocates.
 */

#include <stddef.h>

#include "core/coll/coll_flow.h"
#include "core/qp.h"

#define QN_COLL_HEAD_BYTES  8u
#define QN_COLL_PAYLOAD_MAX (QN_MSG_MAX - QN_COLL_HEAD_BYTES)

struct qn_coll_lanes_user {
    /** A payload that the flow is about to take. Borrowed; aligned to 8.
     *  @return QN_OK or QN_ECORRUPT. */
    int (*take)(void *ctx, const struct qn_flow_head *h, const void *bytes,
                size_t len);
    /** The payload of a message that goes out.
     *  @return its bytes, with QN_COLL_HEAD_BYTES in front of them that may be
     *  written to. */
    uint8_t *(*give)(void *ctx, const struct qn_flow_send *s, size_t *len);
    /** The flow had an input: take what it delivers, see what is complete. */
    void (*settled)(void *ctx);
};

/** Fields are private. */
struct qn_coll_lanes {
    struct qn_coll_flow *flow;
    const struct qn_coll_lanes_user *user;
    void *ctx;
    struct qn_qp **qp; /* [bound] by node; NULL: it has ended, or is none of
                          the neighbours */
    qn_node_t *list;   /* [list_size] that are looked at */
    qn_node_t *used;   /* [neighbours] whose queuepairs must be flushed */
    bool *is_used;     /* [bound] */
    uint32_t bound;    /* above all neighbours */
    uint32_t listed, list_size;
    qn_node_t *ahead; /* [aheads] looked at when nothing moves */
    uint32_t aheads;
    uint32_t listed_at;  /* changes of the flow when `list` was made, ... */
    bool is_listed;      /* unless it was never */
    uint32_t settled_at; /* ... and when its user had last seen them */
    uint32_t used_count;
    qn_node_t blocked; /* has no room; or QN_NO_MEMBER */
    bool flushed;      /* a flush has sent what had no room before it, and no
                          poll came after it */
    uint16_t view;
    uint32_t budget;
    alignas(16) uint8_t own[QN_INPLACE_MAX]; /* a short message */
};

struct qn_coll_lanes_opts {
    struct qn_coll_flow *flow;             /* kept */
    const struct qn_wiring *const *wiring; /* [kinds] of it; borrowed */
    uint32_t kinds;
    struct qn_qp **qp; /* by node; borrowed, the queuepairs of neighbours are
                          kept */
    uint16_t view;
    uint32_t budget; /* messages that a poll takes from a neighbour, at most */
    bool ahead; /* when nothing moves, look at all predecessors: one that is
                   ahead by some operations of the window must not be held back
                   by a lane that is full (coll_flow.h, Room), nor one of a
                   later view by what earlier ones have left in it */
    const struct qn_coll_lanes_user *user; /* kept */
    void *ctx;                             /* kept */
};

/** @return QN_OK; QN_EINVAL: a neighbour has no queuepair; QN_ENOMEM. `fini`
 *  frees what there is in any case. */
int qn_coll_lanes_init(struct qn_coll_lanes *l,
                       const struct qn_coll_lanes_opts *o);
void qn_coll_lanes_fini(struct qn_coll_lanes *l);

/** Flush all queuepairs once: what was read from them before may not be said.
 */
void qn_coll_lanes_use_all(struct qn_coll_lanes *l);

/** The flow has an input of its user: send what there is, as poll does. */
void qn_coll_lanes_send(struct qn_coll_lanes *l);

/** Look at each lane from which a message is awaited (or `ahead`), as often as
 *  there is one and the budget says, then send what there is but
 * acknowledgements that may go with the flush. @return true if something moved.
 */
bool qn_coll_lanes_poll(struct qn_coll_lanes *l);

/** True if poll would move something, or if a flush has since the last poll:
 * then an operation may have completed that its caller has not looked at. */
bool qn_coll_lanes_pending(struct qn_coll_lanes *l);

/** Flush the queuepairs that were used.
 *  @return true while something waits for room. */
bool qn_coll_lanes_flush(struct qn_coll_lanes *l);

/** A node has ended: its queuepair is used no more. */
void qn_coll_lanes_down(struct qn_coll_lanes *l, qn_node_t node);

#endif
