#ifndef QN_SIM_TIMED_TILED_UDN_H
#define QN_SIM_TIMED_TILED_UDN_H

/**
 * The User Dynamic Network of TILE-Gx: each core has four queues of 64-bit
 * words, which share 118 words of room. Any core sends to any queue.
 *
 * The words of one message stay together and in order; messages of one sender
 * arrive in order; none is lost. A message to a core without room keeps its
 * sender waiting; senders get room in the order in which they asked. A receive
 * waits for its words. Neither orders memory: a sender that publishes data by a
 * message has a fence in front of it.
 *
 * For nodes of a run with the price list of the same machine. A node may not be
 * killed while it sends.
 */

#include "core/sim/timed/tiled/tiled.h"

#define QN_UDN_QUEUES 4u

struct qn_udn; /* opaque */

/** Empty queues, for one run. @return QN_OK, QN_EINVAL (no such machine, or no
 *  whole number of words), QN_ENOMEM. */
int qn_udn_create(struct qn_udn **out, const struct qn_tiled *m,
                  uint32_t nodes);

/** NULL is fine. */
void qn_udn_destroy(struct qn_udn *u);

/** Send a message of n words, 1 to the room of a core. Blocks without room. */
void qn_udn_send(struct qn_udn *u, uint32_t to, uint32_t queue,
                 const uint64_t *words, uint32_t n);

/** The next n words of an own queue. Blocks until they are there. */
void qn_udn_receive(struct qn_udn *u, uint32_t queue, uint64_t *words,
                    uint32_t n);

/** Is nothing there? A node that pauses when nothing is continues when
 * something arrives. */
bool qn_udn_empty(struct qn_udn *u, uint32_t queue);

#endif
