/* Each memory order of each barrier weaker, one at a time: some program finds
 * it, or it stays for a reason. */
#include "tests/sim/explore/barrier/barrier_world.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

static const struct barrier_program two = {.members = 2, .episodes = 3};
static const struct barrier_program three = {.members = 3, .episodes = 2};
static const struct barrier_program own = {
    .members = 2, .episodes = 2, .own_cores = true};

static const char *judged;

static bool is_faulty(const struct barrier_program *p, uint32_t deviations)
{
    struct qn_explored out;
    return !barrier_is_clean(judged, p, QN_EXPLORE_C11, deviations, &out);
}

static bool explore_all(uint32_t level)
{
    return is_faulty(&two, 1 + level) || is_faulty(&own, 1 + level) ||
           (level < 2 && is_faulty(&three, level));
}

/* When it succeeds it found a value that ends no wait, so it needs no order;
 * C11 wants it to be no weaker than that of its failure. */
static const struct unfound of_the_wait[] = {
    {"sleep_until cas 1: acquire to relaxed", 1, "above"}, {NULL, 0, NULL}};

static void judge(const char *form, const char *const *files,
                  const char *const *unreached, uint32_t least)
{
    judged = form;
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = of_the_wait,
                                  .least = least,
                                  .unreached = unreached});
}

Test(barrier_orders, of_the_counter, .timeout = 300)
{
    const char *const files[] = {"core/barrier/await.c",
                                 "core/barrier/central.c", NULL};
    /* Flags are raised in the other forms. */
    const char *const unreached[] = {"qn_store(flag, value, QN_RELEASE)",
                                     "qn_exchange(flag, value, QN_RELEASE)",
                                     NULL};
    judge("central", files, unreached, 7);
}

/* The flags of a tree are raised and awaited by the same calls. */
Test(barrier_orders, of_flags, .timeout = 300)
{
    const char *const files[] = {"core/barrier/await.c", NULL};
    const char *const unreached[] = {NULL};
    judge("dissemination", files, unreached, 6);
}
