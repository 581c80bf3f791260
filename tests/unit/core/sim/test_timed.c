/*
 * The timed machine: what each access costs on a coherent machine, who waits
 * for whom, sleep, faults, and that a run repeats itself.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "core/sim/timed/timed_internal.h"
#include "core/wait/park.h"
#include "tests/support/test.h"

#define PS_PER_CYCLE 1000u /* at 1 GHz */

/* Four cores at 1 GHz; s(u, v) = 100 + 10 u + v, r(u, v) = 200 + 10 u + v. */
static struct qn_machine *machine(void)
{
    struct qn_machine *m;
    cr_assert_eq(qn_machine_create(&m, 4), QN_OK);
    for (uint32_t u = 0; u < 4; u++) {
        for (uint32_t v = 0; v < 4; v++) {
            m->send[u * 4 + v] = u == v ? 0 : 100 + 10 * u + v;
            m->receive[u * 4 + v] = u == v ? 0 : 200 + 10 * u + v;
        }
    }
    m->facts.clock_ghz = 1;
    return m;
}

struct world {
    alignas(64) qn_a64 x;
    alignas(64) qn_a64 y;
    alignas(64) qn_a32 word;
    alignas(64) uint8_t bytes[256];
    uint64_t took[4][8]; /* cycles, by node and step */
    uint64_t seen[4];
    void (*node[4])(struct world *w);
};

static struct world world;

static void node_main(void *ctx, uint32_t node)
{
    struct world *w = ctx;
    w->node[node](w);
}

/* Bare prices: hits cost nothing to speak of; times are differences in ps. */
static struct qn_timed_result run(const struct qn_timed_opts *more, bool bare)
{
    static const uint32_t core[4] = {0, 1, 2, 3};
    struct qn_machine *m = machine();
    struct qn_prices *p;
    struct qn_coherent_opts c = {.bare = bare};
    struct qn_timed_opts o = more != NULL ? *more : (struct qn_timed_opts){0};
    struct qn_timed_result r;
    o.nodes = 0;
    while (o.nodes < 4 && world.node[o.nodes] != NULL) {
        o.nodes++;
    }
    cr_assert_eq(qn_coherent_create(&p, m, core, o.nodes, &c), QN_OK);
    o.prices = p;
    o.main = node_main;
    o.ctx = &world;
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    qn_prices_destroy(p);
    qn_machine_destroy(m);
    return r;
}

static void begin(void)
{
    memset(&world, 0, sizeof world);
}

/* Until `value` is there. */
static void await(qn_a64 *p, uint64_t value)
{
    while (qn_load(p, QN_ACQUIRE) != value) {
        qn_pause();
    }
}

static void work_us(uint64_t us)
{
    qn_work(us * 1000);
}

/* ---- what a transfer costs ---- */

static void write_twice(struct world *w)
{
    qn_store(&w->x, 1, QN_RELEASE); /* cold */
    work_us(10);                    /* the others read */
    qn_store(&w->x, 2, QN_RELEASE); /* s(0, 3), the dearest holder */
}

static void read_at_1us(struct world *w)
{
    work_us(1);
    w->seen[1] = qn_load(&w->x, QN_ACQUIRE);
}

Test(timed, a_load_costs_r_and_a_store_the_dearest_s, .init = begin)
{
    world.node[0] = write_twice;
    world.node[1] = read_at_1us;
    world.node[2] = read_at_1us;
    world.node[3] = read_at_1us;
    struct qn_timed_result r = run(NULL, true);
    cr_assert_eq(r.node[0].write, 103 * PS_PER_CYCLE, "%lu", r.node[0].write);
    cr_assert_eq(r.node[0].writes, 1);
    /* r(0, i), whoever of the three was served first. */
    for (uint64_t i = 1; i < 4; i++) {
        cr_assert_eq(r.node[i].read, (200 + i) * PS_PER_CYCLE);
    }
    qn_timed_result_free(&r);
}

Test(timed, readers_of_one_line_are_served_an_eighth_of_r_apart, .init = begin)
{
    world.node[0] = write_twice;
    world.node[1] = read_at_1us;
    world.node[2] = read_at_1us;
    world.node[3] = read_at_1us;
    struct qn_timed_result r = run(NULL, true);
    uint64_t waited = r.node[1].waited + r.node[2].waited + r.node[3].waited;
    /* One waits an eighth, one two eighths; r is 201 to 203 cycles. */
    cr_assert(waited >= 3 * 201 * PS_PER_CYCLE / 8 &&
                  waited <= 3 * 203 * PS_PER_CYCLE / 8,
              "%lu", waited);
    qn_timed_result_free(&r);
}

