/*
 * The pool: see mempool.h.
 *
 *     | head: class, bytes | the caller's bytes ...                   |
 *     | head: class, bytes | links     |    (while it is free)        |
 *
 * A free block is in two lists: the stack of its class, and all free blocks in
 * the order in which they were freed. The oldest of all is the bottom of its
 * stack, so it is taken out of both lists at their ends.
 *
 * The head says what the block is. So a block can be given back, and grown, by
 * its address alone, as struct qn_alloc wants it, and the allocator below is
 * told its length. The head's 16 bytes keep malloc's alignment for the bytes
 * behind it.
 */
#include "paxos/log/mempool.h"

#include <assert.h>
#include <sanitizer/asan_interface.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"

/* Classes of blocks that are not kept. An EXACT block always comes from
 * malloc. */
#define PLAIN   UINT32_MAX
#define EXACT   (UINT32_MAX - 1)
#define LONGEST (sizeof(struct qn_refbuf) + (size_t)QN_REFBUF_MAX)

static_assert((size_t)QN_MEMPOOL_LEAST << QN_MEMPOOL_DOUBLED == QN_MEMPOOL_MOST,
              "the last class");

struct qn_mempool_block {
    uint32_t class;
    size_t bytes; /* of the block, head included */
    /* While it is free: in its stack, and among all. */
    alignas(max_align_t) struct qn_mempool_block *below;
    struct qn_mempool_block *above, *older, *newer;
};

#define HEAD offsetof(struct qn_mempool_block, below)

static_assert(sizeof(struct qn_mempool_block) <= QN_MEMPOOL_LEAST, "links fit");

static size_t class_bytes(uint32_t class)
{
    size_t whole = (size_t)QN_MEMPOOL_LEAST << class / QN_MEMPOOL_STEPS;
    return whole + whole / QN_MEMPOOL_STEPS * (class % QN_MEMPOOL_STEPS);
}

/** The class of blocks for `bytes`, head included. */
static uint32_t class_of(const struct qn_mempool *p, size_t bytes)
{
    if (bytes >= p->exact_from) {
        return EXACT;
    }
    if (bytes > QN_MEMPOOL_MOST) {
        return PLAIN;
    }
    if (bytes <= QN_MEMPOOL_LEAST) {
        return 0;
    }
    const uint32_t doubled = (uint32_t)(__builtin_clzll(QN_MEMPOOL_LEAST) -
                                        __builtin_clzll(bytes - 1));
    const size_t whole = (size_t)QN_MEMPOOL_LEAST << doubled;
    const size_t step = whole / QN_MEMPOOL_STEPS;
    return doubled * QN_MEMPOOL_STEPS + 1 +
           (uint32_t)((bytes - 1 - whole) / step);
}

static struct qn_mempool_block *block_of(void *p)
{
    return (struct qn_mempool_block *)(void *)((char *)p - HEAD);
}

static void *bytes_of(struct qn_mempool_block *b)
{
    return (char *)b + HEAD;
}

/* ---- the system's ---- */

static bool is_mapped(const struct qn_mempool *p, uint32_t class, size_t bytes)
{
    return class != EXACT && bytes >= QN_MEMPOOL_MAPPED &&
           p->under == &qn_alloc_malloc;
}

/* A request had no memory. @return NULL. */
static void *unmet(const struct qn_mempool *p)
{
    if (p->unmet != NULL) {
        ++*p->unmet;
    }
    return NULL;
}

static struct qn_mempool_block *block_new(const struct qn_mempool *p,
                                          uint32_t class, size_t bytes)
{
    void *at = NULL;
    if (is_mapped(p, class, bytes)) {
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at = at != MAP_FAILED ? at : NULL;
    } else {
        at = qn_alloc_resize(p->under, NULL, 0, bytes);
    }
    return at != NULL ? at : unmet(p);
}

static void block_free(const struct qn_mempool *p, struct qn_mempool_block *b)
{
    if (!is_mapped(p, b->class, b->bytes)) {
        (void)qn_alloc_resize(p->under, b, b->bytes, 0);
    } else {
        munmap(b, b->bytes);
    }
}

/** Resize a block that is not kept and stays in its class. A mapped one keeps
 *  its pages. @return NULL: it is unchanged, also where it would have to be
 *  copied. */
static void *regrow(const struct qn_mempool *p, struct qn_mempool_block *b,
                    size_t bytes)
{
    void *at = NULL;
    bool mapped = is_mapped(p, b->class, b->bytes);
    if (!mapped && !is_mapped(p, b->class, bytes)) {
        at = qn_alloc_resize(p->under, b, b->bytes, bytes);
        at = at != NULL ? at : unmet(p);
    } else if (mapped && is_mapped(p, b->class, bytes)) {
        at = mremap(b, b->bytes, bytes, MREMAP_MAYMOVE);
        at = at != MAP_FAILED ? at : NULL;
    }
    if (at == NULL) {
        return NULL;
    }
    b = at;
    b->bytes = bytes;
    return bytes_of(b);
}

/* ---- kept ---- */

