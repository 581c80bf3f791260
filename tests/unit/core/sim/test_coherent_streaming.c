/* Streaming stores of coherent machines. */
#include "tests/unit/core/sim/coherent_world.h"

#define MEMORY 300u
#define WAY    (MEMORY / 2)

/* How long a fence waits for what node 0 has streamed. */
static void timed_fence(uint32_t i)
{
    uint64_t from = clock_cycles();
    qn_fence(QN_SEQ_CST);
    world.took[0][i] = clock_cycles() - from;
}

/* Word w of line i. */
static void stream(uint32_t i, uint32_t w)
{
    qn_store_streaming(&world.line[i][w], 1);
}

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

Test(coherent_streaming, a_streaming_store_goes_past_the_caches, .init = begin)
{
    run_streaming(0);
    cr_assert_eq(world.took[0][0], HIT);
    cr_assert_eq(world.took[0][1], MEMORY / 2 - HIT + FENCE);
    cr_assert_eq(world.took[1][0], MEMORY, "no cache has it");
    cr_assert_eq(world.seen[1][0], 1);
    cr_assert_eq(world.took[2][0], MEMORY);
    cr_assert_eq(world.took[2][1], S(2, 1));
}

/* Looks again and again, until it is there. */
static void poll_the_line(void)
{
    while (qn_load(line(0), QN_ACQUIRE) == 0) {
        qn_pause();
    }
}

Test(coherent_streaming, a_line_that_is_polled_takes_longer, .init = begin)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY, .watched = 3};
    world.node[0] = stream_and_fence;
    world.node[2] = poll_the_line;
    run(&o);
    cr_assert_eq(world.took[0][0], HIT);
    cr_assert_eq(world.took[0][1], 3 * MEMORY / 2 - HIT + FENCE);
}

Test(coherent_streaming, a_copy_that_is_not_polled_costs_nothing, .init = begin)
{
    run_streaming(3);
    cr_assert_eq(world.took[0][1], MEMORY / 2 - HIT + FENCE);
}

/* It looks once, and only lets time pass after that. */
static void wait_by_the_clock(void)
{
    (void)qn_load(line(0), QN_ACQUIRE);
    qn_time_t until = qn_clock_now() + 2000;
    while (qn_clock_now() < until) {
        qn_pause();
    }
}

Test(coherent_streaming, a_node_that_lets_time_pass_does_not_poll,
     .init = begin)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY, .watched = 3};
    world.node[0] = stream_and_fence;
    world.node[2] = wait_by_the_clock;
    run(&o);
    cr_assert_eq(world.took[0][1], MEMORY / 2 - HIT + FENCE);
}

static void write_after_streaming(void)
{
    at(2000);
    timed_store(0);
}

Test(coherent_streaming, a_write_to_memory_fetches_the_line, .init = begin)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY};
    world.node[0] = stream_and_fence;
    world.node[2] = write_after_streaming;
    run(&o);
    cr_assert_eq(world.took[2][0], MEMORY);
}

/* By default from memory as from the farthest core. */
Test(coherent_streaming, memory_is_as_far_as_the_farthest_core, .init = begin)
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

Test(coherent_streaming, a_node_sees_its_own_streaming_store, .init = begin)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY};
    world.node[0] = stream_and_load;
    run(&o);
    cr_assert_eq(world.seen[0][0], 1);
    cr_assert_eq(world.took[0][0], MEMORY / 2 - HIT + MEMORY);
}

/* ---- write combining ---- */

static void stream_a_line(void)
{
    at(1000);
    for (uint32_t w = 0; w < 8; w++) {
        stream(0, w);
    }
    world.took[0][0] = clock_cycles() - 1000;
    timed_fence(1);
}

/* Has a copy: sees nothing of the line, then all of it. */
static void watch_the_line(void)
{
    hold_copies(1);
    at(1000 + 7 * HIT + 3 * WAY - 1); /* the last was issued 7 hits later */
    world.seen[1][0] = qn_load(&world.line[0][0], QN_ACQUIRE);
    world.seen[1][1] = qn_load(&world.line[0][7], QN_ACQUIRE);
    world.took[1][1] = clock_cycles();
}

static void run_polled(void (*by)(void), void (*other)(void),
                       void (*poller)(void), double watched)
{
    const struct qn_coherent_opts o = {.memory_cycles = MEMORY,
                                       .watched = watched};
    begin();
    world.node[0] = by;
    world.node[1] = other;
    world.node[2] = poller;
    run(&o);
}

