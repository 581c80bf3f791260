#ifndef QN_KVS_SUPERVISOR_SUPERVISOR_INTERNAL_H
#define QN_KVS_SUPERVISOR_SUPERVISOR_INTERNAL_H

/** The supervisor's state, its start and end (supervisor_start.c), lives of
 *  replicas (supervisor_lives.c), and how it drains (supervisor_drain.c); what
 *  happens in between is supervisor.c. */

#include <signal.h>
#include <sys/types.h>

#include "core/place/commons.h"
#include "core/place/numa_map.h"
#include "kvs/control/control_backlog.h"
#include "kvs/listen/listen.h"
#include "kvs/resources/budget.h"
#include "kvs/supervisor/supervisor.h"

enum qn_supervised_state {
    QN_SUPERVISED_STARTING, /* not complete yet */
    QN_SUPERVISED_SERVING,
    QN_SUPERVISED_DRAINED,
    QN_SUPERVISED_ENDED
};

struct qn_supervised {
    pid_t pid;
    int pidfd;   /* of an adopted one, which is no child; else -1 */
    int control; /* own end; -1: none */
    struct qn_control_backlog news; /* that wait for room in it */
    enum qn_supervised_state state;
    bool killed;   /* by us: it did not say DRAINED in time, or
                      another one goes on alone (recover) */
    bool hears;    /* news of the others; a later life from its HELLO on */
    int error;     /* it said FAILED, and why */
    int outbox_fd; /* of its present life, from its HELLO on; -1 */
    uint64_t incarnation; /* present or last life */
    uint64_t ended;       /* last life that had come and ended; 0: none */
    uint64_t knows[QN_NODES_MAX]; /* newest life of each that it was told of,
                                     or says that it knows; 0 */
    qn_time_t born;               /* ns */
    qn_time_t restart_at;         /* ns; QN_TIME_NEVER: not */
    uint32_t pause_ms;            /* before the next restart but this */
    struct qn_place place;
};

/** The outbox of a dead life that is still needed. */
struct qn_kept {
    qn_node_t node;
    uint64_t incarnation;
    int outbox_fd; /* -1: none */
};

/** What a replica says about roles. */
struct qn_roles {
    bool asked; /* and has not answered */
    bool heard; /* in this step */
    bool active;
    uint64_t epoch;
    qn_node_t leader, acceptor;
    uint64_t in_sync; /* mask of nodes */
};

enum qn_upgrade_step {
    QN_UPGRADE_NONE,   /* none is going on */
    QN_UPGRADE_SETTLE, /* until all are complete and agree on roles */
    QN_UPGRADE_LEAVE,  /* `node` drains and ends */
    QN_UPGRADE_COME,   /* its next life becomes complete */
};

/** Replacing replicas one after the other (supervisor_upgrade.c). */
struct qn_upgrade {
    enum qn_upgrade_step step;
    qn_node_t node;
    uint64_t todo; /* mask of nodes */
    uint32_t done, total;
    bool ordered;                  /* another leader; in epoch ... */
    uint64_t epoch;                /* ... and at ... */
    qn_time_t ordered_at;          /* ns */
    qn_time_t began, since, until; /* ns; all of it, this step, its end */
    qn_time_t asked_at;            /* ns; ROLES, last */
    uint32_t token;                /* of this step's questions */
    struct qn_roles roles[QN_NODES_MAX];
};

enum qn_recovery_step {
    QN_RECOVERY_NONE, /* none is going on */
    QN_RECOVERY_ASKS, /* `node` is asked whether it could; nothing is done */
    QN_RECOVERY_ENDS, /* until all but `node` have ended */
    QN_RECOVERY_GOES, /* `node` is told, and has not answered */
};

/** A group that has stopped goes on from one replica
 *  (supervisor_recover.c). */
struct qn_recovery {
    enum qn_recovery_step step;
    qn_node_t node;
    uint64_t incarnation; /* its life that is meant */
    qn_node_t asker;      /* whose client wants it ... */
    uint64_t client;      /* ... and which one */
    uint64_t asked;       /* number of the question, never reused */
    qn_time_t until;      /* ASKS, GOES: its answer is waited for */
};

