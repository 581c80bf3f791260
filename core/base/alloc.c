/*
 * Allocators: see alloc.h.
 *
 *     | head: bytes, head included | the caller's bytes ... |
 *
 * A block is given back by its address alone, so its head says how long it is.
 * The head's 16 bytes keep the alignment of the bytes behind it.
 */
#include "core/base/alloc.h"

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "core/base/bits.h"

struct head {
    alignas(max_align_t) size_t bytes; /* of the block, head included */
};

static_assert(sizeof(struct head) == QN_ALLOC_LIMIT_HEAD, "as documented");

static void *resize_malloc(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, bytes); /* not malloc: tests let it fail here */
}

const struct qn_alloc qn_alloc_malloc = {resize_malloc, NULL};

/* ---- whole blocks -------------------------------------------------------- */

void *qn_alloc_zeroed(const struct qn_alloc *a, size_t bytes)
{
    void *p = a == &qn_alloc_malloc ? calloc(1, bytes)
                                    : a->resize(a->ctx, NULL, bytes);
    if (p != NULL && a != &qn_alloc_malloc) {
        memset(p, 0, bytes);
    }
    return p;
}

void qn_alloc_free(const struct qn_alloc *a, void *p)
{
    if (p != NULL) {
        (void)a->resize(a->ctx, p, 0);
    }
}

/* In front of the lines is a pointer to the block that they are in. */
void *qn_alloc_lines(const struct qn_alloc *a, size_t bytes)
{
    void *block = qn_alloc_zeroed(a, sizeof block + QN_CACHELINE + bytes);
    if (block == NULL) {
        return NULL;
    }
    uintptr_t at = qn_align_up((uintptr_t)block + sizeof block, QN_CACHELINE);
    memcpy((void *)(at - sizeof block), &block, sizeof block);
    return (void *)at;
}

void qn_alloc_free_lines(const struct qn_alloc *a, void *p)
{
    void *block;
    if (p != NULL) {
        memcpy(&block, (uint8_t *)p - sizeof block, sizeof block);
        qn_alloc_free(a, block);
    }
}

/* ---- a limit ------------------------------------------------------------- */

/* A new block: the hot path of a group, once or twice per command. */
static void *take(struct qn_alloc_limit *l, size_t bytes)
{
    const size_t whole = sizeof(struct head) + bytes;
    if (bytes > SIZE_MAX - sizeof(struct head) || whole > l->limit - l->used) {
        l->refused++;
        l->unmet++;
        return NULL;
    }
    struct head *h = l->under->resize(l->under->ctx, NULL, whole);
    if (h == NULL) {
        l->unmet++;
        return NULL;
    }
    h->bytes = whole;
    l->blocks++;
    l->used += whole;
    l->most = QN_MAX(l->most, l->used);
    return h + 1;
}

/* May `had` bytes become `bytes` behind a head, within the limit? */
static bool fits(const struct qn_alloc_limit *l, size_t had, size_t bytes)
{
    QN_ASSERT(had <= l->used);
    size_t left = l->limit - (l->used - had);
    return left >= sizeof(struct head) && bytes <= left - sizeof(struct head);
}

static void give(struct qn_alloc_limit *l, struct head *h)
{
    QN_ASSERT(l->blocks != 0);
    QN_ASSERT(h->bytes <= l->used);
    l->blocks--;
    l->used -= h->bytes;
    (void)l->under->resize(l->under->ctx, h, 0);
}

static void *resize_limited(void *ctx, void *p, size_t bytes)
{
    struct qn_alloc_limit *l = ctx;
    if (p == NULL) {
        return bytes != 0 ? take(l, bytes) : NULL;
    }
    struct head *old = (struct head *)p - 1;
    const size_t had = old->bytes;
    if (bytes == 0) {
        give(l, old);
        return NULL;
    }
    if (!fits(l, had, bytes)) {
        l->refused++;
        l->unmet++;
        return NULL;
    }
    size_t whole = sizeof(struct head) + bytes;
    struct head *h = l->under->resize(l->under->ctx, old, whole);
    if (h == NULL) {
        l->unmet++;
        return NULL;
    }
    h->bytes = whole;
    l->used = l->used - had + whole;
    l->most = QN_MAX(l->most, l->used);
    QN_ASSERT(l->used <= l->limit);
    return h + 1;
}

void qn_alloc_limit_init(struct qn_alloc_limit *l, const struct qn_alloc *under,
                         size_t limit)
{
    *l = (struct qn_alloc_limit){.alloc = {.resize = resize_limited, .ctx = l},
                                 .under = under,
                                 .limit = limit};
}
