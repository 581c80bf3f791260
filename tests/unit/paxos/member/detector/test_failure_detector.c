/*
 * The failure detector in virtual time. A world of five nodes: this replica is
 * node 2, and a test says what each peer does. Checks come when the detector
 * wants them, INTERVAL apart while something waits. The world counts what it is
 * asked, because facts that cost a system call must be asked rarely.
 */
#include "paxos/member/detector/failure_detector.h"

#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

#define NODES    5u
#define SELF     2u
#define INTERVAL QN_DETECTOR_INTERVAL
#define TIMEOUT  QN_DETECTOR_TIMEOUT

#define BIT(i) (UINT64_C(1) << (i))

static struct {
    bool dead[NODES], stopped[NODES];
    uint64_t turns[NODES];
    qn_time_t cpu_time[NODES];
    unsigned asked_dead, asked_turns, asked_cpu, asked_stopped;
    unsigned asked_kernel[NODES]; /* whether it lives */
} world;

static struct qn_failure_detector d;
static struct qn_detector_actions actions;
static qn_time_t now;

static bool dead(void *ctx, qn_node_t i, bool asks)
{
    (void)ctx;
    world.asked_dead++;
    world.asked_kernel[i] += asks;
    return world.dead[i];
}

static uint64_t turns(void *ctx, qn_node_t i)
{
    (void)ctx;
    world.asked_turns++;
    return world.turns[i];
}

static qn_time_t cpu_time(void *ctx, qn_node_t i)
{
    (void)ctx;
    world.asked_cpu++;
    return world.cpu_time[i];
}

static bool stopped(void *ctx, qn_node_t i)
{
    (void)ctx;
    world.asked_stopped++;
    return world.stopped[i];
}

static const struct qn_peer_facts facts = {
    .dead = dead, .turns = turns, .cpu_time = cpu_time, .stopped = stopped};

static void setup(void)
{
    memset(&world, 0, sizeof world);
    now = 1000 * QN_S;
    qn_failure_detector_init(&d, SELF, NODES, false);
    for (qn_node_t i = 0; i < NODES; i++) {
        world.turns[i] = 7 + i;
        if (i != SELF) {
            qn_failure_detector_up(&d, i);
        }
    }
    /* The counters are known, and nothing waits. */
    qn_failure_detector_check(&d, BIT(0), &facts, now, &actions);
    (void)qn_failure_detector_next(&d, false);
    now += INTERVAL;
    qn_failure_detector_check(&d, 0, &facts, now, &actions);
    (void)qn_failure_detector_next(&d, false);
    now += QN_S;
    memset(&world.asked_dead, 0, 4 * sizeof world.asked_dead);
    memset(world.asked_kernel, 0, sizeof world.asked_kernel);
}

#define CASE(name) Test(failure_detector, name, .init = setup)

/* One check at `now`. @return when the next one is due. */
static qn_time_t check(uint64_t waited_for)
{
    cr_assert(qn_failure_detector_due(&d, now));
    qn_failure_detector_check(&d, waited_for, &facts, now, &actions);
    return qn_failure_detector_next(&d, false);
}

/* Checks INTERVAL apart while `peer` is waited for, all others making turns,
 * until it is suspected. @return its silence then; 0: it never was in 3 s. */
static qn_time_t time_to_suspect(qn_node_t peer)
{
    (void)check(BIT(peer)); /* begins to wait */
    qn_time_t begun = now;
    while (now - begun < 3 * QN_S) {
        now += INTERVAL;
        (void)check(BIT(peer));
        if (actions.suspects_changed) {
            cr_assert_eq(actions.suspects, BIT(peer));
            return d.peer[peer].silence_ns;
        }
    }
    return 0;
}

/* ---- an idle server ------------------------------------------------------ */

CASE(an_idle_server_wants_no_check_before_something_happens)
{
    cr_assert_eq(check(0), QN_TIME_NEVER);
    cr_assert_eq(actions.deaths | actions.ring | actions.suspects, 0);
    cr_assert_not(actions.suspects_changed);
}

