#ifndef QN_PAXOS_DRIVER_FLOW_CONTROL_H
#define QN_PAXOS_DRIVER_FLOW_CONTROL_H

/**
 * Flow control by a delay: limits how fast a leader fills slots, so that a slow
 * but working replica can keep up.
 *
 * (The gate of paxos/flow is the other half of flow control: it bounds how much
 * an awaited member may lack. This delay acts before, and for all replicas that
 * are worth it.)
 *
 * Agreement does not wait for slow learners (PROTOCOL.md 3.4), and must not
 * wait for a stalled one. But where cores are shared, a leader can take so much
 * of them that another replica, which runs now and then, gets further and
 * further behind, and its clients wait longer and longer. So a leader looks
 * every QN_FLOW_CONTROL_INTERVAL at what each peer has applied since the last
 * look. A peer that
 *
 *     - has applied something, so it works,
 *     - lacks more than it applies from one look to the next,
 *     - and has applied less than the leader has learned meanwhile,
 *
 * in two looks in a row, cannot keep up. From then on the leader leaves a delay
 * after each slot, so that it proposes at three quarters of the pace of the
 * slowest of these peers, until they lack no more than what they apply from one
 * look to the next. A delay is never longer than QN_FLOW_CONTROL_DELAY_MAX.
 * Batches grow meanwhile, so clients wait little.
 *
 * A peer that stops applies something in one look at most. A peer that comes
 * back from a stop or with a snapshot catches up faster than the leader
 * proposes, or must be waited for. So neither causes a delay without need.
 *
 * Pure: times are arguments. One thread.
 */

#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "paxos/machine/params.h"

#define QN_FLOW_CONTROL_INTERVAL  (500 * QN_MS)
#define QN_FLOW_CONTROL_DELAY_MAX (4 * QN_MS)

/** What a peer had applied at the last look, and in how many looks in a row it
 *  could not keep up. */
struct qn_flow_control_peer {
    qn_slot_t applied;
    uint32_t slow;
};

/** Zeroed: there was no look yet. */
struct qn_flow_control {
    qn_time_t last_check; /* time of the last look; 0: never */
    qn_slot_t learned;
    qn_time_t delay; /* after each slot; 0: none */
    struct qn_flow_control_peer peer[QN_NODES_MAX];
};

/** Is it time to look? If more than two intervals have passed since the last
 *  look, this node has not led, had nothing to do or was stalled itself: the
 *  look begins anew, without a delay. */
bool qn_flow_control_due(const struct qn_flow_control *t, qn_time_t now);

/**
 * Look.
 *
 * @param learned  By this node, which leads: slots up to it.
 * @param applied  [QN_NODES_MAX] By each peer, as it says.
 * @param peers    Mask: the peers that count.
 * @return the delay after each slot from now on, ns.
 */
qn_time_t qn_flow_control_look(struct qn_flow_control *t, qn_time_t now,
                               qn_slot_t learned, const qn_slot_t *applied,
                               uint64_t peers);

/** Peers that could not keep up at the last look: a mask; 0: there is no
 *  delay. */
uint64_t qn_flow_control_for(const struct qn_flow_control *t);

#endif