static void take_over(struct world *w)
{
    work_us(1);
    qn_store(&w->x, 7, QN_RELEASE);
}

static void write_once(struct world *w)
{
    qn_store(&w->x, 1, QN_RELEASE);
}

Test(timed, a_store_without_a_copy_costs_r_and_s, .init = begin)
{
    world.node[0] = write_once;
    world.node[1] = take_over;
    struct qn_timed_result r = run(NULL, true);
    cr_assert_eq(r.node[1].write, (201 + 110) * PS_PER_CYCLE);
    qn_timed_result_free(&r);
}

static void swap_first(struct world *w)
{
    for (uint64_t i = 0; i < 1000; i += 2) {
        uint64_t seen = i;
        while (!qn_cas(&w->x, &seen, i + 1, QN_ACQ_REL)) {
            seen = i;
        }
    }
}

static void swap_second(struct world *w)
{
    for (uint64_t i = 1; i < 1000; i += 2) {
        uint64_t seen = i;
        while (!qn_cas(&w->x, &seen, i + 1, QN_ACQ_REL)) {
            seen = i;
        }
    }
}

/* A lost compare-and-swap takes the line, too: both take it in turn. */
Test(timed, a_ping_pong_of_compare_and_swap_costs_r_and_s_each_way,
     .init = begin)
{
    world.node[0] = swap_first;
    world.node[1] = swap_second;
    struct qn_timed_result r = run(NULL, true);
    double way = (double)r.clock / 1000;
    cr_assert(way > 0.99 * 311 * PS_PER_CYCLE &&
                  way < 1.01 * 311 * PS_PER_CYCLE,
              "%f", way);
    qn_timed_result_free(&r);
}

static void publish_line(struct world *w)
{
    static const uint8_t payload[40] = {1};
    qn_store(&w->x, 1, QN_RELEASE);
    work_us(10);
    qn_copy_out(w->bytes + 8, payload, sizeof payload);
    qn_store((qn_a64 *)(void *)w->bytes, 1, QN_RELEASE);
}

static void read_line(struct world *w)
{
    await((qn_a64 *)(void *)w->bytes, 1);
    qn_copy_in(w->took, w->bytes + 8, 40);
}

Test(timed, stores_to_one_line_in_a_row_are_one_transfer, .init = begin)
{
    world.node[0] = publish_line;
    world.node[1] = read_line;
    struct qn_timed_result r = run(NULL, true);
    /* The reader had looked before and holds a copy. It is woken once. */
    cr_assert_eq(r.node[0].writes, 1);
    cr_assert_eq(r.node[1].reads, 1, "%lu", r.node[1].reads);
    cr_assert_eq(r.node[1].read, 201 * PS_PER_CYCLE);
    qn_timed_result_free(&r);
}

static void copy_out(struct world *w)
{
    work_us(1);
    uint8_t own[256] = {3};
    qn_copy_out(w->bytes, own, sizeof own);
}

static void hold_lines(struct world *w)
{
    uint8_t own[256];
    qn_copy_in(own, w->bytes, sizeof own);
}

Test(timed, further_lines_of_a_copy_are_streamed, .init = begin)
{
    world.node[0] = copy_out;
    world.node[1] = hold_lines;
    struct qn_timed_result r = run(NULL, true);
    cr_assert_eq(r.node[0].write, (101 * 8 + 3 * 101) * PS_PER_CYCLE / 8);
    qn_timed_result_free(&r);
}

static void look_during_a_store(struct world *w)
{
    read_at_1us(w);
    qn_work(9050 - 201); /* 10.05 us: the store is under way */
    w->seen[1] = qn_load(&w->x, QN_ACQUIRE);
    w->took[1][0] = qn_timed_clock();
    qn_work(150);
    w->seen[2] = qn_load(&w->x, QN_ACQUIRE);
}

static void look_without_a_copy(struct world *w)
{
    qn_work(10050);
    w->seen[3] = qn_load(&w->x, QN_ACQUIRE);
    w->took[2][0] = qn_timed_clock();
}

