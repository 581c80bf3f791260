#include "tests/unit/kvs/store/store_support.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/base/atomic.h"

/* One writer, several readers: what a reader sees while the table grows,
 * shrinks and is flushed, and how long what it borrowed stays. */

#define READERS 3u

/* ---- quiescent points, one thread ---- */

static uint64_t retired(const struct qn_store *s)
{
    struct qn_store_stats st;
    qn_store_stats(s, &st);
    return st.retired;
}

Test(store_readers, a_borrowed_value_stays_until_the_quiescent_point)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_store_reader *r;
    struct qn_found f;
    put(s, 0, text("k"), text("old value"), 1);
    cr_assert_eq(qn_store_reader_create(s, &r), QN_OK);
    cr_assert(qn_store_get(s, 0, text("k"), &f));
    put(s, 0, text("k"), text("new"), 2);
    for (uint32_t i = 0; i < 10; i++) {
        qn_store_reclaim(s, 1000);
    }
    cr_assert_eq(retired(s), 1);
    cr_assert(slice_is(f.value, text("old value")));
    cr_assert(!qn_store_reclaim(s, 1000)); /* nothing that it could do */
    qn_store_reader_quiescent(r);
    qn_store_reclaim(s, 1000);
    cr_assert_eq(retired(s), 0);
    qn_store_reader_destroy(r);
    qn_store_destroy(s);
}

Test(store_readers, nobody_waits_for_an_offline_or_destroyed_reader)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_store_reader *r;
    cr_assert_eq(qn_store_reader_create(s, &r), QN_OK);
    put(s, 0, text("k"), text("a"), 1);
    put(s, 0, text("k"), text("b"), 1);
    qn_store_reclaim(s, 1000);
    cr_assert_eq(retired(s), 1);
    qn_store_reader_offline(r);
    qn_store_reclaim(s, 1000);
    cr_assert_eq(retired(s), 0);
    qn_store_reader_quiescent(r);
    put(s, 0, text("k"), text("c"), 1);
    qn_store_reclaim(s, 1000);
    cr_assert_eq(retired(s), 1);
    qn_store_reader_destroy(r);
    qn_store_reclaim(s, 1000);
    cr_assert_eq(retired(s), 0);
    qn_store_reader_destroy(NULL);
    qn_store_destroy(s);
}

Test(store_readers, their_number_is_limited_and_places_are_used_again)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_store_reader *r[QN_STORE_READERS_MAX];
    struct qn_store_reader *more = NULL;
    for (uint32_t i = 0; i < QN_STORE_READERS_MAX; i++) {
        cr_assert_eq(qn_store_reader_create(s, &r[i]), QN_OK);
    }
    cr_assert_eq(qn_store_reader_create(s, &more), QN_EBUSY);
    cr_assert_null(more);
    qn_store_reader_destroy(r[17]);
    cr_assert_eq(qn_store_reader_create(s, &more), QN_OK);
    qn_store_destroy(s);
}

/* Only what the slowest reader may hold waits. */
Test(store_readers, the_slowest_reader_decides)
{
    struct qn_store *s = store_of(1, 0);
    struct qn_store_reader *fast;
    struct qn_store_reader *slow;
    qn_store_reader_create(s, &fast);
    qn_store_reader_create(s, &slow);
    put(s, 0, text("k"), text("0"), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        put(s, 0, text("k"), text("1"), i);
        qn_store_reclaim(s, 1000);
        qn_store_reader_quiescent(fast);
        if (i == 499) {
            qn_store_reader_quiescent(slow);
        }
    }
    cr_assert_eq(retired(s), 500);
    qn_store_destroy(s);
}

/* ---- threads ---- */

struct shared {
    struct qn_store *s;
    uint64_t stay;  /* keys 0 .. stay - 1 are always there, value >= key */
    qn_a64 settled; /* keys below this were put and are there */
    qn_a32 done;    /* the writer is through */
    qn_a32 started; /* readers that run */
    qn_a64 gets;    /* by all readers */
};

