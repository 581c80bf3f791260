#include "tests/unit/kvs/store/store_support.h"

#include <stdlib.h>

/* Walks, cursors, random keys and digests. */

#define ALL_BITS UINT64_MAX

/* What a walk met: keys are numbers below `keys` in database 0. */
struct seen {
    uint32_t *times; /* [keys] */
    uint64_t keys;
    uint64_t steps;   /* entries met */
    uint64_t stop_at; /* say stop from this step on; 0: never */
    uint64_t last_hash;
    uint64_t last_key;
    bool in_order;
};

static bool note(void *ctx, const struct qn_walked *w)
{
    struct seen *seen = ctx;
    uint64_t key = number_in(w->key);
    cr_assert_lt(key, seen->keys);
    seen->times[key]++;
    if (seen->steps++ != 0 &&
        (w->hash < seen->last_hash ||
         (w->hash == seen->last_hash &&
          memcmp(&seen->last_key, &key, sizeof key) >= 0))) {
        seen->in_order = false;
    }
    seen->last_hash = w->hash;
    seen->last_key = key;
    return seen->stop_at == 0 || seen->steps < seen->stop_at;
}

static struct seen seen_of(uint64_t keys)
{
    return (struct seen){.times = calloc(keys, sizeof(uint32_t)),
                         .keys = keys,
                         .in_order = true};
}

static void fill(struct qn_store *s, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        cr_assert_eq(put_number(s, 0, i, i, i), QN_OK);
    }
}

static void expect_each_once(const struct seen *seen, uint64_t keys)
{
    for (uint64_t i = 0; i < keys; i++) {
        cr_assert_eq(seen->times[i], 1, "key %zu met %u times", (size_t)i,
                     (unsigned)seen->times[i]);
    }
}

Test(store_walk, an_empty_store_ends_at_once)
{
    struct qn_store *s = store_of(1, 0);
    struct seen seen = seen_of(1);
    cr_assert_eq(qn_store_walk(s, 0, UINT32_MAX, note, &seen), 0);
    cr_assert_eq(seen.steps, 0);
    qn_store_destroy(s);
    free(seen.times);
}

Test(store_walk, meets_every_key_once_in_hash_order)
{
    static const uint64_t clear[] = {0, ALL_BITS, ALL_BITS << 10,
                                     ALL_BITS >> 6};
    static const uint64_t keys[] = {10000, 500, 3000, 3000};
    for (size_t i = 0; i < QN_ARRAY_COUNT(clear); i++) {
        struct qn_store *s = store_of(1, clear[i]);
        struct seen seen = seen_of(keys[i]);
        fill(s, 0, keys[i]);
        uint64_t cursor = 0;
        do {
            cursor = qn_store_walk(s, cursor, 3, note, &seen);
            cr_assert_lt(cursor, UINT64_C(1) << 53);
        } while (cursor != 0);
        expect_each_once(&seen, keys[i]);
        cr_assert(seen.in_order);
        qn_store_destroy(s);
        free(seen.times);
    }
}

Test(store_walk, tells_all_about_an_entry)
{
    struct qn_store *s = store_of(4, 0);
    struct qn_slice v = text("value");
    struct qn_put p = {.db = 3,
                       .key = text("key"),
                       .parts = &v,
                       .part_count = 1,
                       .slot = 17,
                       .deadline_ms = 99};
    qn_store_put(s, &p);
    struct qn_walked w;
    cr_assert(!qn_store_random(s, 2, 0, &w));
    cr_assert(qn_store_random(s, 3, 0, &w));
    cr_assert_eq(w.db, 3);
    cr_assert(slice_is(w.key, text("key")));
    cr_assert(slice_is(w.value, v));
    cr_assert_eq(w.slot, 17);
    cr_assert_eq(w.deadline_ms, 99);
    qn_store_destroy(s);
}

/* A bucket is finished even if fn says stop at its first entry. */
Test(store_walk, stops_after_the_bucket)
{
    struct qn_store *s = store_of(1, 0);
    struct seen seen = seen_of(1000);
    fill(s, 0, 1000);
    uint64_t cursor = 0;
    uint64_t calls = 0;
    do {
        seen.stop_at = seen.steps + 1;
        cursor = qn_store_walk(s, cursor, UINT32_MAX, note, &seen);
        calls++;
    } while (cursor != 0);
    expect_each_once(&seen, 1000);
    cr_assert_leq(calls, 257);
    qn_store_destroy(s);
    free(seen.times);
}

/* Keys 0..9999 are there all the time; others come, making segments split
 * between any two steps, and go, making them merge. */