Test(timed, until_the_end_of_a_store_a_holder_sees_the_old_value, .init = begin)
{
    world.node[0] = write_twice;
    world.node[1] = look_during_a_store;
    world.node[2] = look_without_a_copy;
    struct qn_timed_result r = run(NULL, true);
    cr_assert_eq(world.seen[1], 1);
    cr_assert_lt(world.took[1][0], 10051 * QN_PS_PER_NS);
    cr_assert_eq(world.seen[2], 2);
    /* One that has no copy waits for the store, then loads. */
    cr_assert_eq(world.seen[3], 2);
    cr_assert_eq(world.took[2][0] / QN_PS_PER_NS, 10000 + 101 + 202);
    qn_timed_result_free(&r);
}

/* ---- waiting ---- */

static void write_late(struct world *w)
{
    work_us(500);
    qn_store(&w->x, 1, QN_RELEASE);
}

static void await_x(struct world *w)
{
    await(&w->x, 1);
    w->seen[1] = qn_clock_now();
}

Test(timed, a_pause_ends_when_the_line_changes, .init = begin)
{
    world.node[0] = write_late;
    world.node[1] = await_x;
    struct qn_timed_result r = run(NULL, true);
    /* 500 us, then s(0, 1) until it is written and r(0, 1) to load it. */
    cr_assert_eq(r.node[1].clock / PS_PER_CYCLE, 500000 + 101 + 201);
    /* Looks grow to 1 us, so they are few. */
    cr_assert_lt(r.node[1].accesses, 600);
    qn_timed_result_free(&r);
}

static void look_without_pause(struct world *w)
{
    while (qn_load(&w->x, QN_ACQUIRE) != 1) {
    }
}

Test(timed, a_loop_without_pauses_is_treated_as_pausing_and_named,
     .init = begin)
{
    world.node[0] = write_late;
    world.node[1] = look_without_pause;
    struct qn_timed_result r = run(NULL, true);
    cr_assert(r.node[1].spun);
    cr_assert(!r.node[0].spun);
    cr_assert_eq(r.node[1].state, QN_SIM_FINISHED);
    qn_timed_result_free(&r);
}

static void park_on_word(struct world *w)
{
    w->seen[0] = (uint64_t)qn_park_word(&w->word, 0, QN_TIME_NEVER);
}

static void ring_late(struct world *w)
{
    work_us(50);
    qn_store(&w->word, 1, QN_SEQ_CST);
    qn_unpark_word(&w->word);
}

Test(timed, a_sleeper_continues_wake_ns_after_it_was_rung, .init = begin)
{
    world.node[0] = park_on_word;
    world.node[1] = ring_late;
    struct qn_timed_result r = run(NULL, true);
    cr_assert_eq(world.seen[0], QN_OK);
    /* The ringer: 50 us, its store (the sleeper holds a copy: none here, park
     * looks by itself), a fence, 200 ns of system call. */
    cr_assert_eq(r.node[0].clock, r.node[1].clock + 2000 * QN_PS_PER_NS);
    qn_timed_result_free(&r);
}

static void park_until_30us(struct world *w)
{
    qn_time_t now = qn_clock_now();
    w->seen[0] = (uint64_t)(int64_t)qn_park_word(&w->word, 0, now + 30 * QN_US);
    w->took[0][0] = qn_clock_now() - now;
}

Test(timed, a_sleeper_with_a_deadline_times_out_then, .init = begin)
{
    world.node[0] = park_until_30us;
    struct qn_timed_result r = run(NULL, true);
    cr_assert_eq((int64_t)world.seen[0], QN_ETIMEDOUT, "%ld",
                 (long)world.seen[0]);
    cr_assert_eq(world.took[0][0], 30 * QN_US);
    qn_timed_result_free(&r);
}

Test(timed, a_sleeper_that_is_never_rung_is_still_asleep_at_the_end,
     .init = begin)
{
    world.node[0] = park_on_word;
    struct qn_timed_result r = run(NULL, true);
    cr_assert_eq(r.node[0].state, QN_SIM_SLEEPS);
    cr_assert(!r.cut_off);
    qn_timed_result_free(&r);
}

/* ---- faults ---- */

static void count_up(struct world *w)
{
    for (uint64_t i = 1; i <= 100; i++) {
        qn_store(&w->x, i, QN_RELEASE);
        work_us(1);
    }
}

