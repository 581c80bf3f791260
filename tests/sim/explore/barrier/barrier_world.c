#include "tests/sim/explore/barrier/barrier_world.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/mark.h"

static struct {
    const struct barrier_program *program;
    const char *form;
    struct qn_barrier_member me[QN_EXPLORE_NODES];
    uint32_t cell[2][QN_EXPLORE_NODES];
    alignas(QN_CACHELINE) unsigned char memory[1024];
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

static void pass(uint32_t node, uint32_t e)
{
    uint32_t *side = world.cell[e % 2];
    side[node] = e;
    qn_touch_out(&side[node], sizeof side[node]);
    qn_barrier_wait(&world.me[node]);
    for (uint32_t i = 0; i < world.program->members; i++) {
        qn_touch_in(&side[i], sizeof side[i]);
        if (side[i] != e) {
            qn_sim_fail("a member left before all had entered");
        }
    }
}

static void run(uint32_t node)
{
    for (uint32_t e = 1; e <= world.program->episodes; e++) {
        pass(node, e);
    }
}

static void node_0(void *ctx)
{
    (void)ctx;
    run(0);
}

static void node_1(void *ctx)
{
    (void)ctx;
    run(1);
}

static void node_2(void *ctx)
{
    (void)ctx;
    run(2);
}

static const char *all_done(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < world.program->members; i++) {
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
    const struct qn_explore_opts o = {.nodes = p->members,
                                      .node = {node_0, node_1, node_2},
                                      .setup = setup,
                                      .check = all_done,
                                      .memory = m,
                                      .deviations = deviations,
                                      .steps_max = 2000};
    world.program = p;
    world.form = form;
    return qn_explore(&o, out) && out->complete;
}
