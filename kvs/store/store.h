#ifndef QN_KVS_STORE_STORE_H
#define QN_KVS_STORE_STORE_H

/**
 * The store: one writer (apply), any number of readers.
 *
 * An extendible hash table of fixed-size segments. A directory, indexed by the
 * top bits of the key's XXH3 hash, points to segments; a segment is an array of
 * cache-line buckets, indexed by the next bits; a bucket holds entry pointers,
 * each tagged with bits of the hash, and may be continued in overflow lines. A
 * full segment splits into two (bounded work); the directory doubles when a
 * segment needs one more bit. Table order is therefore hash order at any size,
 * growth has no pause, and cursors, digests and snapshots are walks in hash
 * order.
 *
 * An entry is one immutable block {slot of last change, deadline, db, key,
 * value}, replaced by one release store. A long value may stay in the log's
 * refbuf in which it arrived: the entry then has a reference to the refbuf.
 * Reads never write. What the writer replaces is retired, and freed once every
 * registered reader has passed a quiescent point (QSBR).
 *
 * Keys are (db, bytes). Deadlines are stored but the caller judges them: get
 * returns what is stored.
 *
 * | concurrently with  | put/del/flush/reclaim | get/walk (reader)     |
 * | put/del/flush/...  | same thread           | free                  |
 * | get/walk           | free                  | free, own reader each |
 *
 * get, count and the quiescent calls are wait-free; put, del and flush never
 * block, and allocate.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/node.h"
#include "paxos/log/refbuf.h"

#define QN_STORE_DBS_MAX 256u
#define QN_STORE_KEY_MAX ((size_t)64 << 20)  /* bytes */
#define QN_STORE_VAL_MAX ((size_t)512 << 20) /* bytes */

struct qn_store_opts {
    uint64_t seed; /* of the hash; the same on all replicas, from the log */
    uint32_t dbs;  /* databases, 1 .. QN_STORE_DBS_MAX */
    uint64_t reuse_bytes; /* bytes of freed entries kept for reuse, at most
                             (kvs/store/store_spare.h); 0: none */

    /* For tests; all zero means malloc, free and the whole hash. */
    void *(*alloc)(size_t bytes); /* aligned as malloc's; NULL: no memory */
    void (*release)(void *p);     /* given together with alloc */
    uint64_t hash_clear;          /* bits of the hash that are always 0 */
};

/** The result of a lookup. Borrowed until the reader's next quiescent point
 *  (the writer's own lookups: until its next qn_store_reclaim). */
struct qn_found {
    struct qn_slice value;
    qn_slot_t slot;       /* of the last change */
    uint64_t deadline_ms; /* 0: none */
};

struct qn_store_stats {
    uint64_t keys;           /* all databases, dead ones included */
    uint64_t logical_bytes;  /* keys + values + QN_STORE_ENTRY_COST each; the
                                same on all replicas */
    uint64_t memory_bytes;   /* of the allocator, retired blocks included,
                                their queue excluded; O(1), while malloc's
                                own figure costs a walk of its free chunks */
    uint64_t table_bytes;    /* directory, segments, overflow lines */
    uint64_t retired;        /* blocks waiting for readers */
    uint64_t split_work_max; /* most entries moved by one put since start */
    uint64_t growths;        /* splits since start */
    uint64_t cut_bytes_most; /* highest number of bytes of old versions that
                                a cut kept */
};

#define QN_STORE_ENTRY_COST 48u /* bytes, the fixed part of logical size */

#define QN_STORE_REUSE                                                         \
    ((uint64_t)4 << 20) /* bytes; the setting of replicas                      \
                         */

struct qn_store;

/**
 * Shorten malloc's own pauses. For a program's main, because it concerns the
 * whole process. By default glibc sets small freed chunks aside and merges all
 * of them at once when a larger chunk is asked for or freed: 26 ms after a
 * million deletes. With these settings it merges each chunk as it is freed. By
 * default it also gives the end of the heap back to the system as soon as that
 * is free, in one call: 8 ms while 10^7 entries are freed. With these settings
 * it keeps it: memory that was used once stays resident, for the next keys,
 * until the replica is idle (kvs/resources/trim.h). Blocks from 32 MiB on have
 * their own mapping and go back at once.
 */
void qn_store_tune_malloc(void);

/** Create an empty store. @param o  Copied.
 *  @return QN_OK; QN_EINVAL: `dbs` is out of range, or only one of alloc and
 *          release is given; QN_ENOMEM. *out is untouched on failure. */
int qn_store_create(struct qn_store **out, const struct qn_store_opts *o);
/** Free the store. No reader may be active. NULL is allowed. */
void qn_store_destroy(struct qn_store *s);

/** Look a key up. Wait-free.
 *  @param db   Below the number of databases.
 *  @param out  Filled if the key is stored; else untouched.
 *  @return true if the key is stored. */
bool qn_store_get(const struct qn_store *s, uint32_t db, struct qn_slice key,
                  struct qn_found *out);

/**
 * Prefetch what the next operations on a key will touch: a batch of n
 * operations then waits for memory about twice instead of 2 n times. First call
 * qn_store_prefetch for each key of the batch, then qn_store_prefetch_entry
 * with each hash it returned, then operate. 8 to 64 keys per batch; hints only,
 * nothing to undo. Reader or writer; wait-free.
 */
uint64_t qn_store_prefetch(const struct qn_store *s, uint32_t db,
                           struct qn_slice key);
