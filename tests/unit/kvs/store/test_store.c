#include "tests/unit/kvs/store/store_support.h"

#include <stdlib.h>

/* The store as a map: single operations, their edges, and what they count. */

#define ALL_BITS UINT64_MAX /* every key has hash 0: one deep bucket */

Test(store, refuses_impossible_options)
{
    struct qn_store *s = NULL;
    cr_assert_eq(qn_store_create(&s, &(struct qn_store_opts){.dbs = 0}),
                 QN_EINVAL);
    cr_assert_eq(qn_store_create(&s, &(struct qn_store_opts){.dbs = 257}),
                 QN_EINVAL);
    cr_assert_eq(
        qn_store_create(&s, &(struct qn_store_opts){.dbs = 1, .release = free}),
        QN_EINVAL);
    cr_assert_null(s);
    qn_store_destroy(NULL);
}

Test(store, an_empty_store_has_nothing)
{
    struct qn_store *s = store_of(256, 0);
    struct qn_found f;
    cr_assert(!qn_store_get(s, 255, text("a"), &f));
    cr_assert(!qn_store_del(s, 0, text("a"), 1));
    cr_assert_eq(qn_store_count(s, 0), 0);
    qn_store_flush(s, UINT32_MAX, 1);
    qn_store_reclaim(s, 100);
    struct qn_store_stats st;
    qn_store_stats(s, &st);
    cr_assert_eq(st.keys, 0);
    cr_assert_eq(st.logical_bytes, 0);
    cr_assert_eq(st.table_bytes, 0);
    qn_store_destroy(s);
}

/* The store holds the refbuf of a long value, and no copy, as long as the value
 * can be read. */
Test(store, a_value_stays_in_the_refbuf_it_fills)
{
    enum { LEN = 1000 };
    static uint8_t bytes[LEN] = "a long value";
    struct qn_slice value = {bytes, LEN};
    struct qn_put p = {
        .key = text("k"), .parts = &value, .part_count = 1, .slot = 1};
    struct qn_store *s = store_of(1, 0);
    struct qn_store_stats before, after;
    struct qn_found f;
    qn_store_stats(s, &before);
    cr_assert_eq(put_kept(s, p, LEN / 8), QN_OK);
    cr_assert_eq(kept_refbufs, 1);
    cr_assert(qn_store_get(s, 0, text("k"), &f));
    cr_assert(slice_is(f.value, value));
    qn_store_stats(s, &after);
    cr_assert_geq(after.memory_bytes, before.memory_bytes + LEN);
    cr_assert_eq(after.logical_bytes, 1 + LEN + QN_STORE_ENTRY_COST);
    p.slot = 2;
    cr_assert_eq(put_kept(s, p, 0), QN_OK);
    cr_assert_eq(kept_refbufs, 2, "a reader may still read the old one");
    qn_store_reclaim(s, 10);
    cr_assert_eq(kept_refbufs, 1);
    cr_assert(qn_store_del(s, 0, text("k"), 3));
    qn_store_reclaim(s, 10);
    cr_assert_eq(kept_refbufs, 0);
    qn_store_stats(s, &after);
    cr_assert_eq(after.memory_bytes - after.table_bytes,
                 before.memory_bytes - before.table_bytes);
    qn_store_destroy(s);
}

/* Else a short value would hold a long refbuf. */
Test(store, a_value_is_copied_out_of_a_refbuf_that_it_does_not_fill)
{
    enum { LEN = 1000 };
    static uint8_t bytes[LEN];
    struct qn_slice value = {bytes, LEN};
    struct qn_put p = {
        .key = text("k"), .parts = &value, .part_count = 1, .slot = 1};
    struct qn_store *s = store_of(1, 0);
    struct qn_found f;
    cr_assert_eq(put_kept(s, p, LEN / 7 + 2), QN_OK);
    cr_assert_eq(kept_refbufs, 0);
    cr_assert(qn_store_get(s, 0, text("k"), &f));
    cr_assert(slice_is(f.value, value));
    /* Nor what does not lie in the refbuf, or is made of several parts. */
    p.keep = qn_refbuf_copy(&kept_alloc, bytes, LEN);
    cr_assert_eq(qn_store_put(s, &p), QN_OK);
    struct qn_slice halves[] = {{p.keep->bytes, LEN / 2},
                                {p.keep->bytes + LEN / 2, LEN / 2}};
    p.parts = halves;
    p.part_count = 2;
    cr_assert_eq(qn_store_put(s, &p), QN_OK);
    qn_refbuf_unref(p.keep);
    cr_assert_eq(kept_refbufs, 0);
    qn_store_destroy(s);
}

