/* Each memory order of each lock weaker, one at a time: some program of
 * lock_world.h finds it, or it stays for a reason. */
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/sync/lock_world.h"
#include "tests/support/test.h"

static const char *const unreached[] = {NULL};

static const struct qn_lock_type *judged;

static bool is_faulty(const struct lock_program *p, uint32_t deviations)
{
    struct qn_explored out;
    return !lock_is_clean(judged, p, QN_EXPLORE_C11, deviations, &out);
}

static bool explore_all(uint32_t level)
{
    return is_faulty(&lock_of_two, 2 + level) ||
           is_faulty(&lock_of_tries, 2 + level) ||
           is_faulty(&lock_of_three, 1 + level) ||
           is_faulty(&lock_of_own_cores, 1 + level) ||
           (judged->timed && is_faulty(&lock_of_deadlines, 1 + level));
}

static void judge(const struct qn_lock_type *type, const char *file,
                  const struct unfound *unfound, uint32_t least)
{
    const char *const files[] = {file, type->fifo ? "core/wait/baton.h" : NULL,
                                 NULL};
    judged = type;
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 3,
                                  .unfound = unfound,
                                  .least = least,
                                  .unreached = unreached});
}

static const struct unfound none[] = {{NULL, 0, NULL}};

Test(lock_orders, of_tas, .timeout = 300)
{
    judge(&qn_lock_tas, "core/sync/lock/tas.c", none, 3);
}

Test(lock_orders, of_ttas, .timeout = 300)
{
    judge(&qn_lock_ttas, "core/sync/lock/tas.c", none, 3);
}

/* In the explorer's memory stores to one variable take effect in the order in
 * which they ran, so a link that is told is always told after the reset. In
 * C11 only the release says so: without it the reset may be later in the order
 * of that word, and the successor is lost. */
static const struct unfound of_a_node[] = {
    {"mcs_acquire rmw 1: acq_rel to acquire", 1, "the link's reset, above"},
    {"mcs_try cas 1: acq_rel to acquire", 1, "the link's reset, above"},
    {NULL, 0, NULL},
};

Test(lock_orders, of_mcs, .timeout = 300)
{
    judge(&qn_lock_mcs, "core/sync/lock/mcs.c", of_a_node, 8);
}

Test(lock_orders, of_clh, .timeout = 300)
{
    judge(&qn_lock_clh, "core/sync/lock/clh.c", none, 6);
}