CASE(an_idle_server_asks_for_no_turn_counter_and_makes_no_system_call)
{
    for (int i = 0; i < 100; i++) {
        (void)check(0);
        now += 10 * QN_US;
    }
    cr_assert_eq(world.asked_turns, 0);
    cr_assert_eq(world.asked_cpu, 0);
    cr_assert_eq(world.asked_stopped, 0);
}

/* 1 ms of turns, 10 us apart: two looks at the liveness words of four peers. */
CASE(an_idle_server_looks_for_deaths_once_per_interval)
{
    for (int i = 0; i < 100; i++) {
        (void)check(0);
        now += 10 * QN_US;
    }
    cr_assert_eq(world.asked_dead, 2 * (NODES - 1));
}

CASE(retained_outboxes_are_looked_at_ten_times_a_second)
{
    qn_failure_detector_check(&d, 0, &facts, now, &actions);
    cr_assert_eq(qn_failure_detector_next(&d, true), now + 100 * QN_MS);
}

CASE(while_something_waits_checks_come_an_interval_apart)
{
    cr_assert_eq(check(BIT(1)), now + INTERVAL);
    cr_assert_not(qn_failure_detector_due(&d, now + INTERVAL - 1));
    cr_assert(qn_failure_detector_due(&d, now + INTERVAL));
}

/* ---- deaths -------------------------------------------------------------- */

CASE(a_dead_peer_is_reported_once_and_absent_then)
{
    world.dead[3] = true;
    (void)check(BIT(1));
    cr_assert_eq(actions.deaths, BIT(3));
    now += INTERVAL;
    (void)check(BIT(1) | BIT(3));
    cr_assert_eq(actions.deaths, 0);
    cr_assert_eq(actions.ring, 0);
}

CASE(a_death_is_found_though_nothing_waits)
{
    world.dead[0] = true;
    (void)check(0);
    cr_assert_eq(actions.deaths, BIT(0));
}

CASE(two_deaths_are_found_in_one_check)
{
    world.dead[0] = world.dead[4] = true;
    (void)check(BIT(1));
    cr_assert_eq(actions.deaths, BIT(0) | BIT(4));
}

/* The next leader may be asleep with nothing to wait for. */
CASE(the_other_peers_are_rung_when_a_death_is_found)
{
    world.dead[3] = true;
    (void)check(0);
    cr_assert_eq(actions.ring, BIT(0) | BIT(1) | BIT(4));
}

static void own_cores(void)
{
    qn_failure_detector_init(&d, SELF, NODES, true);
    for (qn_node_t i = 0; i < NODES; i++) {
        if (i != SELF) {
            qn_failure_detector_up(&d, i);
        }
    }
    (void)check(BIT(1));
}

CASE(with_own_cores_a_death_is_found_in_a_turn_10_us_later)
{
    own_cores();
    world.dead[1] = true;
    now += 10 * QN_US - 1;
    cr_assert_not(qn_failure_detector_due(&d, now));
    now++;
    cr_assert_eq(check(BIT(1)), now - 10 * QN_US + INTERVAL,
                 "it may sleep as long as before");
    cr_assert_eq(actions.deaths, BIT(1));
}

/* Its look at deaths is no look at turns, and no delay. */
CASE(with_own_cores_a_silence_is_looked_at_as_rarely_as_without)
{
    own_cores();
    (void)memset(&world.asked_dead, 0, 4 * sizeof world.asked_dead);
    for (qn_time_t us = 10; us < 500; us += 10) {
        now += 10 * QN_US;
        (void)check(BIT(1));
        cr_assert_eq(actions.ring | actions.suspects, 0);
    }
    cr_assert_eq(world.asked_dead, 49 * (NODES - 1));
    cr_assert_eq(world.asked_turns, 0);
    cr_assert_eq(d.peer[1].silence_ns, 0);
    now += 10 * QN_US;
    (void)check(BIT(1));
    cr_assert_eq(world.asked_turns, NODES - 1);
    cr_assert_eq(d.peer[1].silence_ns, INTERVAL);
}

