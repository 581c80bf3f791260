#ifndef QN_KVS_SUPERVISOR_SUPERVISOR_INTERNAL_H
#define QN_KVS_SUPERVISOR_SUPERVISOR_INTERNAL_H

/**
 * The shell around the pure machine (kvs/supervision): processes, sockets and
 * other descriptors, the log, and one poll().
 *
 *     supervisor_start.c      plans, makes what is shared, and cleans up
 *     supervisor_spawn.c      forks, signals and awaits processes
 *     supervisor.c            observes events: the main loop
 *     supervisor_perform.c    gives them to the machine, does its actions
 *     supervisor_outboxes.c   holds the descriptors that the machine names
 *     supervisor_adopt*.c, supervisor_unreached.c
 *                             meet the replicas of a group that is taken over
 *     supervisor_handover.c   both ends of a hand-over between supervisors
 */

#include <signal.h>
#include <sys/types.h>

#include "core/place/commons.h"
#include "core/place/numa_map.h"
#include "kvs/control/control_backlog.h"
#include "kvs/listen/listen.h"
#include "kvs/resources/budget.h"
#include "kvs/supervisor/supervisor.h"

/** The process of a replica, and what leads to it. */
struct qn_child {
    pid_t pid;
    bool runs;   /* it has been started or met, and is not reaped */
    int pidfd;   /* of an adopted one, which is no child; else -1 */
    int control; /* own end; -1: none */
    struct qn_control_backlog backlog; /* that wait for room in it */
    struct qn_place place;
};

/** An outbox of each living incarnation, and during an adoption the one that
 *  owns the accept register. */
#define QN_OUTBOXES_MAX (2u * QN_NODES_MAX + 2u)

/** Descriptors of outboxes, by name. */
struct qn_outboxes {
    uint32_t count;
    struct {
        struct qn_outbox_name name;
        int fd;
    } entry[QN_OUTBOXES_MAX];
};

/** Events that the actions of a step have caused: the result of each SPAWN, and
 *  one failed SEND per node. */
#define QN_LATER_MAX (2u * QN_NODES_MAX)

struct qn_supervisor {
    struct qn_config config; /* nothing automatic left */
    const struct qn_supervisor_opts *opts;
    struct qn_supervision machine;         /* all decisions */
    struct qn_supervision_actions actions; /* of its last step */
    struct qn_supervision_event later[QN_LATER_MAX];
    uint32_t later_count;
    int message_fd; /* came with the message at hand; -1 */
    struct qn_places places;
    struct qn_numa_map map;
    struct qn_connection_placement placement; /* of connections */
    struct qn_topology topology;              /* how writes are broadcast */
    struct qn_listen listen;
    struct qn_commons *commons; /* for incarnations and the register's owner */
    int commons_fd;
    int lock;      /* only the supervisor of this address has this socket; -1 */
    int lock_file; /* ... and this lock; -1 */
    struct qn_adoption *adoption; /* of replicas not heard yet; or NULL */
    struct qn_outboxes outboxes;
    int doorbell_fd[QN_NODES_MAX];
    int record_fd[QN_NODES_MAX]; /* of voters, without shared state; else -1 */
    int signal_fd;
    sigset_t signals_before; /* for the replicas */
    struct qn_child child[QN_NODES_MAX];
    struct qn_budget budget; /* of a new group */
    int successor;           /* a supervisor that wants to take over; -1 */
    pid_t successor_pid;
    bool successor_speaks; /* a version that this one speaks, too */
    bool handed_over;      /* to it: the replicas are not ours any more */
    bool over;             /* leave the loop with `status` */
    int status;
    char why[QN_CONFIG_WHY_MAX]; /* why it cannot start; empty: unknown */
};

/* ---- supervisor_start.c -------------------------------------------------- */

/** Nothing begun yet. NULL: out of memory. free() it. */
struct qn_supervisor *qn_supervisor_create(void);

/** Resolve what is automatic, check, and see whether the machine can hold it.
 *  `why` is filled on failure; nothing is made yet. */
int qn_supervisor_plan(struct qn_supervisor *s,
                       const struct qn_supervisor_opts *opts);

/** Make sockets and shared descriptors, and start the replicas. On failure
 *  `why` is filled and qn_supervisor_end cleans up. */
int qn_supervisor_start(struct qn_supervisor *s);

/** Nothing is left behind: no process, no socket, no file. */
void qn_supervisor_end(struct qn_supervisor *s);

/** Note why a replica cannot start; the first reason stays. */
void qn_supervisor_blame(struct qn_supervisor *s, qn_node_t i, int err);

/** Choose the places of config.replicas, their tree, and where their
 *  connections land. If the tree cannot be made, `why` is filled and it is
 *  sequential. */
int qn_supervisor_seat(struct qn_supervisor *s);

/** What the transport of such a group needs. */
struct qn_transport_bytes qn_supervisor_channels(const struct qn_supervisor *s,
                                                 const struct qn_config *c);

/** Make what connections are passed on through, if they are. QN_OK;
 *  QN_EMFILE. */
int qn_supervisor_pass(struct qn_supervisor *s);

/** What the machine has to know of config. */
struct qn_supervision_opts qn_supervisor_machine_opts(
    const struct qn_config *c);

