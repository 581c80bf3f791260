#ifndef QN_PAXOS_MEMBER_DETECTOR_FAILURE_DETECTOR_H
#define QN_PAXOS_MEMBER_DETECTOR_FAILURE_DETECTOR_H

/**
 * Which of a replica's peers has ended, and which one is stalled.
 *
 * While something waits for peers, a check is due QN_DETECTOR_INTERVAL after
 * the last one. If nothing waits, deaths are looked for in the turns that the
 * replica makes anyway: there may be no supervisor to tell of them, and the log
 * is kept for the living. An idle server uses no CPU.
 *
 * With a core of its own a replica that waits for a peer makes turns all the
 * time, for the spin budget: there it looks for deaths QN_DETECTOR_DEATHS_OWN_
 * CORES apart, and finds them before it sleeps. The peers are rung when a death
 * is found, for the next leader may be asleep with nothing to wait for.
 *
 * A death is certain. A stall is a suspicion: the peer's turn counter has not
 * moved for the suspicion timeout (suspicion_timeout.h) while the peer was
 * waited for. The silence is this replica's own time: one check counts
 * QN_DETECTOR_CHECK_MOST at most, so a replica that was itself taken off its
 * core suspects no peer for that. A silent peer is rung first, because a
 * sleeping peer is not stalled. A peer that has run for QN_DETECTOR_RUNS during
 * its silence is in the middle of a long turn (KEYS of 10^7 keys: 0.5 s), and
 * has QN_DETECTOR_LONG_TURN: a change of leaders would not help, since the next
 * leader may be asked the same. If the kernel says that the peer was stopped,
 * QN_DETECTOR_STOPPED is enough.
 *
 * The least timeout: a core that five processes share gives each of them a turn
 * every 15 to 20 ms. Beside more, or heavier, other work it is too short. That
 * shows when this replica makes a turn late, or when a deposed peer makes turns
 * again soon: then the timeout rises. (A long turn of this replica counts as
 * late, too: others may be asked the same.)
 *
 * One check, as the shell makes it (paxos/member/member_detect.c):
 *
 *     qn_failure_detector_due    no: nothing to do
 *     qn_failure_detector_check  in: time, peers that are waited for; out: what
 *                                to do, in this order: deaths, rings, suspects
 *     ... the shell carries that out, and forgets outboxes ...
 *     qn_failure_detector_next   in: retained outboxes; when the next check is
 *
 * Facts of a peer that cost a system call or a cache miss are asked for only
 * when the decision needs them, through struct qn_peer_facts. Whether a peer
 * lives that has marked no end is asked QN_DETECTOR_INTERVAL apart while it is
 * waited for, else QN_DETECTOR_INTERVAL_RETAINED: in a group of many most peers
 * sleep, and not for those is the check made.
 *
 * Threads: one. Pure: no clock, no allocation, no IO but the facts.
 */

#include <stdbool.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "paxos/member/detector/suspicion_timeout.h"

#define QN_DETECTOR_INTERVAL          (500 * QN_US)
#define QN_DETECTOR_DEATHS_OWN_CORES  (10 * QN_US)  /* a load of a held line */
#define QN_DETECTOR_INTERVAL_RETAINED (100 * QN_MS) /* nothing waits */
#define QN_DETECTOR_CHECK_MOST        (5 * QN_MS)
#define QN_DETECTOR_TIMEOUT           (50 * QN_MS) /* cores are shared */
#define QN_DETECTOR_TIMEOUT_OWN_CORES                                          \
    (20 * QN_MS)                            /* each replica has its own */
#define QN_DETECTOR_STOPPED    (10 * QN_MS) /* and the kernel says so */
#define QN_DETECTOR_RING_AFTER QN_MS
#define QN_DETECTOR_RUNS       (5 * QN_MS) /* CPU time */
#define QN_DETECTOR_LONG_TURN  (2000 * QN_MS)

/** What is known of a present peer. Each is asked as rarely as possible. */
struct qn_peer_facts {
    /** Its liveness word says so. @param asks  The kernel may be asked, too, by
     *  a system call. */
    bool (*dead)(void *ctx, qn_node_t peer, bool asks);
    uint64_t (*turns)(void *ctx, qn_node_t peer);     /* its turn counter */
    qn_time_t (*cpu_time)(void *ctx, qn_node_t peer); /* ns; system call */
    bool (*stopped)(void *ctx, qn_node_t peer); /* by a signal; system call */
    void *ctx;
};

