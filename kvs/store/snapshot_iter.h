#ifndef QN_KVS_STORE_SNAPSHOT_ITER_H
#define QN_KVS_STORE_SNAPSHOT_ITER_H

/**
 * A consistent cut of a store: its content as of one slot, met entry by entry
 * while the writer goes on. No fork, no pause: a walk in hash order; what the
 * writer replaces or removes before the walk has come by is kept for it.
 *
 *     qn_snapshot_iter_begin(s, position)     everything in s is <= position
 *     while (qn_snapshot_iter_peek(s, &w) == QN_OK) {
 *         ... w is what stood there at `position` ...
 *         qn_snapshot_iter_next(s);           any time later, in any turn
 *     }
 *     qn_snapshot_iter_end(s)
 *
 * Between the calls the store may be written, flushed and reclaimed as usual.
 * What a flush removes is met all the same; it is freed entry by entry then,
 * and not with the table. (64 flushes of one database without enough reclaim
 * calls between them give the cut up.) One cut of a store at a time. It costs a
 * copy of the stripes (512 KiB) and the old versions kept, which are bounded by
 * `held_max`.
 *
 * All of it in the writer's thread.
 */

#include "kvs/store/store.h"

#define QN_STORE_STRIPES 65536u

/**
 * Begin. Everything in the store was written by slots <= position, everything
 * to come will be by later ones (the caller is between two slots).
 *
 * @param held_max  Bytes of replaced entries kept at most; beyond, the cut is
 *                  given up.
 * @return QN_OK; QN_EBUSY: there is one; QN_ENOMEM.
 */
int qn_snapshot_iter_begin(struct qn_store *s, qn_slot_t position,
                           uint64_t held_max);

/**
 * The entry that is next, the same one until qn_snapshot_iter_next. Each entry
 * of the cut is met exactly once, in an order that means nothing. Dead entries
 * (of a deadline) are met too.
 *
 * @param out  Filled. What it points to is borrowed until the next call of
 *             anything that writes or reclaims: so look again each turn.
 * @return QN_OK; QN_ENOENT: that was all; QN_EAGAIN: a long part of the table
 *         was empty, go on in the next turn; QN_EABORTED: there is no cut (any
 *         more): it held more than `held_max`, or memory was short.
 *
 * O(1) amortised; one call looks at 4096 buckets at most.
 */
int qn_snapshot_iter_peek(struct qn_store *s, struct qn_walked *out);

/** Done with what peek gives. After it has said QN_OK, in the same state (the
 *  cut was not given up: ask qn_snapshot_iter_active if the store was written).
 */
void qn_snapshot_iter_next(struct qn_store *s);

/** True from begin until end, or until the cut was given up. */
bool qn_snapshot_iter_active(const struct qn_store *s);

/** What belongs to the cut beside its entries, all as of its position. */
struct qn_snapshot_iter_facts {
    qn_slot_t position;
    uint64_t seed;            /* of the hash */
    uint32_t dbs;             /* databases */
    uint64_t keys;            /* of all databases: so many entries are met */
    uint64_t logical_bytes;   /* of them (struct qn_store_stats) */
    uint64_t held_bytes;      /* old versions kept now */
    const qn_slot_t *flushed; /* [dbs] slot of each one's last flush; borrowed
                                 until the cut ends, as is the next */
    const qn_slot_t *stripe;  /* [QN_STORE_STRIPES] */
};

/** @return false: there is no cut. */
bool qn_snapshot_iter_facts(const struct qn_store *s,
                            struct qn_snapshot_iter_facts *out);

/** End it, complete or not. Nothing if there is none. O(1) and what it held is
 *  freed by later calls of qn_store_reclaim. */
void qn_snapshot_iter_end(struct qn_store *s);

/**
 * The other end: a store made of a cut, entries put first, in any order, with
 * their slots. Then these, which tell it of keys that are missing.
 *
 * @param stripe  [count] slots of stripes [first, first + count).
 * @return QN_EINVAL: out of range.
 */
int qn_store_load_stripes(struct qn_store *s, uint32_t first, uint32_t count,
                          const qn_slot_t *stripe);
/** @return QN_EINVAL: no such database. */
int qn_store_load_flushed(struct qn_store *s, uint32_t db, qn_slot_t slot);

#endif
