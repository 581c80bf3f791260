#ifndef QN_SYNC_OBJECT_LCRQ_H
#define QN_SYNC_OBJECT_LCRQ_H

/**
 * LCRQ: a queue of rings. Morrison and Afek, "Fast concurrent queues for x86
 * processors" (PPoPP 2013); here in memory that is fixed at creation.
 *
 * Order: FIFO, linearizable. Progress: lock-free. An operation on a ring is a
 * fetch_add and a compare-and-swap of a cell of its own
 * (lcrq_ring_internal.h). An enqueue that finds its ring full, or that has lost
 * LCRQ_TRIES cells in a row, closes the ring and links the next one, with its
 * value in it.
 *
 * Full: the last ring is closed and none is free. As many rings are there as
 * `capacity` values fill, one that may be partly taken already, and two for
 * each client: one that it pins and one that it is about to link. So
 * `capacity` values fit as long as rings are closed because they are full; one
 * that was closed early holds fewer. More may fit: that of clients which pin
 * none.
 *
 * Rings go round. A client *pins* the ring that it reads (a hazard pointer: its
 * number in a word of the client's own, followed by a second look); a ring that
 * has left the queue is used again once no client pins it. The pin stays from
 * one operation to the next, so as long as the ring is the same it costs
 * nothing; hence a client, stalled or idle, keeps one ring from being used
 * again, and one more while it is about to link it.
 *
 * `lcrq32`: values of 32 bits in cells of 64, without qn_cas_pair.
 *
 * `lcrq_numa`: the queue serves one domain (a NUMA node) at a time. A client of
 * another waits `pause_ns` for its domain's turn, and then takes the turn. That
 * is all: a client that has waited goes on whatever the turn is. Longer pauses
 * give more throughput, and less fairness.
 */

#include "core/sync/object/collection.h"

extern const struct qn_collection_type qn_lcrq, qn_lcrq32, qn_lcrq_numa;

#endif
