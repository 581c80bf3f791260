#ifndef QN_KVS_SUPERVISOR_SUPERVISOR_ADOPT_INTERNAL_H
#define QN_KVS_SUPERVISOR_SUPERVISOR_ADOPT_INTERNAL_H

/**
 * A group that is being taken over: what the shell has to keep of it. What its
 * replicas know of each other is the machine's (kvs/supervision/adoption.c).
 *
 *     supervisor_adopt.c           connects, and takes the group over
 *     supervisor_adopt_messages.c  what its replicas share
 *     supervisor_unreached.c       replicas that live and take no connection
 */

#include "kvs/supervision/vacancy.h"
#include "kvs/supervisor/supervisor_internal.h"

/** Versions that a replica speaks (kvs/control/formats.h). */
struct qn_spoken {
    uint32_t version[QN_CTL_FORMATS_MAX];
    uint32_t count;
};

/** Until all replicas are heard or have ended. */
struct qn_adoption {
    struct qn_spoken spoken[QN_NODES_MAX];
    enum qn_reach reach[QN_NODES_MAX];
    qn_time_t ask_at;        /* ns; again, those that were not met */
    bool said;               /* that all of them are waited for */
    struct qn_config config; /* the group's */
    bool configured;
    int err; /* refused */
};

/** Ask `i` for a connection. On success the machine has met it.
 *  (supervisor_adopt.c) */
void qn_supervisor_connect(struct qn_supervisor *s, qn_node_t i);

/** Those that were busy, if it is time to. (supervisor_unreached.c) */
void qn_supervisor_ask_again(struct qn_supervisor *s);

/** ms until then, at most; -1: none is asked again. */
int qn_supervisor_ask_wait_ms(const struct qn_supervisor *s);

/** No replica was met, and one is busy: a new group must not begin. */
bool qn_supervisor_all_busy(struct qn_supervisor *s);

/** The group is ours, and `i` was not met. If a process lives there, it is
 *  watched, and asked again; else the machine is told that the place is
 *  vacant. */
void qn_supervisor_account_for(struct qn_supervisor *s, qn_node_t i);

#endif
