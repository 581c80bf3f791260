#ifndef QN_KVS_SNAPSHOT_SNAPSHOT_H
#define QN_KVS_SNAPSHOT_SNAPSHOT_H

/**
 * A snapshot as bytes: what a replica needs to go on behind a position, in
 * chunks that fit a channel's messages.
 *
 *     chunk 0        META      position, sessions, utility log, configuration
 *     chunks 1 ..    ENTRIES   of a cut (snapshot_iter.h), any order
 *                    STRIPES   versions of missing keys
 *     last chunk     END       totals
 *
 *     chunk:  | magic 32 | version 16 | kind 8 | 0 | number 32 | bytes 32 |
 *             | position 64 | XXH3 of all of it 64 | body ...             |
 *
 *     entry:  | flags 8 | db 8 | 0 16 | key len 32 | value len 32 | 0 32 |
 *             | slot 64 | deadline 64, if flags say so | key | value     |
 *
 * Numbers are in host order: a snapshot never leaves its machine. An entry that
 * fits a chunk is never split; of a longer one the key and value go on in the
 * next chunks, behind their heads.
 *
 * The reader refuses what is cut, damaged, out of order, repeated, of another
 * version or of another snapshot, and says why; what it has given to its sink
 * is then to be thrown away. It trusts nothing: lengths are checked before
 * memory is asked for.
 *
 * Pure: no IO, clock or globals; the reader allocates for entries longer than
 * a chunk. One thread each.
 */

#include "kvs/base/buf.h"
#include "kvs/config/config.h"
#include "kvs/store/store.h"
#include "paxos/machine/onepaxos.h"

#define QN_SNAPSHOT_VERSION   2u     /* of its chunks and messages */
#define QN_SNAPSHOT_CHUNK     32768u /* bytes at most; an eighth of a lane */
#define QN_SNAPSHOT_CHUNK_MIN 32u    /* bytes of an empty one */

/** All but the entries and the stripes. */
struct qn_snapshot_meta {
    struct qn_resume resume;
    /* Of each origin, the last command that was answered by an error. */
    struct qn_session refused[QN_NODES_MAX];

    uint64_t applied_ms;    /* stamp of slot `position` */
    uint32_t nodes;         /* sessions that count */
    uint32_t dbs;           /* databases */
    uint64_t seed;          /* of the store's hash */
    uint64_t keys;          /* entries that follow */
    uint64_t logical_bytes; /* of them (struct qn_store_stats) */
    uint32_t ul_count;
    struct qn_ul_entry ul[QN_UL_KEPT]; /* consecutive, oldest first */
    struct qn_config config;           /* run-time options travel */
    qn_slot_t flushed[QN_STORE_DBS_MAX];
};

/** Where the writer gets the rest. */
struct qn_snapshot_source {
    /** As qn_snapshot_iter_peek and qn_snapshot_iter_next. */
    int (*peek)(void *ctx, struct qn_walked *w);
    void (*next)(void *ctx);
    /** [65536], as of the position. Asked once all entries are written. */
    const qn_slot_t *(*stripes)(void *ctx);
    void *ctx;
};

enum qn_snapshot_kind {
    QN_SNAPSHOT_META,
    QN_SNAPSHOT_ENTRIES,
    QN_SNAPSHOT_STRIPES,
    QN_SNAPSHOT_END,
};

/** Private but for its size. */
struct qn_snapshot_writer {
    const struct qn_snapshot_meta *meta;
    uint8_t kind;    /* of the next chunk */
    bool ended;      /* END was written */
    uint32_t number; /* of the next chunk */
    uint64_t sent;   /* bytes of the current entry's key and value */
    uint32_t stripe; /* next one */
};

/** @param meta  Kept until the last chunk. */
void qn_snapshot_writer_init(struct qn_snapshot_writer *w,
                             const struct qn_snapshot_meta *meta);

/**
 * Write the next chunk.
 *
 * @param chunk  [QN_SNAPSHOT_CHUNK] Filled. @param len Filled with its bytes.
 * @return QN_OK; QN_ENOENT: there was the last one already; otherwise what
 *         peek said (QN_EAGAIN, QN_EABORTED): no chunk.
 */
int qn_snapshot_write(struct qn_snapshot_writer *w,
                      const struct qn_snapshot_source *source, uint8_t *chunk,
                      size_t *len);

/** Where the reader puts what it reads. Each returns QN_OK or an error that
 *  ends the reading. What is given is borrowed for the call. */
struct qn_snapshot_sink {
    int (*meta)(void *ctx, const struct qn_snapshot_meta *meta);
    int (*entry)(void *ctx, const struct qn_walked *w); /* w->hash is not set */
    int (*stripes)(void *ctx, uint32_t first, uint32_t count,
                   const qn_slot_t *stripe);
    void *ctx;
};

/** Private but for `complete` and `why`. */
struct qn_snapshot_reader {
    bool complete;   /* END was read and all totals are right */
    const char *why; /* after an error: one clause */
    uint8_t kind;    /* the last chunk's; later ones are not less */
    uint32_t number; /* of the next chunk */
    uint32_t stripe; /* less than it were read */
    int err;         /* sticky */
    uint32_t nodes, dbs;
    uint64_t position;
    uint64_t keys, logical_bytes;           /* read so far */
    uint64_t keys_said, logical_bytes_said; /* by META */
    const struct qn_config *start;
    struct qn_walked split; /* an entry under way: lengths, not pointers */
    bool splitting;
    struct qn_buf body; /* its key and value so far */
};

/** @param nodes  Of this group. @param start  Kept: the own start
 *  configuration, in which the run-time options of META are set. */
void qn_snapshot_reader_init(struct qn_snapshot_reader *r, uint32_t nodes,
                             const struct qn_config *start);
void qn_snapshot_reader_fini(struct qn_snapshot_reader *r);

/**
 * Read the next chunk.
 *
 * @return QN_OK (and r->complete after the last); QN_ECORRUPT; QN_ENOMEM; or
 *         what the sink said. Any error is final, r->why says more.
 */
int qn_snapshot_read(struct qn_snapshot_reader *r, struct qn_slice chunk,
                     const struct qn_snapshot_sink *sink);

/** Write the checksum of a chunk into it (for who writes one by hand: tests).
 *  @param len  QN_SNAPSHOT_CHUNK_MIN or more. */
void qn_snapshot_seal(uint8_t *chunk, size_t len);

#endif