CASE(a_dead_peer_is_no_suspect_and_the_driver_is_told)
{
    cr_assert_neq(time_to_suspect(0), 0);
    world.dead[0] = true;
    now += INTERVAL;
    (void)check(BIT(0));
    cr_assert_eq(actions.deaths, BIT(0));
    cr_assert(actions.suspects_changed);
    cr_assert_eq(actions.suspects, 0);
}

/* The supervisor may say it first. The driver still thinks it a suspect. */
CASE(a_suspect_that_ends_elsewhere_is_withdrawn_in_the_next_check)
{
    cr_assert_neq(time_to_suspect(0), 0);
    qn_failure_detector_down(&d, 0);
    cr_assert_eq(d.suspects, 0);
    now += INTERVAL;
    (void)check(0);
    cr_assert(actions.suspects_changed);
    cr_assert_eq(actions.suspects, 0);
}

CASE(a_new_incarnation_begins_without_silence)
{
    cr_assert_neq(time_to_suspect(0), 0);
    qn_failure_detector_down(&d, 0);
    qn_failure_detector_up(&d, 0);
    world.turns[0] = 1;
    now += INTERVAL;
    (void)check(BIT(0));
    cr_assert_eq(actions.suspects, 0);
    cr_assert_eq(d.peer[0].silence_ns, 0);
}

/* Of those that sleep a check need not know; the one that is waited for may
 * have ended. */
CASE(the_kernel_is_asked_rarely_about_peers_that_nothing_waits_for)
{
    const qn_time_t rarely = QN_DETECTOR_INTERVAL_RETAINED;
    for (qn_time_t end = now + rarely; now < end; now += INTERVAL) {
        (void)check(BIT(1));
    }
    cr_assert_eq(world.asked_kernel[1], rarely / INTERVAL);
    cr_assert_eq(world.asked_kernel[0], 1);
    cr_assert_eq(world.asked_kernel[3], 1);
    (void)check(BIT(1) | BIT(3));
    cr_assert_eq(world.asked_kernel[0], 2);
    now += INTERVAL;
    (void)check(BIT(3)); /* it is waited for from here on */
    cr_assert_eq(world.asked_kernel[3], 3);
    cr_assert_eq(world.asked_kernel[1], rarely / INTERVAL + 1);
}

CASE(with_own_cores_the_kernel_is_asked_an_interval_apart)
{
    own_cores();
    memset(world.asked_kernel, 0, sizeof world.asked_kernel);
    for (qn_time_t end = now + 10 * INTERVAL; now < end;) {
        now += QN_DETECTOR_DEATHS_OWN_CORES;
        (void)check(BIT(1));
    }
    cr_assert_eq(world.asked_kernel[1], 10);
    cr_assert_eq(world.asked_kernel[0], 0);
}

/* ---- stalls -------------------------------------------------------------- */

CASE(a_peer_that_makes_turns_is_never_suspected)
{
    for (int i = 0; i < 1000; i++) {
        world.turns[0]++;
        (void)check(BIT(0));
        cr_assert_eq(actions.suspects | actions.ring, 0, "check %d", i);
        now += INTERVAL;
    }
}

CASE(a_silent_peer_is_suspected_after_the_timeout)
{
    cr_assert_eq(time_to_suspect(0), TIMEOUT);
}

CASE(with_own_cores_the_timeout_is_shorter)
{
    qn_failure_detector_init(&d, SELF, NODES, true);
    qn_failure_detector_up(&d, 0);
    cr_assert_eq(time_to_suspect(0), QN_DETECTOR_TIMEOUT_OWN_CORES);
}

