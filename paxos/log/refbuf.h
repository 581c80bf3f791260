#ifndef QN_PAXOS_LOG_REFBUF_H
#define QN_PAXOS_LOG_REFBUF_H

/**
 * Refbufs: reference-counted byte strings, immutable once they are shared.
 *
 * A batch is encoded once, at the leader, and from then on only referred to:
 * the log holds one reference, and each message that waits to be sent another.
 * While it has one owner a refbuf may grow (batches are built so). From the
 * second reference on its bytes never change.
 *
 * Threads: one thread per refbuf; the count is a plain integer.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/assert.h"
#include "core/base/err.h"

#define QN_REFBUF_MAX 0x7fff0000u /* bytes of one refbuf */

struct qn_refbuf {
    const struct qn_alloc *alloc; /* kept: outlives the refbuf */
    uint32_t refs;
    uint32_t len; /* bytes in use */
    uint32_t cap; /* bytes allocated */
    uint8_t bytes[];
};

/** An empty refbuf with room for `cap` bytes and one reference, the caller's.
 *  @return NULL if there is no memory or cap > QN_REFBUF_MAX. */
struct qn_refbuf *qn_refbuf_create(const struct qn_alloc *a, size_t cap);

/** A refbuf that holds a copy of p[0..len), without slack. @return NULL as
 *  above. */
struct qn_refbuf *qn_refbuf_copy(const struct qn_alloc *a, const void *p,
                                 size_t len);

/** Make room for `more` bytes behind len; capacity at least doubles, so that
 *  appending is linear. The refbuf may move: *b is replaced. Only with one
 *  reference. @return QN_OK; QN_ENOMEM: *b unchanged. */
int qn_refbuf_reserve(struct qn_refbuf **b, size_t more);

/** One reference more. @return b. */
static inline struct qn_refbuf *qn_refbuf_ref(struct qn_refbuf *b)
{
    QN_DASSERT(b->refs != 0);
    b->refs++;
    return b;
}

/** One reference less; the last one frees. NULL is fine. */
void qn_refbuf_unref(struct qn_refbuf *b);

#endif
