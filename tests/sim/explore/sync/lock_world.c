#include "tests/sim/explore/sync/lock_world.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/machine.h"

#define DEADLINE 1u /* ns */

const struct lock_program lock_of_two = {.node = {"aa", "aa"}};
const struct lock_program lock_of_three = {.node = {"a", "a", "a"}};
const struct lock_program lock_of_tries = {.node = {"aa", "tt"}};
const struct lock_program lock_of_a_sleeper = {.node = {"w", "te", "a"}};
const struct lock_program lock_of_deadlines = {.node = {"w", "ue", "a"}};
const struct lock_program lock_of_own_cores = {.node = {"aa", "aa"},
                                               .own_cores = true};

static struct {
    const struct lock_program *program;
    struct qn_lock_client client[QN_EXPLORE_NODES];
    uint32_t count; /* under the lock */
    uint32_t done;  /* by all */
    bool held;      /* as the nodes see it */
    qn_a32 look;    /* a point in the middle of the section */
    struct qn_baton wait;
    alignas(QN_CACHELINE) unsigned char memory[1024];
} world;

static void setup(void *ctx)
{
    const struct qn_lock_type *type = ctx;
    const struct qn_lock_opts o = {.clients = QN_EXPLORE_NODES,
                                   .own_cores = world.program->own_cores};
    QN_ASSERT(qn_lock_bytes(type, &o) <= sizeof world.memory);
    memset(world.memory, 0, sizeof world.memory);
    int err = qn_lock_format(type, world.memory, &o);
    for (uint32_t i = 0; i < QN_EXPLORE_NODES && err == QN_OK; i++) {
        err = qn_lock_join(type, world.memory, NULL, &world.client[i]);
    }
    QN_ASSERT(err == QN_OK);
    world.count = world.done = 0;
    world.held = false;
    qn_store(&world.look, 0, QN_SEQ_CST);
    qn_baton_init(&world.wait);
}

/* The lock is held: count, and release it. */
static void count(struct qn_lock_client *c)
{
    if (world.held) {
        qn_sim_fail("two holders at once");
    }
    world.held = true;
    qn_touch_in(&world.count, sizeof world.count);
    (void)qn_load(&world.look, QN_RELAXED);
    world.count++;
    qn_touch_out(&world.count, sizeof world.count);
    world.held = false;
    world.done++;
    qn_lock_release(c);
}

static void do_one(struct qn_lock_client *c, char operation)
{
    switch (operation) {
    case 't':
        if (qn_lock_try_acquire(c)) {
            count(c);
        }
        break;
    case 'u':
        if (qn_lock_acquire_until(c, DEADLINE) == QN_OK) {
            count(c);
        }
        break;
    case 'e':
        (void)qn_baton_go(&world.wait, QN_BATON_GO);
        break;
    default:
        qn_lock_acquire(c);
        if (operation == 'w') {
            (void)qn_baton_wait(&world.wait, &c->stats.waits);
        }
        count(c);
        break;
    }
}

static void run(uint32_t node)
{
    for (const char *o = world.program->node[node]; *o != '\0'; o++) {
        do_one(&world.client[node], *o);
    }
}

static void run_self(void *ctx)
{
    (void)ctx;
    run(qn_sim.self);
}

static const char *all_done(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; world.program->node[i] != NULL; i++) {
        if (qn_sim_end_of(i) != QN_SIM_DONE) {
            return "a node sleeps for ever";
        }
    }
    return world.count == world.done ? NULL : "a count is lost";
}

bool lock_is_clean(const struct qn_lock_type *type,
                   const struct lock_program *p, enum qn_explore_memory m,
                   uint32_t deviations, struct qn_explored *out)
{
    struct qn_explore_opts o = {.node = {run_self, run_self, run_self},
                                .setup = setup,
                                .check = all_done,
                                .ctx = (void *)(uintptr_t)type,
                                .memory = m,
                                .deviations = deviations,
                                .steps_max = 2000};
    while (p->node[o.nodes] != NULL) {
        o.nodes++;
    }
    world.program = p;
    return qn_explore(&o, out) && out->complete;
}