Test(timed, a_killed_node_does_not_perform_its_access, .init = begin)
{
    const struct qn_sim_fault f = {
        .kind = QN_SIM_FAULT_KILL, .node = 0, .access = 42};
    const struct qn_timed_opts o = {.fault = &f, .faults = 1};
    world.node[0] = count_up;
    struct qn_timed_result r = run(&o, true);
    cr_assert_eq(r.node[0].state, QN_SIM_GONE);
    cr_assert_eq(atomic_load(&world.x), 41);
    qn_timed_result_free(&r);
}

/* As the kernel's mark of an end. */
static void mark_end(void *ctx, uint32_t node, bool killed)
{
    struct world *w = ctx;
    w->seen[node] = qn_timed_clock_of(node) / QN_PS_PER_NS;
    qn_store(&w->y, killed ? 1 : 2, QN_RELEASE);
}

static void await_y(struct world *w)
{
    await(&w->y, 1);
}

Test(timed, an_end_is_told_outside_of_the_node_and_costs_nothing, .init = begin)
{
    const struct qn_sim_fault f = {
        .kind = QN_SIM_FAULT_KILL, .node = 0, .access = 42};
    const struct qn_timed_opts o = {
        .fault = &f, .faults = 1, .ended = mark_end};
    world.node[0] = count_up;
    world.node[1] = await_y;
    struct qn_timed_result r = run(&o, true);
    cr_assert_eq(r.node[1].state, QN_SIM_FINISHED);
    cr_assert_eq(r.node[0].accesses, 42);
    cr_assert_eq(world.seen[0], 41000, "%lu", world.seen[0]);
    cr_assert_eq(atomic_load(&world.y), 2, "the other one ended by itself");
    qn_timed_result_free(&r);
}

Test(timed, a_sleeper_is_killed_at_its_time, .init = begin)
{
    const struct qn_sim_fault f = {
        .kind = QN_SIM_FAULT_KILL, .node = 0, .from_ns = 70000};
    const struct qn_timed_opts o = {
        .fault = &f, .faults = 1, .ended = mark_end};
    world.node[0] = park_on_word;
    struct qn_timed_result r = run(&o, true);
    cr_assert_eq(r.node[0].state, QN_SIM_GONE);
    cr_assert_eq(r.node[0].clock, 70000 * QN_PS_PER_NS);
    cr_assert_eq(world.seen[0], 70000);
    qn_timed_result_free(&r);
}

static void count_up_deeply(struct world *w)
{
    uint8_t own[64] = {0}; /* a frame that a killed node does not leave */
    qn_copy_in(own, w->bytes, sizeof own);
    count_up(w);
    qn_copy_out(w->bytes, own, sizeof own);
}

/* AddressSanitizer would take what the killed node has left for a fault. */
Test(timed, the_stack_of_a_killed_node_is_used_again, .init = begin)
{
    const struct qn_sim_fault f = {
        .kind = QN_SIM_FAULT_KILL, .node = 0, .access = 42};
    const struct qn_timed_opts killed = {.fault = &f, .faults = 1};
    world.node[0] = count_up_deeply;
    for (int i = 0; i < 4; i++) {
        struct qn_timed_result r = run(i % 2 == 0 ? &killed : NULL, true);
        cr_assert_eq(r.node[0].state,
                     i % 2 == 0 ? QN_SIM_GONE : QN_SIM_FINISHED);
        qn_timed_result_free(&r);
        world.node[0] = i % 2 == 0 ? copy_out : count_up_deeply;
    }
}

Test(timed, a_stopped_node_goes_on_where_it_was, .init = begin)
{
    const struct qn_sim_fault f = {.kind = QN_SIM_FAULT_STOP,
                                   .node = 0,
                                   .from_ns = 50000,
                                   .until_ns = 950000};
    const struct qn_timed_opts o = {.fault = &f, .faults = 1};
    world.node[0] = count_up;
    struct qn_timed_result r = run(&o, true);
    cr_assert_eq(atomic_load(&world.x), 100);
    cr_assert(r.node[0].clock > 999 * QN_US * QN_PS_PER_NS &&
                  r.node[0].clock < 1001 * QN_US * QN_PS_PER_NS,
              "%lu", r.node[0].clock);
    cr_assert(r.node[0].stopped > 898 * QN_US * QN_PS_PER_NS);
    qn_timed_result_free(&r);
}

