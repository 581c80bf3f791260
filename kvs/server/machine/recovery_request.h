#ifndef QN_KVS_SERVER_MACHINE_RECOVERY_REQUEST_H
#define QN_KVS_SERVER_MACHINE_RECOVERY_REQUEST_H

/**
 * QUOIN RECOVER: the recovery of a stopped group, as one replica sees it.
 *
 * A client names the epoch, a replica to go on from, and the position that it
 * has. The replica that is asked checks that the group has really stopped, in
 * that epoch, and passes the request on; the client is blocked. The supervisor
 * asks the chosen replica whether it could go on, ends all others, and tells
 * the chosen one to go on. The client is answered once: with a refusal, or when
 * the chosen replica goes on (only if that is the one that was asked), or when
 * the supervisor ends.
 *
 * The position is what the user has agreed to: a later incarnation of the
 * chosen replica, with a snapshot of a replica that had less, must not go on in
 * its name.
 *
 * Threads: one. Pure.
 */

#include <stdbool.h>

#include "core/node.h"
#include "kvs/control/recovery_error.h"

/** Private. */
struct qn_recovery_request {
    uint64_t client; /* id of the blocked client; 0: none */
    qn_node_t node;  /* the replica that it wants to go on from */
};

/** What is asked for. */
struct qn_recovery_goal {
    uint64_t epoch;
    qn_node_t node;
    qn_slot_t position;
};

/** What the replica knows of itself and its group. */
struct qn_recovery_view {
    qn_node_t self;
    uint32_t nodes;
    bool stopped;        /* the group has */
    bool recoverable;    /* the driver could go on from here */
    bool ready;          /* this replica has a store */
    bool snapshot_comes; /* on its way to this replica */
    bool alone;          /* there is no supervisor */
    bool client_waits;   /* the client of the last request is still there */
    uint64_t epoch;
    qn_slot_t learned;
};

/** A client's answer. */
struct qn_recovery_answer {
    uint64_t client;
    qn_node_t node;
    int64_t why; /* enum qn_recovery_error, as the supervisor has sent it */
};

/** The supervisor asks this replica: could it go on? Ignores goal->node. */
enum qn_recovery_error qn_recovery_possible(
    const struct qn_recovery_view *v, const struct qn_recovery_goal *goal);

/** A client asks. @return QN_RECOVERY_ERROR_NONE: pass it on, then hold. */
enum qn_recovery_error qn_recovery_check(const struct qn_recovery_request *r,
                                         const struct qn_recovery_view *v,
                                         const struct qn_recovery_goal *goal);

/** The request was passed on: block this client. */
void qn_recovery_hold(struct qn_recovery_request *r, uint64_t client,
                      qn_node_t node);

/** The supervisor refuses the request of that client.
 *  @return true: answer it, `out` filled; false: it does not wait. */
bool qn_recovery_refused(struct qn_recovery_request *r, uint64_t client,
                         int64_t why, struct qn_recovery_answer *out);

/** The request is over, whichever client waits: why = QN_RECOVERY_ERROR_NONE:
 * this replica goes on; ALONE: the supervisor has ended. As above. */
bool qn_recovery_end(struct qn_recovery_request *r, int64_t why,
                     struct qn_recovery_answer *out);

#endif
