#include "tests/unit/kvs/store/store_support.h"

#include <stdlib.h>

#include "kvs/store/snapshot_iter.h"

/* Cuts: what is met must be what stood there when the cut began, whatever the
 * writer does meanwhile. */

#define ALL_BITS UINT64_MAX
#define NO_LIMIT UINT64_MAX

/* Numbered keys of two databases: what should be there. */
struct shadow {
    uint32_t keys;
    uint64_t *now;  /* [2 * keys] value; 0: not there */
    uint64_t *then; /* as of the cut */
    uint32_t *met;  /* times */
    struct qn_store *s;
    qn_slot_t slot;
    uint64_t random;
};

static struct shadow shadow_of(uint32_t keys, uint64_t hash_clear)
{
    return (struct shadow){.keys = keys,
                           .now = calloc(2 * keys, sizeof(uint64_t)),
                           .then = calloc(2 * keys, sizeof(uint64_t)),
                           .met = calloc(2 * keys, sizeof(uint32_t)),
                           .s = store_of(2, hash_clear),
                           .random = 99};
}

static void shadow_fini(struct shadow *m)
{
    qn_store_destroy(m->s);
    cr_assert_eq(kept_refbufs, 0);
    free(m->now);
    free(m->then);
    free(m->met);
}

static void shadow_put(struct shadow *m, uint32_t i)
{
    m->now[i] = ++m->slot;
    struct number_key key = {i % m->keys};
    struct number_key value = {m->slot};
    struct qn_put p = {.db = i / m->keys,
                       .key = key_of(&key),
                       .parts = &(struct qn_slice){(uint8_t *)&value, 8},
                       .part_count = 1,
                       .slot = m->slot};
    cr_assert_eq(m->slot % 2 == 0 ? qn_store_put(m->s, &p)
                                  : put_kept(m->s, p, 0),
                 QN_OK);
}

static void shadow_del(struct shadow *m, uint32_t i)
{
    cr_assert_eq(del_number(m->s, i / m->keys, i % m->keys, ++m->slot),
                 m->now[i] != 0);
    m->now[i] = 0;
}

/* Database 0 or 1; 2: both. */
static void shadow_flush(struct shadow *m, uint32_t db)
{
    qn_store_flush(m->s, db == 2 ? UINT32_MAX : db, ++m->slot);
    uint32_t first = db == 1 ? m->keys : 0;
    uint32_t count = db == 2 ? 2 * m->keys : m->keys;
    memset(m->now + first, 0, count * sizeof *m->now);
}

static void shadow_write(struct shadow *m)
{
    uint32_t i = (uint32_t)(draw(&m->random) % (2 * m->keys));
    if (draw(&m->random) % 3 == 0) {
        shadow_del(m, i);
    } else {
        shadow_put(m, i);
    }
}

static void cut_begin(struct shadow *m, uint64_t held_max)
{
    cr_assert_eq(qn_snapshot_iter_begin(m->s, m->slot, held_max), QN_OK);
    memcpy(m->then, m->now, 2 * m->keys * sizeof *m->now);
    memset(m->met, 0, 2 * m->keys * sizeof *m->met);
}

/* @return what peek says; what was met is noted and checked. */
static int cut_meet(struct shadow *m)
{
    struct qn_walked w;
    int err = qn_snapshot_iter_peek(m->s, &w);
    if (err == QN_OK) {
        uint64_t key = number_in(w.key);
        cr_assert_lt(key, m->keys);
        uint64_t i = w.db * m->keys + key;
        cr_assert_eq(number_in(w.value), m->then[i], "key %zu: %zu, not %zu",
                     (size_t)i, (size_t)number_in(w.value), (size_t)m->then[i]);
        cr_assert_eq(w.slot, m->then[i]);
        m->met[i]++;
        qn_snapshot_iter_next(m->s);
    }
    return err;
}