struct qn_supervisor {
    struct qn_config config; /* nothing automatic left */
    const struct qn_supervisor_opts *opts;
    struct qn_places places;
    struct qn_numa_map map;
    struct qn_connection_placement placement; /* of connections */
    struct qn_topology topology;              /* how writes are broadcast */
    struct qn_listen listen;
    struct qn_commons *commons; /* for lives and the word's owner */
    int commons_fd;
    int lock;                     /* only the supervisor of this address has
                                     this socket; -1 */
    int lock_file;                /* ... and this lock; -1 */
    struct qn_adoption *adoption; /* somebody has not answered yet; or NULL */
    uint64_t lives;               /* incarnations given so far */
    struct qn_kept kept;
    int doorbell_fd[QN_NODES_MAX];
    int signal_fd;
    sigset_t signals_before; /* for the replicas */
    struct qn_supervised replica[QN_NODES_MAX];
    struct qn_budget budget; /* of a new group */
    char last_end[160]; /* of a complete replica: who, how; empty: none yet */
    bool lost;          /* it is over, since no complete one is left ... */
    uint64_t lost_upto; /* ... and so far was decided, at least */
    qn_time_t lost_at;  /* then it is over, unless one is complete; or NEVER */
    bool served;        /* all were ready once */
    uint32_t adopted; /* living replicas that were taken over; 0: a new group */
    int heir;         /* who wants to take over; -1: nobody */
    pid_t heir_pid;   /* its process */
    bool handed_over; /* to it: the replicas are not ours any more */
    struct qn_upgrade upgrade;
    struct qn_recovery recovery;
    bool draining;
    qn_time_t drain_began; /* ns */
    qn_time_t drain_until; /* ns; kill who has not drained by then;
                              QN_TIME_NEVER: they were */
    uint64_t unanswered;   /* replies that drained replicas did not give */
    bool undrained;        /* one ended while draining, and had not drained */
    bool stopped;          /* one that has drained says that the group has */
    bool over;             /* leave the loop with `status` */
    int status;
    char why[QN_CONFIG_WHY_MAX]; /* why it cannot start; empty: unknown */
};

/** Resolve what is automatic, check, and see whether the machine can hold it.
 *  `why` is filled on failure; nothing is made yet. */
int qn_supervisor_plan(struct qn_supervisor *s,
                       const struct qn_supervisor_opts *opts);

/** Make sockets and shared descriptors, and start the replicas. On failure
 *  `why` is filled and qn_supervisor_end cleans up. */
int qn_supervisor_start(struct qn_supervisor *s);

/** Note why a replica cannot start; the first reason stays. */
void qn_supervisor_blame(struct qn_supervisor *s, qn_node_t i, int err);

/** Begin to drain. */
void qn_supervisor_drain(struct qn_supervisor *s);

/** A replica says how long it tries at most, s. */
void qn_supervisor_drain_limit(struct qn_supervisor *s, uint64_t limit);

/** Milliseconds poll may sleep; -1: for ever. */
int qn_supervisor_drain_wait_ms(const struct qn_supervisor *s);

/** Kill who should have drained by now, if it is that late. */
void qn_supervisor_drain_turn(struct qn_supervisor *s);

/** A replica says DRAINED. One that was not asked to leaves alone. */
void qn_supervisor_drained(struct qn_supervisor *s, qn_node_t i,
                           uint64_t unanswered);

/** Tell all to stop once the last one has drained or ended. */
void qn_supervisor_drain_check(struct qn_supervisor *s);

/** All have ended: log what was not answered. @return the exit status. */
int qn_supervisor_drain_status(const struct qn_supervisor *s);

/** Send a message to `to`, now or when it takes it; `fd` -1: none.
 *  (supervisor.c) */
void qn_supervisor_send(struct qn_supervisor *s, qn_node_t to,
                        const struct qn_control_msg *e, int fd);
/** Without more in it than its kind. */
void qn_supervisor_say(struct qn_supervisor *s, qn_node_t to,
                       enum qn_control_kind kind);
void qn_supervisor_say_all(struct qn_supervisor *s, enum qn_control_kind kind);

/** Replicas in one of the states from .. to. */
uint32_t qn_supervisor_count(const struct qn_supervisor *s,
                             enum qn_supervised_state from,
                             enum qn_supervised_state to);

/** A replica has come, with its outbox: `fd` is taken. */
void qn_supervisor_hello(struct qn_supervisor *s, qn_node_t from, int fd);

/** A replica says that it is complete. */
void qn_supervisor_ready(struct qn_supervisor *s, qn_node_t from);

/** A replica's process has ended, and everything it said is read: report it,
 *  tell the others, and decide about its next life. */
void qn_supervisor_ended(struct qn_supervisor *s, qn_node_t i, int status);

/** Start the present life of `i` in a new process. (supervisor_start.c)
 *  @return QN_OK; QN_EMFILE, QN_ENOMEM, QN_EAGAIN. */
int qn_supervisor_bear(struct qn_supervisor *s, qn_node_t i);

/** Start again who is due, and let go of what is not needed any more. */
void qn_supervisor_lives_turn(struct qn_supervisor *s);
void qn_supervisor_kept_look(struct qn_supervisor *s);

/** Milliseconds poll may sleep; -1: for ever. */
int qn_supervisor_lives_wait_ms(const struct qn_supervisor *s);

/** True if the accept word is that life's. (supervisor_lives.c) */
bool qn_supervisor_owns_word(const struct qn_supervisor *s, qn_node_t node,
                             uint64_t inc);

