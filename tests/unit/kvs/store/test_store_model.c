#include "tests/unit/kvs/store/store_support.h"

#include <stdlib.h>

/* The store against a naive one: an array, indexed by key and database, of
 * what should be there. All short histories, and long random ones. */

#define ALL_BITS UINT64_MAX

struct expected {
    bool there;
    uint64_t slot;
    uint64_t deadline_ms;
    uint32_t value_len;
};

struct model {
    struct expected *at; /* [dbs * keys] */
    uint32_t dbs;
    uint32_t keys;
    struct qn_store *s;
};

#define KEY_MAX   300u
#define VALUE_MAX 600u

/* Keys of all lengths: number n, then n % KEY_MAX bytes of its own. */
static struct qn_slice model_key(uint8_t *bytes, uint32_t n)
{
    memset(bytes, (int)(n % 251), KEY_MAX);
    memcpy(bytes, &n, sizeof n);
    size_t len = n % 7 == 0 ? n % KEY_MAX : 8;
    return (struct qn_slice){bytes, QN_MAX(len, 4)};
}

static uint8_t value_byte(uint64_t slot)
{
    return (uint8_t)(slot * 37);
}

static void model_put(struct model *m, uint32_t db, uint32_t key, uint64_t slot,
                      uint32_t value_len, uint64_t deadline_ms)
{
    uint8_t key_bytes[KEY_MAX];
    uint8_t value[VALUE_MAX];
    memset(value, value_byte(slot), sizeof value);
    struct qn_slice parts[] = {{value, value_len / 2},
                               {value, value_len - value_len / 2}};
    struct qn_put p = {.db = db,
                       .key = model_key(key_bytes, key),
                       .parts = parts,
                       .part_count = 2,
                       .slot = slot,
                       .deadline_ms = deadline_ms};
    if (slot % 3 == 0) {
        p.parts = &(struct qn_slice){value, value_len};
        p.part_count = 1;
        cr_assert_eq(put_kept(m->s, p, slot % 2), QN_OK);
    } else {
        cr_assert_eq(qn_store_put(m->s, &p), QN_OK);
    }
    m->at[db * m->keys + key] =
        (struct expected){true, slot, deadline_ms, value_len};
}

static void model_del(struct model *m, uint32_t db, uint32_t key, uint64_t slot)
{
    uint8_t bytes[KEY_MAX];
    struct expected *e = &m->at[db * m->keys + key];
    cr_assert_eq(qn_store_del(m->s, db, model_key(bytes, key), slot), e->there);
    e->there = false;
}

static void model_flush(struct model *m, uint32_t db, uint64_t slot)
{
    qn_store_flush(m->s, db, slot);
    for (uint32_t i = 0; i < m->dbs * m->keys; i++) {
        m->at[i].there &= db != UINT32_MAX && i / m->keys != db;
    }
}

static void check_key(const struct model *m, uint32_t db, uint32_t key)
{
    uint8_t bytes[KEY_MAX];
    struct qn_found f;
    const struct expected *e = &m->at[db * m->keys + key];
    cr_assert_eq(qn_store_get(m->s, db, model_key(bytes, key), &f), e->there);
    if (e->there) {
        cr_assert_eq(f.slot, e->slot);
        cr_assert_eq(f.deadline_ms, e->deadline_ms);
        cr_assert_eq(f.value.len, e->value_len);
        for (uint32_t i = 0; i < e->value_len; i++) {
            cr_assert_eq(f.value.data[i], value_byte(e->slot));
        }
    }
}

static void check_all(const struct model *m)
{
    uint64_t keys = 0;
    uint64_t bytes = 0;
    for (uint32_t db = 0; db < m->dbs; db++) {
        uint64_t before = keys;
        for (uint32_t key = 0; key < m->keys; key++) {
            uint8_t key_bytes[KEY_MAX];
            const struct expected *e = &m->at[db * m->keys + key];
            check_key(m, db, key);
            keys += e->there;
            bytes += e->there ? model_key(key_bytes, key).len + e->value_len +
                                    QN_STORE_ENTRY_COST
                              : 0;
        }
        cr_assert_eq(qn_store_count(m->s, db), keys - before);
    }
    struct qn_store_stats st;
    qn_store_stats(m->s, &st);
    cr_assert_eq(st.keys, keys);
    cr_assert_eq(st.logical_bytes, bytes);
}