static void expect_all_met(const struct shadow *m)
{
    for (uint32_t i = 0; i < 2 * m->keys; i++) {
        cr_assert_eq(m->met[i], m->then[i] != 0, "key %u met %u times", i,
                     m->met[i]);
    }
}

static void expect_nothing_kept(struct qn_store *s)
{
    while (qn_store_reclaim(s, 1000)) {
    }
    struct qn_store_stats st;
    qn_store_stats(s, &st);
    cr_assert_eq(st.retired, 0);
}

Test(snapshot_iter, of_an_empty_store_is_empty)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_walked w;
    cr_assert_eq(qn_snapshot_iter_peek(s, &w), QN_EABORTED, "there is none");
    cr_assert_eq(qn_snapshot_iter_begin(s, 0, NO_LIMIT), QN_OK);
    cr_assert_eq(qn_snapshot_iter_begin(s, 0, NO_LIMIT), QN_EBUSY);
    cr_assert(qn_snapshot_iter_active(s));
    cr_assert_eq(qn_snapshot_iter_peek(s, &w), QN_ENOENT);
    cr_assert_eq(qn_snapshot_iter_peek(s, &w), QN_ENOENT, "and again");
    put_number(s, 0, 1, 1, 1);
    cr_assert_eq(qn_snapshot_iter_peek(s, &w), QN_ENOENT, "it is newer");
    qn_snapshot_iter_end(s);
    qn_snapshot_iter_end(s);
    cr_assert(!qn_snapshot_iter_active(s));
    qn_store_destroy(s);
}

Test(snapshot_iter, meets_each_entry_once)
{
    static const uint64_t clear[] = {0, ALL_BITS, ALL_BITS << 10,
                                     ALL_BITS >> 6};
    for (size_t c = 0; c < QN_ARRAY_COUNT(clear); c++) {
        struct shadow m = shadow_of(1500, clear[c]);
        for (uint32_t i = 0; i < 2 * m.keys; i += 2) {
            shadow_put(&m, i);
        }
        cut_begin(&m, NO_LIMIT);
        while (cut_meet(&m) == QN_OK) {
        }
        expect_all_met(&m);
        qn_snapshot_iter_end(m.s);
        shadow_fini(&m);
    }
}

/* One cut under random puts and deletes, some between any two entries. The
 * table grows and shrinks meanwhile. */
static void one_cut(struct shadow *m, uint32_t writes_per_entry)
{
    cut_begin(m, NO_LIMIT);
    int err;
    do {
        err = cut_meet(m);
        uint64_t writes = draw(&m->random) % (2 * writes_per_entry + 1);
        for (uint64_t i = 0; i < writes; i++) {
            shadow_write(m);
        }
        if (draw(&m->random) % 4 == 0) {
            qn_store_reclaim(m->s, 16);
        }
    } while (err == QN_OK || err == QN_EAGAIN);
    cr_assert_eq(err, QN_ENOENT);
    expect_all_met(m);
    qn_snapshot_iter_end(m->s);
}

Test(snapshot_iter, meets_what_stood_there_whatever_is_written, .timeout = 120)
{
    static const struct {
        uint32_t keys;
        uint64_t clear;
        uint32_t writes;
    } t[] = {{1, 0, 1},
             {7, 0, 3},
             {300, ALL_BITS, 1},
             {300, ALL_BITS, 9},
             {4000, 0, 1},
             {4000, 0, 20},
             {500, ALL_BITS << 9, 2},
             {3000, ALL_BITS >> 7, 2}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(t); i++) {
        struct shadow m = shadow_of(t[i].keys, t[i].clear);
        for (uint32_t n = 0; n < t[i].keys; n++) {
            shadow_write(&m);
        }
        for (uint32_t n = 0; n < 10; n++) {
            one_cut(&m, t[i].writes);
        }
        expect_nothing_kept(m.s);
        shadow_fini(&m);
    }
}

