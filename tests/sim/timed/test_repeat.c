/*
 * Large groups, and runs that repeat: 256 nodes broadcast and meet in barriers;
 * the same seed gives the same run, twice here and in every build.
 */
#include "core/base/bits.h"
#include "core/sim/timed/coherent.h"
#include "core/topo/static_trees.h"
#include "loadgen/simulate/virtual.h"
#include "tests/support/test.h"
#include "transports/registry.h"

#define NODES 256u

/* 8 sockets of 32 cores: 100 cycles within one, 300 between two. */
static struct qn_machine *machine(void)
{
    struct qn_machine *m;
    cr_assert_eq(qn_machine_create(&m, NODES), QN_OK);
    for (uint32_t u = 0; u < NODES; u++) {
        m->core[u].socket = u / 32;
        m->core[u].node = u / 32;
        for (uint32_t v = 0; v < NODES; v++) {
            double cost = u == v ? 0 : u / 32 == v / 32 ? 100 : 300;
            m->send[u * NODES + v] = 0.22 * cost;
            m->receive[u * NODES + v] = 0.78 * cost;
        }
    }
    m->facts.clock_ghz = 2;
    return m;
}

static uint64_t run(enum qn_virtual op, uint64_t seed, uint32_t count)
{
    static struct qn_shape s;
    static struct qn_tree tree;
    static uint32_t core[NODES];
    const struct qn_coherent_opts c = {.bare = false};
    struct qn_machine *m = machine();
    struct qn_prices *p;
    struct qn_virtual_result r;
    for (uint32_t i = 0; i < NODES; i++) {
        core[i] = i;
    }
    cr_assert_eq(qn_static_build(&s, m, "cluster", 0, QN_LEVEL_NODE), QN_OK);
    cr_assert_eq(qn_tree_place(&tree, &s, core), QN_OK);
    cr_assert_eq(qn_coherent_create(&p, m, core, NODES, &c), QN_OK);
    const struct qn_virtual_opts o = {.op = op,
                                      .transport = qn_transport_at(0),
                                      .tree = &tree,
                                      .prices = p,
                                      .size = 8,
                                      .count = count,
                                      .gap_ns = 20000,
                                      .seed = seed,
                                      .jitter = 0.05};
    cr_assert_eq(qn_virtual_run(&r, &o), QN_OK);
    cr_assert(r.wrong == 0 && !r.incomplete);
    uint64_t hash = r.run.hash;
    qn_virtual_result_free(&r);
    qn_prices_destroy(p);
    qn_machine_destroy(m);
    return hash;
}

/* Under a sanitizer, which has seen the others in the test below. */
#if defined(__SANITIZE_ADDRESS__)
#define OPERATIONS 1u
#else
#define OPERATIONS QN_VIRTUAL_CHANNEL
#endif

Test(repeat, a_seed_gives_the_same_run_on_256_nodes, .timeout = 100)
{
    for (uint32_t op = 0; op < OPERATIONS; op++) {
        uint64_t hash = run((enum qn_virtual)op, 1, 20);
        cr_assert_eq(hash, run((enum qn_virtual)op, 1, 20));
        cr_assert_neq(hash, run((enum qn_virtual)op, 2, 20));
    }
}

/* In every build, with and without optimisation, on every host. Any change of
 * the code that runs, or of a price, changes them: then take the new ones from
 * the message, once. */
Test(repeat, every_build_gives_the_same_run, .timeout = 100)
{
    static const uint64_t want[QN_VIRTUAL_CHANNEL] = {
        UINT64_C(0xf98ea25620de6af3), UINT64_C(0x53e467cc8aa83372),
        UINT64_C(0x57abaf419d3a7d8b), UINT64_C(0x8a31d006ea66260f)};
    for (uint32_t op = 0; op < QN_VIRTUAL_CHANNEL; op++) {
        uint64_t hash = run((enum qn_virtual)op, 7, 20);
        cr_expect_eq(hash, want[op], "%s: %#lx", qn_virtual_name(op), hash);
    }
}
