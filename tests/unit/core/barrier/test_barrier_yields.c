/* Two members that share a core, in virtual time: what happens while one of
 * them yields or sleeps is done here in place of it. */
#include "core/base/clock.h"
#include "core/wait/park.h"
#include "tests/unit/core/barrier/barrier_of.h"

static struct qn_barrier_member waits, late;
static qn_time_t now = QN_S;
static qn_time_t yield_ns, sleep_ns; /* what one takes */
static uint32_t yields;              /* before the late one comes */
static struct qn_barrier_member team[QN_BARRIER_MEMBERS_MAX];
static uint32_t to_come = QN_BARRIER_MEMBERS_MAX; /* the next one of it */

qn_time_t __wrap_qn_clock_now(void);
void __wrap_qn_park_yield(void);
int __wrap_qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline);

qn_time_t __wrap_qn_clock_now(void)
{
    return now;
}

void __wrap_qn_park_yield(void)
{
    now += yield_ns;
    if (to_come < QN_BARRIER_MEMBERS_MAX) {
        qn_barrier_wait(&team[to_come++]);
    } else if (yields > 0 && --yields == 0) {
        qn_barrier_wait(&late);
    }
}

int __wrap_qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline)
{
    cr_assert_eq(qn_load(word, QN_RELAXED), seen);
    cr_assert_eq(deadline, QN_TIME_NEVER, "it wakes by itself");
    now += sleep_ns;
    qn_barrier_wait(&late);
    return QN_OK;
}

static void *two_members_of_a_core(void)
{
    const struct qn_barrier_opts o = {.members = 2, .cores = 1};
    void *memory = barrier_of(&o);
    cr_assert_eq(qn_barrier_join(memory, 0, &waits), QN_OK);
    cr_assert_eq(qn_barrier_join(memory, 1, &late), QN_OK);
    return memory;
}

/* An episode, which the late member enters behind that many yields; 0: while
 * the other one sleeps. */
static void episode(uint32_t behind)
{
    yields = behind;
    qn_barrier_wait(&waits);
}

static void sleeps_in_the_next(uint32_t episodes)
{
    const uint64_t yields_before = waits.waits.yields;
    for (uint32_t i = 0; i < episodes; i++) {
        episode(0);
        cr_expect_eq(waits.waits.yields, yields_before, "it yields in wait %u",
                     i);
    }
}

Test(barrier_yields, a_member_that_comes_behind_short_ones_is_not_slept_for)
{
    void *memory = two_members_of_a_core();
    yield_ns = 2 * QN_US;
    for (uint32_t i = 0; i < 1000; i++) {
        episode(1 + i % 20);
    }
    cr_expect_eq(waits.waits.parks, 0);
    free(memory);
}

/* Another program had the core: a sleeper would have got it back earlier. When
 * it yields again, one slice is enough to sleep again. */
Test(barrier_yields, two_that_took_time_slices_make_the_next_waits_sleep)
{
    void *memory = two_members_of_a_core();
    yield_ns = 2 * QN_MS;
    sleep_ns = QN_MS;
    episode(1);
    episode(1);
    cr_expect_eq(waits.waits.parks, 0);
    sleeps_in_the_next(64 * 2);
    episode(1);
    sleeps_in_the_next(64 * 2);
    cr_expect_eq(waits.waits.yields, 3);
    cr_expect_eq(waits.waits.parks, 2 * 64 * 2);
    free(memory);
}

/* In its first wait, for instance, the others are still starting. */
Test(barrier_yields, one_time_slice_between_short_ones_makes_none_sleep)
{
    void *memory = two_members_of_a_core();
    for (uint32_t i = 0; i < 100; i++) {
        yield_ns = i % 2 == 0 ? 2 * QN_MS : 2 * QN_US;
        episode(1);
    }
    cr_expect_eq(waits.waits.parks, 0);
    cr_expect_eq(waits.waits.yields, 100);
    free(memory);
}

/* It sleeps for seconds then, not for hours. */
Test(barrier_yields, one_in_which_the_process_was_stopped_counts_as_some_slices)
{
    void *memory = two_members_of_a_core();
    yield_ns = 600 * QN_S;
    sleep_ns = 10 * QN_MS;
    episode(1);
    episode(1);
    sleeps_in_the_next(64 * 2);
    episode(1);
    cr_expect_eq(waits.waits.yields, 3);
    free(memory);
}

Test(barrier_yields, many_short_ones_in_vain_make_only_that_wait_sleep)
{
    void *memory = two_members_of_a_core();
    yield_ns = 2 * QN_US;
    sleep_ns = 10 * QN_MS;
    episode(0);
    cr_expect_eq(waits.waits.parks, 1);
    episode(1);
    cr_expect_eq(waits.waits.parks, 1);
    free(memory);
}

/* The core goes round: each yield gives it to the next member. */
Test(barrier_yields, the_largest_team_on_two_cores_does_not_sleep)
{
    const struct qn_barrier_opts o = {.members = QN_BARRIER_MEMBERS_MAX,
                                      .cores = 2};
    void *memory = barrier_of(&o);
    yield_ns = 1600;
    for (uint32_t i = 0; i < QN_BARRIER_MEMBERS_MAX; i++) {
        cr_assert_eq(qn_barrier_join(memory, i, &team[i]), QN_OK);
    }
    for (uint32_t i = 0; i < 3; i++) {
        to_come = 1;
        qn_barrier_wait(&team[0]);
        cr_assert_eq(to_come, QN_BARRIER_MEMBERS_MAX);
        cr_expect_eq(team[0].waits.yields, i + 1);
        cr_expect_eq(team[0].waits.parks, 0);
    }
    free(memory);
}
