/*
 * Optional terms of coherent machines that concern time: store buffers, loops
 * that look at intervals, a stride prefetcher. Each expected time is computed
 * by hand, in cycles.
 *
 * Three cores at 1 GHz: s(u, v) = 100 + 10 u + v, r(u, v) = 200 + 10 u + v.
 * A hit takes 4 cycles, a fence 20.
 */
#include <string.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/store_buffer.h"
#include "core/sim/timed/timed.h"
#include "core/wait/park.h"
#include "tests/support/test.h"

#define CORES   3u
#define LINES   12u
#define CYCLE   UINT64_C(1000) /* ps */
#define HIT     4u
#define FENCE   20u
#define S(u, v) (100u + 10 * (u) + (v))
#define R(u, v) (200u + 10 * (u) + (v))

static struct {
    alignas(QN_CACHELINE) qn_a64 line[LINES][QN_CACHELINE / sizeof(qn_a64)];
    alignas(QN_CACHELINE) qn_a32 word;
    void (*node[CORES])(void);
    uint64_t took[CORES][LINES]; /* cycles */
    uint64_t seen[CORES][LINES];
} world;

static void begin(void)
{
    memset(&world, 0, sizeof world);
}

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    if (world.node[node] != NULL) {
        world.node[node]();
    }
}

static struct qn_machine *machine(void)
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

static void run(const struct qn_coherent_opts *c)
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

static uint64_t clock_cycles(void)
{
    return qn_timed_clock() / CYCLE;
}

static void at(uint64_t cycles)
{
    qn_timed_sleep_until(cycles * CYCLE);
}

static qn_a64 *line(uint32_t i)
{
    return &world.line[i][0];
}

/* What it costs, and what it finds. */
static void timed_load(uint32_t i)
{
    uint64_t from = clock_cycles();
    world.seen[qn_sim.self][i] = qn_load(line(i), QN_ACQUIRE);
    world.took[qn_sim.self][i] = clock_cycles() - from;
}

static void timed_store(uint32_t i)
{
    uint64_t from = clock_cycles();
    qn_store(line(i), 1, QN_RELEASE);
    world.took[qn_sim.self][i] = clock_cycles() - from;
}

/* ---- store buffers ---- */

/* Node 1 has copies of the first lines. */
static void hold_copies(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)qn_load(line(i), QN_ACQUIRE);
    }
}

static void store_two(void)
{
    at(1000);
    timed_store(0); /* s(0, 1) */
    timed_store(1); /* s(0, 1) */
}

static void look_meanwhile(void)
{
    hold_copies(2);
    at(1000 + S(0, 1) - HIT);
    timed_load(0); /* not visible yet */
    timed_load(0); /* now it is: r(0, 1) */
    timed_load(1); /* it has become visible meanwhile */
}

static void two_stores(uint32_t entries)
{
    world.node[0] = store_two;
    world.node[1] = look_meanwhile;
    run(&(struct qn_coherent_opts){.store_buffer = entries});
}

Test(coherent_terms, without_a_store_buffer_a_sender_is_blocked, .init = begin)
{
    two_stores(0);
    cr_assert_eq(world.took[0][0], S(0, 1));
    cr_assert_eq(world.took[0][1], S(0, 1));
}

Test(coherent_terms, a_sender_goes_on_when_its_store_has_entered, .init = begin)
{
    two_stores(4);
    cr_assert_eq(world.took[0][0], HIT);
    cr_assert_eq(world.took[0][1], HIT);
    cr_assert_eq(world.seen[1][0], 1);
    cr_assert_eq(world.took[1][0], R(0, 1));
    cr_assert_eq(world.seen[1][1], 1);
}

static void look_late(void)
{
    hold_copies(2);
    at(1000 + 2 * S(0, 1) - HIT); /* the first one ended at 1000 + s */
    timed_load(1);
    at(1000 + 2 * S(0, 1));
    timed_load(0);
    world.seen[1][2] = qn_load(line(1), QN_ACQUIRE);
}

Test(coherent_terms, stores_become_visible_one_after_the_other, .init = begin)
{
    world.node[0] = store_two;
    world.node[1] = look_late;
    run(&(struct qn_coherent_opts){.store_buffer = 4});
    cr_assert_eq(world.seen[1][1], 0, "one cycle too early");
    cr_assert_eq(world.took[1][1], HIT);
    cr_assert_eq(world.seen[1][0], 1);
    cr_assert_eq(world.seen[1][2], 1);
}

