#ifndef QN_KVS_SUPERVISOR_INTERNAL_H
#define QN_KVS_SUPERVISOR_INTERNAL_H

/** The supervisor's state, its start and end (supervisor_start.c), and how it
 *  drains (supervisor_drain.c); what happens in between is supervisor.c. */

#include <signal.h>
#include <sys/types.h>

#include "kvs/listen.h"
#include "kvs/supervisor.h"

enum qn_supervised_state {
    QN_SUPERVISED_STARTING,
    QN_SUPERVISED_SERVING,
    QN_SUPERVISED_DRAINED,
    QN_SUPERVISED_ENDED
};

struct qn_supervised {
    pid_t pid;
    int control; /* own end; -1: none */
    enum qn_supervised_state state;
    bool killed; /* by us: it did not say DRAINED in time */
    uint64_t incarnation;
    struct qn_place place;
};

struct qn_supervisor {
    struct qn_config config; /* nothing automatic left */
    const struct qn_supervisor_opts *opts;
    struct qn_places places;
    struct qn_listen listen;
    int commons_fd;
    int bell_fd[QN_NODES_MAX];
    int signal_fd;
    sigset_t signals_before; /* for the replicas */
    struct qn_supervised replica[QN_NODES_MAX];
    bool served; /* all were ready once */
    bool draining;
    qn_time_t drain_began; /* ns */
    qn_time_t drain_until; /* ns; kill who has not drained by then;
                              QN_TIME_NEVER: they were */
    uint64_t unanswered;   /* replies that drained replicas did not give */
    bool undrained;        /* one ended while draining, and had not drained */
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

/** Send a message to `to` about `about`; `fd` -1: none. (supervisor.c) */
void qn_supervisor_say(struct qn_supervisor *s, qn_node_t to,
                       enum qn_boot_kind kind, qn_node_t about, int fd);
void qn_supervisor_say_all(struct qn_supervisor *s, enum qn_boot_kind kind);

/** Nothing is left behind: no process, no socket, no file. */
void qn_supervisor_end(struct qn_supervisor *s);

/** Nothing begun yet. NULL: out of memory. free() it. */
struct qn_supervisor *qn_supervisor_create(void);

#endif
