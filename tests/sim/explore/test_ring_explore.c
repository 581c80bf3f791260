/*
 * The shared ring under every schedule of a writer and a reader that is slow:
 * what the reader gets is the batch of that slot, or nothing. The writer wraps,
 * grows in the middle of a lap, or uses the ring again in a later tenure. And
 * the ways to get M6 and M8 wrong are found.
 */
#include <stdlib.h>
#include <string.h>

#include "core/sim/explore/explore.h"
#include "paxos/log/ring.h"
#include "paxos/mutant.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

#define SLOTS    4u
#define CAPACITY 64u
#define LENGTH   16u
#define MEMORY   512u
#define HEAP     4096u

enum qn_mutant qn_mutant;

/** What the writer does. */
struct plan {
    uint64_t span;      /* bytes of a lap */
    uint32_t writes;    /* slots 1 .. writes */
    qn_slot_t lags;     /* first slot that somebody needs until ... */
    qn_slot_t lags_for; /* ... this one is written */
    qn_slot_t again;    /* then begin anew here, and write to the end again,
                           shorter batches; 0: not */
};

static void *memory;
static uint8_t heap[HEAP]; /* of the readers: a run may end anywhere */
static size_t heap_used;
static struct qn_ring writer_ring, reader_ring;
static struct plan plan;
static uint32_t nodes = 2;
static uint32_t asked; /* deviations of a mutant's exploration; 0: the usual */
static qn_a64 word;    /* slots <= it are decided; + 100 in the second tenure */

#define SECOND 100u

static void *take(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    cr_assert(p == NULL || bytes == 0);
    size_t at = heap_used;
    heap_used += qn_align_up(bytes, 16);
    cr_assert_leq(heap_used, HEAP);
    return bytes == 0 ? NULL : heap + at;
}

static const struct qn_alloc pieces = {take, NULL};

/** The length tells the tenures apart. */
static size_t length(bool second)
{
    return second ? LENGTH - 6 : LENGTH;
}

static void setup(void *ctx)
{
    (void)ctx;
    const struct qn_ring_opts o = {
        .slots = SLOTS, .capacity = CAPACITY, .span = plan.span};
    memset(memory, 0, MEMORY);
    heap_used = 0;
    qn_ring_open(&writer_ring, memory, &o);
    qn_ring_open(&reader_ring, memory, &o);
    qn_ring_begin(&writer_ring, 1);
    qn_store(&word, 0, QN_SEQ_CST);
}

static void write_slot(qn_slot_t s, bool second)
{
    uint8_t bytes[LENGTH];
    size_t len = length(second);
    const struct qn_ring_need need = {
        .own = s, .all = s <= plan.lags_for ? QN_MIN(plan.lags, s) : s};
    memset(bytes, (int)(s * 17), len);
    if (qn_ring_reserve(&writer_ring, len, need) != QN_OK) {
        qn_sim_fail("no room");
    }
    qn_ring_write(&writer_ring, s, (qn_epoch_t)s,
                  (struct qn_slice){bytes, len});
}

static void writer(void *ctx)
{
    (void)ctx;
    for (qn_slot_t s = 1; s <= plan.writes; s++) {
        write_slot(s, false);
        qn_store(&word, s, QN_SEQ_CST); /* the decision */
    }
    if (plan.again == 0) {
        return;
    }
    qn_ring_begin(&writer_ring, plan.again);
    for (qn_slot_t s = plan.again; s <= plan.writes; s++) {
        write_slot(s, true); /* copied from elsewhere: as decided before */
    }
    qn_store(&word, SECOND + plan.writes, QN_SEQ_CST); /* the take-over */
}

/** @param second  The word that the reader has seen is of the second tenure. */
static void read_slot(qn_slot_t slot, bool second)
{
    struct qn_refbuf *b = NULL;
    qn_epoch_t epoch = 0;
    if (qn_ring_read(&reader_ring, slot, &pieces, &epoch, &b) != QN_OK) {
        return;
    }
    bool same = epoch == slot && (b->len == length(true) ||
                                  (b->len == length(false) && !second));
    for (uint32_t i = 0; same && i < b->len; i++) {
        same = b->bytes[i] == (uint8_t)(slot * 17);
    }
    qn_refbuf_unref(b);
    if (!same) {
        qn_sim_fail("another batch, or half of one");
    }
}

static void reader(void *ctx)
{
    (void)ctx;
    for (int n = 0; n < 2; n++) {
        qn_slot_t hi = qn_load(&word, QN_ACQUIRE);
        bool second = hi > SECOND;
        hi -= second ? SECOND : 0;
        if (hi > 0) {
            read_slot(hi, second);
        }
        if (hi > 1) {
            read_slot(hi - 1, second);
        }
    }
}