/* One of 9 operations on two databases of one and two keys. */
static void small_step(struct model *m, uint32_t op, uint64_t slot)
{
    if (op < 3) {
        model_put(m, op / 2, op % 2, slot, op, 0);
    } else if (op < 6) {
        model_del(m, (op - 3) / 2, (op - 3) % 2, slot);
    } else if (op < 8) {
        model_flush(m, op - 6, slot);
    } else {
        model_flush(m, UINT32_MAX, slot);
        qn_store_reclaim(m->s, 2);
    }
}

/* A new store for each 81 histories, colliding hashes in every other one;
 * between them it is emptied, so that they begin in various empty tables. */
Test(store_model, all_histories_of_five_operations)
{
    enum { HISTORIES = 9 * 9 * 9 * 9 * 9, PER_STORE = 9 * 9 };
    struct expected at[4] = {{false, 0, 0, 0}};
    struct model m = {at, 2, 2, NULL};
    for (uint32_t history = 0; history < HISTORIES; history++) {
        if (history % PER_STORE == 0) {
            m.s = store_of(2, history / PER_STORE % 2 ? ALL_BITS : 0);
        }
        for (uint32_t i = 0, h = history; i < 5; i++, h /= 9) {
            small_step(&m, h % 9, i + 1);
        }
        check_all(&m);
        model_flush(&m, UINT32_MAX, 6);
        if (history % PER_STORE == PER_STORE - 1) {
            qn_store_destroy(m.s);
        }
    }
}

/* A long history; mostly puts, then mostly deletes, in turns. */
static void random_history(uint32_t dbs, uint32_t keys, uint64_t hash_clear,
                           uint32_t steps, uint64_t seed)
{
    struct model m = {calloc((size_t)dbs * keys, sizeof *m.at), dbs, keys,
                      store_of(dbs, hash_clear)};
    uint64_t r = seed;
    for (uint32_t i = 1; i <= steps; i++) {
        uint32_t db = (uint32_t)(draw(&r) >> 32) % dbs;
        uint32_t key = (uint32_t)(draw(&r) >> 32) % keys;
        uint32_t dice = (uint32_t)(draw(&r) >> 40) % 100;
        if (dice < (i / (steps / 6) % 2 == 0 ? 80u : 20u)) {
            uint64_t shape = draw(&r);
            model_put(&m, db, key, i,
                      (uint32_t)(shape % (shape % 64 == 0 ? VALUE_MAX : 32)),
                      shape % 5 == 0 ? shape : 0);
        } else {
            model_del(&m, db, key, i);
        }
        check_key(&m, db, (key + 1) % keys);
        if (i % 16 == 0) {
            qn_store_reclaim(m.s, 20);
        }
        if (i % (steps / 5) == 0) {
            check_all(&m);
            model_flush(&m, i % (steps / 5 * 2) == 0 ? db : UINT32_MAX, i);
            check_all(&m);
        }
    }
    check_all(&m);
    qn_store_destroy(m.s);
    free(m.at);
}

Test(store_model, long_random_history, .timeout = 120)
{
    random_history(3, 10000, 0, 150000, 1);
}

Test(store_model, random_history_with_few_hashes, .timeout = 120)
{
    random_history(2, 200, ALL_BITS, 10000, 2);
    random_history(2, 3000, ALL_BITS << 12, 20000, 3);
    random_history(2, 3000, ALL_BITS >> 8, 20000, 4);
}

/* The same databases flushed and refilled while the sweep never quite ends. */
Test(store_model, random_history_of_flushes, .timeout = 120)
{
    struct model m = {calloc(3 * 50, sizeof *m.at), 3, 50,
                      store_of(3, ALL_BITS << 54)};
    uint64_t r = 5;
    for (uint32_t i = 1; i <= 20000; i++) {
        uint64_t d = draw(&r);
        uint32_t db = (uint32_t)(d % 2);
        if (d >> 32 & 7) {
            model_put(&m, db, (uint32_t)(d >> 8) % 50, i, 8, 0);
        } else {
            model_flush(&m, db, i);
        }
        model_put(&m, 2, (uint32_t)(d >> 16) % 50, i, 8, 0);
        check_key(&m, db, (uint32_t)(d >> 8) % 50);
        if (i % 1024 < 300) {
            qn_store_reclaim(m.s, 5);
        }
        if (i % 500 == 0) {
            check_all(&m);
        }
    }
    qn_store_destroy(m.s);
    free(m.at);
}

/* ---- lack of memory ---- */

static uint64_t alloc_calls;
static uint64_t alloc_fails_at; /* this call and, if alloc_fails_on, later */
static bool alloc_fails_on;
static int64_t alloc_live;