Test(store, put_get_replace_delete)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_found f;
    cr_assert_eq(put(s, 0, text("key"), text("one"), 5), QN_OK);
    cr_assert(qn_store_get(s, 0, text("key"), &f));
    cr_assert(slice_is(f.value, text("one")));
    cr_assert_eq(f.slot, 5);
    cr_assert_eq(f.deadline_ms, 0);
    cr_assert_eq(put(s, 0, text("key"), text("another"), 6), QN_OK);
    cr_assert(qn_store_get(s, 0, text("key"), &f));
    cr_assert(slice_is(f.value, text("another")));
    cr_assert_eq(f.slot, 6);
    cr_assert_eq(qn_store_count(s, 0), 1);
    cr_assert(qn_store_del(s, 0, text("key"), 7));
    cr_assert(!qn_store_get(s, 0, text("key"), &f));
    cr_assert(!qn_store_del(s, 0, text("key"), 8));
    cr_assert_eq(qn_store_count(s, 0), 0);
    qn_store_destroy(s);
}

/* Borrowed by the writer: until its next reclaim. */
Test(store, the_writers_lookup_outlives_its_own_writes)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_found f;
    put(s, 0, text("key"), text("old"), 1);
    cr_assert(qn_store_get(s, 0, text("key"), &f));
    put(s, 0, text("key"), text("new"), 2);
    qn_store_flush(s, 0, 3);
    cr_assert(slice_is(f.value, text("old")));
    qn_store_reclaim(s, 1000);
    struct qn_store_stats st;
    qn_store_stats(s, &st);
    cr_assert_eq(st.retired, 0);
    qn_store_destroy(s);
}

Test(store, a_value_is_the_concatenation_of_its_parts)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_found f;
    put(s, 0, text("key"), text("abc"), 1);
    cr_assert(qn_store_get(s, 0, text("key"), &f));
    struct qn_slice parts[] = {f.value, {NULL, 0}, text("def"), f.value};
    struct qn_put p = {
        .key = text("key"), .parts = parts, .part_count = 4, .slot = 2};
    cr_assert_eq(qn_store_put(s, &p), QN_OK);
    cr_assert(qn_store_get(s, 0, text("key"), &f));
    cr_assert(slice_is(f.value, text("abcdefabc")));
    p.part_count = 0;
    cr_assert_eq(qn_store_put(s, &p), QN_OK);
    cr_assert(qn_store_get(s, 0, text("key"), &f));
    cr_assert_eq(f.value.len, 0);
    qn_store_destroy(s);
}

Test(store, keys_and_values_may_be_empty_or_hold_any_byte)
{
    struct qn_store *s = store_of(1, 0);
    const struct qn_slice keys[] = {{NULL, 0},
                                    {(const uint8_t *)"\0", 1},
                                    {(const uint8_t *)"\0\0", 2},
                                    {(const uint8_t *)"a\0b", 3},
                                    {(const uint8_t *)"a\0c", 3},
                                    {(const uint8_t *)"\r\n", 2}};
    struct qn_found f;
    for (size_t i = 0; i < QN_ARRAY_COUNT(keys); i++) {
        cr_assert(!qn_store_get(s, 0, keys[i], &f));
        cr_assert_eq(put(s, 0, keys[i], keys[i], i), QN_OK);
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(keys); i++) {
        cr_assert(qn_store_get(s, 0, keys[i], &f));
        cr_assert(slice_is(f.value, keys[i]));
        cr_assert_eq(f.slot, i);
    }
    qn_store_destroy(s);
}

