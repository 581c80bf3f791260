#ifndef QN_KVS_SERVER_MACHINE_ROLE_LOG_H
#define QN_KVS_SERVER_MACHINE_ROLE_LOG_H

/**
 * Which lines a replica logs about the roles of its group, and when: once per
 * epoch each, by one replica of the group.
 *
 *     leads    by the new leader, when it is active
 *     halted   the group has stopped (PROTOCOL.md 6.5, 5.7)
 *     waits    the group waits for a replica that does not make turns
 *
 * That the accept register was overwritten is logged once, whatever the epoch.
 * Of a group in which all replicas load, nothing is logged: the supervisor says
 * that all is lost.
 *
 * Threads: one. Pure but for the facts
 * (paxos/member/detector/failure_detector.h), which are asked only when a
 * decision needs them.
 */

#include <stdbool.h>

#include "core/node.h"
#include "paxos/member/detector/failure_detector.h"

/** Private. All zero to begin with. */
struct qn_role_log {
    uint64_t epoch;        /* of the last turn that had something new to say */
    uint64_t halted_epoch; /* of the last line about a halt, + 1; 0: none */
    uint64_t waits_epoch;  /* likewise, about a group that waits */
    bool said_overwritten; /* that the accept register was */
};

/* ---- a new leader -------------------------------------------------------- */

/** What the driver says in an epoch. */
struct qn_role_view {
    bool leads;     /* this replica is the leader */
    bool active;    /* it has taken over all that the former one had */
    bool suspected; /* the role changed because the old holder was suspected */
};

/** What to do. */
struct qn_role_actions {
    bool log_leads;
    bool deposed; /* tell the failure detector which peer lost its role */
};

/** Once a turn. @return true: the epoch is new; ask the driver, then step. */
static inline bool qn_role_log_due(const struct qn_role_log *l, uint64_t epoch)
{
    return epoch != l->epoch;
}

void qn_role_log_step(struct qn_role_log *l, uint64_t epoch,
                      const struct qn_role_view *v,
                      struct qn_role_actions *out);

/* ---- a group that has stopped, or waits ---------------------------------- */

enum qn_halt_line {
    QN_HALT_LINE_NONE,
    QN_HALT_LINE_LOST_TOGETHER, /* process acceptor: leader and acceptor are
                                   lost */
    QN_HALT_LINE_VERDICT, /* memory acceptor: the leader's memory is of no use
                           */
    QN_HALT_LINE_WAITS,
    QN_HALT_LINE_OVERWRITTEN, /* memory acceptor: the accept register was */
};

struct qn_role_log_view {
    qn_node_t self;
    bool memory;        /* the memory acceptor decides */
    bool stopped;       /* the group has; else it waits */
    bool overwritten;   /* stopped: the accept register was overwritten */
    bool some_complete; /* a present replica has a store */
    uint64_t epoch;
    qn_node_t leader;  /* process acceptor: the would-be leader logs;
                          overwritten: another replica, if one runs */
    uint64_t alive;    /* mask */
    uint64_t awaited;  /* mask: the group waits for these */
    qn_node_t longest; /* memory acceptor, stopped: has the longest log */
};

/** @return the line to log now, which counts as logged from here on. */
enum qn_halt_line qn_role_log_halt(struct qn_role_log *l,
                                   const struct qn_role_log_view *v,
                                   const struct qn_peer_facts *facts);

/** The replica that a group waits for, to be named in the line: of those in the
 *  mask the first that the kernel says is stopped, else the first other than
 *  `self`, else `self`. */
qn_node_t qn_halt_culprit(uint64_t mask, qn_node_t self,
                          const struct qn_peer_facts *facts);

/** The replica that has learned most; `self` if others have as much.
 *  @param learned  [nodes]; 0: unknown. */
qn_node_t qn_halt_longest(const qn_slot_t *learned, uint32_t nodes,
                          qn_node_t self);

#endif
