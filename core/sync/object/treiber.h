#ifndef QN_SYNC_OBJECT_TREIBER_H
#define QN_SYNC_OBJECT_TREIBER_H

/**
 * Treiber's stack (IBM RJ 5118, 1986), in memory that is fixed at creation.
 *
 * Order: LIFO, linearizable. Progress: lock-free. The top is {tag, node}, which
 * change as one (qn_cas_pair). The tag of 64 bits tells a node that was popped
 * and pushed again from one that stayed; with 32 bits it would wrap in two
 * minutes. Nodes are never unmapped, so a client that stalls may read a node
 * that has left, and fails at the top.
 *
 * Full: no batch of free nodes is left. Free nodes lie in batches on a stack of
 * their own; a client takes one batch, and gives one back when it keeps two.
 * There are nodes for `capacity` values and two batches per client, so at least
 * `capacity` values fit, whatever others keep. Nodes freed by pops are used by
 * pushes of the same client first, and go round by batches between clients that
 * only push and clients that only pop.
 */

#include "core/sync/object/collection.h"

extern const struct qn_collection_type qn_treiber;

#endif
