#ifndef QN_PAXOS_LOG_MEMPOOL_H
#define QN_PAXOS_LOG_MEMPOOL_H

/**
 * A pool of blocks for refbufs: the block that was freed last is given out
 * first.
 *
 * Batches live for microseconds to a few milliseconds, and are copied several
 * times. From the common heap each would get memory that a replaced value has
 * just left: cold, and anywhere in the store. From the pool they reuse the same
 * few blocks, which stay in the cache, for a tenth of the instructions of
 * malloc. Blocks above QN_MEMPOOL_MOST are not kept, because they fit into no
 * cache.
 *
 * Blocks from QN_MEMPOOL_MAPPED bytes on are mapped separately, so that
 * they go back to the system when they are not kept: a log that was long once
 * leaves no holes among the store's entries.
 *
 * From `exact_from` bytes on, if it is set, a block comes from malloc, has the
 * size that was asked for, and is not kept. The holder of such a refbuf may
 * keep it for long, as a service does with a value that came in one (struct
 * qn_applied).
 *
 * Sizes are rounded up by a quarter at most, and the part of a block that a
 * refbuf does not use is not touched. At most QN_MEMPOOL_BYTES of free blocks
 * are kept: for a newer block the ones that have been free for longest go,
 * whatever their size. So when a load's values change their size, the pool
 * changes with them. At most QN_MEMPOOL_FORGET go for one: if that gives too
 * little room, the newer block is not kept. Behind a long log of short batches
 * 32768 of them have the room of the longest block, and take 6 ms. Where there
 * is no memory for a block as many go as it takes.
 *
 * Threads: one thread per pool, and per refbuf from it.
 */

#include "paxos/log/refbuf.h"

#define QN_MEMPOOL_LEAST   64u /* bytes of a block, its head included */
#define QN_MEMPOOL_DOUBLED 15u /* so often, it is the longest */
#define QN_MEMPOOL_STEPS   4u  /* classes from one power of two to the next */
#define QN_MEMPOOL_CLASSES (QN_MEMPOOL_DOUBLED * QN_MEMPOOL_STEPS + 1)
#define QN_MEMPOOL_MOST    (2u << 20)
#define QN_MEMPOOL_MAPPED  65536u
#define QN_MEMPOOL_BYTES   (8u << 20)
/* Blocks; of 4 KiB they have the room of the longest. */
#define QN_MEMPOOL_FORGET  512u

struct qn_mempool_block;

struct qn_mempool {
    struct qn_alloc alloc; /* for qn_refbuf_create and the rest of paxos/ */
    struct qn_mempool_block
        *free[QN_MEMPOOL_CLASSES];            /* stacks, hottest on top */
    struct qn_mempool_block *newest, *oldest; /* of all kept, by when freed */
    size_t kept;                              /* bytes in them */
    size_t exact_from;            /* bytes of a block, its head included */
    const struct qn_alloc *under; /* where blocks come from; kept */
    uint64_t *unmet; /* counts requests without memory; NULL: none does */
};

/** An empty pool. It must not move while it is used.
 *  @param exact_from  Bytes; SIZE_MAX: no block is exact.
 *  @param under  All blocks come from it, and none is mapped; kept. NULL, or a
 *                struct qn_alloc_unmet above malloc's: as above. */
void qn_mempool_init(struct qn_mempool *p, size_t exact_from,
                     const struct qn_alloc *under);

/** Free the blocks that the pool keeps. @return false: it kept none. */
bool qn_mempool_trim(struct qn_mempool *p);

/** Free the blocks that the pool keeps. Release all refbufs from it before: a
 *  block that is still in use must not be given back to this pool afterwards.
 */
void qn_mempool_fini(struct qn_mempool *p);

#endif
