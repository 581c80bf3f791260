/* Snapshots as chunks: what is written is read, and what is not right is
 * refused. */
#include "tests/unit/kvs/store/store_support.h"

#include <stdlib.h>

#include "core/base/err.h"
#include "kvs/snapshot/snapshot.h"
#include "kvs/snapshot/snapshot_internal.h"
#include "kvs/store/snapshot_iter.h"

#define NODES      3u
#define DBS        4u
#define CHUNKS_MAX 4096u

/* ---- a store, its chunks, and a store made of them ---- */

struct chunk {
    uint8_t *bytes;
    size_t len;
};

struct tape {
    struct qn_store *from, *to;
    struct qn_snapshot_meta meta, got;
    struct chunk chunk[CHUNKS_MAX];
    uint32_t chunks;
    qn_slot_t slot;
    int sink_says; /* to the next entry */
};

static int peek(void *ctx, struct qn_walked *w)
{
    return qn_snapshot_iter_peek(ctx, w);
}

static void next(void *ctx)
{
    qn_snapshot_iter_next(ctx);
}

static const qn_slot_t *stripes(void *ctx)
{
    struct qn_snapshot_iter_facts f;
    cr_assert(qn_snapshot_iter_facts(ctx, &f));
    return f.stripe;
}

static int on_meta(void *ctx, const struct qn_snapshot_meta *m)
{
    struct tape *t = ctx;
    struct qn_store_opts o = {.seed = m->seed, .dbs = m->dbs};
    t->got = *m;
    cr_assert_null(t->to);
    return qn_store_create(&t->to, &o);
}

static int on_entry(void *ctx, const struct qn_walked *w)
{
    struct tape *t = ctx;
    return t->sink_says != QN_OK ? t->sink_says : qn_store_put_walked(t->to, w);
}

static int on_stripes(void *ctx, uint32_t first, uint32_t count,
                      const qn_slot_t *stripe)
{
    struct tape *t = ctx;
    return qn_store_load_stripes(t->to, first, count, stripe);
}

static struct tape *tape_new(void)
{
    struct tape *t = calloc(1, sizeof *t);
    t->from = store_of(DBS, 0);
    return t;
}

static void tape_free(struct tape *t)
{
    for (uint32_t i = 0; i < t->chunks; i++) {
        free(t->chunk[i].bytes);
    }
    qn_store_destroy(t->from);
    qn_store_destroy(t->to);
    free(t);
}

static void add(struct tape *t, uint32_t db, size_t key_len, size_t value_len,
                uint64_t deadline_ms)
{
    uint8_t *bytes = malloc(key_len + value_len + 1);
    t->slot++;
    for (size_t i = 0; i < key_len + value_len; i++) {
        bytes[i] = (uint8_t)(i + i / 256 + t->slot);
    }
    struct qn_slice value = {bytes + key_len, value_len};
    struct qn_put p = {.db = db,
                       .key = {bytes, key_len},
                       .parts = &value,
                       .part_count = 1,
                       .slot = t->slot,
                       .deadline_ms = deadline_ms};
    cr_assert_eq(qn_store_put(t->from, &p), QN_OK);
    free(bytes);
}

static void add_some(struct tape *t)
{
    for (uint32_t i = 0; i < 2000; i++) {
        add(t, i % DBS, 4 + i % 40, i % 100, i % 7 == 0 ? i + 1 : 0);
    }
    add(t, 0, 0, 0, 0);
    add(t, 1, 0, 100000, 0);
    add(t, 2, 70000, 0, 9);
    add(t, 3, 200000, 300000, 8);
    /* Around the largest that is not split. */
    for (uint32_t i = 0; i < 40; i++) {
        add(t, 0, 20, QN_SNAPSHOT_CHUNK - 95 + i, i % 2);
    }
}