Test(timed, a_slow_core_works_longer_by_the_factor, .init = begin)
{
    const struct qn_sim_fault f = {
        .kind = QN_SIM_FAULT_SLOW, .node = 0, .factor = 3};
    const struct qn_timed_opts o = {.fault = &f, .faults = 1};
    world.node[0] = count_up;
    struct qn_timed_result r = run(&o, true);
    cr_assert_eq(r.node[0].worked, 300 * QN_US * QN_PS_PER_NS);
    qn_timed_result_free(&r);
}

Test(timed, a_run_is_cut_off_at_its_limit, .init = begin)
{
    const struct qn_timed_opts o = {.until_ns = 10000};
    world.node[0] = count_up;
    struct qn_timed_result r = run(&o, true);
    cr_assert(r.cut_off);
    cr_assert_eq(atomic_load(&world.x), 10);
    qn_timed_result_free(&r);
}

/* ---- bounds ---- */

#define MANY (QN_TIMED_WATCHES + 1)

static struct {
    alignas(QN_CACHELINE) qn_a64 line[MANY][QN_CACHELINE / sizeof(qn_a64)];
    uint32_t changes; /* the line that another node writes */
} many;

/* One line more than a node watches: the first one is forgotten. */
static void watch_many(struct world *w)
{
    for (uint32_t i = 0; i < MANY; i++) {
        (void)qn_load(&many.line[i][0], QN_ACQUIRE);
    }
    qn_pause();
    w->took[0][0] = qn_timed_clock() / PS_PER_CYCLE;
}

/* Early in the pause: all looks take MANY hits. */
static void change_one(struct world *w)
{
    qn_timed_work((MANY * 4 + 10) * PS_PER_CYCLE);
    qn_store(&many.line[many.changes][0], 1, QN_RELEASE);
    w->took[1][0] = qn_timed_clock() / PS_PER_CYCLE;
}

static bool change_ends_the_pause(uint32_t changes)
{
    begin();
    many.changes = changes;
    world.node[0] = watch_many;
    world.node[1] = change_one;
    struct qn_timed_result r = run(NULL, false);
    qn_timed_result_free(&r);
    return world.took[0][0] == world.took[1][0];
}

Test(timed, a_node_watches_512_lines_and_forgets_the_oldest)
{
    cr_assert_eq(QN_TIMED_WATCHES, 512);
    cr_assert(change_ends_the_pause(MANY - 1));
    cr_assert(change_ends_the_pause(1));
    cr_assert_not(change_ends_the_pause(0));
    cr_assert_eq(world.took[0][0], MANY * 4 + 1000, "at its horizon, 1 us");
}

static void does_nothing(void *ctx, uint32_t node)
{
    uint32_t *ran = ctx;
    *ran += node < QN_SIM_NODES_MAX;
}

Test(timed, a_machine_has_1024_nodes_at_most)
{
    static uint32_t core[QN_SIM_NODES_MAX];
    const uint32_t n = QN_SIM_NODES_MAX;
    const struct qn_coherent_opts c = {0};
    uint32_t ran = 0;
    struct qn_machine *m;
    struct qn_timed_opts o = {.nodes = n, .main = does_nothing, .ctx = &ran};
    struct qn_timed_result r;
    cr_assert_eq(n, 1024);
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t u = 0; u < n; u++) {
        core[u] = u;
        for (uint32_t v = 0; v < n; v++) {
            m->send[u * n + v] = m->receive[u * n + v] = u == v ? 0 : 100;
        }
    }
    cr_assert_eq(qn_coherent_create(&o.prices, m, core, n, &c), QN_OK);
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    cr_assert_eq(ran, n);
    qn_timed_result_free(&r);
    o.nodes = o.prices->nodes = n + 1;
    cr_assert_eq(qn_timed_run(&o, &r), QN_EINVAL);
    o.prices->nodes = n;
    qn_prices_destroy(o.prices);
    qn_machine_destroy(m);
}

static uint64_t touched;

static void touch_forever(struct world *w)
{
    uint8_t *at = (uint8_t *)w; /* addresses only: a load of nothing else */
    for (touched = 0; touched < 100000; touched++) {
        qn_touch_in(at + touched * QN_CACHELINE, 1);
    }
}

