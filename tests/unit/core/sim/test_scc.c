/*
 * The SCC: what each operation costs, against the closed model of its makers of
 * programs (latencies and completion times of put and get). Queues and
 * interrupts: tests/sim/timed/test_scc_probe.c.
 *
 * Cores 0 and 1 share tile (0, 0); core 47 is on tile (5, 3): nine routers.
 */
#include <math.h>

#include "tests/unit/core/sim/tiled_world.h"

#define FAR 47u

static void begin(void)
{
    load_machine("scc");
    make_prices(48);
}

static struct qn_scc_copy copy;

static void node_puts(void)
{
    qn_ps_t from = qn_timed_clock();
    qn_scc_put(&copy);
    world.took[qn_sim.self] = qn_timed_clock() - from;
}

static void node_gets(void)
{
    qn_ps_t from = qn_timed_clock();
    qn_scc_get(&copy);
    world.took[qn_sim.self] = qn_timed_clock() - from;
}

/* ns of one put or get of core 0. */
static double alone(void (*what)(void), uint32_t peer, uint32_t lines,
                    bool memory)
{
    copy = (struct qn_scc_copy){.peer = peer, .lines = lines, .memory = memory};
    make_prices(48);
    world.node[0] = what;
    run_and_free();
    return (double)world.took[0] / 1000;
}

static void check(double got, double want)
{
    cr_assert(fabs(got - want) < 0.01, "%.3f ns instead of %.3f", got, want);
}

/* ---- the closed model ---- */

Test(scc, put_and_get_of_a_line_cost_what_the_model_says)
{
    load_machine("scc");
    check(alone(node_puts, 1, 1, false), 341);
    check(alone(node_puts, 1, 1, true), 544);
    check(alone(node_gets, 1, 1, false), 602);
    check(alone(node_gets, 1, 1, true), 702);
}

Test(scc, put_and_get_of_many_lines_cost_what_the_model_says)
{
    load_machine("scc");
    check(alone(node_gets, 1, 96, false), 26442);
    check(alone(node_puts, 1, 96, true), 34174);
    check(alone(node_gets, 1, 96, true), 58367);
    check(alone(node_gets, 1, 128, false), 35146);
    check(alone(node_gets, FAR, 128, false), 45386);
}

static bool first_ten(void *ctx, uint32_t i)
{
    (void)ctx;
    return i < 10;
}

static void put_cached(void)
{
    copy.cached = first_ten;
    node_puts();
}

Test(scc, lines_in_the_caches_are_put_without_a_read)
{
    load_machine("scc");
    check(alone(put_cached, 1, 96, true), 34174 - 10 * 218);
    check(alone(node_gets, 1, 96, true), 58367);
}

Test(scc, the_own_buffer_is_as_far_as_that_of_the_other_core_of_the_tile)
{
    load_machine("scc");
    check(alone(node_gets, 0, 96, false), 26442);
}

static double told;

static void keep_visible(void *ctx, uint32_t i, const struct qn_price *p)
{
    (void)ctx;
    (void)i;
    told = (double)p->visible / 1000;
}

/* L of a put: as C, but the last line is there one way earlier. */
Test(scc, a_line_is_visible_before_the_put_is_complete, .init = begin)
{
    copy = (struct qn_scc_copy){.peer = 1, .lines = 1, .placed = keep_visible};
    world.node[0] = node_puts;
    run_and_free();
    check(told, 336);
}

static void read_and_write_flag(void)
{
    qn_ps_t from = qn_timed_clock();
    (void)qn_scc_flag_read(0);
    world.took[0] = qn_timed_clock() - from;
    from = qn_timed_clock();
    (void)qn_scc_flag_write(FAR);
    world.took[1] = qn_timed_clock() - from;
}

Test(scc, a_flag_is_read_by_a_get_and_written_by_a_put, .init = begin)
{
    world.node[0] = read_and_write_flag;
    run_and_free();
    check((double)world.took[0] / 1000, 466);
    check((double)world.took[1] / 1000, 69 + 136 + 126 + 90);
}

/* ---- queues ---- */

static void read_flag_late(void)
{
    qn_timed_work(20000);
    node_gets();
}

/* The far core begins 20 ns earlier, its line arrives 20 ns later. */
Test(scc, lines_are_served_in_the_order_of_arrival)
{
    load_machine("scc");
    world.m.parameter[QN_SCC_PORT].value = 1000;
    make_prices(48);
    copy = (struct qn_scc_copy){.peer = 0, .lines = 1, .memory = true};
    world.node[FAR] = node_gets;
    world.node[1] = read_flag_late;
    struct qn_timed_result r = run_world();
    check((double)r.node[1].waited / 1000, 0);
    check((double)r.node[FAR].waited / 1000, 1000 - 20);
    for (uint32_t i = 0; i < 48; i++) {
        const struct qn_timed_node *n = &r.node[i];
        cr_assert_eq(n->clock, n->device + n->waited + n->worked);
    }
    qn_timed_result_free(&r);
    qn_prices_destroy(world.prices);
}

/* ---- memory ---- */

static void use_own_memory(void)
{
    struct shared_line *own = &world.line[qn_sim.self];
    qn_ps_t from = qn_timed_clock();
    (void)qn_load(&own->x, QN_RELAXED);
    world.took[2 * qn_sim.self] = qn_timed_clock() - from;
    from = qn_timed_clock();
    qn_store(&own->x, 1, QN_RELEASE);
    world.took[2 * qn_sim.self + 1] = qn_timed_clock() - from;
}

/* Core 0 is on the tile of a memory controller; core 4 on (2, 0): three
 * routers. */
Test(scc, private_memory_is_fetched_once_from_the_nearest_controller,
     .init = begin)
{
    world.node[0] = use_own_memory;
    world.node[4] = use_own_memory;
    struct qn_timed_result r = run_world();
    check((double)world.took[0] / 1000, 218);
    check((double)world.took[1] / 1000, 1.876);
    check((double)world.took[8] / 1000, 208 + 2 * 3 * 5);
    cr_assert_eq(qn_scc_incoherent(world.prices), 0);
    qn_timed_result_free(&r);
    qn_prices_destroy(world.prices);
}

static void use_line_of_another(void)
{
    qn_timed_work(1000000);
    (void)qn_load(&world.line[0].x, QN_RELAXED);
}

Test(scc, memory_of_another_core_is_named_as_incoherent, .init = begin)
{
    world.node[0] = use_own_memory;
    world.node[1] = use_line_of_another;
    struct qn_timed_result r = run_world();
    cr_assert_eq(qn_scc_incoherent(world.prices), 1);
    qn_timed_result_free(&r);
    qn_prices_destroy(world.prices);
}
