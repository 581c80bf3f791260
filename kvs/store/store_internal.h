#ifndef QN_KVS_STORE_STORE_INTERNAL_H
#define QN_KVS_STORE_STORE_INTERNAL_H

/**
 * The store's memory, for the files of this folder only. Figure: STORE.md.
 *
 * Three kinds of shared word, each with a pointer in bits 4 to 47:
 *
 *     root       depth of the directory << 48 | directory
 *     directory  depth of the segment   << 48 | segment
 *     bucket     qn_hash_tag            | entry
 *                QN_WORD_DEAD           | entry     without an owner: garbage
 *                QN_WORD_LINK           | line      in the last word only
 *                0                                  free
 *
 * A reader reaches everything by acquire loads, beginning with `root`; their
 * partner is the release store with which the writer published the word. Below,
 * "publish" in a comment means that pair. What a published word pointed to is
 * retired (qn_store_retire), never freed at once.
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "kvs/store/store.h"
#include "kvs/store/store_spare.h"

static_assert(sizeof(void *) == 8, "words hold 48-bit pointers");

#define QN_WORD_PTR    (((UINT64_C(1) << 48) - 1) & ~UINT64_C(15))
#define QN_WORD_ENTRY  (UINT64_C(1) << 48) /* an entry with its tag */
#define QN_WORD_LINK   UINT64_C(1)         /* if QN_WORD_ENTRY is not set */
#define QN_WORD_DEAD   UINT64_C(2)         /* likewise */
#define QN_LINE_WORDS  8u
#define QN_BUCKET_BITS 8u
#define QN_BUCKETS     (1u << QN_BUCKET_BITS)
/* A position in hash order must keep its bucket within a cursor's 53 bits. */
#define QN_DEPTH_MAX   40u
static_assert(QN_DEPTH_MAX + QN_BUCKET_BITS <= 53, "cursors");

struct qn_bucket {
    qn_a64 word[QN_LINE_WORDS];
};
static_assert(sizeof(struct qn_bucket) == QN_CACHELINE, "a bucket is a line");

struct qn_segment {
    alignas(QN_CACHELINE) struct qn_bucket bucket[QN_BUCKETS];
    uint32_t used; /* words with an entry, dead or not; writer only */
    void *block;   /* what the allocator gave */
};

/* Immutable once published. */
struct qn_entry {
    uint64_t slot; /* of the last change */
    uint32_t value_len;
    uint16_t key_len; /* or QN_KEY_LONG */
    uint16_t meta;    /* db, generation of the db, flags */
    /* [deadline_ms u64] [length of key u64] key value, or, if the value lies
     * elsewhere, [deadline_ms u64] [length of key u64] [struct qn_outside] key
     */
    uint8_t bytes[];
};

/* A value that lies in a refbuf of the log. */
struct qn_outside {
    const uint8_t *value;
    struct qn_refbuf *refbuf; /* one reference */
};
static_assert(sizeof(struct qn_entry) == 16,
              "8 + 16 bytes fit a 48-byte chunk of glibc's malloc");

#define QN_KEY_LONG      UINT16_MAX       /* the length is in bytes[] */
#define QN_META_OWNER    ((1u << 14) - 1) /* db (8 bits), generation (6) */
#define QN_META_DEADLINE (1u << 14)       /* a deadline is in bytes[] */
#define QN_META_OUTSIDE  (1u << 15) /* a struct qn_outside is in bytes[] */
#define QN_GENERATIONS   64u

struct qn_db {
    qn_a64 keys;    /* writer, read by all */
    qn_a64 mortal;  /* of these, with a deadline; likewise */
    qn_a64 flushed; /* slot of the last flush; writer, read by all */
    uint64_t bytes; /* logical; writer only, as the rest */
    uint8_t stale;  /* earlier generations that may still have entries */
    uint8_t fresh;  /* those of them that began during this sweep */
};

