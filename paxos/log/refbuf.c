/*
 * Refbufs: see refbuf.h. Header and bytes are one allocation, so that making a
 * batch is one call of the allocator, and growing it is one realloc.
 */
#include "paxos/log/refbuf.h"

#include <string.h>

struct qn_refbuf *qn_refbuf_create(const struct qn_alloc *a, size_t cap)
{
    if (cap > QN_REFBUF_MAX) {
        return NULL;
    }
    struct qn_refbuf *b = a->resize(a->ctx, NULL, sizeof *b + cap);
    if (b != NULL) {
        *b = (struct qn_refbuf){.alloc = a, .refs = 1, .cap = (uint32_t)cap};
    }
    return b;
}

struct qn_refbuf *qn_refbuf_copy(const struct qn_alloc *a, const void *p,
                                 size_t len)
{
    struct qn_refbuf *b = qn_refbuf_create(a, len);
    if (b != NULL && len != 0) {
        memcpy(b->bytes, p, len);
        b->len = (uint32_t)len;
    }
    return b;
}

int qn_refbuf_reserve(struct qn_refbuf **b, size_t more)
{
    struct qn_refbuf *old = *b;
    QN_ASSERT(old->refs == 1);
    QN_ASSERT(old->len <= old->cap);
    if (more <= old->cap - old->len) {
        return QN_OK;
    }
    if (more > QN_REFBUF_MAX - old->len) {
        return QN_ENOMEM;
    }
    size_t need = old->len + more;
    size_t cap = 2 * (size_t)old->cap;
    cap = cap > QN_REFBUF_MAX ? QN_REFBUF_MAX : cap;
    cap = cap > need ? cap : need;
    struct qn_refbuf *grown =
        old->alloc->resize(old->alloc->ctx, old, sizeof *old + cap);
    if (grown == NULL) {
        return QN_ENOMEM;
    }
    grown->cap = (uint32_t)cap;
    *b = grown;
    return QN_OK;
}

void qn_refbuf_unref(struct qn_refbuf *b)
{
    if (b == NULL) {
        return;
    }
    QN_ASSERT(b->refs != 0);
    QN_ASSERT(b->len <= b->cap); /* no write went beyond it */
    if (--b->refs == 0) {
        b->alloc->resize(b->alloc->ctx, b, 0);
    }
}