static void meta_make(struct tape *t)
{
    struct qn_snapshot_meta *m = &t->meta;
    struct qn_snapshot_iter_facts f;
    cr_assert_eq(qn_snapshot_iter_begin(t->from, t->slot, UINT64_MAX), QN_OK);
    cr_assert(qn_snapshot_iter_facts(t->from, &f));
    *m = (struct qn_snapshot_meta){.position = f.position,
                                   .refused = {{0, 0}, {7, 4}, {9, 1}},
                                   .applied_ms = 76,
                                   .nodes = NODES,
                                   .dbs = f.dbs,
                                   .seed = f.seed,
                                   .keys = f.keys,
                                   .logical_bytes = f.logical_bytes};
    memcpy(m->flushed, f.flushed, sizeof m->flushed[0] * DBS);
    qn_config_init(&m->config);
    m->config.max_key_len = 1234;
    m->config.tcp_backlog = 99;
}

static void keep(struct tape *t, const uint8_t *bytes, size_t len)
{
    cr_assert_lt(t->chunks, CHUNKS_MAX);
    cr_assert_leq(len, QN_SNAPSHOT_CHUNK);
    /* An own block each: a sanitizer sees what is read beyond. */
    struct chunk *c = &t->chunk[t->chunks++];
    *c = (struct chunk){malloc(len), len};
    memcpy(c->bytes, bytes, len);
}

static void record(struct tape *t)
{
    static uint8_t bytes[QN_SNAPSHOT_CHUNK];
    const struct qn_snapshot_source s = {peek, next, stripes, t->from};
    struct qn_snapshot_writer w;
    size_t len;
    int err;
    meta_make(t);
    qn_snapshot_writer_init(&w, &t->meta);
    while ((err = qn_snapshot_write(&w, &s, bytes, &len)) == QN_OK) {
        keep(t, bytes, len);
    }
    cr_assert_eq(err, QN_ENOENT);
    qn_snapshot_iter_end(t->from);
}

static struct qn_slice slice_of(const struct tape *t, uint32_t i)
{
    return (struct qn_slice){t->chunk[i].bytes, t->chunk[i].len};
}

static void reader_make(const struct tape *t, struct qn_snapshot_reader *r)
{
    static struct qn_config start;
    qn_config_init(&start);
    start.tcp_backlog = 7;
    qn_snapshot_reader_init(r, NODES, t->meta.position, &start);
}

/* Read chunks order[0 .. n). @return the last answer. */
static int play(struct tape *t, const uint32_t *order, uint32_t n, bool *whole)
{
    const struct qn_snapshot_sink sink = {on_meta, on_entry, on_stripes, t};
    struct qn_snapshot_reader r;
    reader_make(t, &r);
    int err = QN_OK;
    for (uint32_t i = 0; i < n && err == QN_OK; i++) {
        err = qn_snapshot_read(&r, slice_of(t, order[i]), &sink);
    }
    *whole = r.complete;
    cr_assert((err == QN_OK) == (r.why == NULL));
    qn_snapshot_reader_fini(&r);
    qn_store_destroy(t->to);
    t->to = NULL;
    return err;
}

/* Read everything and keep the store. */
static void play_all(struct tape *t)
{
    const struct qn_snapshot_sink sink = {on_meta, on_entry, on_stripes, t};
    struct qn_snapshot_reader r;
    reader_make(t, &r);
    for (uint32_t i = 0; i < t->chunks; i++) {
        cr_assert(!r.complete);
        cr_assert_eq(qn_snapshot_read(&r, slice_of(t, i), &sink), QN_OK,
                     "chunk %u: %s", i, r.why);
    }
    cr_assert(r.complete);
    qn_snapshot_reader_fini(&r);
}

static void in_order(const struct tape *t, uint32_t *order)
{
    for (uint32_t i = 0; i < t->chunks; i++) {
        order[i] = i;
    }
}

/* ---- what is written is read ---- */

Test(snapshot, an_empty_store_travels)
{
    struct tape *t = tape_new();
    record(t);
    cr_assert_eq(t->chunks, 2, "META and END");
    play_all(t);
    cr_assert_eq(qn_store_digest(t->to, 0), qn_store_digest(t->from, 0));
    tape_free(t);
}

