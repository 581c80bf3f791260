/* The shared ring with one thread: what is kept, what is not, and damage. */
#include <stdlib.h>
#include <string.h>

#include "paxos/ring.h"
#include "tests/support/test.h"

#define SLOTS    8u
#define CAPACITY 256u

static void *memory;
static struct qn_ring w, r;

static void setup(void)
{
    size_t bytes = qn_align_up(qn_ring_bytes(SLOTS, CAPACITY), QN_CACHELINE);
    memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(memory);
    memset(memory, 0, bytes);
    qn_ring_open(&w, memory, SLOTS, CAPACITY);
    qn_ring_open(&r, memory, SLOTS, CAPACITY);
    qn_ring_begin(&w, 1);
}

static void teardown(void)
{
    free(memory);
}

#define RING(name) Test(ring, name, .init = setup, .fini = teardown)

static void put(qn_slot_t slot, size_t len)
{
    uint8_t bytes[CAPACITY];
    memset(bytes, (int)slot, sizeof bytes);
    qn_ring_write(&w, slot, (qn_epoch_t)(100 + slot),
                  (struct qn_slice){bytes, len});
}

static bool has(qn_slot_t slot, size_t len)
{
    struct qn_blob *b = NULL;
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
    qn_blob_unref(b);
    cr_assert(same, "slot %u is not what was written", (unsigned)slot);
    return true;
}

RING(what_is_kept_can_be_read_and_nothing_else)
{
    cr_assert(!has(1, 10));
    for (qn_slot_t s = 1; s <= 20; s++) {
        put(s, 10);
        for (qn_slot_t k = 1; k <= 21; k++) {
            bool kept = k <= s && k + SLOTS > s;
            cr_assert_eq(has(k, 10), kept, "slot %u of %u", (unsigned)k,
                         (unsigned)s);
        }
    }
}

RING(bytes_run_out_before_entries)
{
    for (qn_slot_t s = 1; s <= 30; s++) {
        put(s, 100); /* two of them fit */
        cr_assert(has(s, 100));
        cr_assert_eq(has(s - 1, 100), s > 1);
        cr_assert(s < 3 || !has(s - 2, 100));
        cr_assert_eq(qn_ring_lo(&r), s < 3 ? 1 : s - 1);
    }
}

RING(a_batch_may_be_as_long_as_the_ring_or_empty)
{
    put(1, CAPACITY);
    cr_assert(has(1, CAPACITY));
    put(2, 0);
    cr_assert(has(1, CAPACITY) && has(2, 0));
    put(3, CAPACITY);
    cr_assert(!has(1, CAPACITY) && has(3, CAPACITY));
}

RING(the_survivor_is_known_before_the_write)
{
    for (qn_slot_t s = 1; s <= 40; s++) {
        size_t len = (s * 37) % 120;
        qn_slot_t lo = qn_ring_survivor(&w, s, len);
        put(s, len);
        cr_assert_eq(qn_ring_lo(&r), lo);
    }
}

RING(a_take_over_writes_old_slots_again)
{
    for (qn_slot_t s = 1; s <= 6; s++) {
        put(s, 20);
    }
    qn_ring_begin(&w, 4); /* what was kept below is gone */
    cr_assert(!has(3, 20));
    for (qn_slot_t s = 4; s <= 9; s++) {
        put(s, 30);
        cr_assert(has(s, 30));
    }
}

RING(lo_never_falls)
{
    put(1, 10);
    qn_ring_begin(&w, 5);
    put(5, 10);
    cr_assert_eq(qn_ring_lo(&r), 5);
}

RING(memory_that_is_damaged_gives_nothing_or_a_copy_within_bounds)
{
    uint8_t *bytes = memory;
    put(1, 50);
    srand(7);
    for (int n = 0; n < 20000; n++) {
        struct qn_blob *b = NULL;
        qn_epoch_t epoch;
        bytes[(size_t)rand() % qn_ring_bytes(SLOTS, CAPACITY)] =
            (uint8_t)rand();
        for (qn_slot_t s = 0; s < 3; s++) {
            if (qn_ring_read(&r, s, &qn_alloc_malloc, &epoch, &b) == QN_OK) {
                cr_assert_leq(b->len, CAPACITY);
                qn_blob_unref(b);
            }
        }
    }
}

static void *no_memory(void *ctx, void *p, size_t bytes)
{
    (void)ctx, (void)p, (void)bytes;
    return NULL;
}

RING(without_memory_it_says_so)
{
    struct qn_blob *b = NULL;
    qn_epoch_t epoch;
    put(1, 10);
    const struct qn_alloc broke = {.resize = no_memory};
    cr_assert_eq(qn_ring_read(&r, 1, &broke, &epoch, &b), QN_ENOMEM);
}
