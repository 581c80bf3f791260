/* The shared ring with one thread: what is kept, what is not, how it grows, and
 * damage. */
#include <stdlib.h>
#include <string.h>

#include "paxos/log/ring.h"
#include "tests/support/test.h"

#define SLOTS    16u
#define SPAN     64u
#define KEEP     256u
#define CAPACITY 1024u

static uint8_t *memory;
static struct qn_ring w, r;
static uint64_t granted; /* bytes of the whole ring */
static uint32_t asked;
static bool refuse;

static int grow(void *ctx, uint64_t bytes)
{
    (void)ctx;
    asked++;
    cr_assert_gt(bytes, granted);
    cr_assert_leq(bytes, qn_ring_bytes(SLOTS, CAPACITY));
    if (refuse) {
        return QN_ENOMEM;
    }
    granted = bytes;
    return QN_OK;
}

static int grow_big(void *ctx, uint64_t bytes)
{
    (void)ctx, (void)bytes;
    return QN_OK;
}

static void setup(void)
{
    size_t bytes = qn_align_up(qn_ring_bytes(SLOTS, CAPACITY), QN_CACHELINE);
    const struct qn_ring_opts o = {.slots = SLOTS,
                                   .capacity = CAPACITY,
                                   .span = SPAN,
                                   .keep = KEEP,
                                   .grow = grow};
    memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(memory);
    memset(memory, 0, bytes);
    granted = qn_ring_bytes(SLOTS, 0);
    asked = 0;
    refuse = false;
    qn_ring_open(&w, memory, &o);
    qn_ring_open(&r, memory,
                 &(struct qn_ring_opts){.slots = SLOTS, .capacity = CAPACITY});
    qn_ring_begin(&w, 1);
}

static void teardown(void)
{
    for (uint64_t i = granted; i < qn_ring_bytes(SLOTS, CAPACITY); i++) {
        cr_assert_eq(memory[i], 0, "touched without memory");
    }
    free(memory);
}

#define RING(name) Test(ring, name, .init = setup, .fini = teardown)

/** @param all  First slot that somebody needs. */
static int put(size_t len, qn_slot_t all)
{
    uint8_t bytes[CAPACITY];
    qn_slot_t slot = w.end;
    const struct qn_ring_need need = {.own = slot, .all = all};
    memset(bytes, (int)slot, sizeof bytes);
    int rc = qn_ring_reserve(&w, len, need);
    if (rc == QN_OK) {
        cr_assert(qn_ring_fits(&w, len, need));
        qn_ring_write(&w, slot, (qn_epoch_t)(100 + slot),
                      (struct qn_slice){bytes, len});
    }
    return rc;
}

/** Nobody lags behind. */
static void put_now(size_t len)
{
    cr_assert_eq(put(len, w.end), QN_OK);
}

static bool has(qn_slot_t slot, size_t len)
{
    struct qn_refbuf *b = NULL;
    qn_epoch_t epoch = 0;
    int rc = qn_ring_read(&r, slot, &qn_alloc_malloc, &epoch, &b);
    if (rc != QN_OK) {
        cr_assert_eq(rc, QN_EAGAIN);
        return false;
    }
    bool same = b->len == len && epoch == 100 + slot;
    for (uint32_t i = 0; i < b->len; i++) {
        same = same && b->bytes[i] == (uint8_t)slot;
    }
    qn_refbuf_unref(b);
    cr_assert(same, "slot %u is not what was written", (unsigned)slot);
    return true;
}

/** Slots lo .. end - 1 can be read, and no other. */
static void keeps(qn_slot_t lo, size_t len)
{
    cr_assert_eq(qn_ring_lo(&r), lo, "lo is %u", (unsigned)qn_ring_lo(&r));
    for (qn_slot_t s = 0; s < w.end + 2; s++) {
        cr_assert_eq(has(s, len), s >= lo && s < w.end, "slot %u", (unsigned)s);
    }
}

/* ---- without growing ---- */

RING(an_empty_ring_has_nothing)
{
    keeps(1, 0);
}

RING(entries_run_out_before_bytes)
{
    for (qn_slot_t s = 1; s <= 40; s++) {
        put_now(2);
        keeps(s <= SLOTS ? 1 : s - SLOTS + 1, 2);
    }
    cr_assert_leq(granted, qn_ring_bytes(SLOTS, SPAN));
}

RING(bytes_run_out_before_entries)
{
    for (qn_slot_t s = 1; s <= 30; s++) {
        put_now(20); /* three of them fit, and 4 bytes are left */
        keeps(s <= 3 ? 1 : s - 2, 20);
    }
    cr_assert_leq(granted, qn_ring_bytes(SLOTS, SPAN));
}