/* Retired blocks that wait for readers: a queue of chunks. */
enum qn_retired { /* low bits of a word in the queue */
                  QN_RETIRED_ENTRY,
                  QN_RETIRED_SHELL,   /* a segment whose entries are in another
                                         one now */
                  QN_RETIRED_SEGMENT, /* a segment with its entries */
                  QN_RETIRED_DIRECTORY, /* a root word; the segments are
                                           still in use */
                  QN_RETIRED_TREE,      /* a root word; directory, segments and
                                           entries */
};
struct qn_limbo_item {
    uint64_t word;  /* pointer | enum qn_retired (| depth << 48) */
    uint64_t epoch; /* in which it was unlinked */
};
#define QN_LIMBO_ITEMS 254u
struct qn_limbo_chunk {
    struct qn_limbo_chunk *next;
    uint64_t count;
    struct qn_limbo_item item[QN_LIMBO_ITEMS];
};

struct qn_store_reader {
    alignas(QN_CACHELINE) qn_a64 seen; /* epoch, or QN_OFFLINE; the reader */
    qn_a32 taken;                      /* 1 from create to destroy */
    struct qn_store *store;
};
#define QN_OFFLINE UINT64_MAX

#define QN_STRIPES 65536u

struct qn_store {
    /* Readers and writer. */
    alignas(QN_CACHELINE) qn_a64 root; /* writer */
    uint64_t seed;                     /* this and the next are constant */
    uint64_t hash_keep;
    uint32_t dbs;
    qn_a64 epoch; /* writer; readers at their quiescent points */
    alignas(QN_CACHELINE) qn_a64
        empty_directory; /* the directory of depth 0; writer */
    /* What the meta of a database's entries says; writer. */
    qn_a32 owner[QN_STORE_DBS_MAX];

    /* The writer alone, but for what is said in qn_db. */
    alignas(QN_CACHELINE) struct qn_db db[QN_STORE_DBS_MAX];
    void *(*alloc)(size_t bytes);
    void (*release)(void *p);
    void *block; /* what the allocator gave for the store itself */
    uint64_t keys;
    uint64_t logical_bytes;
    uint64_t table_bytes;
    uint64_t entry_bytes; /* with malloc's rounding; retired ones too */
    struct qn_spares spares;
    bool unsorted; /* something was freed since malloc_sort */
    uint64_t split_work_max;
    uint64_t growths;
    struct {
        struct qn_limbo_chunk *first, *last;
        struct qn_limbo_chunk *spare; /* spare chunk, so that a few pushes
                                         cannot fail */
        uint64_t first_at;            /* items of `first` done with */
        uint64_t count;
        uint64_t pushed;  /* since the last reclaim */
        uint64_t tree_at; /* a tree being taken down: next directory word, */
        uint32_t line_at; /* and next bucket of its segment */
    } limbo;
    uint64_t garbage;             /* entries in the table without an owner */
    uint64_t sweep_at;            /* position in hash order */
    struct qn_snapshot_iter *cut; /* snapshot_iter.c; NULL: none */
    uint64_t cut_bytes_most;

    struct qn_store_reader reader[QN_STORE_READERS_MAX];
    qn_a64 stripe[QN_STRIPES]; /* slots; writer, read by all */
};

/* ---- words ---- */

static inline void *qn_word_ptr(uint64_t w)
{
    return (void *)(uintptr_t)(w & QN_WORD_PTR);
}

/** A pointer from the allocator as the low part of a word. */
static inline uint64_t qn_word_of(const void *p)
{
    uint64_t w = (uintptr_t)p;
    QN_ASSERT((w & ~QN_WORD_PTR) == 0);
    return w;
}

static inline uint32_t qn_word_depth(uint64_t w)
{
    return (uint32_t)(w >> 48);
}

static inline bool qn_word_is_link(uint64_t w)
{
    return (w & (QN_WORD_ENTRY | QN_WORD_LINK)) == QN_WORD_LINK;
}