static void *failing_alloc(size_t bytes)
{
    alloc_calls++;
    if (alloc_calls == alloc_fails_at ||
        (alloc_fails_on && alloc_calls > alloc_fails_at)) {
        return NULL;
    }
    alloc_live++;
    return malloc(bytes);
}

static void counting_release(void *p)
{
    alloc_live -= p != NULL;
    free(p);
}

/* A put, and what is there afterwards: the value if it succeeded, else what
 * was there before. */
static void try_put(struct qn_store *s, uint32_t db, uint64_t key,
                    uint64_t value, uint64_t *now)
{
    uint64_t count = qn_store_count(s, db);
    int err = put_number(s, db, key, value, value);
    cr_assert(err == QN_OK || err == QN_ENOMEM);
    uint64_t was = *now;
    *now = err == QN_OK ? value : was;
    uint64_t found = 0;
    cr_assert_eq(get_number(s, db, key, &found), *now != 0);
    cr_assert_eq(found, *now);
    cr_assert_eq(qn_store_count(s, db), count + (was == 0 && *now != 0));
}

/* Fill and replace 3000 keys with hashes that make splits, directories and
 * lines, flush half, delete half, the allocator failing at call k (and all
 * later ones). @return false if call k was never made. */
static bool survive(uint64_t k, bool on)
{
    enum { KEYS = 3000 };
    struct qn_store *s;
    struct qn_store_opts o = {.dbs = 2,
                              .alloc = failing_alloc,
                              .release = counting_release,
                              .reuse_bytes = k % 2 * 65536,
                              .hash_clear = UINT64_C(0xf) << 60};
    alloc_calls = 0;
    alloc_fails_at = k;
    alloc_fails_on = on;
    if (qn_store_create(&s, &o) != QN_OK) {
        cr_assert_eq(alloc_live, 0);
        return true;
    }
    uint64_t now[KEYS] = {0};
    for (uint64_t i = 0; i < KEYS; i++) {
        try_put(s, i % 2, i, i + 1, &now[i]);
        try_put(s, i % 2, i, i + 7, &now[i]);
        if (i % 100 == 0) {
            qn_store_reclaim(s, 1000);
        }
    }
    qn_store_flush(s, 1, 1);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t found = 0;
        cr_assert_eq(get_number(s, i % 2, i, &found),
                     i % 2 == 0 && now[i] != 0);
        cr_assert_eq(del_number(s, i % 2, i, 1), found != 0);
        cr_assert(!get_number(s, i % 2, i, &found));
    }
    bool reached = alloc_calls >= k;
    alloc_fails_at = 0;
    alloc_fails_on = false;
    struct qn_store_stats st;
    do {
        qn_store_reclaim(s, 1000);
        qn_store_stats(s, &st);
    } while (st.retired != 0);
    cr_assert_eq(st.keys, 0);
    qn_store_destroy(s);
    cr_assert_eq(alloc_live, 0);
    return reached;
}

/* What is overwritten with values of the same size allocates nothing more, and
 * nothing is mixed up. */
Test(store_model, freed_entries_are_used_again)
{
    enum { KEYS = 100, ROUNDS = 50 };
    struct qn_store *s;
    struct qn_store_opts o = {.dbs = 1,
                              .alloc = failing_alloc,
                              .release = counting_release,
                              .reuse_bytes = 65536};
    cr_assert_eq(qn_store_create(&s, &o), QN_OK);
    uint64_t after_two = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < KEYS; i++) {
            cr_assert_eq(put_number(s, 0, i, round * KEYS + i, 1), QN_OK);
        }
        for (uint64_t i = 0; i < KEYS; i++) {
            uint64_t found = 0;
            cr_assert(get_number(s, 0, i, &found));
            cr_assert_eq(found, round * KEYS + i);
        }
        qn_store_reclaim(s, 1000);
        after_two = round < 2 ? alloc_calls : after_two;
    }
    cr_assert_leq(alloc_calls - after_two, 2 * ROUNDS); /* for the limbo */
    qn_store_destroy(s);
    cr_assert_eq(alloc_live, 0);
}

Test(store_model, no_memory_at_any_one_call, .timeout = 300)
{
    /* All of the first calls, then some: most are for entries. */
    for (uint64_t k = 1; survive(k, false); k += k < 40 ? 1 : 197) {
    }
}

Test(store_model, no_memory_from_some_call_on, .timeout = 300)
{
    for (uint64_t k = 1; survive(k, true); k += k < 20 ? 1 : 271) {
    }
}
