/*
 * Two members that measure when they join, under every schedule: both have the
 * same form, and what it is lets none go before the other has come.
 *
 * By the clock each batch takes longer than a pair may, so there is one; and
 * each takes less than the one before, so the barrier that is selected, which
 * is tried second, is the faster one. A follower is member 1 a second time: it
 * joins what was chosen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/barrier/measured/measured_barrier.h"
#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/explore/explore.h"
#include "core/sim/machine.h"
#include "tests/support/test.h"

#define MEMBERS 2u

static struct {
    const char *form[MEMBERS];
    uint32_t cell[MEMBERS];
    qn_time_t time;
    uint32_t reads; /* of the clock */
    alignas(QN_CACHELINE) unsigned char memory[8192];
} world;

/* Read by member 0 only. */
static qn_time_t slow_clock(void *ctx)
{
    (void)ctx;
    world.time += (100 - ++world.reads) * QN_MEASURED_PAIR_NS;
    return world.time;
}

static void setup(void *ctx)
{
    (void)ctx;
    const struct qn_barrier_opts o = {.members = MEMBERS, .cores = MEMBERS};
    memset(&world, 0, sizeof world);
    const int rc =
        qn_measured_barrier_format(world.memory, sizeof world.memory, &o);
    QN_ASSERT(rc == QN_OK);
}

static void join(uint32_t member, struct qn_barrier_member *me)
{
    const struct qn_measured_clock clock = {.now = slow_clock};
    const int rc = qn_measured_barrier_join(world.memory, member, &clock, me);
    if (rc != QN_OK) {
        qn_sim_fail("a member has no seat");
    }
    world.form[member] = qn_barrier_form_name(me);
}

static void pass(struct qn_barrier_member *me)
{
    const uint32_t self = me->member;
    world.cell[self] = 1;
    qn_touch_out(&world.cell[self], sizeof world.cell[self]);
    qn_barrier_wait(me);
    qn_touch_in(&world.cell[1 - self], sizeof world.cell[self]);
    if (world.cell[1 - self] != 1) {
        qn_sim_fail("a member left before all had entered");
    }
}

static void run(void *ctx)
{
    struct qn_barrier_member me;
    const uint32_t self = qn_sim.self;
    (void)ctx;
    join(self, &me);
    pass(&me);
    if (self == 1) {
        qn_barrier_leave(&me);
        join(self, &me);
    }
}

static const char *check(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (qn_sim_end_of(i) != QN_SIM_DONE) {
            return "a member waits for ever";
        }
        /* The usual one is central. */
        if (strcmp(world.form[i], "dissemination") != 0) {
            return "a member has another form";
        }
    }
    return NULL;
}

Test(barrier_measured_explore, both_have_what_was_chosen, .timeout = 3000)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        const struct qn_explore_opts o = {
            .nodes = MEMBERS,
            .node = {run, run},
            .setup = setup,
            .check = check,
            .memory = m,
            .deviations = more != NULL ? (uint32_t)atoi(more) : 1,
            .steps_max = 4000};
        const bool clean = qn_explore(&o, &out) && out.complete;
        cr_expect(clean, "memory %d: %s at %s", (int)m, out.fault, out.choices);
        if (getenv("QN_SHOW_RUNS") != NULL) {
            printf("memory %d, %llu runs\n", (int)m,
                   (unsigned long long)out.runs);
        }
    }
}
