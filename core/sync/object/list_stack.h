#ifndef QN_SYNC_OBJECT_LIST_STACK_H
#define QN_SYNC_OBJECT_LIST_STACK_H

/**
 * A stack that is a linked list, of one thread at a time: all operations go
 * through one delegate.
 *
 * Order: LIFO, linearizable. Progress: blocking, as the delegate is. Full:
 * `capacity` values are in.
 */

#include "core/sync/object/collection.h"

extern const struct qn_collection_type qn_list_stack;

#endif