static void store_three(void)
{
    at(1000);
    timed_store(0);
    timed_store(1);
    timed_store(2);
}

static void hold_three(void)
{
    hold_copies(3);
}

Test(coherent_terms, a_full_store_buffer_blocks, .init = begin)
{
    world.node[0] = store_three;
    world.node[1] = hold_three;
    run(&(struct qn_coherent_opts){.store_buffer = 2});
    cr_assert_eq(world.took[0][0], HIT);
    cr_assert_eq(world.took[0][1], HIT);
    /* It enters when the first one is visible. */
    cr_assert_eq(world.took[0][2], S(0, 1) - 2 * HIT + HIT);
}

static void store_and_wait(void)
{
    at(1000);
    timed_store(0);
    uint64_t from = clock_cycles();
    qn_fence(QN_RELEASE);
    world.took[0][6] = clock_cycles() - from;
    from = clock_cycles();
    qn_fence(QN_SEQ_CST);
    world.took[0][7] = clock_cycles() - from;
    at(2000);
    timed_store(1);
    from = clock_cycles();
    (void)qn_fetch_add(line(3), 1, QN_RELAXED); /* 20 cycles by itself */
    world.took[0][8] = clock_cycles() - from;
    at(3000);
    timed_store(2);
    from = clock_cycles();
    qn_unpark_word(&world.word);
    world.took[0][9] = clock_cycles() - from;
    at(4000);
    from = clock_cycles();
    qn_store(line(4), 1, QN_SEQ_CST);
    world.took[0][10] = clock_cycles() - from;
}

static void hold_five(void)
{
    hold_copies(5);
}

Test(coherent_terms, fences_and_system_calls_wait_for_the_store_buffer,
     .init = begin)
{
    world.node[0] = store_and_wait;
    world.node[1] = hold_five;
    run(&(struct qn_coherent_opts){.store_buffer = 4});
    cr_assert_eq(world.took[0][6], 0, "stores are in order anyway");
    cr_assert_eq(world.took[0][7], S(0, 1) - HIT + FENCE);
    cr_assert_eq(world.took[0][8], S(0, 1) - HIT + S(0, 1),
                 "node 1 has a copy of that line");
    cr_assert_eq(world.took[0][9], S(0, 1) - HIT + 200, "a system call");
    cr_assert_eq(world.took[0][10], S(0, 1) + FENCE);
}

static void store_and_look(void)
{
    at(1000);
    timed_store(0);
    timed_load(0);
    at(1000 + S(0, 1));
    world.seen[0][1] = qn_load(line(1), QN_ACQUIRE);
}

Test(coherent_terms, own_loads_look_into_the_store_buffer, .init = begin)
{
    world.node[0] = store_and_look;
    world.node[1] = hold_three;
    run(&(struct qn_coherent_opts){.store_buffer = 4});
    cr_assert_eq(world.took[0][0], HIT);
    cr_assert_eq(world.seen[0][0], 1);
}

/* Both store, then look at the other's line: with buffers both may see the old
 * value (the litmus test SB), with a fence in between at least one the new. */
static bool fenced;

static void one_side(void)
{
    uint32_t own = qn_sim.self;
    hold_copies(2);
    at(1000);
    qn_store(line(own), 1, QN_RELEASE);
    if (fenced) {
        qn_fence(QN_SEQ_CST);
    }
    timed_load(1 - own);
}

Test(coherent_terms, a_store_may_be_seen_after_a_later_load, .init = begin)
{
    world.node[0] = one_side;
    world.node[1] = one_side;
    fenced = false;
    run(&(struct qn_coherent_opts){.store_buffer = 4});
    cr_assert_eq(world.seen[0][1] + world.seen[1][0], 0);
    begin();
    world.node[0] = one_side;
    world.node[1] = one_side;
    fenced = true;
    run(&(struct qn_coherent_opts){.store_buffer = 4});
    cr_assert_geq(world.seen[0][1] + world.seen[1][0], 1);
}

/* Stores to one line that follow one another are one entry: its transfer ends
 * when it would have ended anyway, or with the last of them. */
