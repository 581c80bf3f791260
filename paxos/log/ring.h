#ifndef QN_PAXOS_LOG_RING_H
#define QN_PAXOS_LOG_RING_H

/**
 * The shared ring of batches: what the memory acceptor keeps (PROTOCOL.md 5).
 *
 * It lies in the outbox of a node, which alone writes it; all other nodes map
 * it read-only. It has one index entry per slot, and the bytes of the batches,
 * each without a gap, one behind the other:
 *
 *     +------------+------------------------+------------------------------+
 *     | lo, tenure | entry[slot % slots]    | bytes, 0 .. capacity         |
 *     |            | slot, tenure, epoch,   | used up to the end of the    |
 *     |            | position, length       | lap; memory as needed        |
 *     +------------+------------------------+------------------------------+
 *
 * A slot that a reader was told of may be overwritten while the reader copies
 * it. So the writer raises `lo` before the first byte that it overwrites, and
 * the reader looks at `lo` again when it has its copy (M8):
 *
 *     writer   lo = first slot that survives;  fence;  bytes, entry
 *     reader   entry, bytes;  fence;  lo > slot: the copy is void
 *
 * `lo` never falls in one outbox, even if its owner leads again later (M7).
 * Each time the ring is begun anew `tenure` grows. Entries of an earlier tenure
 * are void, though their slots may be above `lo`: their bytes are overwritten
 * in another order.
 *
 * The ring is as long as it must be. A lap ends after `span` bytes. It is made
 * longer, at least doubled, when the next batch would overwrite a slot that a
 * reader needs: up to `keep` bytes, or for a longer batch up to that batch's
 * length. So the ring has memory for `keep` bytes, or for the longest batch.
 * The next lap begins short again if readers are only a little behind. Memory
 * that was asked for stays.
 *
 *     | concurrently               | reserve, put, write, begin | read |
 *     |----------------------------|----------------------------|------|
 *     | reserve, put, write, begin | same thread                | free |
 *     | read                       | free                       | free |
 *
 * Reading is wait-free and may fail; writing is wait-free, except for `grow`.
 */

#include <stdbool.h>

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/node.h"
#include "paxos/log/refbuf.h"

struct qn_ring_shared;

/** Every process that opens one ring gives the same `slots` and `capacity`. */
struct qn_ring_opts {
    uint32_t slots;    /* entries, a power of two */
    uint64_t capacity; /* bytes of address space for batches, below 4 GiB; no
                          batch may be longer */
    /* Used by the writer only. */
    uint64_t span; /* bytes of a lap at first; 0: capacity */
    uint64_t keep; /* bytes up to which a lap is made longer for readers that
                      are behind; 0: capacity */
    /** Memory for the first `bytes` of the whole ring, header included, before
     *  they are touched; may block. NULL: all of it is there. The first
     *  qn_ring_bytes(slots, 0) are there from the beginning.
     *  @return QN_OK; QN_ENOMEM: asked again later. */
    int (*grow)(void *ctx, uint64_t bytes);
    void *ctx; /* kept */
};

/** Where a batch goes, and which slots are left then. Private. */
struct qn_ring_place {
    uint64_t at, limit; /* position; end of the lap */
    qn_slot_t hit, lo;  /* as in the ring, after the write */
    size_t len, done;   /* bytes; of them written */
    bool turn;          /* a lap begins here */
    bool taken;         /* a part may be written already */
};

/** The view of one process; only the writer fills the second part. Private. */
struct qn_ring {
    struct qn_ring_shared *shared; /* shared */
    struct qn_ring_opts o;
    /* writer */
    qn_slot_t lo, end;  /* slots kept are [lo, end) */
    qn_slot_t lap, hit; /* first of this lap; first of the lap before that this
                           one has not reached */
    uint64_t at, limit; /* next free position; end of the lap */
    uint64_t top;       /* end of the bytes of the lap before */
    uint64_t memory;    /* positions below have memory */
    uint32_t tenure;
    bool refused;               /* in this lap */
    struct qn_ring_place place; /* reserved */
};

