#include "kvs/store/store_internal.h"

#include <malloc.h>
#include <stdlib.h>

#include "kvs/store/snapshot_iter.h"

/*
 * The store's operations. STORE.md has the figure, store_internal.h the layout,
 * store_table.c the growth, store_reclaim.c the freeing.
 *
 * A lookup is: hash; root; directory word; bucket line; the entry whose tag
 * fits. Three dependent misses at most, no store, no retry: each load finds a
 * complete state, old or new. A change is one release store into a bucket word,
 * after everything that can fail: the entry, room in the limbo for what it
 * replaces, a line if the bucket is full.
 *
 * The meta of an entry names its owner: the database, and the database's
 * generation when the entry was put. Flushing one database begins a new
 * generation, which makes all its entries garbage at once; the sweep
 * (store_reclaim.c) collects them. There are 64 generations; if all are in use,
 * flush marks each entry's word instead. Flushing everything, or the only
 * database with keys, exchanges the whole table for an empty one, unless a cut
 * still needs it.
 *
 * A delete cannot fail either: when there is no memory to queue the entry, its
 * word is marked dead, and the sweep removes it.
 */

/* ---- creation ---- */

void qn_store_tune_malloc(void)
{
    mallopt(M_MXFAST, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the largest value it accepts */
}

/* The empty table: the built-in directory, pointing to nothing. */
static void table_reset(struct qn_store *s)
{
    qn_store(&s->empty_directory, qn_word_of(qn_segment_empty()), QN_RELEASE);
    /* publish. A reader that still uses the built-in directory from before
     * the last flush finds nothing, or what is put there now; both are
     * correct. */
    qn_store(&s->root, qn_word_of(&s->empty_directory), QN_RELEASE);
}

int qn_store_create(struct qn_store **out, const struct qn_store_opts *o)
{
    if (o->dbs == 0 || o->dbs > QN_STORE_DBS_MAX ||
        (o->alloc == NULL) != (o->release == NULL)) {
        return QN_EINVAL;
    }
    void *(*alloc)(size_t) = o->alloc != NULL ? o->alloc : malloc;
    void *block = alloc(sizeof(struct qn_store) + QN_CACHELINE);
    if (block == NULL) {
        return QN_ENOMEM;
    }
    uintptr_t at = qn_align_up((uintptr_t)block, QN_CACHELINE);
    struct qn_store *s = (struct qn_store *)at;
    memset(s, 0, sizeof *s);
    s->block = block;
    s->alloc = alloc;
    s->release = o->release != NULL ? o->release : free;
    s->seed = o->seed;
    s->hash_keep = ~o->hash_clear;
    s->dbs = o->dbs;
    s->spares.max = o->reuse_bytes;
    for (uint32_t db = 0; db < QN_STORE_DBS_MAX; db++) {
        /* relaxed, as below: no other thread knows the store yet. */
        qn_store(&s->owner[db], db, QN_RELAXED);
    }
    for (uint32_t i = 0; i < QN_STORE_READERS_MAX; i++) {
        qn_store(&s->reader[i].seen, QN_OFFLINE, QN_RELAXED);
    }
    table_reset(s);
    *out = s;
    return QN_OK;
}

void qn_store_destroy(struct qn_store *s)
{
    if (s == NULL) {
        return;
    }
    qn_snapshot_iter_end(s);
    qn_limbo_drain(s);
    qn_tree_free(s, qn_store_root(s));
    for (void *block; (block = qn_spares_any(&s->spares)) != NULL;) {
        s->release(block);
    }
    s->release(s->block);
}

/* ---- lookup ---- */

static bool entry_is(const struct qn_entry *e, uint32_t owner,
                     struct qn_slice key)
{
    if ((e->meta & QN_META_OWNER) != owner ||
        e->key_len != QN_MIN(key.len, QN_KEY_LONG)) {
        return false;
    }
    struct qn_slice mine = qn_entry_key(e);
    return mine.len == key.len &&
           (key.len == 0 || memcmp(mine.data, key.data, key.len) == 0);
}

/* The place of a key's word, and the word; NULL: the key is missing.
 * Wait-free: one pass over the bucket and its lines. */
static qn_a64 *find(const struct qn_store *s, uint64_t hash, uint32_t db,
                    struct qn_slice key, uint64_t *word)
{
    uint32_t owner = qn_db_owner(s, db);
    uint64_t tag = qn_hash_tag(hash);
    struct qn_bucket *line =
        qn_segment_bucket(qn_store_segment(qn_store_root(s), hash), hash);
    for (;;) {
        uint64_t w = 0;
        for (uint32_t i = 0; i < QN_LINE_WORDS; i++) {
            w = qn_load(&line->word[i], QN_ACQUIRE); /* publish */
            if (qn_word_has_tag(w, tag) &&
                entry_is(qn_word_ptr(w), owner, key)) {
                *word = w;
                return &line->word[i];
            }
        }
        if (!qn_word_is_link(w)) {
            return NULL;
        }
        line = qn_word_ptr(w);
    }
}

bool qn_store_get(const struct qn_store *s, uint32_t db, struct qn_slice key,
                  struct qn_found *out)
{
    QN_DASSERT(db < s->dbs);
    uint64_t w;
    if (find(s, qn_store_hash_of(s, db, key), db, key, &w) == NULL) {
        return false;
    }
    const struct qn_entry *e = qn_word_ptr(w);
    out->value = qn_entry_value(e);
    out->slot = e->slot;
    out->deadline_ms = qn_entry_deadline(e);
    return true;
}

uint64_t qn_store_prefetch(const struct qn_store *s, uint32_t db,
                           struct qn_slice key)
{
    uint64_t hash = qn_store_hash_of(s, db, key);
    uint64_t segment = qn_store_segment(qn_store_root(s), hash);
    __builtin_prefetch(qn_segment_bucket(segment, hash));
    return hash;
}

void qn_store_prefetch_entry(const struct qn_store *s, uint64_t hash)
{
    uint64_t tag = qn_hash_tag(hash);
    uint64_t segment = qn_store_segment(qn_store_root(s), hash);
    const struct qn_bucket *line = qn_segment_bucket(segment, hash);
    uint64_t w = 0;
    for (uint32_t i = 0; i < QN_LINE_WORDS; i++) {
        w = qn_load(&line->word[i], QN_RELAXED); /* relaxed: hint */
        if (qn_word_has_tag(w, tag)) {
            __builtin_prefetch(qn_word_ptr(w)); /* rarely another one has it */
            return;
        }
    }
    if (qn_word_is_link(w)) {
        __builtin_prefetch(qn_word_ptr(w));
    }
}

/* ---- put ---- */

/* True if the value may stay in its refbuf, because the refbuf holds little
 * else.
 */
static bool stays_outside(const struct qn_put *p, size_t value_len)
{
    const struct qn_refbuf *b = p->keep;
    if (b == NULL || p->part_count != 1 || value_len < b->cap - b->cap / 8) {
        return false;
    }
    size_t at = (size_t)(p->parts[0].data - b->bytes); /* wraps below */
    return at <= b->len && value_len <= b->len - at;
}

/* Of that size, spare or new. */
static struct qn_entry *entry_alloc(struct qn_store *s, size_t bytes)
{
    uint64_t chunk = qn_chunk_bytes(bytes);
    struct qn_entry *e = qn_spares_take(&s->spares, chunk);
    /* Its capacity is the same for the next user. */
    return e != NULL ? e : s->alloc(chunk - 8);
}

static uint8_t *append(uint8_t *to, const void *bytes, size_t n)
{
    if (n != 0) {
        memcpy(to, bytes, n);
    }
    return to + n;
}

static struct qn_entry *entry_new(struct qn_store *s, const struct qn_put *p,
                                  size_t value_len)
{
    struct qn_slice key = p->key;
    bool is_long = key.len >= QN_KEY_LONG;
    bool mortal = p->deadline_ms != 0;
    bool outside = stays_outside(p, value_len);
    struct qn_entry *e = entry_alloc(
        s, sizeof *e + (is_long ? 8u : 0u) + (mortal ? 8u : 0u) + key.len +
               (outside ? sizeof(struct qn_outside) : value_len));
    if (e == NULL) {
        return NULL;
    }
    e->slot = p->slot;
    e->value_len = (uint32_t)value_len;
    e->key_len = (uint16_t)QN_MIN(key.len, QN_KEY_LONG);
    e->meta =
        (uint16_t)(qn_db_owner(s, p->db) | (mortal ? QN_META_DEADLINE : 0u) |
                   (outside ? QN_META_OUTSIDE : 0u));
    uint8_t *at = e->bytes;
    at = append(at, &p->deadline_ms, mortal ? 8 : 0);
    at = append(at, &(uint64_t){key.len}, is_long ? 8 : 0);
    if (outside) {
        const struct qn_outside o = {p->parts[0].data, qn_refbuf_ref(p->keep)};
        at = append(at, &o, sizeof o);
    }
    at = append(at, key.data, key.len);
    for (uint32_t i = 0; i < p->part_count && !outside; i++) {
        at = append(at, p->parts[i].data, p->parts[i].len);
    }
    s->entry_bytes += qn_entry_takes(e);
    return e;
}

/* The key was created or has gone. */
static void mark_stripe(struct qn_store *s, uint64_t hash, qn_slot_t slot)
{
    /* release: with the acquire in qn_store_stripe_slot. */
    qn_store(&s->stripe[hash >> 48], slot, QN_RELEASE);
}

/* relaxed: a number, it announces nothing. */
static void count(qn_a64 *n, uint64_t more, uint64_t less)
{
    qn_store(n, qn_load(n, QN_RELAXED) + more - less, QN_RELAXED);
}

/* A database has one entry more and one less; NULL: none. */
static inline void account(struct qn_store *s, uint32_t db,
                           const struct qn_entry *more,
                           const struct qn_entry *less)
{
    struct qn_db *d = &s->db[db];
    uint64_t keys = (uint64_t)(more != NULL) - (less != NULL);
    uint64_t bytes = (more != NULL ? qn_entry_logical(more) : 0) -
                     (less != NULL ? qn_entry_logical(less) : 0);
    bool mortal_more = more != NULL && (more->meta & QN_META_DEADLINE) != 0;
    bool mortal_less = less != NULL && (less->meta & QN_META_DEADLINE) != 0;
    if (keys != 0) {
        count(&d->keys, keys, 0);
    }
    if (mortal_more != mortal_less) {
        count(&d->mortal, mortal_more, mortal_less);
    }
    d->bytes += bytes;
    s->keys += keys;
    s->logical_bytes += bytes;
}

int qn_store_put(struct qn_store *s, const struct qn_put *p)
{
    size_t value_len = 0;
    for (uint32_t i = 0; i < p->part_count; i++) {
        if (p->parts[i].len > QN_STORE_VAL_MAX - value_len) {
            return QN_EINVAL;
        }
        value_len += p->parts[i].len;
    }
    if (p->key.len > QN_STORE_KEY_MAX || p->db >= s->dbs) {
        return QN_EINVAL;
    }
    uint64_t hash = qn_store_hash_of(s, p->db, p->key);
    struct qn_entry *e = qn_limbo_ready(s) ? entry_new(s, p, value_len) : NULL;
    if (e == NULL) {
        return QN_ENOMEM;
    }
    uint64_t word = qn_word_of(e) | qn_hash_tag(hash);
    uint64_t old;
    qn_a64 *place = find(s, hash, p->db, p->key, &old);
    if (place != NULL) {
        const struct qn_entry *was = qn_word_ptr(old);
        account(s, p->db, e, was);
        qn_store(place, word, QN_RELEASE); /* publish */
        if (!qn_snapshot_iter_keeps(s, hash, was)) {
            qn_store_retire(s, qn_word_of(was) | QN_RETIRED_ENTRY);
        }
        return QN_OK;
    }
    if (!qn_table_insert(s, hash, word)) {
        qn_entry_free(s, e);
        return QN_ENOMEM;
    }
    account(s, p->db, e, NULL);
    mark_stripe(s, hash, p->slot);
    return QN_OK;
}

/* ---- del, flush ---- */

bool qn_store_del(struct qn_store *s, uint32_t db, struct qn_slice key,
                  qn_slot_t slot)
{
    QN_ASSERT(db < s->dbs);
    uint64_t hash = qn_store_hash_of(s, db, key);
    uint64_t w;
    qn_a64 *place = find(s, hash, db, key, &w);
    if (place == NULL) {
        return false;
    }
    account(s, db, NULL, qn_word_ptr(w));
    mark_stripe(s, hash, slot);
    bool kept = qn_snapshot_iter_keeps(s, hash, qn_word_ptr(w));
    if (!kept && !qn_limbo_has_room(s)) {
        /* release, here and below: a reader that sees the key gone sees
         * everything that was written before. */
        qn_store(place, (w & QN_WORD_PTR) | QN_WORD_DEAD, QN_RELEASE);
        s->garbage++;
        return true;
    }
    qn_store(place, 0, QN_RELEASE);
    if (!kept) {
        qn_store_retire(s, (w & QN_WORD_PTR) | QN_RETIRED_ENTRY);
    }
    qn_table_removed(s, hash, 1);
    return true;
}

/* Mark the words of a database's entries. O(table). */
static void mark_dead(struct qn_store *s, uint32_t db)
{
    uint64_t position = 0;
    do {
        uint64_t segment = qn_store_segment(qn_store_root(s), position);
        struct qn_words i = {qn_segment_bucket(segment, position), 0};
        uint64_t w;
        qn_a64 *place;
        while ((place = qn_words_next(&i, &w)) != NULL) {
            if (qn_entry_db(qn_word_ptr(w)) == db && qn_word_alive(s, w)) {
                qn_store(place, (w & QN_WORD_PTR) | QN_WORD_DEAD, QN_RELEASE);
            }
        }
        position = qn_position_next(position, qn_word_depth(segment));
    } while (position != 0);
}

/* Make all entries of a database garbage. */
static void disown(struct qn_store *s, uint32_t db)
{
    struct qn_db *d = &s->db[db];
    uint64_t keys = qn_store_count(s, db);
    if (keys == 0) {
        return;
    }
    if (d->stale < QN_GENERATIONS - 1) {
        uint32_t owner = (qn_db_owner(s, db) + 256) & QN_META_OWNER;
        qn_store(&s->owner[db], owner, QN_RELEASE); /* acquire: qn_db_owner */
        d->stale++;
        d->fresh++;
    } else {
        qn_snapshot_iter_end(s); /* the cut could no longer tell which
                                    entries were alive */
        mark_dead(s, db);
    }
    s->garbage += keys;
    s->keys -= keys;
    s->logical_bytes -= d->bytes;
    d->bytes = 0;
    qn_store(&d->keys, 0, QN_RELAXED); /* relaxed: numbers, as in count */
    qn_store(&d->mortal, 0, QN_RELAXED);
}

/* Exchange the table for an empty one, after everything in it was disowned. */
static void table_exchange(struct qn_store *s)
{
    uint64_t root = qn_store_root(s);
    uint64_t w =
        qn_load(&s->empty_directory, QN_RELAXED); /* relaxed: the writer's */
    if (qn_word_ptr(root) != &s->empty_directory) {
        qn_store_retire(s, root | QN_RETIRED_TREE);
    } else if (qn_word_ptr(w) != qn_segment_empty()) {
        qn_store_retire(s, (w & QN_WORD_PTR) | QN_RETIRED_SEGMENT);
    }
    table_reset(s);
    s->garbage = 0;
    qn_sweep_ended(s);
}

void qn_store_flush(struct qn_store *s, uint32_t db, qn_slot_t slot)
{
    QN_ASSERT(db < s->dbs || db == UINT32_MAX);
    uint32_t first = db == UINT32_MAX ? 0 : db;
    uint32_t last = db == UINT32_MAX ? s->dbs - 1 : db;
    for (uint32_t i = first; i <= last; i++) {
        disown(s, i);
        /* release: with the acquire in qn_store_stripe_slot. */
        qn_store(&s->db[i].flushed, slot, QN_RELEASE);
    }
    if (s->keys == 0 && s->garbage != 0 && s->cut == NULL &&
        qn_limbo_has_room(s)) {
        table_exchange(s);
    }
}

/* ---- numbers ---- */

uint64_t qn_store_count(const struct qn_store *s, uint32_t db)
{
    QN_ASSERT(db < s->dbs);
    return qn_load(&s->db[db].keys, QN_RELAXED); /* relaxed: a number */
}

uint64_t qn_store_mortal(const struct qn_store *s, uint32_t db)
{
    QN_ASSERT(db < s->dbs);
    return qn_load(&s->db[db].mortal, QN_RELAXED); /* relaxed: a number */
}

void qn_store_stats(const struct qn_store *s, struct qn_store_stats *out)
{
    *out = (struct qn_store_stats){
        .keys = s->keys,
        .logical_bytes = s->logical_bytes,
        .memory_bytes =
            sizeof *s + s->table_bytes + s->entry_bytes + s->spares.kept,
        .table_bytes = s->table_bytes,
        .retired = s->limbo.count + s->garbage,
        .split_work_max = s->split_work_max,
        .growths = s->growths,
        .cut_bytes_most = s->cut_bytes_most,
    };
}

uint64_t qn_store_logical(const struct qn_store *s)
{
    return s->logical_bytes;
}

uint64_t qn_store_growths(const struct qn_store *s)
{
    return s->growths;
}

qn_slot_t qn_store_stripe_slot(const struct qn_store *s, uint32_t db,
                               struct qn_slice key)
{
    QN_ASSERT(db < s->dbs);
    uint64_t hash = qn_store_hash_of(s, db, key);
    /* acquire: with the releases in mark_stripe and qn_store_flush. */
    qn_slot_t stripe = qn_load(&s->stripe[hash >> 48], QN_ACQUIRE);
    qn_slot_t flushed = qn_load(&s->db[db].flushed, QN_ACQUIRE);
    return QN_MAX(stripe, flushed);
}
