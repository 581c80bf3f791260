#ifndef QN_PAXOS_LOG_LOG_H
#define QN_PAXOS_LOG_LOG_H

/**
 * The log of one node: a ring of the slots lo .. lo + capacity - 1
 * (PROTOCOL.md 3.2, 3.5).
 *
 * An entry is a batch (one reference) and what is known of it. Only entries
 * from the low end are ever dropped. Sans-IO, no allocation: the ring
 * is the caller's. One thread.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/node.h"
#include "paxos/log/refbuf.h"

enum qn_slot_state {
    QN_SLOT_EMPTY,
    QN_SLOT_PROPOSED, /* P: by this node; not known to be decided */
    QN_SLOT_LEARNED,  /* L: decided */
};

struct qn_log_entry {
    struct qn_refbuf *batch; /* one reference; NULL in an empty slot */
    uint32_t state;          /* enum qn_slot_state */
    uint32_t sum; /* bytes of all batches up to it, modulo 2^32, once it was
                     counted; it outlives the batch */
};

struct qn_log {
    struct qn_log_entry *ring; /* [mask + 1] */
    uint64_t mask;
    qn_slot_t lo;            /* first slot kept, from 1 */
    qn_slot_t end;           /* no slot from here on holds anything */
    uint64_t bytes, most;    /* of all batches, as allocated; ever */
    qn_slot_t from, counted; /* slots in (from, counted] have a sum */
    uint32_t base, total;    /* the sums of `from` and `counted` */
};

_Static_assert(sizeof(struct qn_log_entry) <= 16, "RING of them in params.h");

/** @param ring  [slots] zeroed; slots a power of two. Kept. */
void qn_log_init(struct qn_log *log, struct qn_log_entry *ring, uint32_t slots);

/** Drop everything. */
void qn_log_fini(struct qn_log *log);

/** Does the entry hold these bytes? All of them are compared: a batch rarely
 *  comes twice, and a hash would cost every batch another pass over its
 *  bytes. */
bool qn_entry_is(const struct qn_log_entry *e, struct qn_slice batch);

/** True if the ring has a place for `slot`: lo <= slot < lo + capacity. */
static inline bool qn_log_holds(const struct qn_log *log, qn_slot_t slot)
{
    return slot - log->lo <= log->mask; /* wraps below lo */
}

/** The entry of a slot that the ring holds. */
static inline struct qn_log_entry *qn_log_at(const struct qn_log *log,
                                             qn_slot_t slot)
{
    QN_ASSERT(qn_log_holds(log, slot));
    return &log->ring[slot & log->mask];
}

/** Put a batch into an empty or proposed slot; a reference is taken from the
 *  caller. A learned slot is never overwritten (asserted). */
void qn_log_put(struct qn_log *log, qn_slot_t slot, struct qn_refbuf *batch,
                enum qn_slot_state state);

/** Empty a proposed slot; an empty one stays. */
void qn_log_erase(struct qn_log *log, qn_slot_t slot);

/** Drop everything, whatever its state; go on at `lo`. */
void qn_log_clear(struct qn_log *log, qn_slot_t lo);

/** Drop the slots from `slot` on, whatever their state. */
void qn_log_cut(struct qn_log *log, qn_slot_t slot);

/** Slot counted + 1 is learned: count its bytes. */
void qn_log_count(struct qn_log *log);

/** Count from `slot` + 1 on: the bytes of earlier ones are not known. */
void qn_log_count_from(struct qn_log *log, qn_slot_t slot);

/** Bytes of the counted batches above `slot`, dropped ones too; 0 for slots
 *  that are not known any more. This is the lag of a node that has applied
 *  `slot`. */
uint64_t qn_log_bytes_above(const struct qn_log *log, qn_slot_t slot);

/** Drop the slots below `slot`, at most `limit` of them. */
void qn_log_drop(struct qn_log *log, qn_slot_t slot, uint32_t limit);

#endif