/* Segments split and merge between the steps. */
Test(snapshot_iter, growth_and_shrinking_lose_nothing)
{
    enum { KEYS = 30000, FEW = 3000 };
    for (uint32_t shrink = 0; shrink < 2; shrink++) {
        struct shadow m = shadow_of(KEYS, 0);
        for (uint32_t i = 0; i < (shrink ? KEYS : FEW); i++) {
            shadow_put(&m, i);
        }
        cut_begin(&m, NO_LIMIT);
        uint32_t i = shrink ? 0 : FEW;
        while (cut_meet(&m) == QN_OK) {
            for (uint32_t n = 0; n < 20 && i < KEYS; n++, i++) {
                if (!shrink) {
                    shadow_put(&m, i);
                } else if (i % 100 != 0) {
                    shadow_del(&m, i);
                }
            }
            qn_store_reclaim(m.s, 64);
        }
        expect_all_met(&m);
        cr_assert_eq(i, KEYS);
        qn_snapshot_iter_end(m.s);
        expect_nothing_kept(m.s);
        shadow_fini(&m);
    }
}

/* A merge makes buckets wider: `at` lies inside one then. */
Test(snapshot_iter, a_merge_brings_nothing_twice)
{
    for (uint32_t given = 0; given < 900; given += 30) {
        struct shadow m = shadow_of(4000, 0);
        for (uint32_t i = 0; i < m.keys; i++) {
            shadow_put(&m, i);
        }
        cut_begin(&m, NO_LIMIT);
        for (uint32_t i = 0; i < given; i++) {
            cr_assert_eq(cut_meet(&m), QN_OK);
        }
        for (uint32_t i = 0; i < m.keys; i++) {
            if (i % 10 != 0) {
                shadow_del(&m, i);
            }
        }
        while (cut_meet(&m) == QN_OK) {
        }
        expect_all_met(&m);
        shadow_fini(&m);
    }
}

Test(snapshot_iter, the_entry_that_is_read_stays_when_it_is_replaced)
{
    for (uint32_t removed = 0; removed < 2; removed++) {
        struct shadow m = shadow_of(50, 0);
        for (uint32_t i = 0; i < m.keys; i++) {
            shadow_put(&m, i);
        }
        cut_begin(&m, NO_LIMIT);
        struct qn_walked w;
        while (qn_snapshot_iter_peek(m.s, &w) == QN_OK) {
            uint32_t key = (uint32_t)number_in(w.key);
            if (removed) {
                shadow_del(&m, key);
            } else {
                shadow_put(&m, key);
            }
            for (uint32_t i = 0; i < 4; i++) {
                qn_store_reclaim(m.s, 100);
                shadow_write(&m);
            }
            cr_assert_eq(cut_meet(&m), QN_OK);
            cr_assert_eq(m.met[key], 1, "the same one");
        }
        expect_all_met(&m);
        qn_snapshot_iter_end(m.s);
        shadow_fini(&m);
    }
}

Test(snapshot_iter, a_key_made_again_is_newer)
{
    struct shadow m = shadow_of(1, 0);
    shadow_put(&m, 0);
    cut_begin(&m, NO_LIMIT);
    for (uint32_t i = 0; i < 3; i++) {
        shadow_del(&m, 0);
        shadow_put(&m, 0);
    }
    cr_assert_eq(cut_meet(&m), QN_OK);
    cr_assert_eq(cut_meet(&m), QN_ENOENT);
    expect_all_met(&m);
    shadow_fini(&m);
}

