/*
 * The flight recorder under every schedule of a writer that laps a slow reader
 * and may be killed: what the reader gets is whole, in order, without gaps, and
 * whatever was finished when it began to look is missing only if it may have
 * been overwritten.
 */
#include <string.h>

#include "core/place/flight_recorder.h"
#include "core/sim/explore/explore.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

#define ENTRIES 2u
#define NOTES   4u

static alignas(QN_CACHELINE) uint8_t memory[QN_FLIGHT_BYTES(ENTRIES)];
static struct qn_flight_recorder flight;

static void setup(void *ctx)
{
    (void)ctx;
    memset(memory, 0, sizeof memory);
    qn_flight_recorder_init(&flight, memory, ENTRIES, 1);
}

static void writer(void *ctx)
{
    (void)ctx;
    for (uint64_t i = 0; i < NOTES; i++) {
        const struct qn_flight_event e = {
            .time = i + 1, .kind = (uint8_t)(i + 1), .slot = i + 1, .a = i + 1};
        qn_flight_recorder_note(&flight, &e);
    }
}

static const char *look(void)
{
    struct qn_flight_event out[ENTRIES];
    uint32_t n = qn_flight_recorder_read(memory, ENTRIES, out);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t want = out[i].index + 1;
        if (out[i].index != out[0].index + i) {
            return "a gap";
        }
        if (out[i].time != want || out[i].kind != want || out[i].slot != want ||
            out[i].a != want) {
            return "a torn entry";
        }
    }
    return NULL;
}

static void reader(void *ctx)
{
    (void)ctx;
    const char *wrong = look();
    if (wrong != NULL) {
        qn_sim_fail(wrong);
    }
}

/* Afterwards all but the entry that was being written are there. */
static const char *check(void *ctx)
{
    (void)ctx;
    struct qn_flight_event out[ENTRIES];
    uint32_t n = qn_flight_recorder_read(memory, ENTRIES, out);
    if (qn_sim_end_of(0) != QN_SIM_KILLED &&
        (n != ENTRIES || out[n - 1].index != NOTES - 1)) {
        return "the last ones are missing";
    }
    return look();
}

static bool clean_in(enum qn_explore_memory in, uint32_t deviations,
                     struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {writer, reader},
                                      .setup = setup,
                                      .check = check,
                                      .memory = in,
                                      .deviations = deviations,
                                      .kills = 1};
    return qn_explore(&o, out);
}

Test(flight_explore, no_schedule_and_no_death_shows_a_torn_entry)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(clean_in(m, 4, &out), "memory %d: %s at %s", (int)m,
                  out.fault, out.choices);
        cr_assert(out.complete);
        cr_assert_gt(out.runs, 1000);
    }
}

/* ---- the orders of flight_recorder.c, one at a time weaker ---- */

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    return !clean_in(QN_EXPLORE_C11, 1 + level, &out);
}

static const char *const files[] = {"place/flight_recorder.c", NULL};

static const struct unfound unfound[] = {
    {NULL, 0, NULL},
};

Test(flight_orders, what_no_exploration_finds_is_known, .timeout = 120)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 4,
                                  .unfound = unfound,
                                  .least = 10});
}