static void walk_while(bool growing)
{
    enum { STAY = 10000, OTHERS = 90000 };
    struct qn_store *s = store_of(1, 0);
    struct seen seen = seen_of(STAY + OTHERS);
    fill(s, 0, STAY);
    uint64_t other = growing ? STAY : STAY + OTHERS;
    if (!growing) {
        fill(s, STAY, STAY + OTHERS);
    }
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(s, cursor, 1, note, &seen);
        for (uint32_t i = 0; i < 60; i++) {
            if (growing && other < STAY + OTHERS) {
                put_number(s, 0, other, 0, 0);
                other++;
            } else if (!growing && other > STAY) {
                other--;
                del_number(s, 0, other, 0);
            }
        }
        qn_store_reclaim(s, 1000);
    } while (cursor != 0);
    expect_each_once(&seen, STAY);
    cr_assert(seen.in_order);
    qn_store_destroy(s);
    free(seen.times);
}

Test(store_walk, a_key_that_stays_is_met_while_segments_split)
{
    walk_while(true);
}

Test(store_walk, a_key_that_stays_is_met_while_segments_merge)
{
    walk_while(false);
}

/* As with SCAN continued on another replica: same content, other history, and
 * so another shape of the table. */
Test(store_walk, a_cursor_means_the_same_in_a_table_of_another_shape)
{
    enum { KEYS = 5000, MORE = 60000 };
    struct qn_store *s[2] = {store_of(1, 0), store_of(1, 0)};
    fill(s[0], 0, KEYS);
    fill(s[1], 0, MORE);
    for (uint64_t i = KEYS; i < MORE; i++) {
        if (i % 8 != 0) {
            del_number(s[1], 0, i, 0);
        } else {
            put_number(s[0], 0, i, i, i);
        }
    }
    struct qn_store_stats st[2];
    qn_store_stats(s[0], &st[0]);
    qn_store_stats(s[1], &st[1]);
    cr_assert_neq(st[0].table_bytes, st[1].table_bytes);
    struct seen seen = seen_of(MORE);
    uint64_t cursor = 0;
    uint32_t turn = 0;
    do {
        cursor = qn_store_walk(s[turn++ % 2], cursor, 2, note, &seen);
    } while (cursor != 0);
    expect_each_once(&seen, KEYS);
    cr_assert(seen.in_order);
    qn_store_destroy(s[0]);
    qn_store_destroy(s[1]);
    free(seen.times);
}

Test(store_walk, any_53_bit_cursor_is_accepted)
{
    struct qn_store *s = store_of(1, 0);
    struct seen seen = seen_of(3000);
    fill(s, 0, 3000);
    uint64_t r = 3;
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t cursor = draw(&r) >> 11;
        uint64_t next = qn_store_walk(s, cursor, 1, note, &seen);
        cr_assert(next == 0 || next > cursor);
    }
    cr_assert_eq(qn_store_walk(s, (UINT64_C(1) << 53) - 1, 1, note, &seen), 0);
    qn_store_destroy(s);
    free(seen.times);
}

Test(store_walk, flushed_keys_are_not_met)
{
    struct qn_store *s = store_of(2, 0);
    struct seen seen = seen_of(100);
    fill(s, 0, 100);
    for (uint64_t i = 0; i < 5000; i++) {
        put_number(s, 1, 1000000 + i, 0, 0);
    }
    qn_store_flush(s, 1, 1);
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(s, cursor, 10, note, &seen);
    } while (cursor != 0);
    expect_each_once(&seen, 100);
    qn_store_destroy(s);
    free(seen.times);
}

/* As when dead keys are removed: each key met is deleted, and another put. */
static bool move_key(void *ctx, const struct qn_walked *w)
{
    struct qn_store *s = ctx;
    uint64_t key = number_in(w->key);
    if (key < 20000) {
        cr_assert(qn_store_del(s, 0, w->key, 1));
        cr_assert_eq(put_number(s, 0, key + 20000, key, 1), QN_OK);
    }
    return true;
}

Test(store_walk, the_writer_may_write_what_it_meets)
{
    struct qn_store *s = store_of(1, 0);
    fill(s, 0, 20000);
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(s, cursor, 100, move_key, s);
        qn_store_reclaim(s, 1000);
    } while (cursor != 0);
    cr_assert_eq(qn_store_count(s, 0), 20000);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t v = 0;
        cr_assert(get_number(s, 0, i + 20000, &v));
        cr_assert_eq(v, i);
    }
    qn_store_destroy(s);
}

/* ---- random ---- */

/* About 4 * 1792 keys, so that of four segments some have split and some have
 * not: a choice weighted by depth would prefer keys of some by a factor of 2.
 * Chi square has mean KEYS - 1 and standard deviation sqrt(2 KEYS). */