/* The length field of an entry is 16 bits wide; longer keys spell theirs. */
Test(store, keys_around_the_short_length)
{
    enum { LENGTHS = 6 };
    static const size_t len[LENGTHS] = {65533, 65534,  65535,
                                        65536, 131071, QN_STORE_KEY_MAX};
    uint8_t *bytes = calloc(1, QN_STORE_KEY_MAX + 1);
    struct qn_store *s = store_of(1, ALL_BITS);
    struct qn_found f;
    for (uint32_t i = 0; i < LENGTHS; i++) {
        struct qn_slice v = text("v");
        struct qn_put p = {.key = {bytes, len[i]},
                           .parts = &v,
                           .part_count = 1,
                           .slot = i,
                           .deadline_ms = i % 2 == 0 ? 0 : 1000 + i};
        cr_assert_eq(qn_store_put(s, &p), QN_OK);
    }
    for (uint32_t i = 0; i < LENGTHS; i++) {
        cr_assert(qn_store_get(s, 0, (struct qn_slice){bytes, len[i]}, &f));
        cr_assert_eq(f.slot, i);
        cr_assert_eq(f.deadline_ms, i % 2 == 0 ? 0 : 1000 + i);
        cr_assert(slice_is(f.value, text("v")));
    }
    cr_assert_eq(
        put(s, 0, (struct qn_slice){bytes, QN_STORE_KEY_MAX + 1}, text("v"), 9),
        QN_EINVAL);
    struct qn_slice huge[] = {{bytes, QN_STORE_VAL_MAX}, {bytes, 1}};
    struct qn_put p = {.key = text("k"), .parts = huge, .part_count = 2};
    cr_assert_eq(qn_store_put(s, &p), QN_EINVAL);
    p.db = 1;
    p.part_count = 0;
    cr_assert_eq(qn_store_put(s, &p), QN_EINVAL);
    cr_assert_eq(qn_store_count(s, 0), LENGTHS);
    qn_store_destroy(s);
    free(bytes);
}

Test(store, a_deadline_comes_and_goes_with_puts)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_slice v = text("v");
    struct qn_put p = {.key = text("k"), .parts = &v, .part_count = 1};
    struct qn_found f;
    static const uint64_t deadlines[] = {0, 1, 0, UINT64_MAX};
    for (uint32_t i = 0; i < 4; i++) {
        p.deadline_ms = deadlines[i];
        cr_assert_eq(qn_store_put(s, &p), QN_OK);
        cr_assert(qn_store_get(s, 0, text("k"), &f));
        cr_assert_eq(f.deadline_ms, deadlines[i]);
        cr_assert(slice_is(f.value, v));
    }
    qn_store_destroy(s);
}

Test(store, databases_are_separate)
{
    struct qn_store *s = store_of(3, ALL_BITS);
    struct qn_found f;
    put(s, 0, text("k"), text("zero"), 1);
    put(s, 2, text("k"), text("two"), 2);
    cr_assert(!qn_store_get(s, 1, text("k"), &f));
    cr_assert(qn_store_get(s, 2, text("k"), &f));
    cr_assert(slice_is(f.value, text("two")));
    cr_assert(qn_store_del(s, 2, text("k"), 3));
    cr_assert(qn_store_get(s, 0, text("k"), &f));
    cr_assert(slice_is(f.value, text("zero")));
    cr_assert_eq(qn_store_count(s, 0), 1);
    cr_assert_eq(qn_store_count(s, 2), 0);
    qn_store_destroy(s);
}

