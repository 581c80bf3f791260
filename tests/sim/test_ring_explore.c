/*
 * The shared ring under every schedule of a writer that wraps and a reader that
 * is slow: what the reader gets is the batch of that slot, or nothing. And the
 * two ways to get M8 wrong are found.
 */
#include <stdlib.h>
#include <string.h>

#include "core/sim/explore.h"
#include "paxos/mutant.h"
#include "paxos/ring.h"
#include "tests/support/test.h"

#define SLOTS    2u
#define CAPACITY 64u
#define LENGTH   24u /* so that bytes wrap, and two batches fit but not three */
#define WRITES   4u

enum qn_mutant qn_mutant;

static void *memory;
static struct qn_ring writer_ring, reader_ring;
static qn_a64 word; /* slots <= it are decided */

static void fill(uint8_t *bytes, qn_slot_t slot)
{
    memset(bytes, (int)(slot * 17), LENGTH);
}

static void setup(void *ctx)
{
    (void)ctx;
    const struct qn_ring_opts o = {.slots = SLOTS, .capacity = CAPACITY};
    memset(memory, 0, qn_ring_bytes(SLOTS, CAPACITY));
    qn_ring_open(&writer_ring, memory, &o);
    qn_ring_open(&reader_ring, memory, &o);
    qn_ring_begin(&writer_ring, 1);
    qn_store(&word, 0, QN_SEQ_CST);
}

static void writer(void *ctx)
{
    (void)ctx;
    for (qn_slot_t s = 1; s <= WRITES; s++) {
        uint8_t bytes[LENGTH];
        fill(bytes, s);
        if (qn_ring_reserve(&writer_ring, LENGTH,
                            (struct qn_ring_need){s, s}) != QN_OK) {
            qn_sim_fail("no room");
        }
        qn_ring_write(&writer_ring, s, (qn_epoch_t)s,
                      (struct qn_slice){bytes, LENGTH});
        qn_store(&word, s, QN_SEQ_CST); /* the decision */
    }
}

static void read_slot(qn_slot_t slot)
{
    struct qn_blob *b = NULL;
    qn_epoch_t epoch = 0;
    uint8_t want[LENGTH];
    if (qn_ring_read(&reader_ring, slot, &qn_alloc_malloc, &epoch, &b) !=
        QN_OK) {
        return;
    }
    fill(want, slot);
    bool same = b->len == LENGTH && memcmp(b->bytes, want, LENGTH) == 0 &&
                epoch == slot;
    qn_blob_unref(b);
    if (!same) {
        qn_sim_fail("another batch, or half of one");
    }
}

static void reader(void *ctx)
{
    (void)ctx;
    for (int n = 0; n < 2; n++) {
        qn_slot_t hi = qn_load(&word, QN_ACQUIRE);
        if (hi > 0) {
            read_slot(hi);
        }
        if (hi > 1) {
            read_slot(hi - 1);
        }
    }
}

static const char *both_end(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "somebody waits";
}

static bool clean(enum qn_mutant m, struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {writer, reader},
                                      .setup = setup,
                                      .check = both_end,
                                      .deviations = 3};
    memory = aligned_alloc(QN_CACHELINE, 1024);
    cr_assert_leq(qn_ring_bytes(SLOTS, CAPACITY), 1024);
    qn_mutant = m;
    bool good = qn_explore(&o, out);
    free(memory);
    return good;
}

Test(ring_explore, a_reader_gets_the_slot_or_nothing, .timeout = 120)
{
    struct qn_explored out;
    cr_assert(clean(QN_MUTANT_NONE, &out), "%s at %s", out.fault, out.choices);
    cr_assert(out.complete);
}

Test(ring_explore, lo_raised_after_the_write_is_found, .timeout = 120)
{
    struct qn_explored out;
    cr_assert(!clean(QN_MUTANT_RING_LATE, &out));
}

Test(ring_explore, a_missing_second_look_is_found, .timeout = 120)
{
    struct qn_explored out;
    cr_assert(!clean(QN_MUTANT_RING_NO_LOOK, &out));
}
