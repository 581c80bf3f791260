#ifndef QN_SYNC_DELEGATE_COMBINING_H
#define QN_SYNC_DELEGATE_COMBINING_H

/**
 * Lists of requests whose oldest waiter runs those of all others: what CC-Synch
 * and H-Synch share. Inside of the folder only; combining.c has the algorithm.
 *
 *     lists   a line each: the tail
 *     places  of clients (clients.h)
 *     nodes   a line each: one per client, and one at the end of each list
 */

#include "core/sync/delegate/backend.h"

/** Where the parts of an object's lists are. Private; made for each call. */
struct qn_combining {
    struct qn_combining_list *list;
    struct qn_combining_node *node;
    struct qn_sync_place *place;
};

/** A request on its way through a list. Private to its client. */
struct qn_combining_call {
    uint32_t op;
    uint64_t arg;
    uint32_t node;   /* that carries it */
    uint64_t result; /* or QN_DELEGATE_ELSEWHERE */
};

/** @return bytes, a multiple of QN_CACHELINE. */
size_t qn_combining_bytes(uint32_t clients, uint32_t lists);

/** Make `lists` empty lists in memory that is zero. */
void qn_combining_format(void *memory, uint32_t clients, uint32_t lists);

/** Take a place and its node. @return QN_OK or QN_EAGAIN. */
int qn_combining_join(const struct qn_backend *b, struct qn_backend_client *c);

/** Give back the place, and the node that the client has now. */
void qn_combining_leave(const struct qn_backend *b,
                        struct qn_backend_client *c);

/** Enter the list of the client's domain, and wait. @return true: the request
 *  was served; false: the client is the list's combiner. */
bool qn_combining_enter(const struct qn_backend *b, struct qn_backend_client *c,
                        struct qn_combining_call *call);

/** As combiner, in the exclusion of all lists: run the own request, and those
 *  behind it, at most `batch`; then let the next one combine. */
void qn_combining_run(const struct qn_backend *b, struct qn_backend_client *c,
                      struct qn_combining_call *call);

#endif