Test(store, logical_size_is_keys_values_and_a_fixed_cost)
{
    struct qn_store *s = store_of(2, 0);
    struct qn_store_stats st;
    put(s, 0, text("abc"), text("12345"), 1);
    put(s, 1, text("d"), text(""), 1);
    qn_store_stats(s, &st);
    cr_assert_eq(st.keys, 2);
    cr_assert_eq(st.logical_bytes, 3 + 5 + 1 + 2 * QN_STORE_ENTRY_COST);
    put(s, 0, text("abc"), text("1"), 2);
    qn_store_stats(s, &st);
    cr_assert_eq(st.logical_bytes, 3 + 1 + 1 + 2 * QN_STORE_ENTRY_COST);
    qn_store_flush(s, 1, 3);
    qn_store_stats(s, &st);
    cr_assert_eq(st.keys, 1);
    cr_assert_eq(st.logical_bytes, 3 + 1 + QN_STORE_ENTRY_COST);
    qn_store_del(s, 0, text("abc"), 4);
    qn_store_stats(s, &st);
    cr_assert_eq(st.logical_bytes, 0);
    qn_store_destroy(s);
}

/* Creating and deleting marks the stripe of a missing key, replacing does
 * not; a flush marks all stripes of its database. */
Test(store, stripes_know_the_version_of_a_missing_key)
{
    struct qn_store *s = store_of(2, 0);
    cr_assert_eq(qn_store_stripe_slot(s, 0, text("k")), 0);
    put(s, 0, text("k"), text("v"), 5);
    cr_assert_eq(qn_store_stripe_slot(s, 0, text("k")), 5);
    put(s, 0, text("k"), text("w"), 6);
    cr_assert_eq(qn_store_stripe_slot(s, 0, text("k")), 5);
    qn_store_del(s, 0, text("none"), 7);
    qn_store_del(s, 0, text("k"), 8);
    cr_assert_eq(qn_store_stripe_slot(s, 0, text("k")), 8);
    qn_store_flush(s, 0, 9);
    cr_assert_eq(qn_store_stripe_slot(s, 0, text("k")), 9);
    cr_assert_eq(qn_store_stripe_slot(s, 1, text("k")), 0);
    put(s, 0, text("k"), text("v"), 10);
    cr_assert_eq(qn_store_stripe_slot(s, 0, text("k")), 10);
    qn_store_flush(s, UINT32_MAX, 11);
    cr_assert_eq(qn_store_stripe_slot(s, 1, text("k")), 11);
    qn_store_destroy(s);
}

/* ---- growing and shrinking ---- */

static void fill(struct qn_store *s, uint32_t db, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        cr_assert_eq(put_number(s, db, i, i + 1, i), QN_OK);
        if (i % 100 == 99) {
            qn_store_reclaim(s, 1000);
        }
    }
}

static void expect_numbers(struct qn_store *s, uint32_t db, uint64_t n)
{
    uint64_t v = 0;
    for (uint64_t i = 0; i < n; i++) {
        cr_assert(get_number(s, db, i, &v), "key %zu", (size_t)i);
        cr_assert_eq(v, i + 1);
    }
    cr_assert(!get_number(s, db, n, &v));
    cr_assert_eq(qn_store_count(s, db), n);
}

/* A segment has 2048 words; no put moves more entries than that. */
Test(store, growth_moves_a_bounded_number_of_entries_per_put)
{
    struct qn_store *s = store_of(1, 0);
    fill(s, 0, 100000);
    expect_numbers(s, 0, 100000);
    struct qn_store_stats st;
    qn_store_stats(s, &st);
    cr_assert_gt(st.split_work_max, 0);
    cr_assert_leq(st.split_work_max, 2048);
    cr_assert_leq(st.table_bytes, 100000 * 20);
    qn_store_destroy(s);
}

Test(store, memory_comes_back_when_keys_are_deleted)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_store_stats st;
    fill(s, 0, 50000);
    for (uint64_t i = 0; i < 50000; i++) {
        cr_assert(del_number(s, 0, i, i));
        qn_store_reclaim(s, UINT32_MAX);
        if (i % 5000 == 4999) {
            qn_store_stats(s, &st);
            cr_assert_leq(st.table_bytes, 20000 + (50000 - i) * 80);
        }
    }
    qn_store_stats(s, &st);
    cr_assert_eq(st.retired, 0);
    cr_assert_leq(st.table_bytes, 20000); /* the last segment */
    fill(s, 0, 10000);
    expect_numbers(s, 0, 10000);
    qn_store_destroy(s);
}

/* Hashes that agree in what splitting looks at: buckets grow lines, the
 * directory does not grow, and no put moves much. */