Test(snapshot, entries_of_all_sizes_travel)
{
    struct tape *t = tape_new();
    add_some(t);
    record(t);
    play_all(t);
    cr_assert_eq(qn_store_digest(t->to, 0), qn_store_digest(t->from, 0));
    for (uint32_t db = 0; db < DBS; db++) {
        cr_assert_eq(qn_store_mortal(t->to, db), qn_store_mortal(t->from, db));
    }
    for (uint32_t i = 0; i < 5000; i++) {
        struct number_key k = {i};
        cr_assert_eq(qn_store_stripe_slot(t->to, 0, key_of(&k)),
                     qn_store_stripe_slot(t->from, 0, key_of(&k)));
    }
    tape_free(t);
}

Test(snapshot, what_is_not_an_entry_travels)
{
    struct tape *t = tape_new();
    add(t, 1, 3, 3, 0);
    qn_store_flush(t->from, 2, ++t->slot);
    record(t);
    play_all(t);
    const struct qn_snapshot_meta *m = &t->got;
    cr_assert_eq(m->position, t->slot);
    cr_assert_eq(m->applied_ms, 76);
    cr_assert_eq(m->refused[1].inc, 7);
    cr_assert_eq(m->refused[1].last, 4);
    cr_assert_eq(m->refused[2].last, 1);
    cr_assert_eq(m->seed, 7);
    cr_assert_eq(m->keys, 1);
    cr_assert_eq(m->flushed[2], t->slot);
    cr_assert_eq(m->config.max_key_len, 1234, "set while it ran");
    cr_assert_eq(m->config.tcp_backlog, 7, "each one's own");
    tape_free(t);
}

/* Between two chunks of a long value it is replaced, removed, and its memory
 * reclaimed. */
Test(snapshot, a_long_value_may_change_while_it_travels)
{
    static uint8_t bytes[QN_SNAPSHOT_CHUNK];
    struct tape *t = tape_new();
    const struct qn_snapshot_source s = {peek, next, stripes, t->from};
    struct qn_snapshot_writer w;
    size_t len;
    add(t, 0, 3, 500000, 0);
    add(t, 1, 5, 400000, 0);
    uint64_t digest = qn_store_digest(t->from, 0);
    meta_make(t);
    qn_snapshot_writer_init(&w, &t->meta);
    while (qn_snapshot_write(&w, &s, bytes, &len) == QN_OK) {
        keep(t, bytes, len);
        if (t->chunks == 4) {
            qn_store_flush(t->from, 3, ++t->slot); /* it is empty */
        } else if (t->chunks == 5) {
            for (uint32_t db = 0; db < 2; db++) {
                uint8_t key[5] = {(uint8_t)(db + 1), (uint8_t)(db + 2),
                                  (uint8_t)(db + 3), (uint8_t)(db + 4),
                                  (uint8_t)(db + 5)};
                struct qn_slice k = {key, db == 0 ? 3 : 5};
                cr_assert(qn_store_del(t->from, db, k, ++t->slot));
            }
        }
        qn_store_reclaim(t->from, 1000);
    }
    play_all(t);
    cr_assert_eq(qn_store_digest(t->to, 0), digest);
    tape_free(t);
}

Test(snapshot, a_cut_that_is_given_up_ends_the_writing)
{
    static uint8_t bytes[QN_SNAPSHOT_CHUNK];
    struct tape *t = tape_new();
    const struct qn_snapshot_source s = {peek, next, stripes, t->from};
    struct qn_snapshot_writer w;
    size_t len;
    add_some(t);
    meta_make(t);
    qn_snapshot_writer_init(&w, &t->meta);
    cr_assert_eq(qn_snapshot_write(&w, &s, bytes, &len), QN_OK);
    cr_assert_eq(qn_snapshot_write(&w, &s, bytes, &len), QN_OK);
    qn_snapshot_iter_end(t->from);
    cr_assert_eq(qn_snapshot_write(&w, &s, bytes, &len), QN_EABORTED);
    tape_free(t);
}

