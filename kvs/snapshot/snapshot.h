#ifndef QN_KVS_SNAPSHOT_SNAPSHOT_H
#define QN_KVS_SNAPSHOT_SNAPSHOT_H

/**
 * The state of a replica as bytes: what is kvs' own in a snapshot, in chunks,
 * each the content of one chunk of a state transfer
 * (paxos/member/transfer/state_transfer_chunk.h), which also brings the
 * library's own state: position, sessions, utility log.
 *
 *     first chunk    META      hash seed, totals, refused commands, options
 *     then           ENTRIES   of a cut (snapshot_iter.h), any order
 *                    STRIPES   versions of missing keys
 *     last chunk     END       totals
 *
 *     chunk:  | version 16 | kind 8 | 0 8 | 0 32 | body ...            |
 *
 *     entry:  | flags 8 | db 8 | 0 16 | key len 32 | value len 32 | 0 32 |
 *             | slot 64 | deadline 64, if flags say so | key | value     |
 *
 * Numbers are in host order: a snapshot never leaves its machine. An entry that
 * fits a chunk is never split. The key and value of a longer entry continue in
 * the next chunks, behind their heads.
 *
 * The reader refuses what is malformed, of another version or out of order, and
 * says why; the caller must then discard what the sink has received. The reader
 * trusts nothing: it checks lengths before it asks for memory. That no chunk is
 * damaged, missing or repeated is the transfer's to see.
 *
 * Pure: no IO, clock or globals; nothing blocks. The reader allocates only for
 * entries longer than a chunk. One thread per writer and per reader.
 */

#include "kvs/base/buf.h"
#include "kvs/config/config.h"
#include "kvs/store/store.h"
#include "paxos/member/transfer/library_state.h"
#include "paxos/member/transfer/state_transfer_chunk.h"

#define QN_SNAPSHOT_VERSION 3u                        /* of chunks */
#define QN_SNAPSHOT_CHUNK   QN_STATE_TRANSFER_CONTENT /* bytes at most */
#define QN_SNAPSHOT_HEAD    8u                        /* of an empty one */

/** All parts of a snapshot except entries and stripes. */
struct qn_snapshot_meta {
    /* Of each origin, the last command that was answered by an error. */
    struct qn_session refused[QN_NODES_MAX];

    qn_slot_t position;      /* of the cut; it does not travel here */
    uint64_t applied_ms;     /* stamp of slot `position` */
    uint32_t nodes;          /* of `refused`, that count */
    uint32_t dbs;            /* databases */
    uint64_t seed;           /* of the store's hash */
    uint64_t keys;           /* entries that follow */
    uint64_t logical_bytes;  /* of them (struct qn_store_stats) */
    struct qn_config config; /* run-time options travel */
    qn_slot_t flushed[QN_STORE_DBS_MAX];
};

/** The writer's source of entries and stripes. */
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

/** Private except for its size. */
struct qn_snapshot_writer {
    const struct qn_snapshot_meta *meta;
    uint8_t kind;    /* of the next chunk */
    bool ended;      /* END was written */
    uint64_t sent;   /* bytes of the current entry's key and value */
    uint32_t stripe; /* next one */
};

/** Begin to write a snapshot. @param meta  Kept until the last chunk. */
void qn_snapshot_writer_init(struct qn_snapshot_writer *w,
                             const struct qn_snapshot_meta *meta);

/**
 * Write the next chunk.
 *
 * @param chunk  [QN_SNAPSHOT_CHUNK] Filled.
 * @param len    Filled: its bytes.
 * @return QN_OK; QN_ENOENT: the last chunk was written before; otherwise the
 *         error of peek: QN_EAGAIN, no chunk now; QN_EABORTED, none any more.
 */
int qn_snapshot_write(struct qn_snapshot_writer *w,
                      const struct qn_snapshot_source *source, uint8_t *chunk,
                      size_t *len);

/** The receiver of what the reader reads. Each function returns QN_OK or an
 *  error that ends the reading. Arguments are borrowed for the call. */
struct qn_snapshot_sink {
    int (*meta)(void *ctx, const struct qn_snapshot_meta *meta);
    int (*entry)(void *ctx, const struct qn_walked *w); /* w->hash is not set */
    int (*stripes)(void *ctx, uint32_t first, uint32_t count,
                   const qn_slot_t *stripe);
    void *ctx;
};

/** Private except for `complete` and `why`. */
struct qn_snapshot_reader {
    bool complete;   /* END was read and all totals are right */
    const char *why; /* after an error: one clause */
    bool began;      /* META was read */
    uint8_t kind;    /* of the last chunk; kinds never decrease */
    uint32_t stripe; /* the first that was not read */
    int err;         /* sticky */
    uint32_t nodes, dbs;
    qn_slot_t position;
    uint64_t keys, logical_bytes;           /* read so far */
    uint64_t keys_said, logical_bytes_said; /* by META */
    const struct qn_config *start;
    struct qn_walked split; /* an entry under way: lengths, not pointers */
    bool splitting;
    struct qn_buf body; /* its key and value so far */
};

/**
 * Begin to read a snapshot.
 *
 * @param nodes     Replicas of this group, 1..QN_NODES_MAX.
 * @param position  Of the snapshot.
 * @param start  Kept: the own start configuration; META's run-time options
 *               replace those of a copy of it.
 */
void qn_snapshot_reader_init(struct qn_snapshot_reader *r, uint32_t nodes,
                             qn_slot_t position, const struct qn_config *start);
/** Free the memory of the reader; allowed at any time after init. */
void qn_snapshot_reader_fini(struct qn_snapshot_reader *r);

/**
 * Read the next chunk, which is borrowed for the call.
 *
 * @return QN_OK (r->complete is true after the last chunk); QN_ECORRUPT;
 *         QN_ENOMEM; or the error of the sink. Any error is final, and r->why
 *         gives the reason.
 */
int qn_snapshot_read(struct qn_snapshot_reader *r, struct qn_slice chunk,
                     const struct qn_snapshot_sink *sink);

#endif