Test(store, colliding_hashes_make_deep_buckets_only)
{
    static const uint64_t clear[] = {ALL_BITS, ALL_BITS << 16, ALL_BITS << 4,
                                     ALL_BITS >> 12, ALL_BITS << 52};
    for (size_t i = 0; i < QN_ARRAY_COUNT(clear); i++) {
        struct qn_store *s = store_of(1, clear[i]);
        struct qn_store_stats st;
        fill(s, 0, 2500);
        expect_numbers(s, 0, 2500);
        qn_store_stats(s, &st);
        cr_assert_leq(st.split_work_max, 2048);
        cr_assert_leq(st.table_bytes, 400000);
        for (uint64_t k = 0; k < 2500; k++) {
            cr_assert(del_number(s, 0, k, k));
        }
        cr_assert_eq(qn_store_count(s, 0), 0);
        qn_store_destroy(s);
    }
}

/* Numbers whose hash begins with 8 zero bits: until there are 2^14 keys, the
 * directory may not become deep enough to tell them apart. When it may, the
 * segment is too big to be split within the bound, and stays. */
Test(store, a_segment_that_outgrew_the_bound_is_never_moved)
{
    enum { GROUP = 2500, OTHERS = 40000 };
    struct qn_store *s = store_of(1, 0);
    static uint64_t group[GROUP + 100];
    uint64_t next = UINT64_C(1) << 32;
    for (uint32_t n = 0; n < GROUP + 100; next++) {
        struct number_key k = {next};
        if (qn_store_prefetch(s, 0, key_of(&k)) >> 56 == 0) {
            group[n++] = next;
        }
    }
    for (uint32_t i = 0; i < GROUP; i++) {
        cr_assert_eq(put_number(s, 0, group[i], i, i), QN_OK);
    }
    fill(s, 0, OTHERS);
    for (uint32_t i = GROUP; i < GROUP + 100; i++) {
        cr_assert_eq(put_number(s, 0, group[i], i, i), QN_OK);
    }
    struct qn_store_stats st;
    qn_store_stats(s, &st);
    cr_assert_leq(st.split_work_max, 2048);
    for (uint32_t i = 0; i < GROUP + 100; i++) {
        uint64_t v = 0;
        cr_assert(get_number(s, 0, group[i], &v));
        cr_assert_eq(v, i);
    }
    cr_assert_eq(qn_store_count(s, 0), GROUP + 100 + OTHERS);
    qn_store_destroy(s);
}

/* ---- flush ---- */

Test(store, flushing_everything_frees_by_budget)
{
    struct qn_store *s = store_of(2, 0);
    struct qn_store_stats st;
    fill(s, 0, 20000);
    fill(s, 1, 100);
    qn_store_reclaim(s, UINT32_MAX);
    qn_store_flush(s, UINT32_MAX, 1);
    cr_assert_eq(qn_store_count(s, 0), 0);
    cr_assert_eq(qn_store_count(s, 1), 0);
    uint64_t v;
    cr_assert(!get_number(s, 0, 5, &v));
    for (uint64_t i = 0; i < 3000; i++) {
        put_number(s, 0, i, i + 1, i);
    }
    uint32_t calls = 1;
    while (qn_store_reclaim(s, 1000)) {
        calls++;
    }
    qn_store_stats(s, &st);
    cr_assert_eq(st.retired, 0);
    cr_assert_geq(calls, 20);
    cr_assert_leq(calls, 24);
    expect_numbers(s, 0, 3000);
    qn_store_destroy(s);
}

Test(store, a_small_budget_keeps_up_with_any_number_of_writes)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_store_stats st;
    for (uint64_t turn = 0; turn < 10; turn++) {
        for (uint64_t i = 0; i < 3000; i++) {
            cr_assert_eq(put_number(s, 0, i % 100, i, i), QN_OK);
        }
        cr_assert(!qn_store_reclaim(s, 1));
        qn_store_stats(s, &st);
        cr_assert_eq(st.retired, 0);
    }
    qn_store_destroy(s);
}

