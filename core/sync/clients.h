#ifndef QN_SYNC_CLIENTS_H
#define QN_SYNC_CLIENTS_H

/**
 * The clients of a lock, a delegate or an object: which have joined it, and
 * which of its nodes each of them owns.
 *
 * A client is one thread at one object. An object has a fixed number of places,
 * in shared memory; to join is to take one. Nodes of queues belong to the
 * object, and lie in an array of their own: in many queues a client that leaves
 * owns another node than the one it got. So a place that is free remembers the
 * node of the client that left it, for the next one that comes.
 *
 * Any thread of any process that maps the places. A client that ends without
 * leaving costs its place and its node.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/base/atomic.h"

/** Version of the memory of locks, delegates and collections: one more with
 *  each change of a layout or of a list of types. */
#define QN_SYNC_VERSION 5u

/** What memory says that holds the type of that number in its list. Zeros, and
 *  memory of another version, say something else. */
static inline uint32_t qn_sync_says(uint32_t number)
{
    return QN_SYNC_VERSION << 16 | (number + 1);
}

/** Most clients of one object. */
#define QN_SYNC_CLIENTS_MAX 1024u

/** Shared. */
struct qn_sync_place {
    qn_a32 state; /* 0: free; 1: a client has it */
    qn_a32 node;  /* of the client that comes next; written by the one that
                     leaves */
};

/** Prepare places: place i gives node i. Runs alone.
 *  @param p  [capacity] Shared, zeroed. */
void qn_sync_places_format(struct qn_sync_place *p, uint32_t capacity);

/**
 * Take a place. acquire: what the client that left it has done is visible.
 *
 * @param p         [capacity] Shared.
 * @param capacity  1 .. QN_SYNC_CLIENTS_MAX.
 * @param place     Filled: in [0, capacity).
 * @param node      Filled: the node that this client now owns.
 * @return QN_OK; QN_EAGAIN: none was free.
 *
 * Wait-free; O(capacity).
 */
int qn_sync_join(struct qn_sync_place *p, uint32_t capacity, uint32_t *place,
                 uint32_t *node);

/** Give it back. release. Only outside of a call, and while nothing of this
 *  client is in a queue. Wait-free.
 *  @param node_now  The node that the client owns now. */
void qn_sync_leave(struct qn_sync_place *p, uint32_t place, uint32_t node_now);

#endif