/**
 * The bits of a word that repeat its entry's hash, around the pointer:
 *
 *      63         50  49  48  47        4  3     0
 *     | near: 14    | 1 | 1 | pointer    | far: 4 |
 *
 * near: the bits behind the bucket's at depth 0, so that a segment of depth
 * less than 14 (up to 29 million keys) is split without touching its entries.
 * far: 5 of the last bits, which no position uses. Together they save a lookup
 * from touching wrong entries: at depth d, 19 - d bits distinguish keys of a
 * bucket, at least 5.
 */
#define QN_NEAR_BITS 14u
static inline uint64_t qn_hash_tag(uint64_t hash)
{
    uint64_t near = hash << QN_BUCKET_BITS >> (64 - QN_NEAR_BITS);
    return near << (64 - QN_NEAR_BITS) | (hash & 1) << 49 | QN_WORD_ENTRY |
           (hash >> 1 & 15);
}

/** True for the word of an entry that has this tag. */
static inline bool qn_word_has_tag(uint64_t w, uint64_t tag)
{
    return ((w ^ tag) & ~QN_WORD_PTR) == 0;
}

/** The hash bit behind the bucket's in a segment of depth < QN_NEAR_BITS. */
static inline uint32_t qn_word_near(uint64_t w, uint32_t depth)
{
    return (uint32_t)(w >> (63 - depth)) & 1;
}

/** The first n bits of a hash. */
static inline uint64_t qn_hash_top(uint64_t hash, uint32_t n)
{
    return (hash >> 1) >> (63 - n);
}

static inline uint32_t qn_hash_bucket(uint64_t hash, uint32_t depth)
{
    return (uint32_t)((hash << depth) >> (64 - QN_BUCKET_BITS));
}

static inline uint64_t qn_store_root(const struct qn_store *s)
{
    return qn_load(&s->root, QN_ACQUIRE); /* publish */
}

/** The directory's word for a hash. */
static inline uint64_t qn_store_segment(uint64_t root, uint64_t hash)
{
    const qn_a64 *dir = qn_word_ptr(root);
    return qn_load(&dir[qn_hash_top(hash, qn_word_depth(root))],
                   QN_ACQUIRE); /* publish */
}

static inline struct qn_bucket *qn_segment_bucket(uint64_t segment,
                                                  uint64_t hash)
{
    struct qn_segment *g = qn_word_ptr(segment);
    return &g->bucket[qn_hash_bucket(hash, qn_word_depth(segment))];
}

/** Walks the entries of a bucket, dead ones included, through its links. */
struct qn_words {
    struct qn_bucket *line;
    uint32_t at;
};

/** @return the place of the next entry, *w filled; NULL at the end. */
static inline qn_a64 *qn_words_next(struct qn_words *i, uint64_t *w)
{
    while (i->at < QN_LINE_WORDS) {
        qn_a64 *place = &i->line->word[i->at++];
        *w = qn_load(place, QN_ACQUIRE); /* publish */
        if (qn_word_is_link(*w)) {
            i->line = qn_word_ptr(*w);
            i->at = 0;
        } else if (*w != 0) {
            return place;
        }
    }
    return NULL;
}

/** Fetch the entries of a bucket's first line. */
static inline void qn_bucket_prefetch(const struct qn_bucket *line)
{
    for (uint32_t i = 0; i < QN_LINE_WORDS; i++) {
        /* relaxed: a hint; a free word prefetches address 0, which does
         * nothing. */
        __builtin_prefetch(qn_word_ptr(qn_load(&line->word[i], QN_RELAXED)));
    }
}

/* ---- entries ---- */

static inline bool qn_entry_is_outside(const struct qn_entry *e)
{
    return (e->meta & QN_META_OUTSIDE) != 0;
}

static inline struct qn_slice qn_entry_key(const struct qn_entry *e)
{
    const uint8_t *key = e->bytes + ((e->meta & QN_META_DEADLINE) != 0 ? 8 : 0);
    uint64_t len = e->key_len;
    if (len == QN_KEY_LONG) {
        memcpy(&len, key, 8);
        key += 8;
    }
    key += qn_entry_is_outside(e) ? sizeof(struct qn_outside) : 0;
    return (struct qn_slice){key, len};
}