/* What was flushed is met by the walk, or swept before it comes by. */
Test(snapshot_iter, meets_what_was_flushed)
{
    for (uint32_t n = 0; n < 6; n++) {
        struct shadow m = shadow_of(3000, n < 3 ? 0 : ALL_BITS >> 6);
        for (uint32_t i = 0; i < 2 * m.keys; i++) {
            shadow_put(&m, i);
        }
        cut_begin(&m, NO_LIMIT);
        for (uint32_t i = 0; i < 1000; i++) {
            cr_assert_eq(cut_meet(&m), QN_OK);
        }
        shadow_flush(&m, n % 3);
        for (uint32_t i = 0; i < 500; i++) {
            shadow_put(&m, i);
        }
        int err;
        while ((err = cut_meet(&m)) == QN_OK || err == QN_EAGAIN) {
            qn_store_reclaim(m.s, 4);
        }
        cr_assert_eq(err, QN_ENOENT);
        expect_all_met(&m);
        qn_snapshot_iter_end(m.s);
        expect_nothing_kept(m.s);
        cr_assert_eq(qn_store_count(m.s, 0), n % 3 == 1 ? 3000 : 500);
        shadow_fini(&m);
    }
}

Test(snapshot_iter, meets_what_stood_there_whatever_is_flushed, .timeout = 120)
{
    static const uint64_t clear[] = {0, ALL_BITS, ALL_BITS >> 7};
    for (size_t c = 0; c < QN_ARRAY_COUNT(clear); c++) {
        struct shadow m = shadow_of(300, clear[c]);
        for (uint32_t n = 0; n < 60; n++) {
            for (uint32_t i = 0; i < m.keys; i++) {
                shadow_write(&m);
            }
            cut_begin(&m, NO_LIMIT);
            int err;
            do {
                err = cut_meet(&m);
                shadow_write(&m);
                if (draw(&m.random) % 40 == 0) {
                    shadow_flush(&m, (uint32_t)(draw(&m.random) % 3));
                }
                qn_store_reclaim(m.s, (uint32_t)(draw(&m.random) % 60));
            } while (err == QN_OK || err == QN_EAGAIN);
            cr_assert_eq(err, QN_ENOENT);
            expect_all_met(&m);
            qn_snapshot_iter_end(m.s);
        }
        expect_nothing_kept(m.s);
        shadow_fini(&m);
    }
}

/* More generations than there are, and nothing swept: it cannot tell which
 * entries of the table were alive. */
Test(snapshot_iter, without_generations_it_is_given_up)
{
    struct shadow m = shadow_of(600, 0);
    for (uint32_t i = 0; i < 2 * m.keys; i++) {
        shadow_put(&m, i);
    }
    cut_begin(&m, NO_LIMIT);
    for (uint32_t i = 0; i < 63; i++) {
        shadow_flush(&m, 0);
        shadow_put(&m, i);
        cr_assert(qn_snapshot_iter_active(m.s), "after %u", i);
    }
    shadow_flush(&m, 0);
    cr_assert(!qn_snapshot_iter_active(m.s));
    cr_assert_eq(cut_meet(&m), QN_EABORTED);
    expect_nothing_kept(m.s);
    cr_assert_eq(qn_store_count(m.s, 0), 0);
    cr_assert_eq(qn_store_count(m.s, 1), 600);
    shadow_fini(&m);
}

/* What is swept counts, too. */
Test(snapshot_iter, a_flush_of_more_than_it_may_keep_gives_it_up)
{
    struct shadow m = shadow_of(3000, 0);
    for (uint32_t i = 0; i < m.keys; i++) {
        shadow_put(&m, i);
    }
    cut_begin(&m, 20000);
    cr_assert_eq(cut_meet(&m), QN_OK);
    shadow_flush(&m, 2);
    expect_nothing_kept(m.s);
    cr_assert(!qn_snapshot_iter_active(m.s));
    struct qn_store_stats st;
    qn_store_stats(m.s, &st);
    cr_assert_gt(st.cut_bytes_most, 20000);
    cr_assert_leq(st.cut_bytes_most, 20000 + 64);
    shadow_fini(&m);
}