static void run_stream(void (*by)(void), void (*other)(void))
{
    run_polled(by, other, NULL, 0);
}

Test(coherent_streaming, stores_to_one_line_are_one_transfer)
{
    run_stream(stream_a_line, NULL);
    cr_assert_eq(world.took[0][0], 8 * HIT);
    cr_assert_eq(world.took[0][1], WAY - HIT + FENCE);
}

Test(coherent_streaming, that_transfer_is_polled_and_seen_as_a_whole)
{
    run_polled(stream_a_line, watch_the_line, poll_the_line, 3);
    cr_assert_eq(world.took[0][1], 3 * WAY - HIT + FENCE);
    cr_assert_eq(world.seen[1][0], 0, "a cycle too early");
    cr_assert_eq(world.seen[1][1], 1);
    cr_assert_eq(world.took[1][1],
                 1000 + 7 * HIT + 3 * WAY + MEMORY / 8 + MEMORY,
                 "served behind the one that polls");
}

/* A pause begun between two of the stores ends when the last is in memory. */
static void await_the_line(void)
{
    hold_copies(1);
    while (qn_load(&world.line[0][7], QN_ACQUIRE) == 0) {
        qn_pause();
    }
    world.took[1][0] = clock_cycles();
}

Test(coherent_streaming, it_wakes_a_pause_when_it_is_in_memory)
{
    run_stream(stream_a_line, await_the_line);
    cr_assert_eq(world.took[1][0], 1000 + 7 * HIT + WAY + MEMORY);
}

/* ---- what ends it: a second transfer of the line follows the first ---- */

static void stream_another_line(void)
{
    at(1000);
    stream(0, 0);
    stream(1, 0);
    stream(0, 1);
    timed_fence(0);
}

static void stream_too_late(void)
{
    at(1000);
    stream(0, 0);
    at(1000 + 3 * WAY);
    stream(0, 1);
    timed_fence(0);
}

static void hold_the_line(void)
{
    hold_copies(1);
}

static void stream_in_time(void)
{
    at(1000);
    stream(0, 0);
    at(1000 + WAY - 1);
    stream(0, 1);
    timed_fence(0);
}

Test(coherent_streaming, another_line_ends_the_combining)
{
    run_stream(stream_another_line, NULL);
    cr_assert_eq(world.took[0][0], 2 * WAY - 3 * HIT + FENCE);
}

Test(coherent_streaming, what_has_arrived_is_not_added_to)
{
    run_stream(stream_in_time, NULL);
    cr_assert_eq(world.took[0][0], WAY - HIT + FENCE);
    run_polled(stream_too_late, hold_the_line, NULL, 3);
    cr_assert_eq(world.took[0][0], WAY - HIT + FENCE);
}

/* Another node's streaming store to the line: each waits for the one before. */
static void stream_first_and_third(void)
{
    at(1000);
    stream(0, 0);
    at(1020);
    stream(0, 2);
    timed_fence(0);
}

static void stream_second(void)
{
    at(1010);
    stream(0, 1);
}

Test(coherent_streaming, another_node_ends_it)
{
    run_stream(stream_first_and_third, stream_second);
    cr_assert_eq(world.took[0][0], 3 * WAY - 20 - HIT + FENCE);
}

/* A load of another node that came in between, and waits for the first. */
static void load_between(void)
{
    at(1010);
    timed_load(0);
    world.seen[1][1] = qn_load(&world.line[0][2], QN_ACQUIRE);
}

Test(coherent_streaming, a_look_of_another_node_ends_it)
{
    run_stream(stream_first_and_third, load_between);
    cr_assert_eq(world.took[1][0], WAY - 10 + MEMORY);
    cr_assert_eq(world.seen[1][0], 1);
    cr_assert_eq(world.took[0][0], 2 * WAY - 20 - HIT + FENCE);
}

/* ---- the bound ---- */

static void stream_many(void)
{
    at(1000);
    for (uint32_t i = 0; i <= QN_COHERENT_STREAMS; i++) {
        uint64_t from = clock_cycles();
        stream(i, 0);
        world.took[0][i] = clock_cycles() - from;
    }
}

Test(coherent_streaming, so_many_are_on_their_way_and_one_more_waits)
{
    const uint32_t n = QN_COHERENT_STREAMS;
    run_stream(stream_many, NULL);
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(world.took[0][i], HIT, "%u", i);
    }
    cr_assert_eq(world.took[0][n], WAY - n * HIT + HIT);
}