Test(store, flushing_one_of_two_databases_leaves_the_other)
{
    struct qn_store *s = store_of(2, 0);
    struct qn_store_stats st;
    fill(s, 0, 20000);
    fill(s, 1, 30000);
    qn_store_flush(s, 0, 1);
    uint64_t v;
    for (uint64_t i = 0; i < 20000; i++) {
        cr_assert(!get_number(s, 0, i, &v));
    }
    expect_numbers(s, 1, 30000);
    fill(s, 0, 500);
    while (qn_store_reclaim(s, 100)) {
    }
    qn_store_stats(s, &st);
    cr_assert_eq(st.retired, 0);
    expect_numbers(s, 0, 500);
    expect_numbers(s, 1, 30000);
    qn_store_destroy(s);
}

/* More flushes than there are generations, with and without a sweep. */
Test(store, many_flushes_of_one_database)
{
    struct qn_store *s = store_of(2, ALL_BITS << 40);
    fill(s, 1, 300);
    uint64_t v;
    for (uint32_t round = 0; round < 500; round++) {
        cr_assert(!get_number(s, 0, 1, &v));
        fill(s, 0, 5);
        expect_numbers(s, 0, 5);
        qn_store_flush(s, 0, round);
        cr_assert_eq(qn_store_count(s, 0), 0);
        if (round > 200) {
            qn_store_reclaim(s, 50);
        }
    }
    expect_numbers(s, 1, 300);
    struct qn_store_stats st;
    do {
        qn_store_reclaim(s, 100);
        qn_store_stats(s, &st);
    } while (st.retired != 0);
    expect_numbers(s, 1, 300);
    qn_store_destroy(s);
}

Test(store, keys_with_a_deadline_are_counted)
{
    struct qn_store *s = store_of(2, 0);
    struct qn_slice value = text("v");
    struct qn_put p = {.key = text("a"), .parts = &value, .part_count = 1};
    static const struct {
        const char *key;
        uint64_t deadline_ms, mortal;
    } puts[] = {{"a", 5, 1}, {"a", 7, 1}, {"b", 0, 1}, {"b", 9, 2},
                {"c", 1, 3}, {"b", 0, 2}, {"b", 0, 2}, {"b", 3, 3}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(puts); i++) {
        p.key = text(puts[i].key);
        p.deadline_ms = puts[i].deadline_ms;
        cr_assert_eq(qn_store_put(s, &p), QN_OK);
        cr_assert_eq(qn_store_mortal(s, 0), puts[i].mortal, "put %zu", i);
        cr_assert_eq(qn_store_mortal(s, 1), 0);
    }
    cr_assert(qn_store_del(s, 0, text("a"), 1));
    cr_assert_eq(qn_store_mortal(s, 0), 2);
    p.db = 1;
    cr_assert_eq(qn_store_put(s, &p), QN_OK);
    qn_store_flush(s, 0, 1);
    cr_assert_eq(qn_store_mortal(s, 0), 0);
    cr_assert_eq(qn_store_mortal(s, 1), 1);
    qn_store_flush(s, UINT32_MAX, 1);
    cr_assert_eq(qn_store_mortal(s, 1), 0);
    qn_store_destroy(s);
}

/* A sweep of the table takes about 100 rounds here, and for 100 at a time there
 * is none, so entries get older than 64 generations: none may seem to be of the
 * present one. */
Test(store, flushed_keys_stay_away_when_generations_come_round)
{
    struct qn_store *s = store_of(2, 0);
    fill(s, 1, 100);
    for (uint64_t round = 0; round < 400; round++) {
        cr_assert_eq(put_number(s, 0, round, round, round), QN_OK);
        qn_store_flush(s, 0, round);
        if (round / 100 % 2 == 0) {
            qn_store_reclaim(s, 4);
        }
        uint64_t v;
        for (uint64_t i = 0; i <= round; i++) {
            cr_assert(!get_number(s, 0, i, &v), "key %zu in round %zu",
                      (size_t)i, (size_t)round);
        }
    }
    expect_numbers(s, 1, 100);
    qn_store_destroy(s);
}