/* What a flush before the cut has left in the table is not of the cut. */
Test(snapshot_iter, leftovers_of_an_earlier_flush_are_not_met)
{
    struct shadow m = shadow_of(800, 0);
    for (uint32_t i = 0; i < 2 * m.keys; i++) {
        shadow_put(&m, i);
    }
    qn_store_flush(m.s, 0, ++m.slot);
    memset(m.now, 0, m.keys * sizeof *m.now);
    cut_begin(&m, NO_LIMIT);
    int err;
    while ((err = cut_meet(&m)) == QN_OK) {
        qn_store_reclaim(m.s, 8);
    }
    cr_assert_eq(err, QN_ENOENT);
    expect_all_met(&m);
    shadow_fini(&m);
}

Test(snapshot_iter, what_it_keeps_is_bounded)
{
    struct shadow m = shadow_of(3000, 0);
    for (uint32_t i = 0; i < m.keys; i++) {
        shadow_put(&m, i);
    }
    struct qn_snapshot_iter_facts f;
    cut_begin(&m, 20000);
    for (uint32_t i = 0; qn_snapshot_iter_active(m.s); i++) {
        shadow_put(&m, i);
        cr_assert(!qn_snapshot_iter_facts(m.s, &f) ||
                      f.held_bytes <= 20000 + 64,
                  "%zu", (size_t)f.held_bytes);
    }
    expect_nothing_kept(m.s);
    shadow_fini(&m);
}

Test(snapshot_iter, reading_lets_go_of_what_was_kept)
{
    struct shadow m = shadow_of(3000, 0);
    for (uint32_t i = 0; i < m.keys; i++) {
        shadow_put(&m, i);
    }
    struct qn_snapshot_iter_facts f;
    cut_begin(&m, 20000);
    for (uint32_t i = 0; i < m.keys; i++) {
        shadow_put(&m, i);
        cr_assert_eq(cut_meet(&m), QN_OK);
    }
    while (cut_meet(&m) == QN_OK) {
    }
    cr_assert(qn_snapshot_iter_facts(m.s, &f));
    cr_assert_eq(f.held_bytes, 0);
    cr_assert_eq(f.keys, 3000);
    cr_assert_eq(f.logical_bytes, 3000 * (16 + QN_STORE_ENTRY_COST));
    expect_all_met(&m);
    shadow_fini(&m);
}

/* A reader of another thread holds what the cut kept and let go of. */
Test(snapshot_iter, readers_outlive_it)
{
    struct shadow m = shadow_of(4, 0);
    struct qn_store_reader *r;
    struct qn_found f;
    struct number_key k = {2};
    shadow_put(&m, 2);
    cr_assert_eq(qn_store_reader_create(m.s, &r), QN_OK);
    cr_assert(qn_store_get(m.s, 0, key_of(&k), &f));
    cut_begin(&m, NO_LIMIT);
    shadow_del(&m, 2);
    cr_assert_eq(cut_meet(&m), QN_OK);
    cr_assert_eq(cut_meet(&m), QN_ENOENT);
    qn_snapshot_iter_end(m.s);
    for (uint32_t i = 0; i < 3; i++) {
        qn_store_reclaim(m.s, 100);
    }
    cr_assert_eq(number_in(f.value), m.then[2]);
    qn_store_reader_destroy(r);
    expect_nothing_kept(m.s);
    shadow_fini(&m);
}

/* ---- without memory ---- */

static uint64_t allowed; /* so many more calls of alloc */

static void *alloc_counted(size_t n)
{
    return allowed == 0 ? NULL : (allowed--, malloc(n));
}

/* Fails at the k-th allocation, for all k: the cut is complete and right, or
 * given up. */
