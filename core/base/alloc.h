#ifndef QN_CORE_BASE_ALLOC_H
#define QN_CORE_BASE_ALLOC_H

/**
 * Where private memory comes from: an allocator is one function with its
 * context. Three are here: malloc's, and two in front of another one, of which
 * one keeps a limit and one counts what it could not have.
 *
 * Threads: those of the allocator. malloc's may be used by any thread at any
 * time; a struct qn_alloc_limit or qn_alloc_unmet belongs to one thread, and so
 * does each block of it, until it is freed.
 */

#include <stddef.h>
#include <stdint.h>

struct qn_alloc {
    /** As realloc: p NULL allocates, bytes 0 frees (and returns NULL).
     *  NULL otherwise means no memory, and p is as it was. Blocks are aligned
     *  as malloc's are. */
    void *(*resize)(void *ctx, void *p, size_t bytes);
    void *ctx; /* kept */
};

/** malloc, realloc, free. */
extern const struct qn_alloc qn_alloc_malloc;

/** Options may name no allocator: then malloc's. */
static inline const struct qn_alloc *qn_alloc_or_malloc(
    const struct qn_alloc *a)
{
    return a != NULL ? a : &qn_alloc_malloc;
}

/** A new block, all of it 0; of malloc's, pages that are not touched need no
 *  memory. NULL: there is none. To be freed by qn_alloc_free, with the same
 *  allocator. */
void *qn_alloc_zeroed(const struct qn_alloc *a, size_t bytes);

/** The same, aligned to QN_CACHELINE; to be freed by qn_alloc_free_lines. */
void *qn_alloc_lines(const struct qn_alloc *a, size_t bytes);

/** NULL is fine. */
void qn_alloc_free(const struct qn_alloc *a, void *p);
void qn_alloc_free_lines(const struct qn_alloc *a, void *p);

/** As a->resize, for a caller that knows how long its block is: a limited
 *  allocator then needs no head for it. A block that was made so is resized and
 *  freed so.
 *  @param had  Bytes of p, as they were asked for; 0 if p is NULL. Not both p
 *              NULL and bytes 0. */
void *qn_alloc_resize(const struct qn_alloc *a, void *p, size_t had,
                      size_t bytes);

/** Bytes that each block of a limited allocator takes beside its own, unless it
 *  is of qn_alloc_resize; they count, too. */
#define QN_ALLOC_LIMIT_HEAD 16u

/**
 * An allocator that never has more than `limit` bytes of another one: a request
 * beyond is refused as if there were no memory. What counts is what was asked
 * for and the heads; what the other allocator adds, and a second block that it
 * may hold while it moves one, does not.
 *
 * All O(1) beside what the other one does. Must not move while blocks are out.
 * Read the fields, but do not write them.
 */
struct qn_alloc_limit {
    struct qn_alloc alloc;        /* to be given to users: `ctx` is this */
    const struct qn_alloc *under; /* kept */
    size_t limit;                 /* bytes */
    size_t used, most;            /* bytes now, and the most ever */
    uint64_t blocks;              /* that are out */
    uint64_t refused;             /* requests that were beyond the limit */
};

/** @param under  Kept until the last block is freed.
 *  @param limit  Bytes; SIZE_MAX: only counts. */
void qn_alloc_limit_init(struct qn_alloc_limit *l, const struct qn_alloc *under,
                         size_t limit);

/** An allocator that counts the requests for which another one had no memory.
 *  Must not move while blocks are out. Read the fields, but do not write them.
 */
struct qn_alloc_unmet {
    struct qn_alloc alloc;        /* to be given to users: `ctx` is this */
    const struct qn_alloc *under; /* kept */
    uint64_t unmet;               /* requests */
};

/** @param under  Kept until the last block is freed. */
void qn_alloc_unmet_init(struct qn_alloc_unmet *u,
                         const struct qn_alloc *under);

/** For a pool that asks a few times per command, and counts by itself.
 *  @param unmet  Gets where the requests without memory are counted; NULL: they
 *                are not.
 *  @return the allocator to ask: that below a struct qn_alloc_unmet, or `a`. */
const struct qn_alloc *qn_alloc_uncounted(const struct qn_alloc *a,
                                          uint64_t **unmet);

#endif
