#include "tests/sim/explore/large/large_explore_world.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/machine.h"

#define MEMBERS_MAX 3u

static struct {
    const struct large_program *program;
    struct qn_large_line lines[MEMBERS_MAX];
    struct qn_large member[MEMBERS_MAX];
    uint64_t in[MEMBERS_MAX], out[MEMBERS_MAX];
} world;

static void setup(void *ctx)
{
    (void)ctx;
    memset(world.lines, 0, sizeof world.lines);
    for (uint32_t i = 0; i < world.program->members; i++) {
        const struct qn_large_opts o = {
            .members = world.program->members, .rank = i, .lines = world.lines};
        const int rc = qn_large_init(&world.member[i], &o);
        QN_ASSERT(rc == QN_OK);
    }
}

static uint64_t value_of(uint32_t node, uint32_t k)
{
    return 100 * k + node + 1;
}

static uint64_t result_of(uint32_t k)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < world.program->members; i++) {
        sum += value_of(i, k);
    }
    return world.program->operation == QN_LARGE_REDUCE ? sum : value_of(0, k);
}

static bool has_result(uint32_t node)
{
    return (world.program->operation == QN_LARGE_REDUCE) == (node == 0);
}

static void write_input(uint32_t node, uint64_t value)
{
    qn_touch_out(&world.in[node], sizeof world.in[node]);
    world.in[node] = value;
}

/* @return what the operation returned. */
static int operate(uint32_t node, uint32_t k)
{
    const struct large_program *p = world.program;
    write_input(node, value_of(node, k));
    const struct qn_large_call c = {.operation = p->operation,
                                    .bytes = sizeof world.in[node],
                                    .in = &world.in[node],
                                    .out = &world.out[node],
                                    .op = &qn_sum_u64,
                                    .entry = p->entry,
                                    .exit = p->exit};
    const int rc = qn_large_run(&world.member[node], &c);
    if (rc != QN_OK) {
        return rc;
    }
    if (p->exit == QN_LARGE_NONE) { /* the input is written again */
        (void)qn_large_settle(&world.member[node]);
    }
    if (has_result(node)) {
        qn_touch_in(&world.out[node], sizeof world.out[node]);
        if (world.out[node] != result_of(k)) {
            qn_sim_fail("a wrong result");
        }
    }
    return QN_OK;
}

static void run(uint32_t node)
{
    const struct large_program *p = world.program;
    int rc = QN_OK;
    if (p->ends != 0 && p->ends == node) {
        qn_large_down(world.lines, node);
        return;
    }
    for (uint32_t k = 1; rc == QN_OK && k <= p->operations; k++) {
        rc = operate(node, k);
    }
    if (p->ends != 0 && rc == QN_OK && node == 0) {
        qn_sim_fail("what needs an ended member has succeeded");
    }
    if (p->ends == 0 && rc != QN_OK) {
        qn_sim_fail("an operation has failed");
    }
    if (rc != QN_OK && qn_large_settle(&world.member[node]) != rc) {
        qn_sim_fail("it has settled as if nothing had failed");
    }
    write_input(node, 0); /* nothing reads it any more */
}

static void run_self(void *ctx)
{
    (void)ctx;
    run(qn_sim.self);
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

bool large_is_clean(const struct large_program *p, enum qn_explore_memory m,
                    uint32_t deviations, struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = p->members,
                                      .node = {run_self, run_self, run_self},
                                      .setup = setup,
                                      .check = all_done,
                                      .memory = m,
                                      .deviations = deviations,
                                      .steps_max = 2000};
    world.program = p;
    return qn_explore(&o, out) && out->complete;
}