Test(store_walk, random_is_nearly_uniform)
{
    enum { KEYS = 7168, DRAWN = 20 * KEYS };
    struct qn_store *s = store_of(2, 0);
    uint32_t *times = calloc(KEYS, sizeof *times);
    fill(s, 0, KEYS);
    put_number(s, 1, 0, 0, 0);
    uint64_t r = 11;
    for (uint32_t i = 0; i < DRAWN; i++) {
        struct qn_walked w;
        cr_assert(qn_store_random(s, 0, draw(&r), &w));
        times[number_in(w.key)]++;
    }
    double chi2 = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        double d = (double)times[i] - (double)DRAWN / KEYS;
        chi2 += d * d / ((double)DRAWN / KEYS);
    }
    cr_assert_lt(chi2, KEYS + 6 * 120, "chi square %f", chi2);
    qn_store_destroy(s);
    free(times);
}

Test(store_walk, random_finds_the_one_key_of_a_database)
{
    struct qn_store *s = store_of(2, 0);
    fill(s, 0, 20000);
    put_number(s, 1, 77, 0, 0);
    struct qn_walked w;
    for (uint64_t i = 0; i < 20; i++) {
        cr_assert(qn_store_random(s, 1, i, &w));
        cr_assert_eq(number_in(w.key), 77);
    }
    qn_store_destroy(s);
}

/* ---- digest ---- */

Test(store_walk, digest_is_of_the_content_not_of_its_history)
{
    enum { KEYS = 1000 };
    static const uint64_t clear[] = {0, ALL_BITS << 8, ALL_BITS >> 10};
    for (size_t c = 0; c < QN_ARRAY_COUNT(clear); c++) {
        struct qn_store *a = store_of(2, clear[c]);
        struct qn_store *b = store_of(2, clear[c]);
        fill(a, 0, KEYS);
        put_number(a, 1, 5, 5, 5);
        for (uint64_t i = 0; i < 3 * KEYS; i++) {
            put_number(b, 1, i, 0, 0);
        }
        qn_store_flush(b, 1, 1);
        put_number(b, 1, 5, 5, 99);
        for (uint64_t i = 2 * KEYS; i-- > 0;) {
            put_number(b, 0, i, i % KEYS == 7 ? 1 : i, 1);
        }
        cr_assert_neq(qn_store_digest(a, 0), qn_store_digest(b, 0));
        for (uint64_t i = KEYS; i < 2 * KEYS; i++) {
            del_number(b, 0, i, 2);
        }
        put_number(b, 0, 7, 7, 3);
        cr_assert_eq(qn_store_digest(a, 0), qn_store_digest(b, 0));
        qn_store_destroy(a);
        qn_store_destroy(b);
    }
}

Test(store_walk, digest_sees_every_bit)
{
    struct qn_store *s = store_of(2, 0);
    uint8_t key[] = "key";
    uint8_t value[] = "value";
    struct qn_slice v = {value, 5};
    struct qn_put p = {
        .key = {key, 3}, .parts = &v, .part_count = 1, .deadline_ms = 1000};
    uint64_t empty = qn_store_digest(s, 0);
    cr_assert_eq(qn_store_put(s, &p), QN_OK);
    uint64_t whole = qn_store_digest(s, 0);
    cr_assert_neq(whole, empty);
    for (uint32_t bit = 0; bit < 8 * 8 + 3; bit++) {
        uint8_t *byte = bit < 24 ? &key[bit / 8] : &value[bit / 8 % 5];
        uint64_t deadline = p.deadline_ms;
        qn_store_del(s, p.db, p.key, 1);
        if (bit < 64) {
            *byte ^= (uint8_t)(1u << bit % 8);
        } else if (bit == 64) {
            p.deadline_ms++;
        } else if (bit == 65) {
            p.db = 1;
        } else {
            v.len = 4;
        }
        cr_assert_eq(qn_store_put(s, &p), QN_OK);
        cr_assert_neq(qn_store_digest(s, 0), whole, "bit %u", bit);
        qn_store_del(s, p.db, p.key, 1);
        if (bit < 64) {
            *byte ^= (uint8_t)(1u << bit % 8);
        }
        p.deadline_ms = deadline;
        p.db = 0;
        v.len = 5;
        cr_assert_eq(qn_store_put(s, &p), QN_OK);
        cr_assert_eq(qn_store_digest(s, 0), whole);
    }
    qn_store_destroy(s);
}

Test(store_walk, digest_leaves_out_the_dead)
{
    struct qn_store *s = store_of(1, 0);
    fill(s, 0, 10);
    uint64_t without = qn_store_digest(s, 0);
    struct qn_slice v = text("v");
    struct qn_put p = {.key = text("mortal"),
                       .parts = &v,
                       .part_count = 1,
                       .deadline_ms = 1000};
    qn_store_put(s, &p);
    cr_assert_neq(qn_store_digest(s, 999), without);
    cr_assert_eq(qn_store_digest(s, 1000), without);
    qn_store_destroy(s);
}
