/* Barriers of many members, one of which is slow, on the timed machine. */
#include <stdlib.h>
#include <string.h>

#include "core/barrier/barrier.h"
#include "core/base/err.h"
#include "core/machine/machine.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "tests/support/test.h"
#include "tests/support/uniform_machine.h"

#define EPISODES 3u

/* The late member of each: the root of the trees; the first child of a node of
 * the form `tree`; the last child of mcs' root. */
static const uint32_t late_member[EPISODES] = {0, 3, 4};

static struct {
    void *memory;
    uint32_t members;
    qn_time_t late; /* one member is by that, for each episode: longer than a
                       barrier of the others takes */
    uint32_t entered[EPISODES]; /* private to the thread that runs all nodes */
    uint32_t early;             /* left before all had entered */
    uint32_t left;              /* have passed all */
    alignas(QN_CACHELINE) qn_a32 any;
} world;

static void node(void *ctx, uint32_t member)
{
    struct qn_barrier_member me;
    (void)ctx;
    if (qn_barrier_join(world.memory, member, &me) != QN_OK) {
        qn_timed_fail("a member has no seat");
    }
    for (uint32_t e = 0; e < EPISODES; e++) {
        if (member == late_member[e]) {
            qn_timed_sleep_until(qn_timed_clock() + world.late * QN_PS_PER_NS);
            /* Only an access waits for its time: what is private would be done
             * before the others go on. */
            (void)qn_load(&world.any, QN_RELAXED);
        }
        world.entered[e]++;
        qn_barrier_wait(&me);
        world.early += world.entered[e] != world.members;
    }
    qn_barrier_leave(&me);
    world.left++;
}

static void pass(const char *form, uint32_t members, bool own_cores,
                 qn_time_t late)
{
    static uint32_t core[QN_CORES_MAX];
    const struct qn_coherent_opts c = {.clock_ghz = 1};
    const struct qn_barrier_opts o = {.form = form,
                                      .members = members,
                                      .cores = members,
                                      .own_cores = own_cores};
    struct qn_timed_opts t = {
        .nodes = members, .main = node, .seed = 1, .until_ns = 10 * QN_MS};
    struct qn_timed_result r;
    struct qn_machine *m = uniform_machine(members);
    for (uint32_t i = 0; i < members; i++) {
        core[i] = i;
    }
    memset(&world, 0, sizeof world);
    world.members = members;
    world.late = late;
    world.memory = aligned_alloc(QN_CACHELINE, qn_barrier_bytes(&o));
    cr_assert_eq(qn_barrier_format(world.memory, qn_barrier_bytes(&o), &o),
                 QN_OK);
    cr_assert_eq(qn_coherent_create(&t.prices, m, core, members, &c), QN_OK);
    cr_assert_eq(qn_timed_run(&t, &r), QN_OK);
    cr_expect_null(r.fault);
    cr_expect_eq(world.early, 0, "%s, %u: %u", form, members, world.early);
    cr_expect_eq(world.left, members, "%s: %u of %u", form, world.left,
                 members);
    qn_timed_result_free(&r);
    qn_prices_destroy(t.prices);
    qn_machine_destroy(m);
    free(world.memory);
}

Test(barrier_members, none_of_the_most_leaves_before_all_have_entered)
{
    pass("dissemination", QN_BARRIER_MEMBERS_MAX, true, 20 * QN_US);
    pass("mcs", QN_BARRIER_MEMBERS_MAX, true, 20 * QN_US);
    pass("tree", QN_BARRIER_MEMBERS_MAX, true, 20 * QN_US);
}

/* Each arrival takes the line from all that wait: so they are fewer. */
Test(barrier_members, nor_of_those_at_one_counter)
{
    pass("central", 256, true, 100 * QN_US);
}

/* Members park: the last of 64 arrives at the counter after the first have
 * stopped looking. */
Test(barrier_members, nor_where_they_may_sleep)
{
    pass("central", 64, false, 200 * QN_US);
    pass("dissemination", 256, false, 200 * QN_US);
    pass("tree", 256, false, 200 * QN_US);
}
