/*
 * A baton under every schedule. One waiter waits twice, for two wakers, so that
 * the wake-up of the first may meet the second wait.
 */
#include <string.h>

#include "core/base/mark.h"
#include "core/sim/explore/explore.h"
#include "core/wait/baton.h"
#include "core/wait/park.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

static const char *const unreached[] = {NULL};

struct rules {
    uint32_t (*wait)(struct qn_baton *b, struct qn_wait_stats *s);
    bool (*go)(struct qn_baton *b, uint32_t value);
};

static const struct rules built = {qn_baton_wait, qn_baton_go};

static uint32_t wait_awake(struct qn_baton *b, struct qn_wait_stats *s)
{
    return qn_baton_await(b, true, s);
}

static bool go_by_a_store(struct qn_baton *b, uint32_t value)
{
    struct qn_wait_stats unused = {0};
    qn_baton_pass(b, value, true, &unused);
    return false;
}

static const struct rules own_cores = {wait_awake, go_by_a_store};

static struct qn_baton baton;
static qn_a32 again;     /* the waiter has prepared its second wait */
static uint32_t payload; /* of the waker, read by the waiter */
static const struct rules *rules;

static void setup(void *ctx)
{
    (void)ctx;
    qn_baton_init(&baton);
    qn_store(&again, 0, QN_SEQ_CST);
    payload = 0;
}

static void wait_for(uint32_t value)
{
    struct qn_wait_stats s = {0};
    if (rules->wait(&baton, &s) != value) {
        qn_sim_fail("no value, or another one");
    }
    qn_touch_in(&payload, sizeof payload);
    if (payload != value) {
        qn_sim_fail("what the waker did before is not visible");
    }
}

static void waiter(void *ctx)
{
    (void)ctx;
    wait_for(QN_BATON_GO);
    qn_baton_init(&baton);
    /* release -> the second waker's acquire. */
    qn_store(&again, 1, QN_RELEASE);
    wait_for(QN_BATON_GO + 1);
}

static void wake(uint32_t value)
{
    payload = value;
    qn_touch_out(&payload, sizeof payload);
    (void)rules->go(&baton, value);
}

static void first_waker(void *ctx)
{
    (void)ctx;
    wake(QN_BATON_GO);
}

static void second_waker(void *ctx)
{
    (void)ctx;
    while (qn_load(&again, QN_ACQUIRE) == 0) {
        qn_pause();
    }
    wake(QN_BATON_GO + 1);
}

static const char *none_asleep(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE ? NULL : "asleep for ever";
}

static bool clean(const struct rules *r, enum qn_explore_memory m,
                  uint32_t deviations, struct qn_explored *out)
{
    const struct qn_explore_opts o = {
        .nodes = 3,
        .node = {waiter, first_waker, second_waker},
        .setup = setup,
        .check = none_asleep,
        .memory = m,
        .deviations = deviations,
        .steps_max = 1000};
    rules = r;
    return qn_explore(&o, out) && out->complete;
}

Test(baton_explore, each_wait_ends_with_its_value, .timeout = 100)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(clean(&built, m, 4, &out), "memory %d: %s at %s", (int)m,
                  out.fault, out.choices);
        cr_assert(clean(&own_cores, m, 3, &out), "own cores, %d: %s at %s",
                  (int)m, out.fault, out.choices);
    }
}

/* ---- rules that are broken on purpose ---- */

/* It says that it sleeps without a look at what has come meanwhile. */
static uint32_t wait_parks_late(struct qn_baton *b, struct qn_wait_stats *s)
{
    uint32_t value;
    (void)s;
    if (qn_baton_is_go(b, &value)) {
        return value;
    }
    qn_store(&b->word, QN_BATON_PARKED, QN_SEQ_CST);
    while (!qn_baton_is_go(b, &value)) {
        (void)qn_park_word(&b->word, QN_BATON_PARKED, QN_TIME_NEVER);
    }
    return value;
}

/* A wake-up is taken for the value. */
static uint32_t wait_looks_once(struct qn_baton *b, struct qn_wait_stats *s)
{
    uint32_t value = QN_BATON_WAITING;
    (void)s;
    if (qn_cas(&b->word, &value, QN_BATON_PARKED, QN_ACQ_REL)) {
        (void)qn_park_word(&b->word, QN_BATON_PARKED, QN_TIME_NEVER);
        value = qn_load(&b->word, QN_ACQUIRE);
    }
    return value;
}

/* It sleeps without saying so. */
static uint32_t wait_parks_unseen(struct qn_baton *b, struct qn_wait_stats *s)
{
    uint32_t value;
    (void)s;
    while (!qn_baton_is_go(b, &value)) {
        (void)qn_park_word(&b->word, QN_BATON_WAITING, QN_TIME_NEVER);
    }
    return value;
}

static bool go_never_wakes(struct qn_baton *b, uint32_t value)
{
    (void)qn_exchange(&b->word, value, QN_SEQ_CST);
    return false;
}

/* It looks whether the waiter sleeps, and then stores. */
static bool go_in_two_steps(struct qn_baton *b, uint32_t value)
{
    const bool parked = qn_load(&b->word, QN_SEQ_CST) == QN_BATON_PARKED;
    qn_store(&b->word, value, QN_SEQ_CST);
    if (parked) {
        qn_unpark_word(&b->word);
    }
    return parked;
}

Test(baton_explore, each_broken_rule_is_found, .timeout = 100)
{
    const struct rules broken[] = {
        {wait_parks_late, qn_baton_go},   {wait_looks_once, qn_baton_go},
        {wait_parks_unseen, qn_baton_go}, {qn_baton_wait, go_never_wakes},
        {qn_baton_wait, go_in_two_steps}, {qn_baton_wait, go_by_a_store}};
    for (uint32_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct qn_explored out;
        cr_expect_not(clean(&broken[i], QN_EXPLORE_C11, 2, &out),
                      "not found: %u", i);
    }
}

/* ---- orders, one at a time weaker ---- */

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    return !clean(&built, QN_EXPLORE_C11, 1 + level, &out) ||
           !clean(&own_cores, QN_EXPLORE_C11, level, &out);
}

static const char *const files[] = {"core/wait/baton.c", "core/wait/baton.h",
                                    NULL};

static const struct unfound unfound[] = {
    {"sleep_until_go cas 1", 1,
     "parking publishes nothing; a failure acquires"},
    {NULL, 0, NULL},
};

Test(baton_orders, what_no_exploration_finds_is_known, .timeout = 100)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = unfound,
                                  .least = 3,
                                  .unreached = unreached});
}
