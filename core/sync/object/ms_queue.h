#ifndef QN_SYNC_OBJECT_MS_QUEUE_H
#define QN_SYNC_OBJECT_MS_QUEUE_H

/**
 * Michael and Scott's blocking queue ("Simple, fast, and practical non-blocking
 * and blocking concurrent queue algorithms", PODC 1996), with delegates in the
 * place of its locks: one for all operations (`ms1`), or one for each end
 * (`ms2`).
 *
 * Order: FIFO, linearizable. Progress: blocking, as the delegates are; with two
 * of them an enqueue does not wait for a dequeue. Full: `capacity` values are
 * in; with two delegates an enqueue may not have seen a dequeue yet that is
 * over.
 *
 * `ms2` refuses delegates whose results order nothing (only_server_uses_data,
 * only_operations_use_data): two executors work on the nodes.
 */

#include "core/sync/object/collection.h"

extern const struct qn_collection_type qn_ms_queue_1, qn_ms_queue_2;

#endif