/* An entry of the table is 64 bytes and more, and there are 1024 in a piece. */
Test(timed, the_table_of_lines_has_a_bound_in_bytes, .init = begin)
{
    const struct qn_timed_opts o = {.lines_bytes = 1 << 20};
    world.node[0] = touch_forever;
    struct qn_timed_result r = run(&o, false);
    cr_assert_str_eq(r.fault, "more lines than the table may hold");
    cr_assert_eq(r.lines, touched);
    cr_assert_geq(r.lines * 64, UINT64_C(1) << 18, "%lu lines", r.lines);
    cr_assert_leq(r.lines * 64, UINT64_C(1) << 20, "%lu lines", r.lines);
    qn_timed_result_free(&r);
}

Test(timed, no_room_for_the_first_entries_of_the_table_is_an_error)
{
    struct qn_machine *m = machine();
    static const uint32_t core[1] = {0};
    const struct qn_coherent_opts c = {0};
    struct qn_timed_opts o = {
        .nodes = 1, .main = node_main, .lines_bytes = 1024};
    struct qn_timed_result r;
    cr_assert_eq(qn_coherent_create(&o.prices, m, core, 1, &c), QN_OK);
    cr_assert_eq(qn_timed_run(&o, &r), QN_ENOMEM);
    qn_prices_destroy(o.prices);
    qn_machine_destroy(m);
}

/* ---- the same again ---- */

static void busy_first(struct world *w)
{
    for (int i = 0; i < 200; i++) {
        qn_fetch_add(&w->x, 1, QN_SEQ_CST);
        w->seen[0] += qn_load(&w->y, QN_ACQUIRE);
    }
}

static void busy_second(struct world *w)
{
    for (int i = 0; i < 200; i++) {
        qn_fetch_add(&w->y, 1, QN_SEQ_CST);
        w->seen[1] += qn_load(&w->x, QN_ACQUIRE);
    }
}

static uint64_t busy(uint64_t seed, double jitter)
{
    const struct qn_timed_opts o = {.seed = seed, .jitter = jitter};
    begin();
    world.node[0] = busy_first;
    world.node[1] = busy_second;
    world.node[2] = busy_first;
    struct qn_timed_result r = run(&o, false);
    uint64_t hash = r.hash;
    for (uint32_t i = 0; i < r.nodes; i++) {
        const struct qn_timed_node *n = &r.node[i];
        cr_assert_eq(n->clock, n->hit + n->read + n->write + n->waited +
                                   n->fenced + n->library + n->worked +
                                   n->paused + n->parked + n->stopped);
    }
    qn_timed_result_free(&r);
    return hash;
}

Test(timed, the_same_seed_gives_the_same_run_and_times_add_up)
{
    cr_assert_eq(busy(1, 0.05), busy(1, 0.05));
    cr_assert_neq(busy(1, 0.05), busy(2, 0.05));
    /* A constant: on every host, with and without optimisation. */
    cr_assert_eq(busy(7, 0), UINT64_C(0x5b1b22f8232d0e30), "%#lx", busy(7, 0));
}

/* Bytes that are copied out, and what a copy finds that another node wrote. */
static uint8_t copied;

static void copies_out(struct world *w)
{
    const uint8_t bytes[3] = {1, copied, 3};
    qn_copy_out(w->bytes, bytes, sizeof bytes);
}

static uint64_t hash_of_copies(void (*node)(struct world *w), uint8_t byte)
{
    begin();
    copied = byte;
    world.node[0] = node;
    struct qn_timed_result r = run(NULL, false);
    uint64_t hash = r.hash;
    qn_timed_result_free(&r);
    return hash;
}

static void copies_in(struct world *w)
{
    uint8_t bytes[3];
    w->bytes[0] = copied; /* beside the machine */
    qn_copy_in(bytes, w->bytes, sizeof bytes);
}

static void copies_in_checked(struct world *w)
{
    uint8_t bytes[3];
    w->bytes[0] = copied;
    qn_copy_in_checked(bytes, w->bytes, sizeof bytes);
}

Test(timed, bytes_of_copies_are_in_the_hash)
{
    static void (*const node[])(struct world * w) = {copies_out, copies_in,
                                                     copies_in_checked};
    for (uint32_t i = 0; i < sizeof node / sizeof node[0]; i++) {
        cr_assert_eq(hash_of_copies(node[i], 1), hash_of_copies(node[i], 1));
        cr_assert_neq(hash_of_copies(node[i], 1), hash_of_copies(node[i], 2),
                      "%u", i);
    }
}
