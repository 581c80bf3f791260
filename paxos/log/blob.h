#ifndef QN_PAXOS_LOG_BLOB_H
#define QN_PAXOS_LOG_BLOB_H

/**
 * Blobs: reference-counted byte strings, immutable once they are shared.
 *
 * A batch is encoded once, at the leader, and from then on only referred to:
 * the log holds one reference, each message that waits to be sent another.
 * While it has one owner a blob may grow (that is how batches are built);
 * from the second reference on nobody writes it.
 *
 * Threads: one thread per blob; the count is a plain integer.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/base/assert.h"
#include "core/base/err.h"

/** Where the bytes come from. Tests pass one that fails. */
struct qn_alloc {
    /** As realloc: p NULL allocates, bytes 0 frees (and returns NULL).
     *  NULL otherwise means no memory, and p is as it was. */
    void *(*resize)(void *ctx, void *p, size_t bytes);
    void *ctx; /* kept */
};

/** malloc, realloc, free. */
extern const struct qn_alloc qn_alloc_malloc;

#define QN_BLOB_MAX 0x7fff0000u /* bytes of one blob */

struct qn_blob {
    const struct qn_alloc *alloc; /* kept: outlives the blob */
    uint32_t refs;
    uint32_t len; /* bytes in use */
    uint32_t cap; /* bytes allocated */
    uint8_t bytes[];
};

/** An empty blob with room for `cap` bytes and one reference, the caller's.
 *  @return NULL if there is no memory or cap > QN_BLOB_MAX. */
struct qn_blob *qn_blob_create(const struct qn_alloc *a, size_t cap);

/** A blob that holds a copy of p[0..len), without slack. @return NULL as
 *  above. */
struct qn_blob *qn_blob_copy(const struct qn_alloc *a, const void *p,
                             size_t len);

/** Make room for `more` bytes behind len; capacity at least doubles, so that
 *  appending is linear. The blob may move: *b is replaced. Only with one
 *  reference. @return QN_OK; QN_ENOMEM: *b unchanged. */
int qn_blob_reserve(struct qn_blob **b, size_t more);

/** One reference more. @return b. */
static inline struct qn_blob *qn_blob_ref(struct qn_blob *b)
{
    QN_DASSERT(b->refs != 0);
    b->refs++;
    return b;
}

/** One reference less; the last one frees. NULL is fine. */
void qn_blob_unref(struct qn_blob *b);

#endif
