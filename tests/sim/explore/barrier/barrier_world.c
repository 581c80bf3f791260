#include "tests/sim/explore/barrier/barrier_world.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/machine.h"

static struct {
    const struct barrier_program *program;
    const char *form;
    struct qn_barrier_member me[QN_EXPLORE_NODES];
    uint32_t cell[2][QN_EXPLORE_NODES];
    alignas(QN_CACHELINE) unsigned char memory[2048];
} world;

static void setup(void *ctx)
{
    (void)ctx;
    const struct qn_barrier_opts o = {.form = world.form,
                                      .members = world.program->members,
                                      .own_cores = world.program->own_cores};
    int err = qn_barrier_format(world.memory, sizeof world.memory, &o);
    for (uint32_t i = 0; i < o.members && err == QN_OK; i++) {
        err = qn_barrier_join(world.memory, i, &world.me[i]);
    }
    QN_ASSERT(err == QN_OK);
    memset(world.cell, 0, sizeof world.cell);
}

static void pass(struct qn_barrier_member *me, uint32_t e)
{
    uint32_t *side = world.cell[e % 2];
    side[me->member] = e;
    qn_touch_out(&side[me->member], sizeof side[0]);
    qn_barrier_wait(me);
    for (uint32_t i = 0; i < world.program->members; i++) {
        qn_touch_in(&side[i], sizeof side[i]);
        if (side[i] != e) {
            qn_sim_fail("a member left before all had entered");
        }
    }
}

static void pass_all(struct qn_barrier_member *me, uint32_t from, uint32_t to)
{
    for (uint32_t e = from; e <= to; e++) {
        pass(me, e);
    }
}

/* With a follower, member 0 leaves behind its first episode, and the node
 * behind all members takes the seat. */
static void run(uint32_t node)
{
    const struct barrier_program *p = world.program;
    struct qn_barrier_member *me = &world.me[node];
    const bool leaves = p->follower && node == 0;
    if (node < p->members) {
        pass_all(me, 1, leaves ? 1 : p->episodes);
        qn_barrier_leave(me);
        return;
    }
    int err;
    while ((err = qn_barrier_join(world.memory, 0, me)) == QN_EBUSY) {
        qn_pause();
    }
    QN_ASSERT(err == QN_OK && me->episode == 1);
    pass_all(me, 2, p->episodes);
}

static void run_self(void *ctx)
{
    (void)ctx;
    run(qn_sim.self);
}

static const char *all_done(void *ctx)
{
    (void)ctx;
    const uint32_t nodes = world.program->members + world.program->follower;
    for (uint32_t i = 0; i < nodes; i++) {
        if (qn_sim_end_of(i) != QN_SIM_DONE) {
            return "a member waits for ever";
        }
    }
    return NULL;
}

bool barrier_is_clean(const char *form, const struct barrier_program *p,
                      enum qn_explore_memory m, uint32_t deviations,
                      struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = p->members + p->follower,
                                      .node = {run_self, run_self, run_self},
                                      .setup = setup,
                                      .check = all_done,
                                      .memory = m,
                                      .deviations = deviations,
                                      .steps_max = 2000};
    QN_ASSERT(p->members + p->follower <= 3);
    world.program = p;
    world.form = form;
    return qn_explore(&o, out) && out->complete;
}
