#ifndef QN_TESTS_UNIT_KVS_STORE_SUPPORT_H
#define QN_TESTS_UNIT_KVS_STORE_SUPPORT_H

/** What the tests of the store share: short spellings and numbered keys. */

#include <stdio.h>
#include <string.h>

#include "kvs/store/store.h"
#include "tests/support/test.h"

static inline struct qn_slice text(const char *z)
{
    return (struct qn_slice){(const uint8_t *)z, strlen(z)};
}

static inline bool slice_is(struct qn_slice a, struct qn_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline struct qn_store *store_of(uint32_t dbs, uint64_t hash_clear)
{
    struct qn_store *s;
    struct qn_store_opts o = {.seed = 7, .dbs = dbs, .hash_clear = hash_clear};
    cr_assert_eq(qn_store_create(&s, &o), QN_OK);
    return s;
}

static inline int put(struct qn_store *s, uint32_t db, struct qn_slice key,
                      struct qn_slice value, qn_slot_t slot)
{
    struct qn_put p = {
        .db = db, .key = key, .parts = &value, .part_count = 1, .slot = slot};
    return qn_store_put(s, &p);
}

/** Refbufs that still have a reference. */
static int kept_refbufs;

static inline void *kept_resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    kept_refbufs += (p == NULL) - (bytes == 0);
    return qn_alloc_malloc.resize(NULL, p, bytes);
}

static const struct qn_alloc kept_alloc = {.resize = kept_resize};

/** Put a value of a refbuf of the log, `before` bytes into it; the log then
 * drops it. */
static inline int put_kept(struct qn_store *s, struct qn_put p, size_t before)
{
    struct qn_slice value = p.parts[0];
    p.keep = qn_refbuf_create(&kept_alloc, before + value.len);
    memset(p.keep->bytes, 0xee, before);
    if (value.len != 0) {
        memcpy(p.keep->bytes + before, value.data, value.len);
    }
    p.keep->len = p.keep->cap;
    p.parts = &(struct qn_slice){p.keep->bytes + before, value.len};
    int err = qn_store_put(s, &p);
    qn_refbuf_unref(p.keep);
    return err;
}

/** A key made from a number: 8 bytes, NUL bytes among them. */
struct number_key {
    uint64_t number;
};
static inline struct qn_slice key_of(const struct number_key *k)
{
    return (struct qn_slice){(const uint8_t *)&k->number, 8};
}

static inline uint64_t number_in(struct qn_slice s)
{
    uint64_t n;
    cr_assert_eq(s.len, 8);
    memcpy(&n, s.data, 8);
    return n;
}

/** key -> value, both numbers. */
static inline int put_number(struct qn_store *s, uint32_t db, uint64_t key,
                             uint64_t value, qn_slot_t slot)
{
    struct number_key k = {key};
    struct number_key v = {value};
    return put(s, db, key_of(&k), key_of(&v), slot);
}

static inline bool del_number(struct qn_store *s, uint32_t db, uint64_t key,
                              qn_slot_t slot)
{
    struct number_key k = {key};
    return qn_store_del(s, db, key_of(&k), slot);
}

/** @return true and *value if the key is there. */
static inline bool get_number(const struct qn_store *s, uint32_t db,
                              uint64_t key, uint64_t *value)
{
    struct number_key k = {key};
    struct qn_found f;
    if (!qn_store_get(s, db, key_of(&k), &f)) {
        return false;
    }
    *value = number_in(f.value);
    return true;
}

/** xorshift64*: the tests' own random numbers. */
static inline uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

#endif
