#ifndef QN_KVS_SERVER_MACHINE_MEMBER_REQUESTS_H
#define QN_KVS_SERVER_MACHINE_MEMBER_REQUESTS_H

/**
 * QUOIN MEMBER: which clients of this replica wait for the supervisor, which
 * lists, adds and removes members (kvs/control/control_protocol.h).
 *
 * Each client is answered once: by the supervisor; when the supervisor has
 * ended; or when this replica is the member that was to be removed, and was.
 *
 * Threads: one. Pure.
 */

#include <stdbool.h>

#include "core/node.h"

/** Clients that wait at once; a further one is refused. */
#define QN_MEMBER_REQUESTS 8u

enum qn_member_request_kind {
    QN_MEMBER_REQUEST_NONE,
    QN_MEMBER_REQUEST_LIST,
    QN_MEMBER_REQUEST_ADD,
    QN_MEMBER_REQUEST_REMOVE,
};

struct qn_member_request {
    enum qn_member_request_kind kind;
    uint64_t client; /* id of the blocked client, not 0 */
    qn_node_t node;  /* REMOVE: the member */
};

/** Private. Zero it to begin. */
struct qn_member_requests {
    struct qn_member_request waiting[QN_MEMBER_REQUESTS]; /* NONE: free */
};

/** A request was passed on: block its client. @return false: too many wait. */
bool qn_member_requests_hold(struct qn_member_requests *r,
                             const struct qn_member_request *q);

/** The client of one was answered, or its connection has closed.
 *  @param out  Filled. @return false: it does not wait. */
bool qn_member_requests_end(struct qn_member_requests *r, uint64_t client,
                            struct qn_member_request *out);

/** Any that waits, to be ended. @return false: none does. */
bool qn_member_requests_any(const struct qn_member_requests *r,
                            struct qn_member_request *out);

/** Any that waits for the removal of `node`. */
bool qn_member_requests_of(const struct qn_member_requests *r, qn_node_t node,
                           struct qn_member_request *out);

#endif