/** The second step. @param hash  From qn_store_prefetch. */
void qn_store_prefetch_entry(const struct qn_store *s, uint64_t hash);

/** The arguments of put. The value is the concatenation of parts, so APPEND
 *  and SETRANGE need no buffer; parts may borrow from the old entry. */
struct qn_put {
    uint32_t db;
    struct qn_slice key;
    const struct qn_slice *parts;
    uint32_t part_count;
    qn_slot_t slot;
    uint64_t deadline_ms; /* 0: none */
    /** The value is one part, and this refbuf holds it and little else: the
     *  store may keep a reference to the refbuf instead of a copy. NULL: the
     *  store must copy. */
    struct qn_refbuf *keep;
};

/** Insert or replace. @return QN_OK; QN_ENOMEM; QN_EINVAL: key or value
 *  longer than the limits above, or no such database. On failure nothing has
 *  changed. O(value), and moves at most 2048 entries. */
int qn_store_put(struct qn_store *s, const struct qn_put *p);

/** Remove a key; cannot fail.
 *  @param slot  Of the change; stored in the key's stripe.
 *  @return true if the key was stored. */
bool qn_store_del(struct qn_store *s, uint32_t db, struct qn_slice key,
                  qn_slot_t slot);

/** Remove all keys of one database, or of all (db == UINT32_MAX).
 *  O(databases), however many keys; later reclaim calls free the memory.
 *  (After 63 flushes of one database without enough reclaim calls between
 *  them, while others have keys, the next flush walks the table.) */
void qn_store_flush(struct qn_store *s, uint32_t db, qn_slot_t slot);

/** Keys of one database, dead ones included. */
uint64_t qn_store_count(const struct qn_store *s, uint32_t db);
/** Keys of one database with a deadline; 0: none can be dead. */
uint64_t qn_store_mortal(const struct qn_store *s, uint32_t db);
/** Fill *out. The writer only; O(1). */
void qn_store_stats(const struct qn_store *s, struct qn_store_stats *out);
/** logical_bytes of the statistics. */
uint64_t qn_store_logical(const struct qn_store *s);
/** growths of the statistics. */
uint64_t qn_store_growths(const struct qn_store *s);

/** Slot of the last creation or deletion in the key's stripe (65536 stripes of
 *  the hash): the version of a missing key. */
qn_slot_t qn_store_stripe_slot(const struct qn_store *s, uint32_t db,
                               struct qn_slice key);

/**
 * Free what readers can no longer see: at most `budget` blocks more than were
 * retired since the last call, so that no backlog can build up. After a flush
 * also sweep about `budget` entries for its garbage. Once per turn; 1024 cold
 * blocks take about 0.3 ms. Values that the writer itself has borrowed become
 * invalid.
 *
 * @return true if there is more to do: call again, even if the next turn has no
 *         other work (otherwise an idle server keeps the garbage of a flush).
 */
bool qn_store_reclaim(struct qn_store *s, uint32_t budget);

/* Readers of other threads. The writer's thread needs none. */
#define QN_STORE_READERS_MAX 64u
struct qn_store_reader;
/** Register a reader, from any thread. It begins online: it must call
 *  quiescent in each turn. @return QN_OK; QN_EBUSY: QN_STORE_READERS_MAX
 *  exist already, *out untouched. */
int qn_store_reader_create(struct qn_store *s, struct qn_store_reader **out);
/** End a reader; it holds no borrowed value any more. */
void qn_store_reader_destroy(struct qn_store_reader *r);
/** The reader holds no borrowed value at this point. Wait-free; once per
 *  turn. */
void qn_store_reader_quiescent(struct qn_store_reader *r);
/** The reader is about to block: reclaim does not wait for it until its next
 *  quiescent call. Wait-free. */
void qn_store_reader_offline(struct qn_store_reader *r);

/** An entry met by a walk; borrowed for the call. */
struct qn_walked {
    uint64_t hash;
    uint32_t db;
    struct qn_slice key;
    struct qn_slice value;
    qn_slot_t slot;
    uint64_t deadline_ms;
};
/** @return false to stop after the current bucket. */
typedef bool qn_walk_fn(void *ctx, const struct qn_walked *w);

/** Put an entry of another store unchanged, with its slot and deadline.
 *  Errors as qn_store_put. */
int qn_store_put_walked(struct qn_store *s, const struct qn_walked *w);

/** Visit whole buckets in hash order; inside a bucket in order of (hash, db,
 *  key). A cursor is a position in hash order (its top 53 bits), independent of
 *  the table's size: a key present during a whole iteration is met at least
 *  once. Never blocks. In the writer's thread fn may put and del, but not
 *  reclaim.
 *  @param cursor  0: the start; else from an earlier call, of any replica.
 *  @param budget  Stop after at least this many buckets.
 *  @return the next cursor, 0 at the end. */
uint64_t qn_store_walk(const struct qn_store *s, uint64_t cursor,
                       uint32_t budget, qn_walk_fn *fn, void *ctx);

/** A key of `db` chosen by `random` (any 64-bit value), nearly uniform.
 *  @return false if the database is empty. */
bool qn_store_random(const struct qn_store *s, uint32_t db, uint64_t random,
                     struct qn_walked *out);

/** XXH3-64 over keys, values and deadlines in hash order, entries with
 *  deadline <= now_ms (and not 0) skipped: equal on replicas with equal
 *  content, whatever the order in which it was written. O(keys). */
uint64_t qn_store_digest(const struct qn_store *s, uint64_t now_ms);

#endif
