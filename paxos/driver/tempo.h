#ifndef QN_PAXOS_DRIVER_TEMPO_H
#define QN_PAXOS_DRIVER_TEMPO_H

/**
 * How fast a leader may fill slots, so that a replica which works can follow.
 *
 * Agreement does not wait for slow learners (PROTOCOL.md 3.4), and none should
 * have to wait for one that stands still. But where cores are shared the leader
 * can take so much of them that another replica, which runs now and then, gets
 * ever further behind, and its clients wait ever longer. So a leader looks from
 * time to time at what each peer has applied since the last look. One that
 *
 *     - has applied something: it works,
 *     - would take longer than from one look to the next for what it lacks,
 *     - and has applied less than the leader has learned meanwhile,
 *
 * in two looks on end, cannot follow. From then on the leader leaves a pause
 * after each slot, so that it goes at three quarters of the pace of the slowest
 * of these, until they lack no more than what they apply from one look to the
 * next. A pause is never longer than QN_TEMPO_GAP_MOST: batches grow meanwhile,
 * and nobody waits for long.
 *
 * Who stops applies something in one look at most, and who comes back from a
 * stop or with a snapshot catches up faster than the leader goes, or else must
 * be waited for: neither slows anybody without need.
 *
 * Pure: times are arguments. One thread.
 */

#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "paxos/machine/params.h"

#define QN_TEMPO_LOOK     (500 * QN_MS)
#define QN_TEMPO_GAP_MOST (4 * QN_MS)

/** What was applied when the leader looked last, and in how many looks on end
 *  it could not follow. */
struct qn_tempo_peer {
    qn_slot_t applied;
    uint32_t slow;
};

/** Zeroed: it has not looked yet. */
struct qn_tempo {
    qn_time_t looked; /* 0: never */
    qn_slot_t learned;
    qn_time_t gap; /* after each slot; 0: none */
    struct qn_tempo_peer peer[QN_NODES_MAX];
};

/** Is it time? More than two times QN_TEMPO_LOOK after the last look this node
 *  has not led, or had nothing to do, or has stood still itself: the next one
 *  begins anew, without a pause. */
bool qn_tempo_due(const struct qn_tempo *t, qn_time_t now);

/**
 * Look.
 *
 * @param learned  By this node, which leads: slots up to it.
 * @param applied  [QN_NODES_MAX] By each peer, as it says.
 * @param peers    Those that live: a mask.
 * @return The pause after each slot from now on, ns.
 */
qn_time_t qn_tempo_look(struct qn_tempo *t, qn_time_t now, qn_slot_t learned,
                        const qn_slot_t *applied, uint64_t peers);

/** Who is waited for since the last look: a mask; 0: there is no pause. */
uint64_t qn_tempo_slow(const struct qn_tempo *t);

#endif
