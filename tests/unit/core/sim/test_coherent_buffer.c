/* Store buffers of coherent machines, and terms that are refused. */
#include "core/sim/timed/store_buffer.h"
#include "core/wait/park.h"
#include "tests/unit/core/sim/coherent_world.h"

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

Test(coherent_buffer, without_a_store_buffer_a_sender_is_blocked, .init = begin)
{
    two_stores(0);
    cr_assert_eq(world.took[0][0], S(0, 1));
    cr_assert_eq(world.took[0][1], S(0, 1));
}

Test(coherent_buffer, a_sender_goes_on_when_its_store_has_entered,
     .init = begin)
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

Test(coherent_buffer, stores_become_visible_one_after_the_other, .init = begin)
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

Test(coherent_buffer, a_full_store_buffer_blocks, .init = begin)
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

Test(coherent_buffer, fences_and_system_calls_wait_for_the_store_buffer,
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

Test(coherent_buffer, own_loads_look_into_the_store_buffer, .init = begin)
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

Test(coherent_buffer, a_store_may_be_seen_after_a_later_load, .init = begin)
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

Test(coherent_buffer, a_run_of_stores_is_one_entry, .init = begin)
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

Test(coherent_buffer, a_run_in_the_buffer_wakes_a_pause_when_it_is_visible,
     .init = begin)
{
    world.node[0] = store_a_run;
    world.node[1] = await_the_run;
    run(&(struct qn_coherent_opts){.store_buffer = 2});
    cr_assert_eq(world.took[1][0], 1000 + S(0, 1) + R(0, 1));
}

Test(coherent_buffer, impossible_terms_are_refused)
{
    static const uint32_t core[1] = {0};
    static const struct qn_coherent_opts bad[] = {
        {.store_buffer = QN_STORE_BUFFER_MAX + 1},
        {.prefetch = 1.5},
        {.prefetch = -1},
        {.queued = -0.5},
        {.memory_cycles = -1},
        {.watched = 0.5}};
    struct qn_machine *m = machine();
    struct qn_prices *p;
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(qn_coherent_create(&p, m, core, 1, &bad[i]), QN_EINVAL);
    }
    qn_machine_destroy(m);
}
