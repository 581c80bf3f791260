#ifndef QN_KVS_DETECTOR_ACCEPT_FAILOVER_H
#define QN_KVS_DETECTOR_ACCEPT_FAILOVER_H

/**
 * When a replica looks at the accept queues of its peers, which of them it
 * serves, and which replicas get new connections. A pure state machine around
 * the stall detector; kvs/server/server_accept.c polls, accepts and tells the
 * kernel.
 *
 *     polled --a connection--> check --none pending, later--> polled
 *                               |  |
 *                               |  serve: accept and serve connections
 *                               next check, QN_STALL_CHECK_INTERVAL later
 *
 * A connection that comes to a peer's queue wakes this process once. Then the
 * queues are not polled until the next check, which is usually the last one
 * because the owner has accepted. While a connection is pending, checks go on.
 * So a server without new connections is never woken, and one with thousands a
 * second makes 67 checks a second.
 *
 * Which replicas are available is judged at every check and whenever a peer
 * starts or ends. The kernel is told only what changed. Two replicas may see
 * different things for a moment, and the last one that tells the kernel wins.
 * So while a present peer is unavailable, checks go on,
 * QN_ACCEPT_RECHECK_INTERVAL apart, and each replica tells the kernel again
 * when its view changes.
 *
 * Threads: one. Pure: no clock, no allocation, no IO.
 */

#include "kvs/detector/stall_detector.h"

#define QN_ACCEPT_RECHECK_INTERVAL (100 * QN_MS)

/** Private, except what the shell reads: `available`, `next_check`. */
struct qn_accept_failover {
    struct qn_stall_detector stall;
    bool watching;        /* the peers' queues are there to be looked at */
    bool woken;           /* by a connection, since the last check */
    uint64_t available;   /* mask: get new connections, as the kernel was told;
                             0: it was told nothing */
    qn_time_t next_check; /* ns; QN_TIME_NEVER: when woken */
};

/** What a check decides. */
struct qn_accept_actions {
    uint64_t serve;   /* mask: accept the connections of these peers */
    uint64_t ring;    /* mask: a stalled peer may only sleep by now, with
                         nothing else to wake for */
    bool tell_kernel; /* `available` has changed */
    bool poll;        /* wake this process when a connection comes */
};

void qn_accept_failover_init(struct qn_accept_failover *a, qn_node_t self,
                             uint32_t nodes);

/** This replica serves from here on, and watches the peers' queues: a check is
 *  due at once. */
void qn_accept_failover_start(struct qn_accept_failover *a);

/** A peer has started or ended. @return true: a check is due at once. */
bool qn_accept_failover_peers_changed(struct qn_accept_failover *a);

/** A connection came to a peer's queue: a check is due at once. */
void qn_accept_failover_wake(struct qn_accept_failover *a);

/** Once a turn. @return true: make a check. */
bool qn_accept_failover_due(const struct qn_accept_failover *a, qn_time_t now);

/** A check. @param view  [nodes]. @param pending  Mask of replicas with a
 *  pending connection. @param present  Mask of peers with a live process. */
void qn_accept_failover_check(struct qn_accept_failover *a,
                              const struct qn_stall_view *view,
                              uint64_t pending, uint64_t present, qn_time_t now,
                              struct qn_accept_actions *out);

/** Watch no more. @return true: tell the kernel that this replica is not
 *  available, because another one is. */
bool qn_accept_failover_stop(struct qn_accept_failover *a);

/** All replicas are available. */
bool qn_accept_failover_all(const struct qn_accept_failover *a);

/** One of the mask, which is not empty, by a random number: evenly. */
qn_node_t qn_accept_failover_pick(uint64_t mask, uint64_t random);

#endif