/* Members come and go, and with them cores of their own. */
CASE(the_timeout_follows_the_cores)
{
    qn_failure_detector_own_cores(&d, true);
    cr_assert_eq(time_to_suspect(0), QN_DETECTOR_TIMEOUT_OWN_CORES);
    qn_failure_detector_own_cores(&d, false);
    cr_assert_eq(qn_failure_detector_timeout(&d, now), TIMEOUT);
}

CASE(a_peer_that_the_kernel_says_is_stopped_is_suspected_after_10_ms)
{
    world.stopped[0] = true;
    cr_assert_eq(time_to_suspect(0), 10 * QN_MS);
}

CASE(a_peer_in_a_long_turn_has_two_seconds)
{
    (void)check(BIT(0));
    qn_time_t begun = now;
    while (actions.suspects == 0 && now - begun < 3 * QN_S) {
        now += INTERVAL;
        world.cpu_time[0] += INTERVAL; /* it runs all the time */
        (void)check(BIT(0));
    }
    cr_assert_eq(d.peer[0].silence_ns, 2000 * QN_MS);
}

/* 4 ms of CPU time in 50 ms is a process that is starved, not a long turn. */
CASE(a_peer_that_hardly_ran_is_suspected)
{
    world.cpu_time[0] = 3 * QN_S;
    (void)check(BIT(0));
    while (actions.suspects == 0) {
        now += INTERVAL;
        world.cpu_time[0] += INTERVAL / 13;
        (void)check(BIT(0));
    }
    cr_assert_eq(d.peer[0].silence_ns, TIMEOUT);
}

CASE(a_silent_peer_is_rung_from_1_ms_on)
{
    (void)check(BIT(0));
    for (qn_time_t silence = INTERVAL; silence <= 5 * QN_MS;
         silence += INTERVAL) {
        now += INTERVAL;
        (void)check(BIT(0));
        cr_assert_eq(actions.ring, silence >= QN_MS ? BIT(0) : 0, "%u us",
                     (unsigned)(silence / QN_US));
    }
}

CASE(only_a_peer_that_is_waited_for_is_rung)
{
    for (int i = 0; i < 20; i++) {
        (void)check(BIT(3));
        now += INTERVAL;
    }
    cr_assert_eq(actions.ring, BIT(3));
}

CASE(a_turn_ends_the_silence_and_the_suspicion)
{
    cr_assert_neq(time_to_suspect(0), 0);
    world.turns[0]++;
    now += INTERVAL;
    (void)check(BIT(0));
    cr_assert(actions.suspects_changed);
    cr_assert_eq(actions.suspects, 0);
    cr_assert_eq(d.peer[0].silence_ns, 0);
}

CASE(a_suspect_that_is_not_waited_for_any_more_is_withdrawn)
{
    cr_assert_neq(time_to_suspect(0), 0);
    now += INTERVAL;
    (void)check(0);
    cr_assert(actions.suspects_changed);
    cr_assert_eq(actions.suspects, 0);
}

/* An idle peer makes no turn: what it was silent for before does not count. */
CASE(silence_starts_from_zero_when_a_peer_is_waited_for_again)
{
    for (int i = 0; i <= 40; i++) { /* 20 ms */
        (void)check(BIT(0));
        now += INTERVAL;
    }
    cr_assert_eq(d.peer[0].silence_ns, 20 * QN_MS);
    (void)check(0);
    cr_assert_eq(d.peer[0].silence_ns, 0);
}

CASE(two_stalled_peers_are_both_suspected)
{
    for (int i = 0; i <= 100; i++) {
        (void)check(BIT(0) | BIT(4));
        now += INTERVAL;
    }
    cr_assert_eq(actions.suspects, BIT(0) | BIT(4));
}

CASE(suspects_are_announced_when_they_change_and_not_again)
{
    cr_assert_neq(time_to_suspect(0), 0);
    for (int i = 0; i < 10; i++) {
        now += INTERVAL;
        (void)check(BIT(0));
        cr_assert_not(actions.suspects_changed);
        cr_assert_eq(actions.suspects, BIT(0));
    }
}