RING(a_batch_stays_in_one_piece)
{
    put_now(40);
    put_now(20); /* 4 bytes are left */
    put_now(10); /* over the first, and not at the end */
    cr_assert(!has(1, 40) && has(2, 20) && has(3, 10));
    put_now(30); /* up to where the second begins */
    cr_assert(has(2, 20) && has(3, 10) && has(4, 30));
    put_now(1); /* one byte more */
    cr_assert(!has(2, 20) && has(3, 10) && has(5, 1));
}

RING(a_batch_may_be_as_long_as_a_lap_or_empty)
{
    put_now(SPAN);
    cr_assert(has(1, SPAN));
    put_now(0);
    cr_assert(has(1, SPAN) && has(2, 0));
    put_now(SPAN);
    cr_assert(!has(1, SPAN) && has(3, SPAN));
    cr_assert_eq(granted, qn_ring_bytes(SLOTS, SPAN));
}

RING(what_the_writer_needs_is_not_overwritten)
{
    const struct qn_ring_need first = {.own = 1, .all = 1};
    while (qn_ring_reserve(&w, 40, first) == QN_OK) {
        cr_assert(qn_ring_fits(&w, 40, first));
        cr_assert_eq(put(40, 1), QN_OK);
    }
    cr_assert_eq(qn_ring_reserve(&w, 40, first), QN_EAGAIN);
    cr_assert(!qn_ring_fits(&w, 40, first));
    keeps(1, 40);
    const struct qn_ring_need second = {.own = 2, .all = 2};
    cr_assert(qn_ring_fits(&w, 40, second));
    cr_assert_eq(qn_ring_reserve(&w, 40, second), QN_OK);
}

/* ---- growing ---- */

RING(for_who_lags_behind_it_grows_in_the_middle_of_a_lap)
{
    for (int i = 0; i < 6; i++) {
        put_now(20); /* two laps; positions 40, 0, 20 of slots 4, 5, 6 */
    }
    keeps(4, 20);
    cr_assert_eq(put(20, 4), QN_OK); /* somebody needs 4, too */
    keeps(4, 20);
    cr_assert_eq(put(20, 4), QN_OK);
    keeps(4, 20);
    cr_assert_gt(granted, qn_ring_bytes(SLOTS, SPAN));
}

RING(it_grows_up_to_what_may_be_kept_and_then_overwrites)
{
    while (w.end < 100 && qn_ring_lo(&r) == 1) {
        cr_assert_eq(put(40, 1), QN_OK);
    }
    cr_assert_eq(w.end - 1, KEEP / 40 + 1);
    cr_assert_leq(granted, qn_ring_bytes(SLOTS, KEEP));
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(put(40, 1), QN_OK); /* it is lost for them */
    }
    cr_assert_leq(granted, qn_ring_bytes(SLOTS, KEEP));
}

RING(what_lags_behind_no_more_is_given_no_more_room)
{
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(put(40, 1), QN_OK);
    }
    cr_assert_eq(qn_ring_lo(&r), 1);
    uint64_t most = granted;
    for (int i = 0; i < 20; i++) {
        put_now(40);
    }
    cr_assert_eq(w.limit, SPAN);
    cr_assert_eq(granted, most);
    keeps(w.end - 1, 40);
}

RING(a_batch_longer_than_a_lap_makes_it_longer)
{
    put_now(30);
    cr_assert_eq(put(200, 1), QN_OK);
    cr_assert(has(1, 30) && has(2, 200));
    cr_assert_leq(granted, qn_ring_bytes(SLOTS, KEEP));
}

RING(a_batch_longer_than_what_may_be_kept_goes_alone)
{
    put_now(30);
    cr_assert_eq(put(500, 2), QN_OK);
    keeps(2, 500);
    cr_assert_leq(granted, qn_ring_bytes(SLOTS, 500));
    cr_assert_eq(qn_ring_reserve(&w, 500, (struct qn_ring_need){2, 2}),
                 QN_EAGAIN);
    put_now(10);
    cr_assert(has(3, 10));
    cr_assert_eq(w.limit, SPAN); /* and the next one is short again */
    put_now(CAPACITY);
    cr_assert(has(4, CAPACITY));
    keeps(4, CAPACITY);
}

RING(a_batch_longer_than_the_capacity_waits_for_ever)
{
    cr_assert_eq(put(CAPACITY + 1, 1), QN_ENOMEM);
    cr_assert(!qn_ring_fits(&w, CAPACITY + 1, (struct qn_ring_need){1, 1}));
    put_now(10);
    keeps(1, 10);
}

/* ---- without memory ---- */

