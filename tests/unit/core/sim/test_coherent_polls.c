/* Loops that look at intervals. */
#include "tests/unit/core/sim/coherent_world.h"

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

Test(coherent_polls, a_loop_sees_a_change_at_its_next_look)
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
Test(coherent_polls, the_interval_is_what_a_turn_of_the_loop_takes)
{
    const uint64_t change = STORED + S(1, 0);
    uint64_t look = awaited(await_slowly, true) - R(1, 0);
    cr_assert_geq(look, change);
    cr_assert_lt(look, change + 50);
    cr_assert_neq(look, round_up(change, HIT));
    cr_assert_eq(awaited(await_slowly, false) - R(1, 0), change);
}
