/*
 * TILE-Gx: what each access costs, in cycles: first and second level cache,
 * homes, stores and their acknowledgement, fences, atomic operations.
 *
 * Node i is core i of the 6 x 6 grid: core 1 is one hop from core 0, core 35
 * ten.
 */
#include "tests/unit/core/sim/tiled_world.h"

#define FAR  35u /* ten hops from core 0 */
#define NEAR 1u  /* one hop */

static void begin(void)
{
    load_machine("tilegx_8036");
    world.m.clock_ghz = 1;
    make_prices(36);
}

static void home(uint32_t line, uint32_t core)
{
    cr_assert_eq(
        qn_tilegx_home(world.prices, &world.line[line], QN_CACHELINE, core),
        QN_OK);
}

static uint64_t load(uint32_t line)
{
    return qn_load(&world.line[line].x, QN_RELAXED);
}

static void store(uint32_t line)
{
    qn_store(&world.line[line].x, 1, QN_RELAXED);
}

static uint64_t cycles_of(void (*what)(void))
{
    qn_ps_t from = qn_timed_clock();
    what();
    return (qn_timed_clock() - from) / 1000;
}

/* Node 0 measures. */
#define MEASURE(n, ...)                                                        \
    do {                                                                       \
        qn_ps_t from = qn_timed_clock();                                       \
        __VA_ARGS__;                                                           \
        world.took[n] = (qn_timed_clock() - from) / 1000;                      \
    } while (0)

/* ---- loads ---- */

static void load_three_homes(void)
{
    MEASURE(0, load(0)); /* home: this core */
    MEASURE(1, load(1)); /* one hop */
    MEASURE(2, load(2)); /* ten hops */
    MEASURE(3, load(2)); /* again */
}

Test(tilegx, a_load_costs_the_home_and_two_cycles_per_hop, .init = begin)
{
    home(0, 0);
    home(1, NEAR);
    home(2, FAR);
    world.node[0] = load_three_homes;
    run_and_free();
    cr_assert_eq(world.took[0], 11);
    cr_assert_eq(world.took[1], 11 + 21 + 2);
    cr_assert_eq(world.took[2], 11 + 21 + 20);
    cr_assert_eq(world.took[3], 2, "%lu", world.took[3]);
}

static void count_homes(void)
{
    for (uint32_t i = 0; i < LINES; i++) {
        MEASURE(0, load(i));
        cr_assert(world.took[0] == 11 ||
                  (world.took[0] >= 34 && world.took[0] <= 52));
        world.took[world.took[0]]++;
    }
}

Test(tilegx, homes_are_spread_over_the_cores, .init = begin)
{
    world.node[0] = count_homes;
    struct qn_timed_result a = run_world();
    struct qn_timed_result b = run_world();
    /* From a corner the mean distance is five hops. */
    double mean = (double)a.node[0].clock / 1000 / LINES;
    cr_assert(mean > 38 && mean < 45, "%f", mean);
    cr_assert_eq(a.hash, b.hash);
    qn_timed_result_free(&a);
    qn_timed_result_free(&b);
    qn_prices_destroy(world.prices);
}

Test(tilegx, a_home_outside_of_the_grid_is_refused, .init = begin)
{
    cr_assert_eq(qn_tilegx_home(world.prices, world.line, 64, 36), QN_EINVAL);
    qn_prices_destroy(world.prices);
}

/* ---- stores and fences ---- */

static void store_and_fence(void)
{
    MEASURE(0, store(0));
    work_cycles(200);
    MEASURE(1, store(0); qn_fence(QN_SEQ_CST)); /* ten hops */
    work_cycles(200);
    MEASURE(2, store(1); qn_fence(QN_SEQ_CST)); /* one hop */
    MEASURE(3, qn_fence(QN_SEQ_CST));           /* nothing to wait for */
}

Test(tilegx, a_fence_waits_for_the_acknowledgements_and_40_at_least,
     .init = begin)
{
    home(0, FAR);
    home(1, NEAR);
    world.node[0] = store_and_fence;
    run_and_free();
    cr_assert_eq(world.took[0], 1);
    cr_assert_eq(world.took[1], 32 + 20, "%lu", world.took[1]);
    cr_assert_eq(world.took[2], 1 + 40, "%lu", world.took[2]);
    cr_assert_eq(world.took[3], 40);
}

static void store_over_copy(void)
{
    work_cycles(500); /* FAR holds a copy */
    MEASURE(0, store(0); qn_fence(QN_SEQ_CST));
}

static void hold_copy_near(void)
{
    load(0);
}

static void hold_copy(void)
{
    load(0);
    work_cycles(1000);
    MEASURE(1, load(0)); /* the copy is gone */
    MEASURE(2, load(0));
}