RING(without_memory_nothing_is_written_and_later_it_is)
{
    refuse = true;
    cr_assert_eq(put(10, 1), QN_ENOMEM);
    keeps(1, 10);
    refuse = false;
    cr_assert_eq(put(10, 1), QN_OK);
    keeps(1, 10);
}

RING(a_ring_that_cannot_grow_goes_on_and_overwrites)
{
    for (int i = 0; i < 3; i++) {
        put_now(20);
    }
    refuse = true;
    uint32_t before = asked;
    for (qn_slot_t s = 4; s <= 9; s++) {
        cr_assert_eq(put(20, 1), QN_OK);
        keeps(s - 2, 20);
    }
    cr_assert_leq(asked - before, 3u); /* about once a lap */
    refuse = false;
    for (qn_slot_t s = 10; s <= 18; s++) {
        cr_assert_eq(put(20, 7), QN_OK);
    }
    cr_assert_leq(qn_ring_lo(&r), 10);
}

RING(a_ring_that_cannot_grow_does_not_overwrite_what_the_writer_needs)
{
    put_now(40);
    refuse = true;
    const struct qn_ring_need need = {.own = 1, .all = 1};
    cr_assert(qn_ring_fits(&w, 40, need));
    cr_assert_eq(qn_ring_reserve(&w, 40, need), QN_EAGAIN);
    cr_assert_eq(qn_ring_reserve(&w, 2 * SPAN, need), QN_ENOMEM);
    keeps(1, 40);
    refuse = false;
    cr_assert_eq(qn_ring_reserve(&w, 2 * SPAN, need), QN_OK);
}

/* ---- used again ---- */

RING(a_take_over_begins_anew_and_old_entries_are_void)
{
    for (int i = 0; i < 6; i++) {
        put_now(10);
    }
    cr_assert(has(5, 10));
    qn_ring_begin(&w, 4); /* what was kept below is gone, and above, too */
    keeps(4, 10);
    for (qn_slot_t s = 4; s <= 9; s++) {
        put_now(8); /* slot 4 lies where 1 and 2 lay, and so on */
        keeps(4, 8);
    }
}

RING(lo_never_falls)
{
    put_now(10);
    qn_ring_begin(&w, 5);
    put_now(10);
    keeps(5, 10);
}

RING(the_place_that_is_reserved_last_counts)
{
    cr_assert_eq(qn_ring_reserve(&w, 60, (struct qn_ring_need){1, 1}), QN_OK);
    put_now(10);
    put_now(54);
    cr_assert(has(1, 10) && has(2, 54));
    cr_assert_eq(w.limit, SPAN);
}

/* ---- in parts ---- */

RING(a_batch_may_be_written_and_read_in_parts)
{
    struct qn_ring_copy c;
    uint8_t bytes[50];
    for (int i = 0; i < 50; i++) {
        bytes[i] = (uint8_t)i;
    }
    const struct qn_slice batch = {bytes, sizeof bytes};
    cr_assert_eq(qn_ring_reserve(&w, 50, (struct qn_ring_need){1, 1}), QN_OK);
    cr_assert_eq(qn_ring_put(&w, batch, 20), 30);
    cr_assert_eq(qn_ring_put(&w, batch, 20), 10);
    cr_assert_eq(qn_ring_read_begin(&r, 1, &qn_alloc_malloc, &c), QN_EAGAIN);
    qn_ring_write(&w, 1, 7, batch);
    cr_assert_eq(qn_ring_read_begin(&r, 1, &qn_alloc_malloc, &c), QN_OK);
    cr_assert_eq(qn_ring_read_some(&r, &c, 49), 1);
    cr_assert_eq(qn_ring_read_some(&r, &c, 49), 0);
    cr_assert_eq(c.epoch, 7);
    cr_assert_eq(memcmp(c.batch->bytes, bytes, sizeof bytes), 0);
    qn_ring_copy_drop(&c);
}

RING(a_copy_of_what_is_overwritten_meanwhile_is_void)
{
    struct qn_ring_copy c;
    put_now(50);
    cr_assert_eq(qn_ring_read_begin(&r, 1, &qn_alloc_malloc, &c), QN_OK);
    cr_assert_eq(qn_ring_read_some(&r, &c, 20), 30);
    put_now(50);
    cr_assert_eq(qn_ring_read_some(&r, &c, 20), QN_EAGAIN);
    cr_assert_null(c.batch);
}

/* A leader that is deposed in the middle, and leads again: its ring is sound.
 * The place was at the beginning of a lap. */