/** Close a descriptor, if it is one (-1: none). */
void qn_supervisor_close(int fd);

/* ---- supervisor_spawn.c -------------------------------------------------- */

/** Start a process of `i`. *incarnation: in: the least number it may have; out:
 *  its number, also on failure. @return QN_OK; QN_EMFILE, QN_ENOMEM,
 *  QN_EAGAIN. */
int qn_supervisor_spawn(struct qn_supervisor *s, qn_node_t i,
                        uint64_t *incarnation);

/** Send a signal to its process, and to none that came later. */
void qn_supervisor_kill(const struct qn_child *c, int signum);

/** Kill it; it is gone when this returns. */
void qn_supervisor_kill_and_wait(struct qn_child *c);

/** A signal stopped it (SIGSTOP, a debugger), and it lives. */
bool qn_supervisor_is_stopped(const struct qn_child *c);

/** It runs the same program file as this process. */
bool qn_supervisor_same_program(pid_t pid);

/* ---- supervisor_perform.c ------------------------------------------------ */

/** Give the machine an event, with what is observed beside it, and do what it
 *  wants; likewise what follows from that. Nothing happens once it is over. */
void qn_supervisor_event(struct qn_supervisor *s,
                         struct qn_supervision_event e);

/** An event of a node that has no more to it. */
void qn_supervisor_node_event(struct qn_supervisor *s,
                              enum qn_supervision_on kind, qn_node_t i);

/** A control message of `from`. `fd` is taken, -1: none. */
void qn_supervisor_message(struct qn_supervisor *s, qn_node_t from,
                           const struct qn_control_msg *m, int fd);

/** All that `from` has said, until `stop` says so; NULL: to the end.
 *  `nodes`: of its group, QN_NODES_MAX: not known yet. */
void qn_supervisor_hear(struct qn_supervisor *s, qn_node_t from, uint32_t nodes,
                        bool (*stop)(const struct qn_supervisor *s,
                                     qn_node_t from));

/** Send what waits for room in control channels; and when to try again, ms, -1:
 *  nothing waits. */
void qn_supervisor_flush(struct qn_supervisor *s);
int qn_supervisor_flush_wait_ms(const struct qn_supervisor *s);

/* ---- supervisor.c -------------------------------------------------------- */

/** Milliseconds until then, rounded up; -1: QN_TIME_NEVER. */
int qn_supervisor_ms_until(qn_time_t at);

/* ---- supervisor_outboxes.c ----------------------------------------------- */

/** Hold `fd`, which is taken, under that name. No other one has it. */
void qn_outboxes_keep(struct qn_outboxes *o, struct qn_outbox_name name,
                      int fd);
/** Close it. It is held. */
void qn_outboxes_drop(struct qn_outboxes *o, struct qn_outbox_name name);
/** @return the descriptor of a name that is held. */
int qn_outboxes_find(const struct qn_outboxes *o, struct qn_outbox_name name);
/** Close all. */
void qn_outboxes_close(struct qn_outboxes *o);

/* ---- supervisor_adopt.c, supervisor_adopt_messages.c, supervisor_unreached.c
 * ---
 */

/** Be the only supervisor of the address of `c`. @return QN_OK; QN_ENOENT: it
 *  has no name; or another error, `why` filled. */
int qn_supervisor_lock(struct qn_supervisor *s, const struct qn_config *c);

/** Be the only supervisor of the address, and take over what a dead one left:
 *  machine.adopted tells how many. @return QN_OK; or an error, `why` filled. */
int qn_supervisor_adopt(struct qn_supervisor *s);

/** A message with what the group shares, of a replica that is being adopted,
 *  also of a stalled one that says it later. @return true: it was that; `fd`
 *  is taken. */
bool qn_supervisor_adopt_message(struct qn_supervisor *s, qn_node_t from,
                                 const struct qn_control_msg *m, int fd);

/** Ask those again that live and could not be connected to; and when to, ms,
 *  -1: there are none. */
void qn_supervisor_unreached_turn(struct qn_supervisor *s);
int qn_supervisor_unreached_wait_ms(const struct qn_supervisor *s);

/** No replica is waited for any more. */
void qn_supervisor_adoption_end(struct qn_supervisor *s);

/* ---- supervisor_handover.c ----------------------------------------------- */

/** --upgrade: have the living supervisor of the address leave, if there is one,
 *  once it is sure that this one can go on. @return QN_OK; or an error, `why`
 *  filled: nothing has changed. */
int qn_supervisor_succeed(struct qn_supervisor *s);

/** Can a group with these voters (mask) be upgraded? As
 *  qn_supervisor_succeed. */
int qn_supervisor_upgrade_fits(struct qn_supervisor *s, uint64_t voters);

/** The other end: a successor has come to the lock, or speaks. */
void qn_supervisor_successor_turn(struct qn_supervisor *s);

/** Tell it what it needs to judge; or hang up. */
void qn_supervisor_answer_successor(struct qn_supervisor *s);
void qn_supervisor_refuse_successor(struct qn_supervisor *s);
void qn_supervisor_hang_up_successor(struct qn_supervisor *s);

#endif
