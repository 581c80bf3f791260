#ifndef QN_TEST_COHERENT_WORLD_H
#define QN_TEST_COHERENT_WORLD_H

/** A coherent machine of three cores and what its nodes do, for tests of the
 *  optional terms. The including file defines the nodes and computes each
 *  expected time by hand, in cycles.
 *
 *  1 GHz: s(u, v) = 100 + 10 u + v, r(u, v) = 200 + 10 u + v. A hit takes 4
 *  cycles, a fence 20. */

#include <string.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "tests/support/test.h"

#define CORES   3u
#define LINES   12u
#define CYCLE   UINT64_C(1000) /* ps */
#define HIT     4u
#define FENCE   20u
#define S(u, v) (100u + 10 * (u) + (v))
#define R(u, v) (200u + 10 * (u) + (v))

static struct coherent_world {
    alignas(QN_CACHELINE) qn_a64 line[LINES][QN_CACHELINE / sizeof(qn_a64)];
    alignas(QN_CACHELINE) qn_a32 word;
    void (*node[CORES])(void);
    uint64_t took[CORES][LINES]; /* cycles */
    uint64_t seen[CORES][LINES];
} world;

static inline void begin(void)
{
    memset(&world, 0, sizeof world);
}

static inline void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    if (world.node[node] != NULL) {
        world.node[node]();
    }
}

static inline struct qn_machine *machine(void)
{
    struct qn_machine *m;
    cr_assert_eq(qn_machine_create(&m, CORES), QN_OK);
    for (uint32_t u = 0; u < CORES; u++) {
        for (uint32_t v = 0; v < CORES; v++) {
            m->send[u * CORES + v] = u == v ? 0 : S(u, v);
            m->receive[u * CORES + v] = u == v ? 0 : R(u, v);
        }
    }
    m->facts.clock_ghz = 1;
    return m;
}

static inline void run(const struct qn_coherent_opts *c)
{
    static const uint32_t core[CORES] = {0, 1, 2};
    struct qn_machine *m = machine();
    struct qn_timed_opts o = {.nodes = CORES, .main = node_main};
    struct qn_timed_result r;
    cr_assert_eq(qn_coherent_create(&o.prices, m, core, CORES, c), QN_OK);
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    for (uint32_t i = 0; i < CORES; i++) {
        const struct qn_timed_node *n = &r.node[i];
        cr_assert_eq(n->clock, n->hit + n->read + n->write + n->waited +
                                   n->fenced + n->library + n->worked +
                                   n->paused + n->parked + n->stopped);
    }
    qn_timed_result_free(&r);
    qn_prices_destroy(o.prices);
    qn_machine_destroy(m);
}

static inline uint64_t clock_cycles(void)
{
    return qn_timed_clock() / CYCLE;
}

static inline void at(uint64_t cycles)
{
    qn_timed_sleep_until(cycles * CYCLE);
}

static inline qn_a64 *line(uint32_t i)
{
    return &world.line[i][0];
}

/* What it costs, and what it finds. */
static inline void timed_load(uint32_t i)
{
    uint64_t from = clock_cycles();
    world.seen[qn_sim.self][i] = qn_load(line(i), QN_ACQUIRE);
    world.took[qn_sim.self][i] = clock_cycles() - from;
}

static inline void timed_store(uint32_t i)
{
    uint64_t from = clock_cycles();
    qn_store(line(i), 1, QN_RELEASE);
    world.took[qn_sim.self][i] = clock_cycles() - from;
}

/* Node 1 has copies of the first lines. */
static inline void hold_copies(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)qn_load(line(i), QN_ACQUIRE);
    }
}

#endif