/* It was idle for a second before. */
CASE(silence_starts_from_zero_when_a_peer_is_waited_for)
{
    (void)check(BIT(0));
    cr_assert_eq(d.peer[0].silence_ns, 0);
    now += INTERVAL;
    (void)check(BIT(0) | BIT(1));
    cr_assert_eq(d.peer[0].silence_ns, INTERVAL);
    cr_assert_eq(d.peer[1].silence_ns, 0);
}

/* This replica was off its core for 200 ms, twice: 5 ms of silence each. */
CASE(a_replica_that_was_off_its_core_suspects_no_peer_for_that)
{
    (void)check(BIT(0));
    for (int i = 1; i <= 2; i++) {
        now += 200 * QN_MS;
        (void)check(BIT(0));
        cr_assert_eq(d.peer[0].silence_ns, (qn_time_t)i * 5 * QN_MS);
        cr_assert_eq(actions.suspects, 0);
    }
}

CASE(a_late_check_raises_the_timeout_to_twice_the_delay)
{
    (void)check(BIT(0));
    world.turns[0]++;
    now += INTERVAL + 40 * QN_MS;
    (void)check(BIT(0));
    cr_assert_eq(qn_failure_detector_timeout(&d, now), 80 * QN_MS);
    now += INTERVAL;
    cr_assert_eq(time_to_suspect(0), 80 * QN_MS);
}

CASE(a_check_after_an_idle_time_was_not_late)
{
    (void)check(0);
    now += 40 * QN_MS;
    (void)check(BIT(0));
    cr_assert_eq(qn_failure_detector_timeout(&d, now), TIMEOUT);
}

/* ---- the cost of facts --------------------------------------------------- */

CASE(cpu_time_is_asked_once_per_silence_before_the_timeout)
{
    (void)check(BIT(0));
    while (d.peer[0].silence_ns < TIMEOUT - INTERVAL) {
        now += INTERVAL;
        (void)check(BIT(0));
    }
    cr_assert_eq(world.asked_cpu, 1);
}

CASE(the_kernel_is_asked_for_stopped_peers_from_10_ms_on_only)
{
    (void)check(BIT(0));
    while (d.peer[0].silence_ns < 10 * QN_MS - INTERVAL) {
        now += INTERVAL;
        (void)check(BIT(0));
    }
    cr_assert_eq(world.asked_stopped, 0);
    now += INTERVAL;
    (void)check(BIT(0));
    cr_assert_eq(world.asked_stopped, 1);
}

CASE(peers_that_make_turns_cost_no_system_call)
{
    for (int i = 0; i < 1000; i++) {
        world.turns[0]++;
        world.turns[1]++;
        (void)check(BIT(0) | BIT(1));
        now += INTERVAL;
    }
    cr_assert_eq(world.asked_cpu + world.asked_stopped, 0);
}

/* ---- false suspicions ---------------------------------------------------- */

CASE(a_deposed_peer_that_makes_turns_soon_doubles_the_timeout)
{
    qn_failure_detector_deposed(&d, 0, &facts, now);
    now += 100 * QN_MS;
    world.turns[0]++;
    (void)check(0);
    cr_assert_eq(actions.false_suspicions, BIT(0));
    cr_assert_eq(actions.timeout, 2 * TIMEOUT);
    cr_assert_eq(qn_failure_detector_timeout(&d, now), 2 * TIMEOUT);
}

CASE(a_false_suspicion_counts_once)
{
    qn_failure_detector_deposed(&d, 0, &facts, now);
    for (int i = 0; i < 10; i++) {
        now += 100 * QN_MS;
        world.turns[0]++;
        (void)check(0);
    }
    cr_assert_eq(qn_failure_detector_timeout(&d, now), 2 * TIMEOUT);
}

