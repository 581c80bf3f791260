#ifndef QN_KVS_SUPERVISOR_INTERNAL_H
#define QN_KVS_SUPERVISOR_INTERNAL_H

/** The supervisor's state, and its start and end (supervisor_start.c); what
 *  happens in between is supervisor.c. */

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
    bool over; /* leave the loop with `status` */
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

/** Nothing is left behind: no process, no socket, no file. */
void qn_supervisor_end(struct qn_supervisor *s);

/** Nothing begun yet. NULL: out of memory. free() it. */
struct qn_supervisor *qn_supervisor_create(void);

#endif
