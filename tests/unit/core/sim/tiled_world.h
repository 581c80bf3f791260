#ifndef QN_TEST_TILED_WORLD_H
#define QN_TEST_TILED_WORLD_H

/** A machine of machines/ and what its nodes do, for tests of its prices. The
 *  including file defines the nodes. */

#include <string.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sim/timed/tiled/scc.h"
#include "core/sim/timed/tiled/tilegx.h"
#include "core/sim/timed/tiled/udn.h"
#include "core/sim/timed/timed.h"
#include "tests/support/test.h"

#define NODES_MAX 72u
#define LINES     256u

struct shared_line {
    alignas(QN_CACHELINE) qn_a64 x;
};

static struct tiled_world {
    struct qn_tiled m;
    struct qn_prices *prices;
    uint32_t nodes;
    uint32_t core[NODES_MAX]; /* of each node */
    void (*node[NODES_MAX])(void);
    struct shared_line line[LINES];
    uint64_t took[NODES_MAX]; /* ps */
    struct qn_udn *udn;
} world;

/* Machine NAME; TILE-Gx at 1 GHz, so that a cycle is 1000 ps. Node i on core
 * i. */
static inline void load_machine(const char *name)
{
    char path[256];
    struct qn_parse_error e = {{0}};
    memset(&world, 0, sizeof world);
    (void)snprintf(path, sizeof path, "%s/%s.json", QN_DATA, name);
    cr_assert_eq(qn_tiled_load(&world.m, path, &e), QN_OK, "%s", e.text);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        world.core[i] = i;
    }
}

static inline void make_prices(uint32_t nodes)
{
    world.nodes = nodes;
    cr_assert_eq(qn_tiled_prices(&world.prices, &world.m, world.core, nodes),
                 QN_OK);
}

static inline void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    if (world.node[node] != NULL) {
        world.node[node]();
    }
}

/* Runs and frees the price list. */
static inline struct qn_timed_result run_world(void)
{
    const struct qn_timed_opts o = {
        .nodes = world.nodes, .prices = world.prices, .main = node_main};
    struct qn_timed_result r;
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    return r;
}

static inline void run_and_free(void)
{
    struct qn_timed_result r = run_world();
    qn_timed_result_free(&r);
    qn_prices_destroy(world.prices);
}

static inline void work_cycles(uint64_t cycles)
{
    qn_timed_work(cycles * 1000);
}

#endif