/* ---- what is not right is refused ---- */

/* META first and once, nothing behind END, kinds in order; the rest is the
 * transfer's to see. */
Test(snapshot, parts_out_of_order_are_refused)
{
    struct tape *t = tape_new();
    uint32_t order[CHUNKS_MAX];
    bool whole;
    add_some(t);
    record(t);
    uint32_t n = t->chunks;
    cr_assert_gt(n, 20);
    in_order(t, order);
    order[0] = 1;
    cr_assert_eq(play(t, order, n, &whole), QN_ECORRUPT, "no META");
    in_order(t, order);
    order[1] = 0;
    cr_assert_eq(play(t, order, n, &whole), QN_ECORRUPT, "META twice");
    for (uint32_t i = 1; i + 1 < n; i++) {
        in_order(t, order);
        order[i] = n - 1;
        cr_assert_eq(play(t, order, n, &whole), QN_ECORRUPT, "%u", i);
        in_order(t, order);
        cr_assert_eq(play(t, order, i + 1, &whole), QN_OK, "%u", i);
        cr_assert(!whole, "the end is missing");
    }
    in_order(t, order);
    order[n] = n - 1;
    cr_assert_eq(play(t, order, n + 1, &whole), QN_ECORRUPT, "behind the end");
    tape_free(t);
}

/* The totals of META and END are those of the entries. */
Test(snapshot, a_chunk_that_is_missing_or_twice_is_found_at_the_end,
     .timeout = 60)
{
    struct tape *t = tape_new();
    uint32_t order[CHUNKS_MAX];
    bool whole;
    for (uint32_t i = 0; i < 3000; i++) {
        add(t, 0, 8, 16, 0);
    }
    record(t);
    for (uint32_t i = 1; i < t->chunks && t->chunk[i].bytes[2] == 1; i++) {
        in_order(t, order);
        order[i] = i + 1;
        cr_assert_eq(play(t, order, t->chunks, &whole), QN_ECORRUPT, "%u", i);
        cr_assert(!whole);
    }
    tape_free(t);
}

Test(snapshot, a_chunk_that_is_cut_is_refused_or_incomplete, .timeout = 60)
{
    struct tape *t = tape_new();
    uint32_t order[CHUNKS_MAX];
    bool whole;
    for (uint32_t i = 0; i < 60; i++) {
        add(t, 0, 8, 16, 0);
    }
    record(t);
    in_order(t, order);
    for (uint32_t c = 0; c < t->chunks; c++) {
        const size_t len = t->chunk[c].len;
        const size_t step = len > 4000 ? 371 : 3;
        uint8_t *old = t->chunk[c].bytes;
        for (size_t cut = 0; cut < len; cut += step) {
            /* Of exactly its size: a sanitizer sees what is read beyond. */
            t->chunk[c].bytes = malloc(cut + (cut == 0));
            memcpy(t->chunk[c].bytes, old, cut);
            t->chunk[c].len = cut;
            cr_assert_eq(play(t, order, t->chunks, &whole), QN_ECORRUPT,
                         "chunk %u, %zu bytes", c, cut);
            cr_assert(!whole);
            free(t->chunk[c].bytes);
        }
        t->chunk[c].bytes = old;
        t->chunk[c].len = len;
    }
    tape_free(t);
}

/* A field of chunk c is overwritten. */
static int forged(struct tape *t, uint32_t c, size_t at, uint64_t v, size_t n)
{
    uint32_t order[CHUNKS_MAX];
    bool whole;
    uint8_t old[8];
    in_order(t, order);
    memcpy(old, t->chunk[c].bytes + at, n);
    memcpy(t->chunk[c].bytes + at, &v, n);
    int err = play(t, order, t->chunks, &whole);
    cr_assert(!whole || err == QN_OK);
    memcpy(t->chunk[c].bytes + at, old, n);
    return err;
}

#define HEAD(field) offsetof(struct qn_snapshot_head, field)
#define FIXED(field)                                                           \
    (QN_SNAPSHOT_HEAD + offsetof(struct qn_snapshot_fixed, field))
