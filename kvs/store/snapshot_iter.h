#ifndef QN_KVS_STORE_SNAPSHOT_ITER_H
#define QN_KVS_STORE_SNAPSHOT_ITER_H

/**
 * A consistent cut of a store: its content as of one slot, met entry by entry
 * while the writer continues. No fork, no pause: a walk in hash order. What the
 * writer replaces or removes before the walk reaches it is kept for the walk.
 *
 *     qn_snapshot_iter_begin(s, position)     everything in s is <= position
 *     while (qn_snapshot_iter_peek(s, &w) == QN_OK) {
 *         ... w is what stood there at `position` ...
 *         qn_snapshot_iter_next(s);           any time later, in any turn
 *     }
 *     qn_snapshot_iter_end(s)
 *
 * Between the calls the store may be written, flushed and reclaimed as usual.
 * The walk still meets what a flush removes; it is then freed entry by entry,
 * and not with the table. (64 flushes of one database without enough reclaim
 * calls between them end the cut.) A store has one cut at a time. It costs a
 * copy of the stripes (512 KiB) and the old versions kept, which are bounded by
 * `held_max`.
 *
 * Threads: the writer's. Nothing blocks.
 */

#include "kvs/store/store.h"

#define QN_STORE_STRIPES 65536u

/**
 * Begin a cut. Everything in the store was written by slots <= position, and
 * everything later will be by later slots (the caller is between two slots).
 *
 * @param held_max  Bytes of replaced entries kept at most; beyond, the cut is
 *                  given up.
 * @return QN_OK; QN_EBUSY: there is one; QN_ENOMEM.
 */
int qn_snapshot_iter_begin(struct qn_store *s, qn_slot_t position,
                           uint64_t held_max);

/**
 * Peek at the next entry, which stays the same until qn_snapshot_iter_next.
 * Each entry of the cut is met exactly once, in no defined order. Entries whose
 * deadline has passed are met too.
 *
 * @param out  Filled. What it points to is borrowed until the next call that
 *             writes or reclaims, so peek again in each turn.
 * @return QN_OK; QN_ENOENT: there are no more entries; QN_EAGAIN: a long part
 *         of the table was empty, continue in the next turn; QN_EABORTED: there
 *         is no cut, or it was given up because it held more than `held_max` or
 *         memory was short. *out is untouched unless QN_OK.
 *
 * O(1) amortised; one call looks at 4096 buckets at most.
 */
int qn_snapshot_iter_peek(struct qn_store *s, struct qn_walked *out);

/** The caller is done with the entry of peek. Only after peek returned QN_OK,
 * while the cut exists (if the store was written since, ask
 * qn_snapshot_iter_active).
 */
void qn_snapshot_iter_next(struct qn_store *s);

/** True from begin until end, or until the cut was given up. */
bool qn_snapshot_iter_active(const struct qn_store *s);

/** The facts of a cut beside its entries, all as of its position. */
struct qn_snapshot_iter_facts {
    qn_slot_t position;
    uint64_t seed;            /* of the hash */
    uint32_t dbs;             /* databases */
    uint64_t keys;            /* of all databases: the entries that are met */
    uint64_t logical_bytes;   /* of them (struct qn_store_stats) */
    uint64_t held_bytes;      /* old versions kept now */
    const qn_slot_t *flushed; /* [dbs] slot of each one's last flush; borrowed
                                 until the cut ends, as is the next */
    const qn_slot_t *stripe;  /* [QN_STORE_STRIPES] */
};

/** @return false: there is no cut. */
bool qn_snapshot_iter_facts(const struct qn_store *s,
                            struct qn_snapshot_iter_facts *out);

/** End the cut, complete or not; without a cut, do nothing. O(1); later calls
 *  of qn_store_reclaim free what it held. */
void qn_snapshot_iter_end(struct qn_store *s);

/**
 * The other end, a store made from a cut: first put the entries with their
 * slots, in any order; then call these, which load the versions of missing
 * keys.
 *
 * @param stripe  [count] slots of stripes [first, first + count).
 * @return QN_EINVAL: out of range.
 */
int qn_store_load_stripes(struct qn_store *s, uint32_t first, uint32_t count,
                          const qn_slot_t *stripe);
/** @return QN_EINVAL: no such database. */
int qn_store_load_flushed(struct qn_store *s, uint32_t db, qn_slot_t slot);

#endif