/** Private. All zero for a peer that is absent. */
struct qn_watched_peer {
    uint64_t turns;       /* at the last check */
    qn_time_t silence_ns; /* without a turn, while it was waited for */
    qn_time_t cpu_time;   /* ns; when it was rung first in this silence */
    qn_time_t deposed_at; /* ns; of a peer in `deposed` */
    qn_time_t asked_at;   /* ns; when the kernel could be asked last */
};

/** Private, except what the shell reads: `suspects`, `next_check`. */
struct qn_failure_detector {
    qn_node_t self;
    uint32_t nodes;
    bool own_cores;
    struct qn_suspicion_timeout timeout;
    uint64_t present;      /* mask: peers with a live incarnation */
    uint64_t silent;       /* mask: their silence is not 0 */
    uint64_t suspects;     /* mask: silent for too long */
    uint64_t announced;    /* mask: the suspects as the shell was told last */
    uint64_t deposed;      /* mask: have lost a role as stalled, and have made
                              no turn since: was the suspicion right? */
    uint64_t waited_for;   /* mask, of the last check */
    qn_time_t last_check;  /* ns */
    qn_time_t next_check;  /* ns; none is due before */
    qn_time_t next_deaths; /* ns; deaths are not looked for before, unless
                              something waits */
    struct qn_watched_peer peer[QN_NODES_MAX];
};

/** What a check decides. */
struct qn_detector_actions {
    uint64_t deaths;           /* mask: the peers that were found dead */
    uint64_t ring;             /* mask: ring their doorbells */
    uint64_t false_suspicions; /* mask: deposed, but not stalled; log them */
    qn_time_t timeout;         /* ns; after these */
    bool suspects_changed;     /* then tell the driver: */
    uint64_t suspects;         /* mask */
};

/** Each replica has a core of its own from now on, or has not. */
void qn_failure_detector_own_cores(struct qn_failure_detector *d,
                                   bool own_cores);

/** @param own_cores  Each replica has a core of its own. */
void qn_failure_detector_init(struct qn_failure_detector *d, qn_node_t self,
                              uint32_t nodes, bool own_cores);

/** A peer's incarnation has begun. It must be absent. */
void qn_failure_detector_up(struct qn_failure_detector *d, qn_node_t peer);

/** It has ended. Does nothing if it is absent (the check has found its death).
 */
void qn_failure_detector_down(struct qn_failure_detector *d, qn_node_t peer);

/** The peer has lost its role because it was stalled. Unless the kernel says
 *  that it was stopped, its next turns show whether that was false. Ignores
 *  `self`, which may have been stopped without knowing, and absent peers. */
void qn_failure_detector_deposed(struct qn_failure_detector *d, qn_node_t peer,
                                 const struct qn_peer_facts *facts,
                                 qn_time_t now);

/** Once a turn. @return true: make a check. */
static inline bool qn_failure_detector_due(const struct qn_failure_detector *d,
                                           qn_time_t now)
{
    return now >= d->next_check || (d->own_cores && now >= d->next_deaths);
}

/** A check. One that is due only for deaths looks for nothing else. Peers that
 * are found dead are absent from here on.
 *  @param waited_for  Mask of nodes; others than present peers are ignored.
 *  @param out         Filled. O(nodes) if anything waits or is suspected. */
void qn_failure_detector_check(struct qn_failure_detector *d,
                               uint64_t waited_for,
                               const struct qn_peer_facts *facts, qn_time_t now,
                               struct qn_detector_actions *out);

/** Plan the next check. @param retained  Outboxes of dead incarnations are
 *  still mapped and must be looked at. @return when the next turn is due for
 *  it; QN_TIME_NEVER: not before something happens. */
qn_time_t qn_failure_detector_next(struct qn_failure_detector *d,
                                   bool retained);

/** @return ns: the silence that makes a peer suspected now. */
qn_time_t qn_failure_detector_timeout(const struct qn_failure_detector *d,
                                      qn_time_t now);

#endif