static inline struct qn_outside qn_entry_outside(const struct qn_entry *e)
{
    struct qn_outside o;
    QN_DASSERT(qn_entry_is_outside(e));
    memcpy(&o, qn_entry_key(e).data - sizeof o, sizeof o);
    return o;
}

static inline struct qn_slice qn_entry_value(const struct qn_entry *e)
{
    struct qn_slice key = qn_entry_key(e);
    const uint8_t *value =
        qn_entry_is_outside(e) ? qn_entry_outside(e).value : key.data + key.len;
    return (struct qn_slice){value, e->value_len};
}

static inline uint64_t qn_entry_deadline(const struct qn_entry *e)
{
    uint64_t ms = 0;
    if ((e->meta & QN_META_DEADLINE) != 0) {
        memcpy(&ms, e->bytes, 8);
    }
    return ms;
}

static inline uint32_t qn_entry_db(const struct qn_entry *e)
{
    return e->meta & 0xffu;
}

static inline uint64_t qn_entry_logical(const struct qn_entry *e)
{
    return qn_entry_key(e).len + e->value_len + QN_STORE_ENTRY_COST;
}

/** What a block of n bytes takes in glibc's malloc. */
static inline uint64_t qn_chunk_bytes(size_t n)
{
    return QN_MAX(qn_align_up(n + 8, 16), (uint64_t)32);
}

/** What the entry's own block takes. */
static inline uint64_t qn_entry_chunk(const struct qn_entry *e)
{
    struct qn_slice key = qn_entry_key(e);
    const uint8_t *end = key.data + key.len;
    end += qn_entry_is_outside(e) ? 0 : e->value_len;
    return qn_chunk_bytes((size_t)(end - (const uint8_t *)e));
}

/** What a refbuf with a value takes. */
static inline uint64_t qn_refbuf_chunk(const struct qn_refbuf *b)
{
    return qn_chunk_bytes(sizeof *b + b->cap);
}

/** What it takes with the value, wherever that lies. */
static inline uint64_t qn_entry_takes(const struct qn_entry *e)
{
    return qn_entry_chunk(e) +
           (qn_entry_is_outside(e) ? qn_refbuf_chunk(qn_entry_outside(e).refbuf)
                                   : 0);
}

/** Free an entry that no reader can see any more. */
static inline void qn_entry_free(struct qn_store *s, struct qn_entry *e)
{
    uint64_t chunk = qn_entry_chunk(e);
    s->entry_bytes -= qn_entry_takes(e);
    if (qn_entry_is_outside(e)) {
        qn_refbuf_unref(qn_entry_outside(e).refbuf);
        s->unsorted = true;
    }
    if (!qn_spares_keep(&s->spares, e, chunk)) {
        s->release(e);
        s->unsorted = true;
    }
}

/** What meta says of the entries of a db. */
static inline uint32_t qn_db_owner(const struct qn_store *s, uint32_t db)
{
    /* acquire: with the release in qn_store_flush. A reader that sees the new
     * generation sees everything written before it. */
    return qn_load(&s->owner[db], QN_ACQUIRE);
}

/** False for garbage of a flush or a delete. */
static inline bool qn_word_alive(const struct qn_store *s, uint64_t w)
{
    const struct qn_entry *e = qn_word_ptr(w);
    return (w & QN_WORD_ENTRY) != 0 &&
           (e->meta & QN_META_OWNER) == qn_db_owner(s, qn_entry_db(e));
}

/* Databases differ in the seed, so the same key has different hashes in two
 * of them; the constant is that of the golden ratio. */
static inline uint64_t qn_store_hash_of(const struct qn_store *s, uint32_t db,
                                        struct qn_slice key)
{
    return XXH3_64bits_withSeed(key.data, key.len,
                                s->seed + db * UINT64_C(0x9e3779b97f4a7c15)) &
           s->hash_keep;
}

