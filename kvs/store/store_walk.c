#include "kvs/store/store_internal.h"

/*
 * Walks in hash order: cursors, random keys, digests.
 *
 * A position is a 64-bit hash, a cursor its top 53 bits. A step visits the
 * bucket in which the position lies, whatever the size of the table, and the
 * next position is the end of that bucket. Splits and merges between two steps
 * change the bucket but not the keys behind the position, and an entry never
 * changes its hash. So a key that is stored all the time is met, and keys
 * before the position are not met again.
 *
 * Inside a step the order is that of (hash, db, key), so a walk depends on the
 * content alone. The step collects the smallest entries behind the last one
 * met, SORT_MAX per round, on the stack: one round for a bucket with ordinary
 * hashes, and bounded memory even when all hashes collide. The writer may
 * change the bucket meanwhile: a replaced entry keeps its place in the order,
 * so it is met once, in its old or its new version.
 *
 * Each step loads the root again. If the segment is split during a step, the
 * reader finishes in the old one, which is no longer written.
 */

#define SORT_MAX 32u

struct met {
    uint64_t hash;
    const struct qn_entry *entry;
};

static int slice_compare(struct qn_slice a, struct qn_slice b)
{
    size_t n = QN_MIN(a.len, b.len);
    int order = n == 0 ? 0 : memcmp(a.data, b.data, n);
    if (order == 0) {
        order = (a.len > b.len) - (a.len < b.len);
    }
    return order;
}

static bool met_before(const struct met *a, const struct met *b)
{
    if (a->hash != b->hash) {
        return a->hash < b->hash;
    }
    if (a->entry == b->entry) {
        return false;
    }
    uint32_t a_db = qn_entry_db(a->entry);
    uint32_t b_db = qn_entry_db(b->entry);
    if (a_db != b_db) {
        return a_db < b_db;
    }
    return slice_compare(qn_entry_key(a->entry), qn_entry_key(b->entry)) < 0;
}

/* Insert into met[*n], sorted, keeping the SORT_MAX smallest. */
static void met_add(struct met *met, uint32_t *n, const struct met *m)
{
    if (*n == SORT_MAX) {
        if (!met_before(m, &met[SORT_MAX - 1])) {
            return;
        }
        --*n;
    }
    uint32_t i = *n;
    for (; i > 0 && met_before(m, &met[i - 1]); i--) {
        met[i] = met[i - 1];
    }
    met[i] = *m;
    ++*n;
}

/* The smallest live entries of a bucket from position `from` on and, if
 * `last` is given, behind it. @return their number. */
static uint32_t gather(const struct qn_store *s, struct qn_bucket *line,
                       uint64_t from, const struct met *last, struct met *met)
{
    uint32_t n = 0;
    uint64_t w;
    for (struct qn_words i = {line, 0}; qn_words_next(&i, &w) != NULL;) {
        if (!qn_word_alive(s, w)) {
            continue;
        }
        struct met m = {.entry = qn_word_ptr(w)};
        m.hash = qn_entry_hash(s, m.entry);
        if (m.hash >= from && (last == NULL || met_before(last, &m))) {
            met_add(met, &n, &m);
        }
    }
    return n;
}

static struct qn_walked walked(const struct met *m)
{
    return (struct qn_walked){
        .hash = m->hash,
        .db = qn_entry_db(m->entry),
        .key = qn_entry_key(m->entry),
        .value = qn_entry_value(m->entry),
        .slot = m->entry->slot,
        .deadline_ms = qn_entry_deadline(m->entry),
    };
}

/* One bucket, from position `from` on. @return false if fn said stop. */
static bool visit(const struct qn_store *s, struct qn_bucket *line,
                  uint64_t from, qn_walk_fn *fn, void *ctx)
{
    struct met met[SORT_MAX];
    struct met last;
    bool more = true;
    uint32_t n = gather(s, line, from, NULL, met);
    while (n != 0) {
        for (uint32_t i = 0; i < n; i++) {
            struct qn_walked w = walked(&met[i]);
            more = fn(ctx, &w) && more;
        }
        last = met[n - 1];
        n = n < SORT_MAX ? 0 : gather(s, line, from, &last, met);
    }
    return more;
}

uint64_t qn_store_walk(const struct qn_store *s, uint64_t cursor,
                       uint32_t budget, qn_walk_fn *fn, void *ctx)
{
    uint64_t position = cursor << 11;
    bool more = true;
    do {
        uint64_t segment = qn_store_segment(qn_store_root(s), position);
        uint64_t next = qn_position_next(position, qn_word_depth(segment));
        struct qn_bucket *line = qn_segment_bucket(segment, position);
        qn_bucket_prefetch(qn_segment_bucket(segment, next));
        more = visit(s, line, position, fn, ctx);
        position = next;
    } while (more && position != 0 && budget-- > 1);
    return position >> 11;
}

