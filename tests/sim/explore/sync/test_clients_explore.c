/* Two threads that join and leave one place, under every schedule. A node has
 * one owner at a time, which finds what the last one has left there. */
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/explore/explore.h"
#include "core/sync/clients.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

static const char *const unreached[] = {NULL};

#define TRIES 2u

static struct qn_sync_place place;
static uint32_t left;      /* at the node, by its owners: how many there were */
static uint32_t joined[2]; /* [thread] */

static void setup(void *ctx)
{
    (void)ctx;
    place = (struct qn_sync_place){0};
    qn_sync_places_format(&place, 1);
    left = joined[0] = joined[1] = 0;
}

/* The node's number is that of its owners before. */
static void come_and_go(uint32_t thread)
{
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t at;
        uint32_t node;
        if (qn_sync_join(&place, 1, &at, &node) == QN_OK) {
            qn_touch_in(&left, sizeof left);
            if (node != left) {
                qn_sim_fail("another node than was given back");
            }
            left++;
            qn_touch_out(&left, sizeof left);
            joined[thread]++;
            qn_sync_leave(&place, at, left);
        }
    }
}

static void first(void *ctx)
{
    (void)ctx;
    come_and_go(0);
}

static void second(void *ctx)
{
    (void)ctx;
    come_and_go(1);
}

static const char *all_counted(void *ctx)
{
    (void)ctx;
    return joined[0] + joined[1] != left ? "an owner is lost"
           : left < TRIES                ? "a free place was refused to both"
                                         : NULL;
}

static bool clean(enum qn_explore_memory m, uint32_t deviations,
                  struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {first, second},
                                      .setup = setup,
                                      .check = all_counted,
                                      .memory = m,
                                      .deviations = deviations,
                                      .steps_max = 1000};
    return qn_explore(&o, out) && out->complete;
}

Test(clients_explore, a_place_has_one_client_in_any_schedule, .timeout = 100)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(clean(m, 4, &out), "memory %d: %s at %s", (int)m, out.fault,
                  out.choices);
    }
}

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    return !clean(QN_EXPLORE_C11, 1 + level, &out);
}

static const char *const files[] = {"core/sync/clients.c", NULL};

static const struct unfound unfound[] = {
    {NULL, 0, NULL},
};

Test(clients_orders, what_no_exploration_finds_is_known, .timeout = 100)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = unfound,
                                  .least = 2,
                                  .unreached = unreached});
}