/* Values are {key, round}: whole, of the key, and never older than what this
 * reader saw. */
static void check_stayer(struct shared *sh, uint64_t key, uint64_t *rounds)
{
    struct number_key k = {key};
    struct qn_found f;
    cr_assert(qn_store_get(sh->s, 0, key_of(&k), &f));
    uint64_t v[8] = {0};
    cr_assert_eq(f.value.len, sizeof v);
    for (uint32_t i = 0; i < 2; i++) {
        memcpy(v, f.value.data, sizeof v);
        for (uint32_t j = 1; j < 8; j++) {
            cr_assert_eq(v[j], key + v[0]);
        }
        cr_assert_eq(v[0], f.slot);
        sched_yield(); /* and again later: it is borrowed */
    }
    cr_assert_geq(v[0], rounds[key]);
    rounds[key] = v[0];
}

static void put_stayer(struct qn_store *s, uint64_t key, uint64_t round)
{
    struct number_key k = {key};
    uint64_t v[8] = {round};
    for (uint32_t j = 1; j < 8; j++) {
        v[j] = key + round;
    }
    cr_assert_eq(put(s, 0, key_of(&k),
                     (struct qn_slice){(const uint8_t *)v, sizeof v}, round),
                 QN_OK);
}

static bool count_stayers(void *ctx, const struct qn_walked *w)
{
    uint64_t *stayers = ctx;
    *stayers += w->value.len == 64;
    return true;
}

static void check_walk(struct shared *sh)
{
    uint64_t stayers = 0;
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(sh->s, cursor, 64, count_stayers, &stayers);
    } while (cursor != 0);
    cr_assert_eq(stayers, sh->stay);
}

static void *read_all_the_time(void *arg)
{
    struct shared *sh = arg;
    struct qn_store_reader *r;
    cr_assert_eq(qn_store_reader_create(sh->s, &r), QN_OK);
    uint64_t *rounds = calloc(sh->stay, sizeof *rounds);
    uint64_t random = (uintptr_t)&r;
    uint64_t gets = 0;
    qn_fetch_add(&sh->started, 1, QN_SEQ_CST);
    while (qn_load(&sh->done, QN_SEQ_CST) == 0) {
        check_stayer(sh, draw(&random) % sh->stay, rounds);
        uint64_t settled = qn_load(&sh->settled, QN_SEQ_CST);
        uint64_t v = 0;
        if (settled > sh->stay) {
            uint64_t key = sh->stay + draw(&random) % (settled - sh->stay);
            cr_assert(get_number(sh->s, 0, key, &v));
            cr_assert_eq(v, key);
        }
        if (++gets % 64 == 0) {
            check_walk(sh);
        }
        if (gets % 3 == 0) {
            qn_store_reader_offline(r);
        }
        qn_store_reader_quiescent(r);
    }
    qn_fetch_add(&sh->gets, gets, QN_SEQ_CST);
    free(rounds);
    qn_store_reader_destroy(r);
    return NULL;
}

static void start(struct shared *sh, pthread_t *threads)
{
    for (uint64_t i = 0; i < sh->stay; i++) {
        put_stayer(sh->s, i, 0);
    }
    qn_store(&sh->settled, sh->stay, QN_SEQ_CST);
    for (uint32_t i = 0; i < READERS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, read_all_the_time, sh),
                     0);
    }
    while (qn_load(&sh->started, QN_SEQ_CST) < READERS) {
        sched_yield();
    }
}

static void stop(struct shared *sh, pthread_t *threads)
{
    qn_store(&sh->done, 1, QN_SEQ_CST);
    for (uint32_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
    }
    cr_assert_gt(qn_load(&sh->gets, QN_SEQ_CST), 0);
    qn_store_reclaim(sh->s, UINT32_MAX);
    cr_assert_eq(retired(sh->s), 0);
    qn_store_destroy(sh->s);
}

