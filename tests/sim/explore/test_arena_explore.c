/*
 * The upload arena under every schedule of its writer and a reader: what the
 * reader pulls, in two parts, is the command of that place, or nothing, though
 * the writer uses the bytes again. And a look that is missing, or a block whose
 * end is said late, is found.
 */
#include <stdlib.h>
#include <string.h>

#include "core/sim/explore/explore.h"
#include "paxos/log/arena.h"
#include "paxos/mutant.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

#define CAPACITY 128u
#define LENGTH   24u
#define COMMANDS 4u /* two at a time */

enum qn_mutant qn_mutant;

static void *memory;
static struct qn_arena own, seen;
static qn_a64 told; /* the index of the newest command that was sent */
static struct qn_arena_place place[COMMANDS + 1];

static void setup(void *ctx)
{
    (void)ctx;
    const struct qn_arena_opts o = {.capacity = CAPACITY};
    memset(memory, 0, qn_arena_bytes(CAPACITY));
    qn_arena_end(&own);
    cr_assert_eq(qn_arena_begin(&own, memory, &o), QN_OK);
    qn_arena_open(&seen, memory, CAPACITY);
    qn_store(&told, 0, QN_SEQ_CST);
}

/** As an origin does: keep, tell; what is applied ends. */
static void writer(void *ctx)
{
    uint8_t bytes[LENGTH];
    (void)ctx;
    for (uint64_t n = 1; n <= COMMANDS; n++) {
        if (own.next - own.first == 2) {
            qn_arena_free(&own);
        }
        if (qn_arena_add(&own, LENGTH, &place[n]) != QN_OK) {
            qn_sim_fail("no place");
        }
        memset(bytes, (int)(n * 17), LENGTH);
        qn_copy_out(qn_arena_at(&own, &place[n]), bytes, LENGTH);
        qn_store(&told, n, QN_RELEASE); /* the request */
    }
}

static void reader(void *ctx)
{
    uint8_t bytes[LENGTH];
    (void)ctx;
    uint64_t n = qn_load(&told, QN_ACQUIRE);
    if (n == 0 ||
        qn_arena_pull(&seen, &place[n], 0, bytes, LENGTH / 2) != QN_OK ||
        qn_arena_pull(&seen, &place[n], LENGTH / 2, bytes + LENGTH / 2,
                      LENGTH / 2) != QN_OK) {
        return;
    }
    for (uint32_t i = 0; i < LENGTH; i++) {
        if (bytes[i] != (uint8_t)(n * 17)) {
            qn_sim_fail("bytes of another command");
        }
    }
}

static const char *both_end(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "a node waits";
}

static bool clean_in(enum qn_explore_memory in, uint32_t deviations,
                     enum qn_mutant m, struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {writer, reader},
                                      .setup = setup,
                                      .check = both_end,
                                      .memory = in,
                                      .deviations = deviations};
    memory = aligned_alloc(QN_CACHELINE, qn_arena_bytes(CAPACITY));
    qn_mutant = m;
    bool good = qn_explore(&o, out);
    qn_arena_end(&own);
    free(memory);
    return good;
}

static void expect_found(enum qn_mutant mutant)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(!clean_in(m, 3, mutant, &out), "memory %d", (int)m);
    }
}

Test(arena_explore, a_reader_gets_the_command_or_nothing, .timeout = 120)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(clean_in(m, 3, QN_MUTANT_NONE, &out), "memory %d: %s at %s",
                  (int)m, out.fault, out.choices);
        cr_assert(out.complete);
    }
}

Test(arena_explore, a_missing_second_look_is_found, .timeout = 120)
{
    expect_found(QN_MUTANT_ARENA_NO_LOOK);
}

Test(arena_explore, an_end_that_is_said_late_is_found, .timeout = 120)
{
    expect_found(QN_MUTANT_ARENA_LATE);
}

/* ---- the orders of arena.c, one at a time weaker ---- */

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    return !clean_in(QN_EXPLORE_C11, 1 + level, QN_MUTANT_NONE, &out);
}

static const char *const files[] = {"paxos/log/arena.c", NULL};

static const struct unfound unfound[] = {
    {"qn_arena_free fence 1: seq_cst to acq_rel", 1, "a release would do"},
    {NULL, 0, NULL},
};

Test(arena_orders, what_no_exploration_finds_is_known, .timeout = 120)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 4,
                                  .unfound = unfound,
                                  .least = 3});
}