static void store_a_run(void)
{
    at(1000);
    for (uint32_t i = 0; i < 8; i++) {
        qn_store(&world.line[0][i], 1, QN_RELEASE);
    }
    world.took[0][0] = clock_cycles() - 1000;
    timed_store(1);
}

static void look_at_the_run(void)
{
    hold_copies(2);
    at(1000 + S(0, 1) - HIT);
    world.seen[1][0] = qn_load(&world.line[0][7], QN_ACQUIRE);
    world.seen[1][1] = qn_load(&world.line[0][7], QN_ACQUIRE);
}

Test(coherent_terms, a_run_of_stores_is_one_entry, .init = begin)
{
    world.node[0] = store_a_run;
    world.node[1] = look_at_the_run;
    run(&(struct qn_coherent_opts){.store_buffer = 2});
    cr_assert_eq(world.took[0][0], 8 * HIT);
    cr_assert_eq(world.took[0][1], HIT, "there is a second entry");
    cr_assert_eq(world.seen[1][0], 0);
    cr_assert_eq(world.seen[1][1], 1);
}

/* It sleeps until the end of the transfer, and not until the end of the run. */
static void await_the_run(void)
{
    hold_copies(2);
    while (qn_load(&world.line[0][7], QN_ACQUIRE) == 0) {
        qn_pause();
    }
    world.took[1][0] = clock_cycles();
}

Test(coherent_terms, a_run_in_the_buffer_wakes_a_pause_when_it_is_visible,
     .init = begin)
{
    world.node[0] = store_a_run;
    world.node[1] = await_the_run;
    run(&(struct qn_coherent_opts){.store_buffer = 2});
    cr_assert_eq(world.took[1][0], 1000 + S(0, 1) + R(0, 1));
}

Test(coherent_terms, impossible_terms_are_refused)
{
    static const uint32_t core[1] = {0};
    static const struct qn_coherent_opts bad[] = {
        {.store_buffer = QN_STORE_BUFFER_MAX + 1},
        {.prefetch = 1.5},
        {.prefetch = -1}};
    struct qn_machine *m = machine();
    struct qn_prices *p;
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(qn_coherent_create(&p, m, core, 1, &bad[i]), QN_EINVAL);
    }
    qn_machine_destroy(m);
}

/* ---- loops that look at intervals ---- */

/* The first look costs a hit, too: all looks begin at multiples of one turn. */
static void await_change(uint32_t lines)
{
    do {
        for (uint32_t i = 0; i < lines; i++) {
            world.seen[0][i] = qn_load(line(i), QN_ACQUIRE);
        }
        if (world.seen[0][0] == 0) {
            qn_pause();
        }
    } while (world.seen[0][0] == 0);
    world.took[0][0] = clock_cycles();
}

static void await_one(void)
{
    await_change(1);
}

static void await_with_three(void)
{
    await_change(3);
}

#define STORED 1007u

static void store_late(void)
{
    at(STORED);
    qn_store(line(0), 1, QN_RELEASE);
}

static uint64_t awaited(void (*loop)(void), bool poll)
{
    begin();
    world.node[0] = loop;
    world.node[1] = store_late;
    run(&(struct qn_coherent_opts){.poll = poll});
    return world.took[0][0];
}

static uint64_t round_up(uint64_t time, uint64_t turn)
{
    return (time + turn - 1) / turn * turn;
}

Test(coherent_terms, a_loop_sees_a_change_at_its_next_look)
{
    const uint64_t change = STORED + S(1, 0);
    cr_assert_eq(awaited(await_one, false), change + R(1, 0));
    cr_assert_eq(awaited(await_one, true), round_up(change, HIT) + R(1, 0));
    cr_assert_neq(round_up(change, HIT), change);
    cr_assert_eq(awaited(await_with_three, false), change + R(1, 0) + 2 * HIT);
    cr_assert_eq(awaited(await_with_three, true),
                 round_up(change, 3 * HIT) + R(1, 0) + 2 * HIT);
    cr_assert_neq(round_up(change, 3 * HIT), round_up(change, HIT));
}

