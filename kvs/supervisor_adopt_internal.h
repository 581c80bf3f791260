#ifndef QN_KVS_SUPERVISOR_ADOPT_INTERNAL_H
#define QN_KVS_SUPERVISOR_ADOPT_INTERNAL_H

/**
 * A group that is being taken over: what its replicas have said so far.
 *
 *     supervisor_adopt.c    whom to hear and how long; then the group is ours
 *     supervisor_orphans.c  what they say
 */

#include "kvs/supervisor_internal.h"

/** Versions that a replica speaks (kvs/formats.h). */
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
    uint64_t inc[QN_NODES_MAX]; /* newest life that anybody knows; 0 */
    int outbox[QN_NODES_MAX];   /* of that life; -1 */
    struct qn_kept word;        /* the life that owns the accept word */
    struct qn_config config;    /* the group's */
    bool configured;
    bool begun;    /* adopted; who is waited for is late */
    qn_time_t end; /* of the grace; QN_TIME_NEVER: nobody is done */
    int err;       /* refused */
};

#endif