Test(tilegx, a_store_drops_copies_which_takes_until_the_farthest_is_gone,
     .init = begin)
{
    home(0, NEAR); /* FAR is nine hops from it */
    world.node[0] = store_over_copy;
    world.node[6] = hold_copy_near;
    world.node[7] = hold_copy_near;
    world.node[FAR] = hold_copy;
    run_and_free();
    cr_assert_eq(world.took[0], 32 + 2 + 12 + 18, "%lu", world.took[0]);
    cr_assert_eq(world.took[1], 32 + 18, "%lu", world.took[1]);
    cr_assert_eq(world.took[2], 2);
}

static void store_twice(void)
{
    load(0);
    store(0);
    MEASURE(0, load(0)); /* its own store does not make it wait */
    MEASURE(1, store(0); store(0));
    work_cycles(200);
    MEASURE(2, store(0); qn_fence(QN_SEQ_CST)); /* no copy has to go */
}

Test(tilegx, a_writer_keeps_its_copy_and_sees_its_store_at_once, .init = begin)
{
    home(0, FAR);
    world.node[0] = store_twice;
    run_and_free();
    cr_assert_eq(world.took[0], 2);
    cr_assert_eq(world.took[1], 2);
    cr_assert_eq(world.took[2], 52);
}

static void write_at_500(void)
{
    work_cycles(500);
    store(0);
}

static void await_line(void)
{
    while (load(0) == 0) {
        qn_pause();
    }
    world.took[0] = qn_timed_clock() / 1000;
}

/* Half of 32 + 2 + 12 + 18, and then a load from the home. */
Test(tilegx, a_store_is_visible_after_half_of_its_acknowledgement,
     .init = begin)
{
    home(0, NEAR);
    world.node[0] = write_at_500;
    world.node[FAR] = await_line;
    run_and_free();
    cr_assert_eq(world.took[0], 500 + 64 / 2 + 32 + 18, "%lu", world.took[0]);
}

static void load_at_505(void)
{
    work_cycles(505);
    MEASURE(qn_sim.self, load(0));
}

static void add_at_505(void)
{
    work_cycles(505);
    MEASURE(qn_sim.self, (void)qn_fetch_add(&world.line[0].x, 1, QN_RELAXED));
}

/* The store of node 0 is visible at 517. */
Test(tilegx, what_meets_a_store_on_its_way_waits_for_it, .init = begin)
{
    home(0, NEAR);
    world.node[0] = write_at_500;
    world.node[FAR] = load_at_505;
    run_and_free();
    cr_assert_eq(world.took[FAR], 12 + 32 + 18, "%lu", world.took[FAR]);
    load_machine("tilegx_8036");
    world.m.clock_ghz = 1;
    make_prices(36);
    home(0, NEAR);
    world.node[0] = write_at_500;
    world.node[NEAR] = add_at_505; /* at home: 5 to the second level, 6 back */
    run_and_free();
    cr_assert_eq(world.took[NEAR], 12 + 10 + 5, "%lu", world.took[NEAR]);
}

static void look_while_it_is_written(void)
{
    load(0);
    work_cycles(505 - 50);
    MEASURE(0, world.took[1] = load(0));
    work_cycles(540 - 507);
    MEASURE(2, world.took[3] = load(0));
}

/* Visible at 500 + 64 / 2. */
Test(tilegx, a_node_with_a_copy_sees_the_old_content_until_then, .init = begin)
{
    home(0, NEAR);
    world.node[0] = write_at_500;
    world.node[FAR] = look_while_it_is_written;
    run_and_free();
    cr_assert_eq(world.took[0], 2);
    cr_assert_eq(world.took[1], 0);
    cr_assert_eq(world.took[2], 50);
    cr_assert_eq(world.took[3], 1);
}

static void store_two_at_500(void)
{
    work_cycles(500);
    store(0);
    qn_store(&world.line[0].x, 2, QN_RELAXED);
}

static void look_at_second(void)
{
    load(0);
    work_cycles(505 - 50);
    MEASURE(0, world.took[1] = load(0));
}

Test(tilegx, of_two_stores_on_their_way_none_is_seen_early, .init = begin)
{
    home(0, NEAR);
    world.node[0] = store_two_at_500;
    world.node[FAR] = look_at_second;
    run_and_free();
    cr_assert_eq(world.took[0], 27 + 50, "%lu", world.took[0]);
    cr_assert_eq(world.took[1], 2);
}

static void order_stores(void)
{
    store(0);
    MEASURE(0, qn_store(&world.line[1].x, 1, QN_RELAXED));
    MEASURE(1, qn_store(&world.line[1].x, 1, QN_RELEASE));
    work_cycles(200);
    MEASURE(2, (void)qn_load(&world.line[2].x, QN_ACQUIRE));
    work_cycles(200);
    MEASURE(3, qn_store(&world.line[2].x, 1, QN_SEQ_CST));
    MEASURE(4, qn_fence(QN_ACQUIRE));
}

Test(tilegx, a_release_waits_for_all_earlier_stores_an_acquire_for_itself,
     .init = begin)
{
    home(0, FAR);
    home(1, NEAR);
    home(2, 0);
    world.node[0] = order_stores;
    run_and_free();
    cr_assert_eq(world.took[0], 1);
    /* The first store was issued two cycles before. */
    cr_assert_eq(world.took[1], 52 - 2 + 1, "%lu", world.took[1]);
    cr_assert_eq(world.took[2], 11);
    cr_assert_eq(world.took[3], 40 + 1 + 40, "%lu", world.took[3]);
    cr_assert_eq(world.took[4], 0);
}

