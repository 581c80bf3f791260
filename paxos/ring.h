#ifndef QN_PAXOS_RING_H
#define QN_PAXOS_RING_H

/**
 * The shared ring of batches: what the memory acceptor keeps (PROTOCOL.md 11).
 *
 * It lies in the outbox of a node, which alone writes it; all others map it
 * read-only. One index entry per slot, and the bytes of the batches one behind
 * the other:
 *
 *     +----+------------------------------+--------------------------------+
 *     | lo | entry[slot % slots]          | bytes, batch behind batch      |
 *     |    | slot, epoch, offset, length  | offset % capacity              |
 *     +----+------------------------------+--------------------------------+
 *
 * A slot that a reader was told of may be overwritten while it copies it. So
 * the writer raises `lo` before the first byte that it overwrites, and a reader
 * looks at `lo` again when it has its copy (M8):
 *
 *     writer   lo = first slot that survives;  fence;  bytes, entry
 *     reader   entry, bytes;  fence;  lo > slot: the copy is void
 *
 * `lo` never falls in one outbox, whoever owns it again (M7). Offsets count
 * bytes for ever and are never reused, so an entry is checked by itself.
 *
 * | concurrently | write | read |
 * |---|---|---|
 * | write | same thread | free |
 * | read | free | free |
 *
 * Reading is wait-free and may fail; writing is wait-free.
 */

#include <stdbool.h>

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/node.h"
#include "paxos/blob.h"
#include "paxos/msg.h"

struct qn_ring_shared;

/** One process' view of a ring; the writer's knows more. */
struct qn_ring {
    struct qn_ring_shared *shared; /* shared */
    uint32_t slots;                /* entries, a power of two */
    uint64_t capacity;             /* bytes for batches, a power of two */
    /* writer */
    qn_slot_t lo, end; /* slots kept are [lo, end) */
    uint64_t offset;   /* of the next batch */
};

/** Bytes of memory, aligned to QN_CACHELINE, for such a ring. */
size_t qn_ring_bytes(uint32_t slots, uint64_t capacity);

/**
 * Look at a ring in `mem` (kept; zeroed when its outbox was made).
 *
 * @param slots     Entries, a power of two.
 * @param capacity  Bytes, a power of two; no batch may be longer.
 */
void qn_ring_open(struct qn_ring *r, void *mem, uint32_t slots,
                  uint64_t capacity);

/** Writer: forget everything below `lo` and go on there: before the first
 *  write, and at a take-over. `lo` is not below the present one. */
void qn_ring_begin(struct qn_ring *r, qn_slot_t lo);

/** Writer: first slot that is still kept when a batch of `len` bytes is written
 *  as `slot`. Slots below it must not be needed any more by this node. */
qn_slot_t qn_ring_survivor(const struct qn_ring *r, qn_slot_t slot, size_t len);

/** Writer: put slot `end`, or one in [lo, end) again; then `end` is behind it.
 *  It is not announced by this: a reader must know from elsewhere, by an
 *  acquire of what the writer released afterwards, that it is there.
 *  @param len  At most capacity. */
void qn_ring_write(struct qn_ring *r, qn_slot_t slot, qn_epoch_t epoch,
                   struct qn_slice batch);

/**
 * Reader: a copy of the batch of `slot`, which was announced.
 *
 * @param epoch  Filled: in which it was written.
 * @param out    Filled: one reference.
 * @return QN_OK; QN_EAGAIN: the ring does not keep it any more, or what lies
 *         there is not it; QN_ENOMEM.
 */
int qn_ring_read(const struct qn_ring *r, qn_slot_t slot,
                 const struct qn_alloc *a, qn_epoch_t *epoch,
                 struct qn_blob **out);

/** First slot kept; any process. */
qn_slot_t qn_ring_lo(const struct qn_ring *r);

#endif