/** What is needed of a ring: older slots may be overwritten. */
struct qn_ring_need {
    qn_slot_t
        own; /* first slot that the writer itself needs: it is never dropped */
    qn_slot_t all; /* <= own; first slot that any reader needs: dropped only if
                      the ring must not grow */
};

/** Bytes of memory, aligned to QN_CACHELINE, for such a ring. */
size_t qn_ring_bytes(uint32_t slots, uint64_t capacity);

/** Look at a ring in `mem` (kept; zeroed when its outbox was made). */
void qn_ring_open(struct qn_ring *r, void *mem, const struct qn_ring_opts *o);

/** Writer: forget everything and go on at `lo`: before the first write, and at
 *  a take-over. `lo` is not below the present one. */
void qn_ring_begin(struct qn_ring *r, qn_slot_t lo);

/** Writer: would a batch of `len` bytes fit as the next slot, if there is
 *  memory? Pure. */
bool qn_ring_fits(const struct qn_ring *r, size_t len,
                  struct qn_ring_need need);

/**
 * Writer: a place for the next slot, of at most `len` bytes. The last call
 * before qn_ring_write counts.
 *
 * @return QN_OK; QN_EAGAIN: it would overwrite what the writer needs;
 * QN_ENOMEM: there is no memory for a lap in which it fits, or it is longer
 * than the capacity. Then nothing is reserved.
 */
int qn_ring_reserve(struct qn_ring *r, size_t len, struct qn_ring_need need);

/** Writer: the next bytes of a batch, at most `most`, to the place that was
 *  reserved for it, in advance of qn_ring_write: for a batch too long to be
 *  copied in one turn. It may be given up: reserve again.
 *  @return bytes that are still missing. */
size_t qn_ring_put(struct qn_ring *r, struct qn_slice batch, size_t most);

/** Writer: put slot `end`, what is missing of its bytes included; then `end` is
 *  behind it. It is not announced by this: a reader must know from elsewhere,
 * by an acquire of what the writer released afterwards, that it is there. */
void qn_ring_write(struct qn_ring *r, qn_slot_t slot, qn_epoch_t epoch,
                   struct qn_slice batch);

/** A copy that a reader makes, in as many turns as it likes. */
struct qn_ring_copy {
    qn_slot_t slot;
    qn_epoch_t epoch;        /* in which it was written */
    struct qn_refbuf *batch; /* one reference; NULL: no copy is being made */
    uint32_t tenure, at, len;
};

/**
 * Reader: begin to copy the batch of `slot`, which was announced.
 *
 * @param c  Filled; without a batch before.
 * @return QN_OK; QN_EAGAIN: the ring does not keep it any more, or what lies
 *         there is not it; QN_ENOMEM. Then there is no copy.
 */
int qn_ring_read_begin(const struct qn_ring *r, qn_slot_t slot,
                       const struct qn_alloc *a, struct qn_ring_copy *c);

/** Reader: the next bytes, at most `most` > 0, of the same ring.
 *  @return bytes that are still missing; 0: c->batch is whole, and the
 *          caller's. QN_EAGAIN: the ring does not keep it any more; there is no
 *          copy then. */
int64_t qn_ring_read_some(const struct qn_ring *r, struct qn_ring_copy *c,
                          size_t most);

/** Give a copy up, if there is one. */
void qn_ring_copy_drop(struct qn_ring_copy *c);

/**
 * Reader: begin and copy everything.
 *
 * @param epoch  Filled: in which it was written.
 * @param out    Filled: one reference.
 * @return As qn_ring_read_begin.
 */
int qn_ring_read(const struct qn_ring *r, qn_slot_t slot,
                 const struct qn_alloc *a, qn_epoch_t *epoch,
                 struct qn_refbuf **out);

/** First slot kept; any process. */
qn_slot_t qn_ring_lo(const struct qn_ring *r);

#endif
