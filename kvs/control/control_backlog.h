#ifndef QN_KVS_CONTROL_CONTROL_BACKLOG_H
#define QN_KVS_CONTROL_CONTROL_BACKLOG_H

/**
 * The backlog of one replica: messages of the supervisor that wait, in order,
 * for room in the replica's control socket. The socket is full when the replica
 * is stalled during hundreds of messages; the rest is sent when it resumes.
 *
 * Incarnations of a peer that began and ended meanwhile need not be sent
 * (qn_control_backlog_skip), so the backlog is bounded by the number of
 * replicas, and so are its descriptors.
 *
 * Zero it to begin. One thread, never blocks.
 */

#include "kvs/control/control_channel.h"

struct qn_control_backlog_item {
    struct qn_control_msg msg;
    int fd; /* a descriptor of its own; -1: none */
};

struct qn_control_backlog {
    struct qn_control_backlog_item *item; /* [cap], oldest first */
    uint32_t count, cap;
};

/** True if a message waits. */
static inline bool qn_control_backlog_wait(const struct qn_control_backlog *b)
{
    return b->count != 0;
}

/** Send a message, or append it to those that wait. `fd` is borrowed, -1:
 *  none. @return QN_OK; QN_EMFILE, QN_ENOMEM: neither was done; else as
 *  qn_control_send, except QN_EAGAIN. */
int qn_control_backlog_send(struct qn_control_backlog *b, int control,
                            const struct qn_control_msg *m, int fd);

/** Send waiting messages as long as there is room. @return QN_OK, or as
 *  qn_control_send. */
int qn_control_backlog_flush(struct qn_control_backlog *b, int control);

/** The next incarnation of `node` is about to be announced. Remove the earlier
 *  ones whose PEER_UP and PEER_DOWN both wait, except `needed` (0: none). */
void qn_control_backlog_skip(struct qn_control_backlog *b, qn_node_t node,
                             uint64_t needed);

/** Drop everything and free the memory. */
void qn_control_backlog_free(struct qn_control_backlog *b);

#endif