#define ENTRY(field)                                                           \
    (QN_SNAPSHOT_HEAD + offsetof(struct qn_snapshot_entry, field))

Test(snapshot, nonsense_is_refused)
{
    struct tape *t = tape_new();
    add(t, 1, 8, 16, 5);
    record(t);
    uint32_t end = t->chunks - 1;
    cr_assert_eq(end, 3, "META, ENTRIES, STRIPES, END");
    static const struct {
        uint32_t chunk;
        size_t at;
        uint64_t v;
        size_t n;
    } f[] = {{0, HEAD(version), QN_SNAPSHOT_VERSION + 1, 2},
             {0, HEAD(kind), QN_SNAPSHOT_END, 1},
             {1, HEAD(kind), QN_SNAPSHOT_META, 1},
             {1, HEAD(kind), QN_SNAPSHOT_END + 1, 1},
             {1, HEAD(kind), QN_SNAPSHOT_STRIPES, 1},
             {2, HEAD(kind), QN_SNAPSHOT_ENTRIES, 1},
             {1, HEAD(zero), 1, 1},
             {1, HEAD(zero_too), 1, 4},
             {0, FIXED(nodes), NODES + 1, 4},
             {0, FIXED(dbs), 0, 4},
             {0, FIXED(dbs), QN_STORE_DBS_MAX + 1, 4},
             {0, FIXED(dbs), 1, 4},
             {0, FIXED(keys), 2, 8},
             {0, FIXED(logical_bytes), 2, 8},
             {1, ENTRY(flags), 3, 1},
             {1, ENTRY(flags), 0, 1},
             {1, ENTRY(db), DBS, 1},
             {1, ENTRY(zero), 1, 2},
             {1, ENTRY(zero_too), 1, 4},
             {1, ENTRY(slot), 2, 8},
             {1, ENTRY(key_len), 9, 4},
             {1, ENTRY(key_len), QN_STORE_KEY_MAX + 1, 4},
             {1, ENTRY(value_len), QN_STORE_VAL_MAX + 1, 4},
             {1, ENTRY(value_len), 15, 4},
             {1, QN_SNAPSHOT_HEAD + sizeof(struct qn_snapshot_entry), 0,
              8}, /* deadline */
             {2, QN_SNAPSHOT_HEAD, QN_STORE_STRIPES, 4},
             {2, QN_SNAPSHOT_HEAD + 4, 0, 4},
             {2, QN_SNAPSHOT_HEAD + 8, 2, 8},
             {3, QN_SNAPSHOT_HEAD, 0, 8},
             {3, QN_SNAPSHOT_HEAD + 8, 0, 8}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(f); i++) {
        cr_assert_eq(forged(t, f[i].chunk, f[i].at, f[i].v, f[i].n),
                     QN_ECORRUPT, "case %zu", i);
    }
    cr_assert_eq(forged(t, 0, FIXED(seed), 3, 8), QN_OK, "any seed will do");
    tape_free(t);
}

Test(snapshot, what_the_sink_says_ends_the_reading)
{
    struct tape *t = tape_new();
    const struct qn_snapshot_sink own = {on_meta, on_entry, on_stripes, t};
    struct qn_snapshot_reader r;
    add(t, 1, 8, 16, 5);
    record(t);
    reader_make(t, &r);
    t->sink_says = QN_ENOMEM;
    cr_assert_eq(qn_snapshot_read(&r, slice_of(t, 0), &own), QN_OK);
    cr_assert_eq(qn_snapshot_read(&r, slice_of(t, 1), &own), QN_ENOMEM);
    t->sink_says = QN_OK;
    cr_assert_eq(qn_snapshot_read(&r, slice_of(t, 2), &own), QN_ENOMEM,
                 "for good");
    cr_assert_str_eq(r.why, qn_strerror(QN_ENOMEM));
    qn_snapshot_reader_fini(&r);
    tape_free(t);
}