static void load_and_fence(void)
{
    MEASURE(0, load(0); qn_fence(QN_SEQ_CST)); /* ten hops: longer than it */
    MEASURE(1, load(0); qn_fence(QN_SEQ_CST)); /* a hit */
    load(0);
    work_cycles(100);
    MEASURE(2, qn_fence(QN_SEQ_CST)); /* the load was long ago */
}

Test(tilegx, a_load_in_front_of_a_fence_overlaps_with_it, .init = begin)
{
    home(0, FAR);
    world.node[0] = load_and_fence;
    run_and_free();
    cr_assert_eq(world.took[0], 52);
    cr_assert_eq(world.took[1], 40);
    cr_assert_eq(world.took[2], 40);
}

/* ---- atomic operations ---- */

static void add_to(uint32_t line)
{
    (void)qn_fetch_add(&world.line[line].x, 1, QN_RELAXED);
}

static void add_near_and_far(void)
{
    MEASURE(0, add_to(0));
    MEASURE(1, add_to(1));
    MEASURE(2, add_to(2));
    MEASURE(3, load(2)); /* the operation left no copy here */
    add_to(2);
    MEASURE(4, load(2)); /* and took the one that was here */
}

Test(tilegx, an_atomic_operation_is_a_trip_to_the_home_and_ten_cycles,
     .init = begin)
{
    home(0, 0);
    home(1, NEAR);
    home(2, FAR);
    world.node[0] = add_near_and_far;
    run_and_free();
    cr_assert_eq(world.took[0], 11 + 10, "%lu", world.took[0]);
    cr_assert_eq(world.took[1], 34 + 10, "%lu", world.took[1]);
    cr_assert_eq(world.took[2], 52 + 10, "%lu", world.took[2]);
    cr_assert_eq(world.took[3], 52, "%lu", world.took[3]);
    cr_assert_eq(world.took[4], 52, "%lu", world.took[4]);
}

static void add_first_line(void)
{
    MEASURE(qn_sim.self, add_to(0));
}

static void add_second_line(void)
{
    MEASURE(qn_sim.self, add_to(1));
}

/* Cores 1 and 6 are each one hop from core 0. */
Test(tilegx, two_atomic_operations_at_one_home_collide, .init = begin)
{
    home(0, 0);
    home(1, 0);
    world.node[1] = add_first_line;
    world.node[6] = add_second_line;
    run_and_free();
    cr_assert_eq(world.took[1] + world.took[6], 44 + 54, "%lu %lu",
                 world.took[1], world.took[6]);
}

Test(tilegx, two_atomic_operations_at_two_homes_do_not_collide, .init = begin)
{
    home(0, 0);
    home(1, 7); /* one hop from 6 */
    world.node[1] = add_first_line;
    world.node[6] = add_second_line;
    run_and_free();
    cr_assert_eq(world.took[1], 44);
    cr_assert_eq(world.took[6], 44);
}

static void add_over_copy(void)
{
    work_cycles(500);
    MEASURE(0, add_to(0));
}

Test(tilegx, an_atomic_operation_drops_copies, .init = begin)
{
    home(0, NEAR);
    world.node[0] = add_over_copy;
    world.node[FAR] = hold_copy;
    run_and_free();
    cr_assert_eq(world.took[0], 34 + 10 + 12 + 18, "%lu", world.took[0]);
    cr_assert_eq(world.took[1], 50);
}

static void add_1000(void)
{
    for (uint32_t i = 0; i < 1000; i++) {
        add_to(0);
    }
}

Test(tilegx, a_counter_of_all_cores_takes_ten_cycles_per_operation,
     .init = begin)
{
    for (uint32_t i = 0; i < 36; i++) {
        world.node[i] = add_1000;
    }
    struct qn_timed_result r = run_world();
    double each = (double)r.clock / 1000 / 36000;
    cr_assert_eq(qn_load(&world.line[0].x, QN_RELAXED), 36000);
    cr_assert(each >= 10 && each < 10.2, "%f", each);
    qn_timed_result_free(&r);
    qn_prices_destroy(world.prices);
}

/* ---- the larger machine ---- */

static void load_far_72(void)
{
    world.took[0] = cycles_of(load_three_homes);
}

Test(tilegx, the_8072_is_a_grid_of_nine_by_eight)
{
    load_machine("tilegx_8072");
    cr_assert_eq(world.m.clock_ghz, 1);
    make_prices(72);
    home(0, 71); /* 8 + 7 hops */
    home(1, 9);  /* the next row */
    home(2, 71);
    world.node[0] = load_far_72;
    run_and_free();
    cr_assert_eq(world.took[0], 62 + 34 + 62 + 2, "%lu", world.took[0]);
}