Test(snapshot_iter, without_memory_it_is_given_up_and_never_wrong)
{
    bool complete = false;
    for (uint64_t k = 0; k < 400 || !complete; k++) {
        struct shadow m = shadow_of(400, 0);
        struct qn_store_opts o = {
            .seed = 7, .dbs = 2, .alloc = alloc_counted, .release = free};
        qn_store_destroy(m.s);
        allowed = UINT64_MAX;
        cr_assert_eq(qn_store_create(&m.s, &o), QN_OK);
        for (uint32_t i = 0; i < m.keys; i++) {
            shadow_put(&m, i);
        }
        allowed = k;
        int err = qn_snapshot_iter_begin(m.s, m.slot, NO_LIMIT);
        memcpy(m.then, m.now, 2 * m.keys * sizeof *m.now);
        for (uint32_t i = 0; err == QN_OK; i++) {
            if (i == 200) {
                shadow_flush(&m, 0);
            } else if (i < m.keys) {
                shadow_del(&m, (i * 7) % m.keys);
            }
            qn_store_reclaim(m.s, 2);
            err = cut_meet(&m);
        }
        complete = err == QN_ENOENT;
        if (complete) {
            expect_all_met(&m);
        }
        allowed = UINT64_MAX;
        qn_snapshot_iter_end(m.s);
        expect_nothing_kept(m.s);
        shadow_fini(&m);
    }
}

/* Words marked dead, since there was no memory to queue their entries. */
Test(snapshot_iter, what_was_deleted_without_memory_before_it_is_not_met)
{
    struct shadow m = shadow_of(1500, 0);
    struct qn_store_opts o = {
        .seed = 7, .dbs = 2, .alloc = alloc_counted, .release = free};
    struct qn_store *s = NULL;
    qn_store_destroy(m.s);
    allowed = UINT64_MAX;
    cr_assert_eq(qn_store_create(&s, &o), QN_OK);
    m.s = s;
    for (uint32_t i = 0; i < m.keys; i++) {
        shadow_put(&m, i);
    }
    allowed = 0;
    for (uint32_t i = 0; i < 1400; i++) {
        shadow_del(&m, i);
    }
    allowed = UINT64_MAX;
    cut_begin(&m, NO_LIMIT);
    int err;
    do {
        qn_store_reclaim(m.s, 2000);
        err = cut_meet(&m);
    } while (err == QN_OK);
    cr_assert_eq(err, QN_ENOENT);
    expect_all_met(&m);
    qn_snapshot_iter_end(m.s);
    expect_nothing_kept(m.s);
    shadow_fini(&m);
}

/* ---- a store made of one ---- */

Test(snapshot_iter, a_store_made_of_it_is_the_same)
{
    struct shadow m = shadow_of(2000, 0);
    for (uint32_t i = 0; i < 20000; i++) {
        shadow_write(&m);
    }
    qn_store_flush(m.s, 1, ++m.slot);
    shadow_put(&m, 3);
    struct qn_store *made = store_of(2, 0);
    struct qn_snapshot_iter_facts f;
    struct qn_walked w;
    cut_begin(&m, NO_LIMIT);
    uint64_t digest = qn_store_digest(m.s, 0);
    cr_assert(qn_snapshot_iter_facts(m.s, &f));
    for (; qn_snapshot_iter_peek(m.s, &w) == QN_OK;
         qn_snapshot_iter_next(m.s)) {
        cr_assert_eq(put(made, w.db, w.key, w.value, w.slot), QN_OK);
    }
    cr_assert_eq(qn_store_load_stripes(made, 0, QN_STORE_STRIPES, f.stripe),
                 QN_OK);
    for (uint32_t db = 0; db < f.dbs; db++) {
        cr_assert_eq(qn_store_load_flushed(made, db, f.flushed[db]), QN_OK);
    }
    cr_assert_eq(qn_store_digest(made, 0), digest);
    for (uint64_t i = 0; i < 3 * m.keys; i++) {
        struct number_key k = {i};
        for (uint32_t db = 0; db < 2; db++) {
            cr_assert_eq(qn_store_stripe_slot(made, db, key_of(&k)),
                         qn_store_stripe_slot(m.s, db, key_of(&k)));
        }
    }
    cr_assert_eq(qn_store_load_stripes(made, 1, QN_STORE_STRIPES, f.stripe),
                 QN_EINVAL);
    cr_assert_eq(qn_store_load_flushed(made, 2, 1), QN_EINVAL);
    qn_store_destroy(made);
    shadow_fini(&m);
}