static const char *all_end(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < nodes; i++) {
        if (qn_sim_end_of(i) != QN_SIM_DONE) {
            return "a node waits";
        }
    }
    return NULL;
}

/* With two nodes 3 deviations, or as many as are asked for; with three 2. */
static uint32_t deviations(void)
{
    if (asked != 0) {
        return asked;
    }
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    return nodes == 3 ? 2 : more != NULL ? (uint32_t)atoi(more) : 3;
}

static bool clean_in(enum qn_explore_memory in, enum qn_mutant m,
                     const struct plan *p, struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = nodes,
                                      .node = {writer, reader, reader},
                                      .setup = setup,
                                      .check = all_end,
                                      .memory = in,
                                      .deviations = deviations()};
    memory = aligned_alloc(QN_CACHELINE, MEMORY);
    cr_assert_leq(qn_ring_bytes(SLOTS, CAPACITY), MEMORY);
    qn_mutant = m;
    plan = *p;
    bool good = qn_explore(&o, out);
    free(memory);
    return good;
}

/* A lap holds two batches, and positions are used again at once. */
static const struct plan wraps = {.span = 2 * LENGTH, .writes = 5};
/* Slot 3 overwrites 1; 4 would overwrite 2, which somebody needs: it goes
 * behind the lap before, and 5 behind it; 6 begins anew over 3. */
static const struct plan grows = {
    .span = 2 * LENGTH, .writes = 6, .lags = 2, .lags_for = 4};
/* Slot 2 is written again where 1 lay, 3 over the end of 1 and of 2. */
static const struct plan twice = {.span = CAPACITY, .writes = 3, .again = 2};

static void expect_clean(const struct plan *p)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(clean_in(m, QN_MUTANT_NONE, p, &out), "memory %d: %s at %s",
                  (int)m, out.fault, out.choices);
        cr_assert(out.complete);
    }
}

static void expect_found(enum qn_mutant mutant, const struct plan *p)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(!clean_in(m, mutant, p, &out), "memory %d", (int)m);
    }
}

Test(ring_explore, a_reader_gets_the_slot_or_nothing, .timeout = 3600)
{
    expect_clean(&wraps);
}

Test(ring_explore, also_while_the_ring_grows, .timeout = 3600)
{
    expect_clean(&grows);
}

Test(ring_explore, also_while_the_ring_is_used_again, .timeout = 3600)
{
    expect_clean(&twice);
}

Test(ring_explore, two_readers_get_the_slot_or_nothing, .timeout = 3600)
{
    nodes = 3;
    expect_clean(&wraps);
    expect_clean(&grows);
    expect_clean(&twice);
}

Test(ring_explore, lo_raised_after_the_write_is_found, .timeout = 3600)
{
    expect_found(QN_MUTANT_RING_LATE, &wraps);
    expect_found(QN_MUTANT_RING_LATE, &grows);
}

Test(ring_explore, a_missing_second_look_is_found, .timeout = 3600)
{
    expect_found(QN_MUTANT_RING_NO_LOOK, &wraps);
    expect_found(QN_MUTANT_RING_NO_LOOK, &grows);
    expect_found(QN_MUTANT_RING_NO_LOOK, &twice);
}

Test(ring_explore, entries_left_of_a_former_tenure_are_found, .timeout = 3600)
{
    expect_found(QN_MUTANT_RING_TENURE, &twice);
}

/* ---- the orders of ring.c, one at a time weaker ---- */

static bool explore_all(uint32_t level)
{
    static const struct plan *const plans[] = {&wraps, &grows, &twice};
    struct qn_explored out;
    bool good = true;
    asked = 1 + level;
    for (uint32_t i = 0; good && i < 3; i++) {
        good = clean_in(QN_EXPLORE_C11, QN_MUTANT_NONE, plans[i], &out);
    }
    return !good;
}

static const char *const files[] = {"paxos/log/ring.c", NULL};

static const struct unfound unfound[] = {
    {"qn_ring_lo load 1", 1, "for callers that compare it with what they read"},
    {"put_entry store 4", 1, "a reader knows its slot by an acquire already"},
    {"find load 3", 1, "likewise"},
    {"find load 1", 1, "the tenure of the entry is acquired behind it"},
    {NULL, 0, NULL},
};

Test(ring_orders, what_no_exploration_finds_is_known, .timeout = 3600)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 4,
                                  .unfound = unfound,
                                  .least = 8});
}