/** Tell `to`, which has gone on without a supervisor, of the lives that it does
 *  not know. (supervisor_lives.c) */
void qn_supervisor_catch_up(struct qn_supervisor *s, qn_node_t to);

/** Tell the others that a life has ended. */
void qn_supervisor_say_down(struct qn_supervisor *s, qn_node_t about,
                            uint64_t inc);

/** Choose the places of config.replicas, their tree, and where their
 *  connections land. If the tree cannot be made, `why` is filled and it is
 *  sequential. (supervisor_start.c) */
int qn_supervisor_seat(struct qn_supervisor *s);

/** Make what connections are passed on through, if they are. QN_OK; QN_EMFILE.
 *  (supervisor_start.c) */
int qn_supervisor_pass(struct qn_supervisor *s);

/** Send a signal to its process, and to none that came later. */
void qn_supervisor_kill(const struct qn_supervised *r, int signum);

/** Be the only supervisor of the address of `c`. @return QN_OK; QN_ENOENT: it
 *  has no name; or another error, `why` filled. (supervisor_adopt.c) */
int qn_supervisor_lock(struct qn_supervisor *s, const struct qn_config *c);

/** Be the only supervisor of the address, and take over what a dead one left:
 *  s->adopted tells how many. (supervisor_adopt.c)
 *  @return QN_OK; or an error, `why` filled. */
int qn_supervisor_adopt(struct qn_supervisor *s);

/** --upgrade: have the living supervisor of the address leave, if there is one,
 *  once it is sure that this one can go on. (supervisor_succeed.c)
 *  @return QN_OK; or an error, `why` filled: nothing has changed. */
int qn_supervisor_succeed(struct qn_supervisor *s);

/** The other end: somebody has come to the lock, or speaks. */
void qn_supervisor_heir_turn(struct qn_supervisor *s);

/** Can a group with these options be upgraded? As qn_supervisor_succeed.
 *  (supervisor_upgrade.c) */
int qn_supervisor_upgrade_fits(struct qn_supervisor *s,
                               const struct qn_config *group);

/** The group is ours: begin to replace its replicas. */
void qn_supervisor_upgrade_begin(struct qn_supervisor *s);

/** Go on; and when to look again, ms, -1: for ever. */
void qn_supervisor_upgrade_turn(struct qn_supervisor *s);
int qn_supervisor_upgrade_wait_ms(const struct qn_supervisor *s);

/** What `from` says about roles. */
void qn_supervisor_upgrade_roles(struct qn_supervisor *s, qn_node_t from,
                                 const struct qn_ctl_roles *e);

/** Replica `i` has ended. @return true: that belongs to the upgrade, and it is
 *  started again at once; false: an end like any other, unless *stays is
 *  filled: it is a new one that cannot live, and is not started again. */
bool qn_supervisor_upgrade_ended(struct qn_supervisor *s, qn_node_t i,
                                 bool *stays);

/** A replica says that the group has stopped, and from whom it is to go on.
 *  (supervisor_recover.c) */
void qn_supervisor_recover(struct qn_supervisor *s, qn_node_t from,
                           const struct qn_ctl_recover *e);

/** That one says whether it could. Nothing has been done so far. */
void qn_supervisor_recoverable(struct qn_supervisor *s, qn_node_t from,
                               const struct qn_ctl_recoverable *e);

/** That one says how it goes. */
void qn_supervisor_recovered(struct qn_supervisor *s, qn_node_t from,
                             const struct qn_ctl_recovered *e);

/** Go on. */
void qn_supervisor_recover_turn(struct qn_supervisor *s);

/** A recovery is going on, if only as a question; and one in which nobody is
 *  to be started. */
bool qn_supervisor_recovers(const struct qn_supervisor *s);
bool qn_supervisor_recover_holds(const struct qn_supervisor *s);

/** What a replica says of itself when it is adopted, also one that stood still
 *  then and says it later. (supervisor_orphans.c)
 *  @return true: it was that; `fd` is taken. */
bool qn_supervisor_adopted_message(struct qn_supervisor *s, qn_node_t from,
                                   const struct qn_control_msg *e, int fd);

/** Ask again who lives and could not be connected to; and when to, ms, -1:
 *  nobody is. (supervisor_late.c) */
void qn_supervisor_late_turn(struct qn_supervisor *s);
int qn_supervisor_late_wait_ms(const struct qn_supervisor *s);

/** Nobody is waited for any more. */
void qn_supervisor_adoption_end(struct qn_supervisor *s);

/** Close a descriptor, if it is one (-1: none). (supervisor_start.c) */
void qn_supervisor_close(int fd);

/** Nothing is left behind: no process, no socket, no file. */
void qn_supervisor_end(struct qn_supervisor *s);

/** Nothing begun yet. NULL: out of memory. free() it. */
struct qn_supervisor *qn_supervisor_create(void);

#endif