int qn_store_put_walked(struct qn_store *s, const struct qn_walked *w)
{
    const struct qn_put p = {.db = w->db,
                             .key = w->key,
                             .parts = &w->value,
                             .part_count = 1,
                             .slot = w->slot,
                             .deadline_ms = w->deadline_ms};
    return qn_store_put(s, &p);
}

/* ---- a random key ---- */

/* Steele, Lea, Flood: splitmix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The i-th entry of db in a bucket; if there are fewer, NULL and their number
 * in *n. */
static const struct qn_entry *pick(const struct qn_store *s,
                                   struct qn_bucket *line, uint32_t db,
                                   uint64_t index, uint64_t *n)
{
    uint64_t w;
    *n = 0;
    for (struct qn_words i = {line, 0}; qn_words_next(&i, &w) != NULL;) {
        const struct qn_entry *e = qn_word_ptr(w);
        if (qn_entry_db(e) == db && qn_word_alive(s, w) && (*n)++ == index) {
            return e;
        }
    }
    return NULL;
}

struct first {
    uint32_t db;
    bool found;
    struct qn_walked *out;
};

static bool take_first(void *ctx, const struct qn_walked *w)
{
    struct first *f = ctx;
    if (!f->found && w->db == f->db) {
        f->found = true;
        *f->out = *w;
    }
    return !f->found;
}

/* The first key of db behind a position; the start follows the end. Prefers
 * keys behind a gap, and walks far if the db has a small share of the table:
 * the last resort of qn_store_random. */
static bool first_behind(const struct qn_store *s, uint32_t db, uint64_t cursor,
                         struct qn_walked *out)
{
    struct first f = {db, false, out};
    for (uint32_t round = 0; round < 2 && !f.found; round++) {
        while ((cursor = qn_store_walk(s, cursor, UINT32_MAX, take_first,
                                       &f)) != 0 &&
               !f.found) {
        }
    }
    return f.found;
}

/* Draws that usually suffice: with one of 16 places occupied, 64 draws meet
 * it with probability 0.98. */
#define DRAWS        256u
#define DRAW_INDEXES 16u

bool qn_store_random(const struct qn_store *s, uint32_t db, uint64_t random,
                     struct qn_walked *out)
{
    if (qn_store_count(s, db) == 0) {
        return false;
    }
    /* Rejection: draw a bucket by its share of the hash space, and reject
     * shallow (wider) buckets in proportion; then draw one of DRAW_INDEXES
     * places, occupied or not. */
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t position = next_random(&random);
        uint64_t choice = next_random(&random);
        uint64_t root = qn_store_root(s);
        uint64_t segment = qn_store_segment(root, position);
        uint32_t wider = qn_word_depth(root) - qn_word_depth(segment);
        struct qn_bucket *line = qn_segment_bucket(segment, position);
        if ((choice >> 32 & ((UINT64_C(1) << wider) - 1)) != 0) {
            continue;
        }
        uint64_t n;
        pick(s, line, db, UINT64_MAX, &n);
        uint64_t index = (uint32_t)choice % QN_MAX(n, DRAW_INDEXES);
        const struct qn_entry *e = pick(s, line, db, index, &n);
        if (e != NULL) {
            *out = walked(&(struct met){qn_entry_hash(s, e), e});
            return true;
        }
    }
    return first_behind(s, db, next_random(&random) >> 11, out);
}

/* ---- digest ---- */

struct digest {
    XXH3_state_t state;
    uint64_t now_ms;
};

static bool digest_add(void *ctx, const struct qn_walked *w)
{
    struct digest *d = ctx;
    if (w->deadline_ms == 0 || w->deadline_ms > d->now_ms) {
        uint64_t head[] = {w->db, w->key.len, w->value.len, w->deadline_ms};
        XXH3_64bits_update(&d->state, head, sizeof head);
        XXH3_64bits_update(&d->state, w->key.data, w->key.len);
        XXH3_64bits_update(&d->state, w->value.data, w->value.len);
    }
    return true;
}

uint64_t qn_store_digest(const struct qn_store *s, uint64_t now_ms)
{
    struct digest d = {.now_ms = now_ms};
    XXH3_64bits_reset(&d.state);
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(s, cursor, UINT32_MAX, digest_add, &d);
    } while (cursor != 0);
    return XXH3_64bits_digest(&d.state);
}
