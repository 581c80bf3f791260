#ifndef QN_KVS_DETECTOR_STALL_DETECTOR_H
#define QN_KVS_DETECTOR_STALL_DETECTOR_H

/**
 * Which peers' accept queues to serve. A pure state machine: inputs are the
 * queues with a pending connection and the peers' turn counters, the output is
 * the set of peers to accept for now.
 *
 *     absent   the peer has ended, or does not serve yet or any more: serve
 *              its queue at once
 *     stalled  a connection has been pending for QN_STALL_TIMEOUT without a
 *              turn of the peer: serve its queue now, and at once from then on
 *              until the peer makes a turn
 *     busy     the peer makes turns: never serve its queue
 *
 * All replicas check, so any of them may be stalled too. The next replica in
 * the order of ids serves first, each one behind it QN_STALL_STAGGER later
 * (three steps at most: a replica that comes too late finds nothing pending).
 * Two replicas that serve one queue do no harm, so they need not agree. The
 * worst case from the arrival of a connection, with any number of other stalled
 * replicas, is
 *
 *     QN_STALL_CHECK_INTERVAL + QN_STALL_TIMEOUT rounded up to checks
 *     + 3 QN_STALL_STAGGER = 75 ms
 *
 * Threads: one. Pure: no clock, no allocation, no IO.
 */

#include <stdbool.h>

#include "core/base/clock.h"
#include "core/node.h"

#define QN_STALL_CHECK_INTERVAL (15 * QN_MS)
#define QN_STALL_TIMEOUT        (30 * QN_MS)
#define QN_STALL_STAGGER        (10 * QN_MS)

/** What is seen of a replica. */
struct qn_stall_view {
    bool serves;    /* it lives, and accepts its connections itself */
    uint64_t turns; /* its turn counter */
};

/** Private. */
struct qn_stall_detector {
    qn_node_t self;
    uint32_t nodes;
    uint64_t pending; /* mask: a connection was pending at the last check */
    uint64_t stalled; /* mask: found stalled, and no turn was seen since */
    uint64_t turns[QN_NODES_MAX];
    qn_time_t moved_at[QN_NODES_MAX];      /* ns; first check with `turns` */
    qn_time_t pending_since[QN_NODES_MAX]; /* ns; or the last turn after it */
};

void qn_stall_detector_init(struct qn_stall_detector *d, qn_node_t self,
                            uint32_t nodes);

/**
 * One check.
 *
 * @param view     [nodes] what is seen; [self] is not looked at.
 * @param pending  Mask of replicas with a pending connection.
 * @return mask of peers whose connections are to be accepted now.
 */
uint64_t qn_stall_detector_check(struct qn_stall_detector *d,
                                 const struct qn_stall_view *view,
                                 uint64_t pending, qn_time_t now);

/** Mask of replicas that new connections should go to, as this one sees it:
 *  those that serve and are not stalled. `self` is among them. */
uint64_t qn_stall_detector_available(const struct qn_stall_detector *d,
                                     const struct qn_stall_view *view);

#endif
