#ifndef QN_KVS_SUPERVISOR_SUPERVISOR_ADOPT_INTERNAL_H
#define QN_KVS_SUPERVISOR_SUPERVISOR_ADOPT_INTERNAL_H

/**
 * A group that is being taken over: what its replicas have said so far.
 *
 *     supervisor_adopt.c    whom to hear and how long; then the group is ours
 *     supervisor_orphans.c  what they say
 *     supervisor_late.c     who lives, and cannot be connected to
 */

#include "kvs/supervisor/supervisor_internal.h"
#include "kvs/supervisor/vacancy.h"

/** Versions that a replica speaks (kvs/control/formats.h). */
struct qn_spoken {
    uint32_t version[QN_NODES_MAX];
    uint32_t count;
};

/** What is known until the group is ours; then of who is late. */
struct qn_adoption {
    struct qn_spoken spoken[QN_NODES_MAX];
    bool connected[QN_NODES_MAX]; /* its process has not ended */
    bool waited[QN_NODES_MAX];    /* it has not said all */
    bool ready[QN_NODES_MAX];
    enum qn_reach reach[QN_NODES_MAX];
    bool unmet[QN_NODES_MAX]; /* begun, and it lives, but takes no connection */
    qn_time_t ask_at;         /* ns; again, who has not been met */
    bool said;                /* that all are waited for */
    uint64_t inc[QN_NODES_MAX]; /* newest life that anybody knows; 0 */
    int outbox[QN_NODES_MAX];   /* of that life; -1 */
    struct qn_kept word;        /* the life that owns the accept word */
    struct qn_config config;    /* the group's */
    bool configured;
    bool begun;    /* adopted; who is waited for is late */
    qn_time_t end; /* of the grace; QN_TIME_NEVER: nobody is done */
    int err;       /* refused */
};

/** Ask `i` for a connection. On success it is connected and waited for.
 *  (supervisor_adopt.c) */
void qn_supervisor_connect(struct qn_supervisor *s, qn_node_t i);

/** Those that were busy, if it is time to. (supervisor_late.c) */
void qn_supervisor_ask_again(struct qn_supervisor *s);

/** ms until then, at most; -1: nobody is asked again. */
int qn_supervisor_ask_wait_ms(const struct qn_supervisor *s);

/** Nobody has been met, and somebody is busy: a new group must not begin. */
bool qn_supervisor_all_busy(struct qn_supervisor *s);

/** The group is ours, and `i` was not met: does somebody live there? If so it
 *  is watched, and asked again. @return false: nobody does. */
bool qn_supervisor_unmet(struct qn_supervisor *s, qn_node_t i);

#endif