static void await_slowly(void)
{
    do {
        world.seen[0][0] = qn_load(line(0), QN_ACQUIRE);
        if (world.seen[0][0] == 0) {
            qn_timed_work(46 * CYCLE);
            qn_pause();
        }
    } while (world.seen[0][0] == 0);
    world.took[0][0] = clock_cycles();
}

/* A look every 50 cycles, or at the end of a pause at its horizon. */
Test(coherent_terms, the_interval_is_what_a_turn_of_the_loop_takes)
{
    const uint64_t change = STORED + S(1, 0);
    uint64_t look = awaited(await_slowly, true) - R(1, 0);
    cr_assert_geq(look, change);
    cr_assert_lt(look, change + 50);
    cr_assert_neq(look, round_up(change, HIT));
    cr_assert_eq(awaited(await_slowly, false) - R(1, 0), change);
}

/* ---- the prefetcher ---- */

static void write_all(void)
{
    for (uint32_t i = 0; i < LINES; i++) {
        qn_store(line(i), 1, QN_RELEASE);
    }
}

#define BEGUN 5000u
#define WORK  300u

static void read_in_order(void)
{
    at(BEGUN);
    for (uint32_t i = 0; i < LINES; i++) {
        timed_load(i);
        qn_timed_work(WORK * CYCLE);
    }
}

static void read_at_once(void)
{
    at(BEGUN);
    for (uint32_t i = 0; i < LINES; i++) {
        timed_load(i);
    }
}

static void read_shuffled(void)
{
    at(BEGUN);
    for (uint32_t i = 0; i < LINES; i++) {
        timed_load(i * 5 % LINES);
    }
}

static void read_by(void (*reader)(void), double prefetch)
{
    begin();
    world.node[0] = write_all;
    world.node[1] = reader;
    run(&(struct qn_coherent_opts){.prefetch = prefetch});
    for (uint32_t i = 0; i < LINES; i++) {
        cr_assert_eq(world.seen[1][i], 1);
    }
}

static void check_took(uint32_t first, uint32_t last, uint64_t each)
{
    for (uint32_t i = first; i <= last; i++) {
        cr_assert_eq(world.took[1][i], each, "line %u: %lu", i,
                     world.took[1][i]);
    }
}

Test(coherent_terms, a_stream_is_there_when_it_is_read)
{
    read_by(read_in_order, 0);
    check_took(0, LINES - 1, R(0, 1));
    read_by(read_in_order, 1);
    check_took(0, 2, R(0, 1)); /* two equal strides make a stream */
    check_took(3, LINES - 1, HIT);
}

static void read_each_twice(void)
{
    at(BEGUN);
    for (uint32_t i = 0; i < LINES; i++) {
        timed_load(i);
        (void)qn_load(line(i), QN_ACQUIRE);
        qn_timed_work(WORK * CYCLE);
    }
}

Test(coherent_terms, what_was_brought_is_used_once)
{
    read_by(read_each_twice, 1);
    check_took(0, 2, R(0, 1));
    check_took(3, LINES - 1, HIT);
}

/* A third of a transfer that has ended is hidden. */
Test(coherent_terms, a_share_of_a_transfer_is_hidden)
{
    read_by(read_in_order, 1.0 / 3);
    check_took(0, 2, R(0, 1));
    check_took(3, LINES - 1, R(0, 1) - R(0, 1) / 3);
}

/* Line 3 was asked for when line 2 was missed, which took as long. Line 4 was
 * asked for when line 3 was used, a hit ago; and so on in turn. */
Test(coherent_terms, what_is_read_at_once_is_still_on_its_way)
{
    read_by(read_at_once, 1);
    check_took(0, 2, R(0, 1));
    check_took(3, 3, HIT);
    check_took(4, 4, R(0, 1) - HIT);
    check_took(5, 5, HIT);
}

Test(coherent_terms, a_stride_of_five_lines_is_a_stream_until_it_turns)
{
    read_by(read_shuffled, 1); /* 0 5 10 3 8 1 6 11 4 9 2 7 */
    cr_assert_eq(world.took[1][10], R(0, 1));
    cr_assert_eq(world.took[1][3], R(0, 1), "15 was asked for");
    cr_assert_eq(world.took[1][11], R(0, 1));
}

/* The server reads slots; the client whose slot is next writes it again. */
static void read_three(void)
{
    at(BEGUN);
    for (uint32_t i = 0; i < 3; i++) {
        timed_load(i);
    }
}