static inline uint64_t qn_entry_hash(const struct qn_store *s,
                                     const struct qn_entry *e)
{
    return qn_store_hash_of(s, qn_entry_db(e), qn_entry_key(e));
}

/* ---- store_table.c: directory, segments, lines; the writer ---- */

/** Entries at which a segment is split. 7 of 8 words: of 10^5 keys on, the
 *  table then costs between 10 and 19 bytes a key (STORE.md, Memory). */
#define QN_SPLIT_AT  (QN_BUCKETS * 7)
/** Two segments are merged when they have no more than this together. */
#define QN_MERGE_AT  (QN_SPLIT_AT / 4)
/** A segment that grew beyond this could not be split, and never will be. */
#define QN_SPLIT_MAX (QN_BUCKETS * QN_LINE_WORDS)

/** The segment that stands for every empty one. Never written. */
struct qn_segment *qn_segment_empty(void);

/** Put a word into the segment of `hash`; splits first if it is full. The
 *  limbo must have room. @return false: no memory, same content. */
bool qn_table_insert(struct qn_store *s, uint64_t hash, uint64_t word);

/** `count` words of the segment of `hash` were set to 0. May merge the
 *  segment; the caller's pointers into it are then invalid. */
void qn_table_removed(struct qn_store *s, uint64_t hash, uint32_t count);

/** Free a segment and its lines. @return blocks freed. */
uint32_t qn_segment_free(struct qn_store *s, struct qn_segment *g);
/** Free a bucket's entries, at most `budget` blocks. @return blocks freed;
 *  less than budget: the bucket is empty. */
uint32_t qn_bucket_free(struct qn_store *s, struct qn_bucket *line,
                        uint32_t budget);
/** Free the directory of a root word. */
void qn_directory_free(struct qn_store *s, uint64_t root);

/* ---- store_reclaim.c: retired memory, readers, reclaim; the writer ---- */

/** Make sure that the next few retirements have room. */
bool qn_limbo_ready(struct qn_store *s);
/** True if one retirement has room. */
bool qn_limbo_has_room(struct qn_store *s);
/** Free later: word = pointer | enum qn_retired (| depth << 48). */
void qn_store_retire(struct qn_store *s, uint64_t word);
/** A sweep has ended, or nothing is left to sweep. */
void qn_sweep_ended(struct qn_store *s);
/** Free all of it now: no readers. */
void qn_limbo_drain(struct qn_store *s);
/** Free a directory, its segments and entries now: no readers. */
void qn_tree_free(struct qn_store *s, uint64_t root);

/** Append a chunk that another module has filled in the current epoch or
 *  earlier ones. Taken. */
void qn_limbo_append(struct qn_store *s, struct qn_limbo_chunk *chunk);

/* ---- snapshot_iter.c; the writer ---- */

bool qn_snapshot_iter_take(struct qn_store *s, uint64_t hash,
                           const struct qn_entry *e);

/** A word of a flushed entry is about to be swept, while there is a cut.
 *  @return as qn_snapshot_iter_keeps. */
bool qn_snapshot_iter_sweeps(struct qn_store *s, uint64_t w);

/** The word of `e` is about to be replaced or freed. @return true: a cut keeps
 *  the entry, it must not be retired. One branch while there is no cut. */
static inline bool qn_snapshot_iter_keeps(struct qn_store *s, uint64_t hash,
                                          const struct qn_entry *e)
{
    return __builtin_expect(s->cut != NULL, 0) &&
           qn_snapshot_iter_take(s, hash, e);
}

/* ---- store_walk.c ---- */

/** The position behind the bucket of `hash` in a segment of this depth; 0 at
 *  the end. */
static inline uint64_t qn_position_next(uint64_t hash, uint32_t depth)
{
    uint32_t width = 64 - QN_BUCKET_BITS - depth; /* bits; at least 16 */
    return ((hash >> width) + 1) << width;
}

#endif