/* AddressSanitizer must find the use of a block that is kept, as of one that is
 * freed. Behind the links, which the pool uses. Nothing in other builds. */
static void forbid(struct qn_mempool_block *b)
{
    ASAN_POISON_MEMORY_REGION(b + 1, b->bytes - sizeof *b);
}

static void allow(struct qn_mempool_block *b)
{
    ASAN_UNPOISON_MEMORY_REGION(b + 1, b->bytes - sizeof *b);
}

static void keep(struct qn_mempool *p, struct qn_mempool_block *b)
{
    b->below = p->free[b->class];
    b->above = NULL;
    b->older = p->newest;
    b->newer = NULL;
    if (b->below != NULL) {
        b->below->above = b;
    }
    if (b->older != NULL) {
        b->older->newer = b;
    } else {
        p->oldest = b;
    }
    p->free[b->class] = b;
    p->newest = b;
    p->kept += b->bytes;
    forbid(b);
    QN_ASSERT(p->kept <= QN_MEMPOOL_BYTES);
}

/** Out of both lists: the top of a stack, or the oldest of all. */
static void unkeep(struct qn_mempool *p, struct qn_mempool_block *b)
{
    QN_ASSERT(b->above == NULL || b == p->oldest);
    QN_ASSERT(p->kept >= b->bytes);
    allow(b);
    if (b->above != NULL) {
        b->above->below = b->below;
    } else {
        p->free[b->class] = b->below;
    }
    if (b->below != NULL) {
        b->below->above = b->above;
    }
    if (b->newer != NULL) {
        b->newer->older = b->older;
    } else {
        p->newest = b->older;
    }
    if (b->older != NULL) {
        b->older->newer = b->newer;
    } else {
        p->oldest = b->newer;
    }
    p->kept -= b->bytes;
}

static void forget_oldest(struct qn_mempool *p)
{
    struct qn_mempool_block *b = p->oldest;
    /* The analyzer cannot see that the oldest is another one each time. */
    unkeep(p, b); /* NOLINT(clang-analyzer-unix.Malloc) */
    block_free(p, b);
}

/* What is kept costs no block that is needed. */
static void *take(struct qn_mempool *p, size_t bytes)
{
    uint32_t class = class_of(p, bytes);
    bool keeps = class < QN_MEMPOOL_CLASSES;
    struct qn_mempool_block *b = keeps ? p->free[class] : NULL;
    if (b != NULL) {
        unkeep(p, b);
        QN_ASSERT(b->class == class);
        QN_ASSERT(b->bytes >= bytes);
        return bytes_of(b);
    }
    bytes = keeps ? class_bytes(class) : bytes;
    b = block_new(p, class, bytes);
    while (b == NULL && p->oldest != NULL) {
        forget_oldest(p);
        b = block_new(p, class, bytes);
    }
    if (b == NULL) {
        return NULL;
    }
    b->class = class;
    b->bytes = bytes;
    return bytes_of(b);
}

static bool has_room(const struct qn_mempool *p,
                     const struct qn_mempool_block *b)
{
    return p->kept + b->bytes <= QN_MEMPOOL_BYTES;
}

static void give(struct qn_mempool *p, struct qn_mempool_block *b)
{
    const bool keeps = b->class < QN_MEMPOOL_CLASSES;
    for (uint32_t n = 0; keeps && !has_room(p, b) && n < QN_MEMPOOL_FORGET;
         n++) {
        forget_oldest(p);
    }
    if (keeps && has_room(p, b)) {
        keep(p, b);
    } else {
        block_free(p, b);
    }
}

static void *resize(void *ctx, void *old, size_t bytes)
{
    struct qn_mempool *p = ctx;
    if (bytes == 0) {
        if (old != NULL) {
            give(p, block_of(old));
        }
        return NULL;
    }
    if (bytes > LONGEST) {
        return NULL;
    }
    size_t need = QN_MAX(HEAD + bytes, sizeof(struct qn_mempool_block));
    if (old == NULL) {
        return take(p, need);
    }
    struct qn_mempool_block *b = block_of(old);
    if (b->class >= QN_MEMPOOL_CLASSES && class_of(p, need) == b->class) {
        void *same = regrow(p, b, need);
        if (same != NULL) {
            return same;
        }
    }
    if (need <= b->bytes) {
        return old;
    }
    void *grown = take(p, need);
    if (grown != NULL) {
        memcpy(grown, old, b->bytes - HEAD);
        give(p, b);
    }
    return grown;
}

void qn_mempool_init(struct qn_mempool *p, size_t exact_from,
                     const struct qn_alloc *under)
{
    *p = (struct qn_mempool){.alloc = {.resize = resize, .ctx = p},
                             .exact_from = exact_from};
    p->under = qn_alloc_uncounted(qn_alloc_or_malloc(under), &p->unmet);
}

bool qn_mempool_trim(struct qn_mempool *p)
{
    const bool kept = p->oldest != NULL;
    while (p->oldest != NULL) {
        forget_oldest(p);
    }
    return kept;
}

void qn_mempool_fini(struct qn_mempool *p)
{
    (void)qn_mempool_trim(p);
}