CASE(a_deposed_peer_is_looked_at_until_it_is_judged)
{
    qn_failure_detector_deposed(&d, 0, &facts, now);
    cr_assert_eq(check(0), now + QN_DETECTOR_INTERVAL_RETAINED);
    now += QN_DETECTOR_INTERVAL_RETAINED;
    world.turns[0]++;
    cr_assert_eq(check(0), QN_TIME_NEVER);
}

/* 16 times the least timeout: 0.8 s. */
CASE(a_peer_that_was_silent_longer_than_any_timeout_was_rightly_deposed)
{
    qn_failure_detector_deposed(&d, 0, &facts, now);
    now += 800 * QN_MS;
    world.turns[0]++;
    (void)check(0);
    cr_assert_eq(actions.false_suspicions, 0);
    cr_assert_eq(qn_failure_detector_timeout(&d, now), TIMEOUT);
    now += QN_MS;
    cr_assert_eq(check(0), QN_TIME_NEVER, "it is not judged again");
}

CASE(a_deposed_peer_that_was_stopped_is_not_judged)
{
    world.stopped[0] = true;
    qn_failure_detector_deposed(&d, 0, &facts, now);
    world.turns[0]++;
    (void)check(0);
    cr_assert_eq(actions.false_suspicions, 0);
}

CASE(this_replica_and_absent_ones_are_not_judged)
{
    qn_failure_detector_down(&d, 4);
    qn_failure_detector_deposed(&d, SELF, &facts, now);
    qn_failure_detector_deposed(&d, 4, &facts, now);
    cr_assert_eq(world.asked_stopped + world.asked_turns, 0);
    cr_assert_eq(check(0), QN_TIME_NEVER);
}

CASE(a_deposed_peer_that_dies_is_forgotten)
{
    qn_failure_detector_deposed(&d, 0, &facts, now);
    world.dead[0] = true;
    cr_assert_eq(check(0), QN_TIME_NEVER);
    cr_assert_eq(actions.deaths, BIT(0));
    cr_assert_eq(actions.false_suspicions, 0);
}

/* ---- a naive second version ---------------------------------------------- */

/* Silence as a sum over a random history, without masks: what is waited for
 * and what makes turns changes at random. */
CASE(silence_agrees_with_a_naive_count_over_a_random_history)
{
    uint64_t random = 42;
    qn_time_t silence[NODES] = {0};
    uint64_t known[NODES];
    memcpy(known, world.turns, sizeof known);
    qn_time_t last = d.last_check;
    uint64_t before = 0;
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t waited_for = random >> 40 & 0x1b & (random >> 50);
        for (qn_node_t k = 0; k < NODES; k++) {
            world.turns[k] += (random >> (20 + k) & 7) == 0;
        }
        (void)check(waited_for);
        for (qn_node_t k = 0; k < NODES; k++) {
            bool silent =
                (waited_for & BIT(k)) != 0 && world.turns[k] == known[k];
            qn_time_t passed =
                (before & BIT(k)) != 0 ? QN_MIN(now - last, 5 * QN_MS) : 0;
            silence[k] = silent ? silence[k] + passed : 0;
            if (waited_for != 0) {
                known[k] = world.turns[k];
            }
            if (k != SELF) {
                cr_assert_eq(d.peer[k].silence_ns, silence[k], "%d: %u", i, k);
            }
        }
        before = waited_for;
        last = now;
        now += INTERVAL + (random >> 60) * 100 * QN_US;
    }
}

/* ---- invariants ---------------------------------------------------------- */

Test(failure_detector, a_peer_that_is_present_cannot_come_again, .init = setup,
     .signal = SIGABRT)
{
    qn_failure_detector_up(&d, 0);
}

Test(failure_detector, this_replica_is_no_peer_of_itself, .init = setup,
     .signal = SIGABRT)
{
    qn_failure_detector_up(&d, SELF);
}

Test(failure_detector, a_check_before_it_is_due_is_an_error, .init = setup,
     .signal = SIGABRT)
{
    (void)check(BIT(0));
    qn_failure_detector_check(&d, BIT(0), &facts, now + 1, &actions);
}
