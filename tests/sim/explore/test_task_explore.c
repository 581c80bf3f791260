/*
 * The queue of tasks under every schedule: two producers and one taker, on two
 * slots, so that each slot is used twice.
 */
#include <string.h>

#include "core/sim/explore/explore.h"
#include "core/tasks/task_queue.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

#define PUTS 2u /* of each producer */

static struct qn_task_slot slots[2];
static struct qn_task_queue queue;
static uint32_t taken[2];

static void setup(void *ctx)
{
    (void)ctx;
    queue.slot = slots;
    queue.mask = 1;
    queue.head = 0;
    qn_store(&queue.tail, 0, QN_SEQ_CST);
    for (uint32_t i = 0; i < 2; i++) {
        qn_store(&slots[i].turn, i, QN_SEQ_CST);
    }
    memset(taken, 0, sizeof taken);
}

static void put(uint8_t producer)
{
    for (uint8_t i = 0; i < PUTS; i++) {
        struct qn_task t = {.payload = {producer, i}};
        t.payload[QN_TASK_PAYLOAD - 1] = (uint8_t)(i + 1);
        while (!qn_task_queue_put(&queue, &t)) {
            qn_pause();
        }
    }
}

static void producer_0(void *ctx)
{
    (void)ctx;
    put(0);
}

static void producer_1(void *ctx)
{
    (void)ctx;
    put(1);
}

static void taker(void *ctx)
{
    struct qn_task t;
    (void)ctx;
    for (uint32_t i = 0; i < 2 * PUTS; i++) {
        while (!qn_task_queue_take(&queue, &t)) {
            qn_pause();
        }
        if (t.payload[1] != taken[t.payload[0] & 1]++ ||
            t.payload[QN_TASK_PAYLOAD - 1] != t.payload[1] + 1) {
            qn_sim_fail("a task lost, doubled, torn or out of order");
        }
    }
}

static const char *all_taken(void *ctx)
{
    (void)ctx;
    return taken[0] == PUTS && taken[1] == PUTS ? NULL : "tasks are left";
}

static bool clean_in(enum qn_explore_memory m, uint32_t deviations,
                     struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = 3,
                                      .node = {producer_0, producer_1, taker},
                                      .setup = setup,
                                      .check = all_taken,
                                      .memory = m,
                                      .deviations = deviations,
                                      .steps_max = 1000};
    return qn_explore(&o, out) && out->complete;
}

Test(task_explore, two_producers_lose_nothing_in_any_schedule, .timeout = 100)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(clean_in(m, 2, &out), "memory %d: %s at %s", (int)m,
                  out.fault, out.choices);
    }
}

/* ---- orders, one at a time weaker ---- */

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    return !clean_in(QN_EXPLORE_C11, 1 + level, &out);
}

static const char *const files[] = {"core/tasks/task_queue.c", NULL};

static const struct unfound unfound[] = {
    {"qn_task_queue_put cas 1", 1, "a claim orders nothing, the turns do"},
    {NULL, 0, NULL},
};

Test(task_orders, what_no_exploration_finds_is_known, .timeout = 100)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 2,
                                  .unfound = unfound,
                                  .least = 5});
}
