#ifndef QN_SYNC_DELEGATE_BACKEND_H
#define QN_SYNC_DELEGATE_BACKEND_H

/**
 * How a backend runs operations. Inside of the folder only.
 *
 * An *executor* is a thread that has the exclusion of its backend: it holds the
 * lock, or is the combiner, or the server. It does, and nothing else runs an
 * operation:
 *
 *     bool begun = qn_backend_begin(b, c);        once, in its exclusion
 *     answer = qn_backend_execute(b, begun, op, arg);      for each request
 *     qn_backend_end(b, c, begun, served); before it hands over
 *
 * For an object with one backend these are a call of the function. Where `auto`
 * chooses, `begin` looks whether the object's word names this backend, and if
 * not each request is answered QN_DELEGATE_ELSEWHERE; `end` may choose another
 * (auto.c). A batch that has not begun is short: it only sends clients away.
 */

#include "core/base/assert.h"
#include "core/sync/delegate/delegate.h"

/* The top bit: the operation was not run; ask the backend that is chosen. */
#define QN_DELEGATE_ELSEWHERE (UINT64_C(1) << 63)

/** As qn_delegate_open.
 *  @param part  The options of a part of an object: QN_EINVAL if its memory
 *               names another type or size. NULL: it is the object. */
int qn_backend_open(struct qn_backend *b, void *memory,
                    const struct qn_delegate_opts *part, qn_delegate_fn *run,
                    void *ctx);

/** Add what the client has done at this backend. */
void qn_backend_stats(const struct qn_backend *b,
                      const struct qn_backend_client *c,
                      struct qn_delegate_stats *out);

/** The shared word of `auto`, in front of what else it shares (auto.c):
 *  changes << 32 | backend. Only the executor of the backend that it names
 *  writes it. */
struct qn_auto {
    alignas(QN_CACHELINE) qn_a64 word;
};

/* auto.c: the word has changed since this client's last batch; it has a window,
 * in its exclusion still. */
bool qn_auto_begin(const struct qn_backend *b, struct qn_backend_client *c,
                   uint64_t word);
void qn_auto_end(const struct qn_backend *b, struct qn_backend_client *c);

/** The word, as an executor of a part loads it. */
static inline uint64_t qn_auto_word(const struct qn_backend *b)
{
    /* acquire -> release in qn_auto_end: what the executors of other backends
     * have done. */
    return qn_load(&b->chooser->word, QN_ACQUIRE);
}

/** A batch begins. @return does this backend run operations? */
static inline bool qn_backend_begin(const struct qn_backend *b,
                                    struct qn_backend_client *c)
{
    if (b->chooser == NULL) {
        return true;
    }
    const uint64_t word = qn_auto_word(b);
    return word == c->word || qn_auto_begin(b, c, word);
}

/** Run one operation. @return its result, or QN_DELEGATE_ELSEWHERE. */
static inline uint64_t qn_backend_execute(const struct qn_backend *b,
                                          bool begun, uint32_t op, uint64_t arg)
{
    if (!begun) {
        return QN_DELEGATE_ELSEWHERE;
    }
    QN_DASSERT(op < QN_DELEGATE_OPS);
    return b->run(b->ctx, op, arg) & QN_DELEGATE_VALUE;
}

/** A batch of `served` operations goes into the client's totals. */
static inline void qn_backend_count(struct qn_backend_client *c,
                                    uint32_t served)
{
    c->stats.batches++;
    c->stats.served += served;
}

/** @return is qn_auto_end to be called? The totals of a client tell what it has
 *  seen (auto.c). */
static inline bool qn_auto_is_due(const struct qn_backend_client *c)
{
    return c->stats.served + c->lock.stats.cas_failed >= c->tells;
}

/** The batch of `served` operations ends; the exclusion has not been handed
 * over yet. */
static inline void qn_backend_end(const struct qn_backend *b,
                                  struct qn_backend_client *c, bool begun,
                                  uint32_t served)
{
    if (!begun) {
        return;
    }
    qn_backend_count(c, served);
    if (b->chooser != NULL && qn_auto_is_due(c)) {
        qn_auto_end(b, c);
    }
}

#endif
