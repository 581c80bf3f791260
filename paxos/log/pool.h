#ifndef QN_PAXOS_LOG_POOL_H
#define QN_PAXOS_LOG_POOL_H

/**
 * A pool of blocks for blobs: what was freed last is given out first.
 *
 * Large batches live for a few milliseconds and are copied several times. From
 * the common heap each would get memory that a replaced value has just left,
 * cold, anywhere in the store; from the pool they turn over in the same few
 * blocks, which stay in the cache. Blocks of at most half of QN_POOL_LEAST
 * bytes are not kept, for malloc has them cheap; nor those above QN_POOL_MOST,
 * which fit into no cache anyway.
 *
 * Other blocks from QN_POOL_MAPPED bytes on are mapped by themselves, so that
 * they go back to the system when they are not kept: a log that was long once
 * leaves no holes among the store's entries.
 *
 * From `exact_from` bytes on, if it is set, a block is malloc's, of the size
 * that was asked for, and is not kept: whoever gets the blob may keep it for
 * long, as a service does with a value that came in one (struct qn_applied).
 *
 * Sizes are rounded up, by a quarter at most; what a blob does not use of its
 * block is not touched. At most QN_POOL_BYTES of free blocks are kept: for a
 * newer one those that have been free for longest go, whatever their size. So
 * when a load's values change their size, the pool changes with them.
 *
 * Threads: one thread per pool, and per blob from it.
 */

#include "paxos/log/blob.h"

#define QN_POOL_LEAST   4096u /* bytes of a block, its head included */
#define QN_POOL_STEPS   4u    /* classes from one power of two to the next */
#define QN_POOL_CLASSES (9u * QN_POOL_STEPS + 1)
#define QN_POOL_MOST    (QN_POOL_LEAST << 9) /* 2 MiB */
#define QN_POOL_MAPPED  65536u
#define QN_POOL_BYTES   (8u << 20)

struct qn_pool_block;

struct qn_pool {
    struct qn_alloc alloc; /* for qn_blob_create and the rest of paxos/ */
    struct qn_pool_block *free[QN_POOL_CLASSES]; /* stacks, hottest on top */
    struct qn_pool_block *newest, *oldest; /* of all kept, by when freed */
    size_t kept;                           /* bytes in them */
    size_t exact_from; /* bytes of a block, its head included */
};

/** An empty pool. It must not move while it is used.
 *  @param exact_from  Bytes; SIZE_MAX: no block is exact. */
void qn_pool_init(struct qn_pool *p, size_t exact_from);

/** Free what it keeps. Blocks still in use are malloc's afterwards, but must
 *  not be given back to this pool: release all blobs before. */
void qn_pool_fini(struct qn_pool *p);

#endif
