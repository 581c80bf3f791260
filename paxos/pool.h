#ifndef QN_PAXOS_POOL_H
#define QN_PAXOS_POOL_H

/**
 * A pool of blocks for blobs: what was freed last is given out first.
 *
 * Large batches live for a few milliseconds and are copied several times. From
 * the common heap each would get memory that a replaced value has just left,
 * cold, anywhere in the store; from the pool they turn over in the same few
 * blocks, which stay in the cache. Blocks of at most half of QN_POOL_LEAST
 * bytes, and those above QN_POOL_MOST, come from malloc: the small are cheap
 * there, the large fit into no cache anyway.
 *
 * Sizes are rounded up to powers of two; what a blob does not use of its block
 * is not touched. At most QN_POOL_BYTES of free blocks are kept.
 *
 * Threads: one thread per pool, and per blob from it.
 */

#include "paxos/blob.h"

#define QN_POOL_LEAST   4096u /* bytes of a block, its head included */
#define QN_POOL_CLASSES 10u
#define QN_POOL_MOST    (QN_POOL_LEAST << (QN_POOL_CLASSES - 1)) /* 2 MiB */
#define QN_POOL_BYTES   (8u << 20)

struct qn_pool_block;

struct qn_pool {
    struct qn_alloc alloc; /* for qn_blob_create and the rest of paxos/ */
    struct qn_pool_block *free[QN_POOL_CLASSES]; /* stacks, hottest on top */
    size_t kept;                                 /* bytes in them */
};

/** An empty pool. It must not move while it is used. */
void qn_pool_init(struct qn_pool *p);

/** Free what it keeps. Blocks still in use are malloc's afterwards, but must
 *  not be given back to this pool: release all blobs before. */
void qn_pool_fini(struct qn_pool *p);

#endif
