/* The stride prefetcher of coherent machines. */
#include "tests/unit/core/sim/coherent_world.h"

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

Test(coherent_prefetch, a_stream_is_there_when_it_is_read)
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

Test(coherent_prefetch, what_was_brought_is_used_once)
{
    read_by(read_each_twice, 1);
    check_took(0, 2, R(0, 1));
    check_took(3, LINES - 1, HIT);
}

/* A third of a transfer that has ended is hidden. */
Test(coherent_prefetch, a_share_of_a_transfer_is_hidden)
{
    read_by(read_in_order, 1.0 / 3);
    check_took(0, 2, R(0, 1));
    check_took(3, LINES - 1, R(0, 1) - R(0, 1) / 3);
}

/* Line 3 was asked for when line 2 was missed, which took as long. Line 4 was
 * asked for when line 3 was used, a hit ago; and so on in turn. */
Test(coherent_prefetch, what_is_read_at_once_is_still_on_its_way)
{
    read_by(read_at_once, 1);
    check_took(0, 2, R(0, 1));
    check_took(3, 3, HIT);
    check_took(4, 4, R(0, 1) - HIT);
    check_took(5, 5, HIT);
}

Test(coherent_prefetch, a_stride_of_five_lines_is_a_stream_until_it_turns)
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

Test(coherent_prefetch, what_was_brought_is_a_copy_that_a_store_takes_away)
{
    cr_assert_eq(write_of_the_next(0), HIT);
    cr_assert_eq(write_of_the_next(1), S(0, 1));
}

#define AGAIN (LINES - 1)

static void timed_load_again(uint32_t i)
{
    uint64_t from = clock_cycles();
    (void)qn_load(line(i), QN_ACQUIRE);
    world.took[1][AGAIN] = clock_cycles() - from;
}

static void read_three_and_the_next_later(void)
{
    read_three();
    at(3 * BEGUN);
    timed_load(3);
    timed_load_again(3);
}

Test(coherent_prefetch, a_copy_that_was_taken_away_is_missed, .init = begin)
{
    world.node[0] = write_the_next;
    world.node[1] = read_three_and_the_next_later;
    run(&(struct qn_coherent_opts){.prefetch = 0.5});
    cr_assert_eq(world.took[1][3], R(0, 1));
    cr_assert_eq(world.took[1][AGAIN], HIT);
}

/* ---- several lines ahead, and lines to write ---- */

Test(coherent_prefetch, several_lines_ahead_are_there_when_read_at_once)
{
    begin();
    world.node[0] = write_all;
    world.node[1] = read_at_once;
    run(&(struct qn_coherent_opts){.prefetch = 1, .prefetch_ahead = 4});
    check_took(0, 2, R(0, 1));
    check_took(3, 6, HIT); /* asked for together, while line 2 came */
    check_took(7, 7, R(0, 1) - 4 * HIT); /* when line 3 was used */
}

/* A server: it reads slots in order and answers in them. */
static void answer_in_order(void)
{
    at(BEGUN);
    for (uint32_t i = 0; i < LINES; i++) {
        uint64_t from = clock_cycles();
        (void)qn_load(line(i), QN_ACQUIRE);
        world.seen[1][i] = clock_cycles() - from;
        qn_timed_work(WORK * CYCLE);
        from = clock_cycles();
        qn_store(line(i), 2, QN_RELEASE);
        world.took[1][i] = clock_cycles() - from;
        qn_timed_work(WORK * CYCLE);
    }
}

static void write_and_poll_the_last(void)
{
    write_all();
    while (qn_load(line(LINES - 1), QN_ACQUIRE) == 1) {
        qn_pause();
    }
}

static void answer(void (*client)(void), double shared_store)
{
    begin();
    world.node[0] = client;
    world.node[1] = answer_in_order;
    run(&(struct qn_coherent_opts){.prefetch = 1,
                                   .shared_store = shared_store});
}

Test(coherent_prefetch, a_stream_that_is_stored_to_brings_lines_to_write)
{
    answer(write_all, 0);
    cr_assert_eq(world.took[1][2], S(1, 0));
    for (uint32_t i = 3; i < LINES; i++) {
        cr_assert_eq(world.took[1][i], HIT, "line %u", i);
    }
}

Test(coherent_prefetch, a_line_that_is_polled_is_not_brought_to_write)
{
    answer(write_and_poll_the_last, 0);
    cr_assert_eq(world.took[1][LINES - 2], HIT);
    cr_assert_eq(world.took[1][LINES - 1], S(1, 0));
    cr_assert_eq(world.seen[1][LINES - 2], HIT, "cycles of the load");
    cr_assert_eq(world.seen[1][LINES - 1], R(0, 1));
}

Test(coherent_prefetch, a_store_to_a_shared_line_costs_a_share_of_a_transfer)
{
    answer(write_and_poll_the_last, 0.5);
    cr_assert_eq(world.took[1][LINES - 1], (S(1, 0) + R(1, 0)) / 2);
}
