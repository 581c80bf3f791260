/*
 * Bulk copies on the timed machine: what they cost there, and when bytes are
 * moved. Two cores at 1 GHz on two memory nodes: a line of the other takes
 * 1600 / 8 = 200 ns.
 */
#include <string.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/coll/large/bulk_copy.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "tests/support/test.h"

#define BYTES ((size_t)3 * QN_BULK_PIECE + 64)
#define LINES (BYTES / QN_CACHELINE)
#define LINE  UINT64_C(200000) /* ps */

static struct {
    alignas(QN_BULK_PIECE) char from[BYTES];
    alignas(QN_BULK_PIECE) char to[BYTES];
    alignas(QN_CACHELINE) qn_a32 there;
    void (*copies)(void);
    char seen; /* by the reader, of the last byte */
} bulk_world;

static uint32_t owner_of(void *ctx, const void *at)
{
    (void)ctx;
    return (const char *)at < bulk_world.to ? 1 : 0;
}

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    if (node == 0) {
        bulk_world.copies();
        qn_store(&bulk_world.there, 1, QN_RELEASE);
        return;
    }
    while (qn_load(&bulk_world.there, QN_ACQUIRE) == 0) {
        qn_pause();
    }
    bulk_world.seen = bulk_world.to[BYTES - 1];
}

static void copy_all(void)
{
    qn_bulk_copy(bulk_world.to, bulk_world.from, BYTES);
}

static void touch_all(void)
{
    qn_bulk_touch(bulk_world.to, bulk_world.from, BYTES);
}

static struct qn_prices *prices(bool bulk)
{
    static const uint32_t core[] = {0, 1};
    const struct qn_coherent_opts o = {.clock_ghz = 1, .bulk = bulk};
    struct qn_machine *m = NULL;
    struct qn_prices *p = NULL;
    cr_assert_eq(qn_machine_create(&m, 2), QN_OK);
    m->core[1].node = m->core[1].cache = m->core[1].socket = 1;
    m->send[1] = m->send[2] = 100;
    m->receive[1] = m->receive[2] = 1600;
    m->facts.clock_ghz = 1;
    cr_assert_eq(qn_coherent_create(&p, m, core, 2, &o), QN_OK);
    qn_machine_destroy(m);
    return p;
}

static struct qn_timed_result run(bool bulk, void (*copies)(void), bool unmoved,
                                  const struct qn_sim_fault *fault)
{
    struct qn_timed_result r;
    const struct qn_timed_opts o = {.nodes = 2,
                                    .prices = prices(bulk),
                                    .main = node_main,
                                    .owner = owner_of,
                                    .unmoved = unmoved,
                                    .fault = fault,
                                    .faults = fault != NULL,
                                    .looks_on = true};
    memset(&bulk_world, 0, sizeof bulk_world);
    memset(bulk_world.from, 'x', BYTES);
    bulk_world.copies = copies;
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    qn_prices_destroy(o.prices);
    return r;
}

Test(timed_bulk, a_copy_costs_its_lines_and_its_time_adds_up)
{
    struct qn_timed_result r = run(true, copy_all, false, NULL);
    const struct qn_timed_node *n = &r.node[0];
    cr_expect_eq(n->copied, LINES * LINE);
    cr_expect_eq(n->clock, n->copied + n->hit + n->read + n->write + n->waited +
                               n->paused);
    cr_expect_eq(bulk_world.seen, 'x');
    cr_expect_eq(memcmp(bulk_world.to, bulk_world.from, BYTES), 0);
    qn_timed_result_free(&r);
}

Test(timed_bulk, a_touch_costs_as_much_and_moves_nothing)
{
    struct qn_timed_result r = run(true, touch_all, false, NULL);
    cr_expect_eq(r.node[0].copied, LINES * LINE);
    cr_expect_eq(bulk_world.seen, 0);
    qn_timed_result_free(&r);
}

Test(timed_bulk, a_run_may_price_copies_and_move_nothing)
{
    struct qn_timed_result r = run(true, copy_all, true, NULL);
    cr_expect_eq(r.node[0].copied, LINES * LINE);
    cr_expect_eq(bulk_world.seen, 0);
    qn_timed_result_free(&r);
}

Test(timed_bulk, a_node_with_slow_transfers_takes_longer)
{
    const struct qn_sim_fault slow = {.kind = QN_SIM_FAULT_LINES, .factor = 3};
    struct qn_timed_result r = run(true, copy_all, false, &slow);
    cr_expect_eq(r.node[0].copied, 3 * LINES * LINE);
    qn_timed_result_free(&r);
}

Test(timed_bulk, without_bandwidths_lines_are_priced)
{
    struct qn_timed_result r = run(false, copy_all, false, NULL);
    cr_expect_eq(r.node[0].copied, 0);
    cr_expect_geq(r.lines, 2 * LINES);
    cr_expect_eq(bulk_world.seen, 'x');
    qn_timed_result_free(&r);
    r = run(false, touch_all, false, NULL);
    cr_expect_geq(r.lines, 2 * LINES);
    cr_expect_eq(bulk_world.seen, 0);
    qn_timed_result_free(&r);
}