RING(a_batch_that_was_begun_may_be_given_up)
{
    uint8_t bytes[30] = {0};
    for (int i = 0; i < 5; i++) {
        put_now(20); /* positions 0, 20, 40, 0, 20 */
    }
    keeps(3, 20);
    const struct qn_ring_need need = {.own = 6, .all = 6};
    cr_assert_eq(qn_ring_reserve(&w, 30, need), QN_OK);
    cr_assert_eq(qn_ring_put(&w, (struct qn_slice){bytes, 30}, 10), 20);
    keeps(6, 20); /* 4 and 5 lay there, and all before goes */
    for (int i = 0; i < 9; i++) {
        put_now(20);
        keeps(QN_MAX(w.end - 3, (qn_slot_t)6), 20);
    }
}

RING(much_memory_is_asked_for_in_steps)
{
    const size_t len = 40u << 20;
    const struct qn_ring_opts o = {
        .slots = SLOTS, .capacity = len, .span = SPAN, .grow = grow_big};
    struct qn_ring big;
    qn_ring_open(&big, memory, &o); /* nothing is written */
    const struct qn_ring_need need = {.own = 1, .all = 1};
    uint32_t waits = 0;
    int rc;
    while ((rc = qn_ring_reserve(&big, len, need)) == QN_EAGAIN) {
        cr_assert(qn_ring_fits(&big, len, need));
        waits++;
    }
    cr_assert_eq(rc, QN_OK);
    cr_assert_eq(waits, 2u);
}

/* ---- at random, against a plain model ---- */

/** What lies where; each byte of the ring belongs to the slot that wrote it
 *  last. */
static void check_against(const qn_slot_t *byte, const uint32_t *len)
{
    qn_slot_t lo = qn_ring_lo(&r);
    for (qn_slot_t s = lo; s < w.end; s++) {
        uint32_t whole = 0;
        for (uint32_t i = 0; i < CAPACITY; i++) {
            whole += byte[i] == s;
        }
        cr_assert_eq(whole, len[s], "slot %u is kept and torn", (unsigned)s);
        cr_assert(has(s, len[s]));
    }
}

RING(at_random_what_is_kept_is_whole)
{
    srand(11);
    for (int run = 0; run < 60; run++) {
        static uint32_t len[400];
        qn_slot_t byte[CAPACITY] = {0};
        qn_slot_t all = w.lo, own = w.lo;
        uint32_t kept = 0;
        for (int n = 0; n < 300 && w.end < QN_ARRAY_COUNT(len); n++) {
            uint32_t l = (uint32_t)(rand() % (rand() % 20 == 0 ? 400 : 40));
            uint8_t bytes[CAPACITY];
            refuse = rand() % 4 == 0;
            own += (qn_slot_t)rand() % (w.end - own + 1);
            all += (qn_slot_t)rand() % (own - all + 1) * (rand() % 5 == 0);
            const struct qn_ring_need need = {.own = own, .all = all};
            qn_slot_t lo = qn_ring_lo(&r);
            if (qn_ring_reserve(&w, l, need) != QN_OK) {
                cr_assert_eq(qn_ring_lo(&r), lo);
                continue;
            }
            memset(bytes, (int)w.end, sizeof bytes);
            len[w.end] = l;
            qn_ring_write(&w, w.end, (qn_epoch_t)(100 + w.end),
                          (struct qn_slice){bytes, l});
            for (uint64_t at = w.at - l; at < w.at; at++) {
                byte[at] = w.end - 1;
            }
            cr_assert_leq(qn_ring_lo(&r), own);
            kept += qn_ring_lo(&r) <= all;
            check_against(byte, len);
        }
        cr_assert_gt(kept, 0u);
        teardown();
        setup();
    }
}

/* ---- damage ---- */

RING(memory_that_is_damaged_gives_nothing_or_a_copy_within_bounds)
{
    granted = qn_ring_bytes(SLOTS, CAPACITY);
    w.memory = CAPACITY;
    put_now(50);
    srand(7);
    for (int n = 0; n < 20000; n++) {
        struct qn_refbuf *b = NULL;
        qn_epoch_t epoch;
        memory[(size_t)rand() % qn_ring_bytes(SLOTS, CAPACITY)] =
            (uint8_t)rand();
        for (qn_slot_t s = 0; s < 3; s++) {
            if (qn_ring_read(&r, s, &qn_alloc_malloc, &epoch, &b) == QN_OK) {
                cr_assert_leq(b->len, CAPACITY);
                qn_refbuf_unref(b);
            }
        }
    }
}

static void *no_memory(void *ctx, void *p, size_t bytes)
{
    (void)ctx, (void)p, (void)bytes;
    return NULL;
}

RING(a_reader_without_memory_says_so)
{
    struct qn_refbuf *b = NULL;
    qn_epoch_t epoch;
    put_now(10);
    const struct qn_alloc broke = {.resize = no_memory};
    cr_assert_eq(qn_ring_read(&r, 1, &broke, &epoch, &b), QN_ENOMEM);
}