static void write_the_next(void)
{
    write_all();
    at(2 * BEGUN);
    timed_store(3);
}

static uint64_t write_of_the_next(double prefetch)
{
    begin();
    world.node[0] = write_the_next;
    world.node[1] = read_three;
    run(&(struct qn_coherent_opts){.prefetch = prefetch});
    return world.took[0][3];
}

Test(coherent_terms, what_was_brought_is_a_copy_that_a_store_takes_away)
{
    cr_assert_eq(write_of_the_next(0), HIT);
    cr_assert_eq(write_of_the_next(1), S(0, 1));
}

static void read_three_and_the_next_later(void)
{
    read_three();
    at(3 * BEGUN);
    timed_load(3);
}

Test(coherent_terms, a_copy_that_was_taken_away_is_missed, .init = begin)
{
    world.node[0] = write_the_next;
    world.node[1] = read_three_and_the_next_later;
    run(&(struct qn_coherent_opts){.prefetch = 1});
    cr_assert_eq(world.took[1][3], R(0, 1));
}

/* ---- streaming stores ---- */

#define MEMORY 300u

static void stream_and_fence(void)
{
    at(1000);
    uint64_t from = clock_cycles();
    qn_store_streaming(line(0), 1);
    world.took[0][0] = clock_cycles() - from;
    from = clock_cycles();
    qn_fence(QN_SEQ_CST);
    world.took[0][1] = clock_cycles() - from;
}

/* It has a copy, looks before the line is in memory, and after. */
static void watch_streaming(void)
{
    hold_copies(1);
    at(1100);
    timed_load(0);
    cr_assert_eq(world.took[1][0], HIT);
    cr_assert_eq(world.seen[1][0], 0);
    at(1500);
    timed_load(0);
}

/* The next reader of memory, and then a writer. */
static void come_later(void)
{
    at(2000);
    timed_load(0);
    uint64_t from = clock_cycles();
    qn_store(line(0), 2, QN_RELEASE);
    world.took[2][1] = clock_cycles() - from;
}

static void run_streaming(double watched)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY,
                                       .watched = watched};
    world.node[0] = stream_and_fence;
    world.node[1] = watch_streaming;
    world.node[2] = come_later;
    run(&o);
}

Test(coherent_terms, a_streaming_store_goes_past_the_caches, .init = begin)
{
    run_streaming(0);
    cr_assert_eq(world.took[0][0], HIT);
    cr_assert_eq(world.took[0][1], MEMORY / 2 - HIT + FENCE);
    cr_assert_eq(world.took[1][0], MEMORY, "no cache has it");
    cr_assert_eq(world.seen[1][0], 1);
    cr_assert_eq(world.took[2][0], MEMORY);
    cr_assert_eq(world.took[2][1], S(2, 1));
}

Test(coherent_terms, a_line_that_is_watched_takes_longer, .init = begin)
{
    run_streaming(3);
    cr_assert_eq(world.took[0][0], HIT);
    cr_assert_eq(world.took[0][1], 3 * MEMORY / 2 - HIT + FENCE);
}

static void write_after_streaming(void)
{
    at(2000);
    timed_store(0);
}

Test(coherent_terms, a_write_to_memory_fetches_the_line, .init = begin)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY};
    world.node[0] = stream_and_fence;
    world.node[2] = write_after_streaming;
    run(&o);
    cr_assert_eq(world.took[2][0], MEMORY);
}

/* By default from memory as from the farthest core. */
Test(coherent_terms, memory_is_as_far_as_the_farthest_core, .init = begin)
{
    const struct qn_coherent_opts o = {.watched = 1};
    world.node[0] = stream_and_fence;
    world.node[2] = write_after_streaming;
    run(&o);
    cr_assert_eq(world.took[2][0], R(2, 1));
}

static void stream_and_load(void)
{
    hold_copies(1);
    qn_store_streaming(line(0), 1);
    timed_load(0);
}

Test(coherent_terms, a_node_sees_its_own_streaming_store, .init = begin)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY};
    world.node[0] = stream_and_load;
    run(&o);
    cr_assert_eq(world.seen[0][0], 1);
    cr_assert_eq(world.took[0][0], MEMORY / 2 - HIT + MEMORY);
}
