/*
 * Allocators: see alloc.h.
 *
 *     | head: bytes, head included | the caller's bytes ... |
 *
 * A limit must know how long a block is that comes back by its address alone,
 * so the block's head says it. The head's 16 bytes keep the alignment of the
 * bytes behind it. Where the caller knows the length there is no head.
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

static void *resize_known(struct qn_alloc_limit *l, void *p, size_t had,
                          size_t bytes)
{
    QN_ASSERT(had <= l->used);
    const size_t others = l->used - had;
    if (bytes > l->limit - others) {
        l->refused++;
        return NULL;
    }
    void *to = qn_alloc_resize(l->under, p, had, bytes);
    if (to == NULL && bytes != 0) {
        return NULL;
    }
    l->blocks += (uint64_t)(p == NULL) - (uint64_t)(bytes == 0);
    l->used = others + bytes;
    l->most = QN_MAX(l->most, l->used);
    return to;
}

static void *resize_limited(void *ctx, void *p, size_t bytes)
{
    struct qn_alloc_limit *l = ctx;
    struct head *old = p != NULL ? (struct head *)p - 1 : NULL;
    const size_t had = old != NULL ? old->bytes : 0;
    if (bytes == 0) {
        return old != NULL ? resize_known(l, old, had, 0) : NULL;
    }
    if (bytes > SIZE_MAX - sizeof *old) {
        l->refused++;
        return NULL;
    }
    struct head *h = resize_known(l, old, had, sizeof *h + bytes);
    if (h == NULL) {
        return NULL;
    }
    h->bytes = sizeof *h + bytes;
    return h + 1;
}

void qn_alloc_limit_init(struct qn_alloc_limit *l, const struct qn_alloc *under,
                         size_t limit)
{
    *l = (struct qn_alloc_limit){.alloc = {.resize = resize_limited, .ctx = l},
                                 .under = under,
                                 .limit = limit};
}

/* ---- what could not be had ----------------------------------------------- */

static void *count(struct qn_alloc_unmet *u, void *to, size_t bytes)
{
    u->unmet += to == NULL && bytes != 0;
    return to;
}

static void *resize_counted(void *ctx, void *p, size_t bytes)
{
    struct qn_alloc_unmet *u = ctx;
    return count(u, u->under->resize(u->under->ctx, p, bytes), bytes);
}

void qn_alloc_unmet_init(struct qn_alloc_unmet *u, const struct qn_alloc *under)
{
    *u = (struct qn_alloc_unmet){.alloc = {.resize = resize_counted, .ctx = u},
                                 .under = under};
}

const struct qn_alloc *qn_alloc_uncounted(const struct qn_alloc *a,
                                          uint64_t **unmet)
{
    struct qn_alloc_unmet *u = a->resize == resize_counted ? a->ctx : NULL;
    *unmet = u != NULL ? &u->unmet : NULL;
    return u != NULL ? u->under : a;
}

/* ---- blocks of a known length -------------------------------------------- */

/* The hot path of a group, a few times per command. */
void *qn_alloc_resize(const struct qn_alloc *a, void *p, size_t had,
                      size_t bytes)
{
    if (a->resize == resize_counted) {
        struct qn_alloc_unmet *u = a->ctx;
        return count(u, qn_alloc_resize(u->under, p, had, bytes), bytes);
    }
    return a->resize == resize_limited ? resize_known(a->ctx, p, had, bytes)
                                       : a->resize(a->ctx, p, bytes);
}
