/*
 * The SCC: what each operation costs, against the closed model of its makers of
 * programs (latencies and completion times of put and get), queues at a message
 * buffer and at the interrupt controller.
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

/* A core with a child per done flag, between two others in a tree of OC-Bcast:
 * poll the done flags, see the notification, get a chunk of 96 lines, tell
 * parent and two siblings or children, and get the chunk to memory. All peers
 * at distance one, which the closed model assumes. */
static uint32_t children;

static void pass_chunk_on(void)
{
    for (uint32_t i = 0; i <= children; i++) {
        (void)qn_scc_flag_read(0);
    }
    qn_scc_get(&(struct qn_scc_copy){.peer = 1, .lines = 96});
    for (uint32_t i = 0; i < 3; i++) {
        (void)qn_scc_flag_write(1);
    }
    qn_scc_get(&(struct qn_scc_copy){.peer = 0, .lines = 96, .memory = true});
    world.took[0] = qn_timed_clock();
}

static void end_chunk(void) /* a leaf */
{
    (void)qn_scc_flag_read(0);
    qn_scc_get(&(struct qn_scc_copy){.peer = 1, .lines = 96});
    (void)qn_scc_flag_write(1);
    qn_scc_get(&(struct qn_scc_copy){.peer = 0, .lines = 96, .memory = true});
    world.took[0] = qn_timed_clock();
}

/* MB/s of a pipeline whose slowest core does this. */
static double rate(void (*stage)(void))
{
    make_prices(48);
    world.node[0] = stage;
    run_and_free();
    return 96.0 * 32 / ((double)world.took[0] / 1e6);
}

Test(scc, stages_of_a_pipelined_broadcast_give_its_published_throughput)
{
    load_machine("scc");
    children = 2;
    double two = rate(pass_chunk_on);
    children = 7;
    double seven = rate(pass_chunk_on);
    double leaf = rate(end_chunk); /* of k = 47, which has no inner core */
    cr_assert(fabs(two - 35.22) < 0.005, "%f", two);
    cr_assert(fabs(seven - 34.30) < 0.005, "%f", seven);
    cr_assert(fabs(leaf - 35.88) < 0.005, "%f", leaf);
}

/* ---- queues ---- */

/* us of the fastest and the slowest of the first n cores, all at the buffer of
 * core 0. */
static void crowd(uint32_t n, void (*what)(void), uint32_t lines, double *fast,
                  double *slow)
{
    make_prices(48);
    copy = (struct qn_scc_copy){.peer = 0, .lines = lines};
    memset(world.node, 0, sizeof world.node);
    for (uint32_t i = 0; i < n; i++) {
        world.node[i] = what;
    }
    run_and_free();
    *fast = INFINITY;
    *slow = 0;
    for (uint32_t i = 0; i < n; i++) {
        *fast = fmin(*fast, (double)world.took[i] / 1e6);
        *slow = fmax(*slow, (double)world.took[i] / 1e6);
    }
}

Test(scc, twenty_four_readers_of_one_buffer_do_not_slow_each_other)
{
    double fast, slow;
    load_machine("scc");
    crowd(24, node_gets, 128, &fast, &slow);
    /* Cores 0 to 23 are up to 7 routers away: 0.33 + 128 (0.136 + 0.196). */
    cr_assert(slow < 1.05 * 42.8, "%f", slow);
}

/* 48 lines of 12.5 ns for each line of one of them; the near ones, which are
 * back earlier, get a little more than their share. */
Test(scc, forty_eight_readers_of_one_buffer_queue)
{
    double fast, slow;
    load_machine("scc");
    crowd(48, node_gets, 128, &fast, &slow);
    cr_assert(slow > 128 * 48 * 0.0125 && slow < 1.2 * 128 * 48 * 0.0125,
              "%f to %f", fast, slow);
    cr_assert(fast > 1.4 * 35.1, "%f", fast);
}

Test(scc, inputs_served_in_turn_spread_the_readers)
{
    double fast, slow, even;
    load_machine("scc");
    crowd(48, node_gets, 128, &fast, &slow);
    even = slow / fast;
    world.m.parameter[QN_SCC_FAIR].value = 1;
    crowd(48, node_gets, 128, &fast, &slow);
    cr_assert(slow / fast > 1.5 && slow / fast > even, "%f to %f, before %f",
              fast, slow, even);
    cr_assert(slow > 128 * 48 * 0.0125, "%f", slow); /* one at a time */
}

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

/* ---- interrupts ---- */

static qn_ps_t raised[48];
static uint32_t targets;

static void interrupt_all(void)
{
    qn_timed_work(1000); /* the others wait */
    for (uint32_t i = 0; i < targets; i += QN_SCC_INTERRUPTS) {
        struct qn_price p = qn_timed_device(
            &(struct qn_device_access){.kind = QN_DEVICE_INTERRUPT});
        for (uint32_t k = i; k < i + QN_SCC_INTERRUPTS && k < targets; k++) {
            raised[k] = p.visible;
            qn_timed_signal(k + 1, p.visible);
        }
    }
}

static void handle(void)
{
    (void)qn_timed_wait(QN_PS_NEVER);
    for (uint32_t i = 0; i < 2; i++) { /* read the cause, clear it */
        (void)qn_timed_device(
            &(struct qn_device_access){.kind = QN_DEVICE_INTERRUPT_REGISTER});
    }
    world.took[qn_sim.self] = qn_timed_clock();
}

/* Core cycles until the first and the last of n cores has handled it. */
static void interrupts(uint32_t n, double *first, double *last)
{
    double ghz = world.m.clock_ghz;
    make_prices(48);
    targets = n;
    world.node[0] = interrupt_all;
    for (uint32_t i = 1; i < 48; i++) {
        world.node[i] = i <= n ? handle : NULL;
    }
    run_and_free();
    *first = INFINITY;
    *last = 0;
    for (uint32_t i = 1; i <= n; i++) {
        *first = fmin(*first, (double)world.took[i] / 1000 * ghz);
        *last = fmax(*last, (double)world.took[i] / 1000 * ghz);
    }
}

Test(scc, an_interrupt_takes_2000_cycles_and_many_queue_at_their_registers)
{
    double first, last;
    load_machine("scc");
    interrupts(1, &first, &last);
    cr_assert(last > 1950 && last < 2150, "%f", last);
    interrupts(20, &first, &last);
    cr_assert(last < 1.1 * first, "%f to %f", first, last);
    interrupts(47, &first, &last);
    cr_assert(first < 2200, "%f", first);
    cr_assert(last > 0.85 * 6000 && last < 6000, "%f", last);
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