/* Grow to 60000 keys and shrink again, twice, replacing those that stay. */
static void grow_and_shrink(uint64_t hash_clear, uint64_t to)
{
    struct shared sh = {.s = store_of(2, hash_clear), .stay = 500};
    pthread_t threads[READERS];
    start(&sh, threads);
    uint64_t round = 0;
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint64_t i = sh.stay; i < to; i++) {
            put_number(sh.s, 0, i, i, i);
            qn_store(&sh.settled, i + 1, QN_SEQ_CST);
            put_stayer(sh.s, i % sh.stay, ++round);
            if (i % 128 == 0) {
                qn_store_reclaim(sh.s, 1000);
                sched_yield();
            }
        }
        qn_store(&sh.settled, sh.stay, QN_SEQ_CST);
        /* A reader may be between the load of `settled` and its lookup, so
         * wait until each was quiescent: a retired thing tells. */
        put_stayer(sh.s, 0, ++round);
        while (retired(sh.s) != 0) {
            qn_store_reclaim(sh.s, 1000);
            sched_yield();
        }
        for (uint64_t i = to; i-- > sh.stay;) {
            cr_assert(del_number(sh.s, 0, i, i));
            if (i % 128 == 0) {
                qn_store_reclaim(sh.s, 1000);
                sched_yield();
            }
        }
    }
    stop(&sh, threads);
}

Test(store_threads, readers_find_every_key_while_the_table_grows_and_shrinks,
     .timeout = 120)
{
    grow_and_shrink(0, 30000);
}

Test(store_threads, readers_find_every_key_in_deep_buckets, .timeout = 120)
{
    grow_and_shrink(UINT64_MAX << 50, 3000);
}

/* Database 1 is filled and flushed, and swept, all the time. */
Test(store_threads, readers_are_not_disturbed_by_flushes, .timeout = 120)
{
    struct shared sh = {.s = store_of(2, 0), .stay = 500};
    pthread_t threads[READERS];
    start(&sh, threads);
    for (uint64_t round = 1; round <= 40; round++) {
        for (uint64_t i = 0; i < 2000; i++) {
            put_number(sh.s, 1, i, i, i);
        }
        qn_store_flush(sh.s, 1, round);
        for (uint64_t i = 0; i < sh.stay; i++) {
            put_stayer(sh.s, i, round);
        }
        qn_store_reclaim(sh.s, 3000);
        sched_yield();
    }
    while (retired(sh.s) != 0) {
        qn_store_reclaim(sh.s, 1000);
        sched_yield();
    }
    stop(&sh, threads);
}

/* FLUSHALL under readers: they see a whole table or an empty one. */
struct flushed {
    struct qn_store *s;
    qn_a32 done;
};

static void *read_flushed(void *arg)
{
    struct flushed *sh = arg;
    struct qn_store_reader *r;
    cr_assert_eq(qn_store_reader_create(sh->s, &r), QN_OK);
    uint64_t random = (uintptr_t)&r;
    while (qn_load(&sh->done, QN_SEQ_CST) == 0) {
        uint64_t key = draw(&random) % 4000;
        uint64_t v = 0;
        if (get_number(sh->s, 0, key, &v)) {
            cr_assert_eq(v, key);
        }
        qn_store_reader_quiescent(r);
        sched_yield();
    }
    qn_store_reader_destroy(r);
    return NULL;
}

Test(store_threads, flushing_everything_under_readers, .timeout = 120)
{
    struct flushed sh = {.s = store_of(1, 0)};
    pthread_t threads[READERS];
    for (uint32_t i = 0; i < READERS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, read_flushed, &sh), 0);
    }
    for (uint64_t round = 0; round < 50; round++) {
        for (uint64_t i = 0; i < 4000; i++) {
            put_number(sh.s, 0, i, i, i);
        }
        qn_store_flush(sh.s, UINT32_MAX, round);
        qn_store_reclaim(sh.s, 3000);
        sched_yield();
    }
    qn_store(&sh.done, 1, QN_SEQ_CST);
    for (uint32_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
    }
    qn_store_destroy(sh.s);
}
