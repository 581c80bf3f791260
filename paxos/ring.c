/*
 * The shared ring: see ring.h for its layout and who may do what.
 *
 * A seqlock whose sequence is the first slot kept: a reader does not ask "has
 * anything changed?" but "is my slot still kept?", so a writer that goes on and
 * on disturbs only those who read what it overwrites.
 *
 *   R  lo:  relaxed store, then a release fence, then plain bytes, by the
 *           writer; plain bytes, then an acquire fence, then a relaxed load, by
 *           the reader. If the reader has seen any byte of the new batch, the
 *           fences make the new `lo` visible to its second look.
 *
 * Everything that is read is copied first and checked then: the memory is
 * another process', and it may be wild. What a reader gets is at worst a batch
 * that is none, which qn_batch_check says.
 *
 * Offsets grow with slots in [lo, end), for a take-over begins by raising `lo`
 * to the first slot that it copies: so the writer finds what survives by
 * walking up from `lo`, each slot once.
 */
#include "paxos/ring.h"

#include <stdalign.h>

#include "core/base/assert.h"
#include "paxos/mutant.h"

struct entry {
    uint64_t slot;
    uint64_t offset; /* of its bytes, counted for ever */
    uint32_t epoch;
    uint32_t len;
};

struct qn_ring_shared {
    alignas(QN_CACHELINE) qn_a64 lo;
    alignas(QN_CACHELINE) struct entry entry[];
};

size_t qn_ring_bytes(uint32_t slots, uint64_t capacity)
{
    size_t index = sizeof(struct qn_ring_shared) + slots * sizeof(struct entry);
    return qn_align_up(index, QN_CACHELINE) + capacity;
}

static uint8_t *bytes_of(const struct qn_ring *r)
{
    return (uint8_t *)r->shared + qn_ring_bytes(r->slots, 0);
}

static struct entry *entry_of(const struct qn_ring *r, qn_slot_t slot)
{
    return &r->shared->entry[slot & (r->slots - 1)];
}

void qn_ring_open(struct qn_ring *r, void *mem, uint32_t slots,
                  uint64_t capacity)
{
    QN_ASSERT(qn_is_pow2(slots) && qn_is_pow2(capacity));
    *r = (struct qn_ring){
        .shared = mem, .slots = slots, .capacity = capacity, .lo = 1, .end = 1};
}

qn_slot_t qn_ring_lo(const struct qn_ring *r)
{
    /* acquire: for callers who compare it with what they have read before. */
    return qn_load(&r->shared->lo, QN_ACQUIRE);
}

/* ---- the writer ---- */

static void raise_lo(struct qn_ring *r, qn_slot_t lo)
{
    QN_ASSERT(lo >= r->lo); /* M7 */
    r->lo = lo;
    qn_store(&r->shared->lo, lo, QN_RELAXED); /* R */
    qn_fence(QN_RELEASE);                     /* R: before the bytes */
}

void qn_ring_begin(struct qn_ring *r, qn_slot_t lo)
{
    raise_lo(r, lo);
    r->end = lo;
}

qn_slot_t qn_ring_survivor(const struct qn_ring *r, qn_slot_t slot, size_t len)
{
    qn_slot_t lo = r->lo;
    if (slot >= r->slots && lo + r->slots <= slot) {
        lo = slot - r->slots + 1;
    }
    while (lo < slot && lo < r->end &&
           entry_of(r, lo)->offset + r->capacity < r->offset + len) {
        lo++;
    }
    return lo;
}

/* Bytes wrap at the end of the memory. */
static void put_bytes(const struct qn_ring *r, uint64_t offset,
                      struct qn_slice batch)
{
    uint64_t at = offset & (r->capacity - 1);
    size_t first = QN_MIN(batch.len, (size_t)(r->capacity - at));
    qn_copy_out(bytes_of(r) + at, batch.data, first); /* announced elsewhere */
    qn_copy_out(bytes_of(r), batch.data + first, batch.len - first);
}

void qn_ring_write(struct qn_ring *r, qn_slot_t slot, qn_epoch_t epoch,
                   struct qn_slice batch)
{
    QN_ASSERT(slot >= r->lo && slot <= r->end && batch.len <= r->capacity);
    qn_slot_t lo = qn_ring_survivor(r, slot, batch.len);
    if (!QN_MUTANT(RING_LATE)) {
        raise_lo(r, lo);
    }
    put_bytes(r, r->offset, batch);
    const struct entry e = {.slot = slot,
                            .offset = r->offset,
                            .epoch = epoch,
                            .len = (uint32_t)batch.len};
    qn_copy_out(entry_of(r, slot), &e, sizeof e); /* announced elsewhere */
    if (QN_MUTANT(RING_LATE)) {
        raise_lo(r, lo);
    }
    r->offset += batch.len;
    r->end = slot + 1;
}

/* ---- readers ---- */

static void get_bytes(const struct qn_ring *r, const struct entry *e,
                      uint8_t *to)
{
    uint64_t at = e->offset & (r->capacity - 1);
    size_t first = QN_MIN((size_t)e->len, (size_t)(r->capacity - at));
    qn_copy_in(to, bytes_of(r) + at, first); /* validated by R */
    qn_copy_in(to + first, bytes_of(r), e->len - first);
}

/* The second look. */
static bool still_kept(const struct qn_ring *r, qn_slot_t slot)
{
    qn_fence(QN_ACQUIRE); /* R: after the bytes */
    return QN_MUTANT(RING_NO_LOOK) ||
           qn_load(&r->shared->lo, QN_RELAXED) <= slot; /* R */
}

int qn_ring_read(const struct qn_ring *r, qn_slot_t slot,
                 const struct qn_alloc *a, qn_epoch_t *epoch,
                 struct qn_blob **out)
{
    struct entry e;
    qn_copy_in(&e, entry_of(r, slot), sizeof e); /* validated by R */
    if (qn_ring_lo(r) > slot || e.slot != slot || e.len > r->capacity) {
        return QN_EAGAIN;
    }
    struct qn_blob *b = qn_blob_create(a, e.len);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    get_bytes(r, &e, b->bytes);
    b->len = e.len;
    if (!still_kept(r, slot)) {
        qn_blob_unref(b);
        return QN_EAGAIN;
    }
    *epoch = e.epoch;
    *out = b;
    return QN_OK;
}
