#ifndef QN_KVS_SUPERVISION_SUPERVISION_EVENT_H
#define QN_KVS_SUPERVISION_SUPERVISION_EVENT_H

/**
 * What happens to a supervisor: the input of qn_supervision_step.
 *
 * The shell (kvs/supervisor) turns signals, messages, ends of processes and
 * deadlines into these events, one at a time, in the order in which it saw
 * them. All messages that a process sent before its end come before its EXIT.
 * TIMER comes after each batch of events, and when the deadline of the last
 * step is reached.
 *
 *     a new group        START; SPAWNED or SPAWN_FAILED for each
 *     a running group    ORPHAN_MET, then MESSAGEs, for each replica that
 *                        answers; ORPHAN_ENDED
 *                        TAKE_OVER             the group is ours
 *                        UNREACHED or VACANT   each that did not answer
 *                        CATCH_UP              each
 *                        TAKEN_OVER            all of that is done
 *
 * What the shell observed beside the event travels with it (struct
 * qn_supervision_facts). The pure part never looks anything up.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "kvs/control/control_protocol.h"

enum qn_supervision_on {
    QN_ON_TIMER,
    QN_ON_START,           /* a new group begins: no process exists yet */
    QN_ON_MESSAGE,         /* of `node`: `message` */
    QN_ON_HANGUP,          /* the process closed its control channel */
    QN_ON_EXIT,            /* the process ended: `number`, `shut_down` */
    QN_ON_SIGNAL,          /* `number`, never SIGCHLD */
    QN_ON_SPAWNED,         /* as ordered: `incarnation`, `pid` */
    QN_ON_SPAWN_FAILED,    /* `number`: a QN_E* */
    QN_ON_SEND_FAILED,     /* `number`: a QN_E*; nothing was kept for it */
    QN_ON_ORPHAN_MET,      /* connected to it: `pid`; it will say all it has */
    QN_ON_ORPHAN_ENDED,    /* before TAKE_OVER */
    QN_ON_TAKE_OVER,       /* the group is ours: `opts` */
    QN_ON_UNREACHED,       /* it lives and takes no connection: `incarnation`,
                              `pid` */
    QN_ON_VACANT,          /* no process lives there: `shut_down` */
    QN_ON_CATCH_UP,        /* tell it what it missed */
    QN_ON_TAKEN_OVER,      /* all replicas are accounted for */
    QN_ON_UPGRADE,         /* replace all replicas but `same_program` */
    QN_ON_SUCCESSOR_ASKS,  /* another supervisor wants the group */
    QN_ON_SUCCESSOR_TAKES, /* ... and can go on with it */
};

/** How the group is to be supervised. */
struct qn_supervision_opts {
    uint32_t replicas;           /* seats, 1..QN_NODES_MAX */
    uint64_t taken;              /* mask of the seats that begin the group; 0:
                                    all. Others are taken by members that are
                                    added */
    bool restart;                /* replicas that ended */
    bool memory_acceptor;        /* a new incarnation may rebuild its state */
    uint32_t shutdown_timeout_s; /* until a replica says otherwise */
    uint32_t upgrade_timeout_s;  /* of each step of an upgrade */
};

/** What was observed at the time of an event. */
struct qn_supervision_facts {
    bool group_known; /* the group's memory is mapped; else the register
                         says nothing, not even that it has no owner */
    bool owned;       /* the accept register has an owner: */
    qn_node_t owner;
    uint64_t owner_incarnation;
    uint64_t stopped;      /* mask: living processes that a signal stopped;
                              filled when qn_supervision_needs_stopped */
    uint64_t decided_upto; /* least slot known to be decided; 0: not known */
};

struct qn_supervision_event {
    enum qn_supervision_on kind;
    qn_node_t node;
    uint64_t incarnation;
    pid_t pid;
    int number;     /* EXIT: a status of waitpid; SIGNAL; errors */
    bool shut_down; /* EXIT of an adopted one, VACANT: its liveness word says
                       that it was asked to shut down */
    bool unfit;     /* MESSAGE: MEMBER_ADD: the machine has not the memory for
                       one more ... */
    uint32_t fits;  /* ... the largest maxmemory with which it has, MiB; 0: not
                       known */
    bool with_outbox;                     /* MESSAGE: came with a descriptor */
    uint64_t same_program;                /* UPGRADE: mask of nodes */
    const struct qn_control_msg *message; /* borrowed */
    const struct qn_supervision_opts *opts; /* borrowed */
    struct qn_supervision_facts facts;
};

#endif
