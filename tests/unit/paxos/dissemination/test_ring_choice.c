/*
 * Ring or tree, without nodes: each rule at its boundary values, and a random
 * run against what the rules say of the whole.
 */
#include "paxos/dissemination/ring_choice.h"

#include <signal.h>
#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

#define START ((qn_time_t)5 * QN_S)
#define HALF  (QN_RING_LAG / 2)

static struct qn_ring_choice c;
static qn_time_t now;

static void begin(uint32_t from, qn_slot_t learned)
{
    now = START;
    qn_ring_choice_init(&c, from, QN_RING_LAG);
    qn_ring_choice_begin(&c, learned, now);
}

/* @return true: it has changed. */
static bool look(qn_time_t later, uint64_t suspected, uint64_t behind)
{
    const struct qn_ring_facts f = {suspected, behind};
    now += later;
    return qn_ring_choice_look(&c, &f, now);
}

static void expect(bool ring, enum qn_ring_reason reason, uint64_t members)
{
    cr_assert_eq(c.ring, ring);
    cr_assert_eq(c.reason, reason, "%d", (int)c.reason);
    cr_assert_eq(c.members, members);
}

/* The ring is taken, and nothing is under way. */
static void in_ring(void)
{
    begin(1, 0);
    cr_assert(look(QN_RING_CALM, 0, 0));
    expect(true, QN_RING_IN_STEP, 0);
}

Test(ring_choice, a_root_begins_with_the_tree)
{
    begin(1, 0);
    expect(false, QN_RING_NEW, 0);
    cr_assert_not(look(QN_RING_CALM - 1, 0, 0));
    cr_assert(look(1, 0, 0));
    expect(true, QN_RING_IN_STEP, 0);
    qn_ring_choice_begin(&c, 7, now);
    expect(false, QN_RING_NEW, 0);
    cr_assert_eq(c.changes, 2u);
    cr_assert_eq(qn_ring_choice_mark(&c), 7u, "a member may lack it");
}

Test(ring_choice, without_a_ring_it_is_the_tree_for_ever)
{
    begin(0, 0);
    qn_ring_choice_sent(&c, 1, now);
    cr_assert_not(look(QN_S, 0, 0));
    cr_assert_not(look(QN_S, 1, 1));
    expect(false, QN_RING_UNWANTED, 0);
    cr_assert_eq(qn_ring_choice_deadline(&c), QN_TIME_NEVER);
}

Test(ring_choice, a_suspected_member_ends_the_ring_at_once)
{
    in_ring();
    cr_assert(look(1, 4, 0));
    expect(false, QN_RING_SUSPECTED, 4);
}

Test(ring_choice, a_member_that_lacks_a_broadcast_for_2_ms_ends_it)
{
    in_ring();
    qn_ring_choice_sent(&c, 9, now);
    cr_assert_not(look(HALF, 0, 2));
    cr_assert_not(look(HALF - 1, 0, 2));
    cr_assert(look(1, 0, 2));
    expect(false, QN_RING_BEHIND, 2);
}

Test(ring_choice, what_arrives_in_time_does_not)
{
    in_ring();
    for (qn_slot_t s = 1; s < 100; s++) {
        qn_ring_choice_sent(&c, s, now);
        cr_assert_not(look(HALF, 0, 2));
        cr_assert_not(look(HALF - 1, 0, 0));
    }
    expect(true, QN_RING_IN_STEP, 0);
}

Test(ring_choice, a_root_that_was_stalled_accuses_no_member)
{
    in_ring();
    qn_ring_choice_sent(&c, 9, now);
    cr_assert_not(look(QN_S, 0, 2), "half of the limit counts");
    cr_assert_not(look(QN_US, 0, 0));
    qn_ring_choice_sent(&c, 10, now);
    cr_assert_not(look(QN_S, 0, 2));
    cr_assert(look(QN_S, 0, 2));
}

Test(ring_choice, it_is_looked_at_in_time)
{
    in_ring();
    cr_assert_eq(qn_ring_choice_deadline(&c), QN_TIME_NEVER);
    qn_ring_choice_sent(&c, 9, now);
    cr_assert_eq(qn_ring_choice_deadline(&c), now + HALF);
    look(HALF, 0, 2);
    cr_assert_eq(qn_ring_choice_deadline(&c), now + HALF);
    look(HALF, 0, 2);
    cr_assert_eq(qn_ring_choice_deadline(&c), QN_TIME_NEVER, "it is left");
}

Test(ring_choice, the_newest_broadcast_is_watched_when_the_mark_has_arrived)
{
    in_ring();
    qn_ring_choice_sent(&c, 5, now);
    qn_ring_choice_sent(&c, 6, now);
    qn_ring_choice_sent(&c, 7, now);
    cr_assert_eq(qn_ring_choice_mark(&c), 5u);
    look(QN_US, 0, 0);
    cr_assert_eq(qn_ring_choice_mark(&c), 7u);
    look(QN_US, 0, 0);
    cr_assert_eq(qn_ring_choice_mark(&c), 0u);
}

Test(ring_choice, it_returns_when_all_were_in_step_for_a_while)
{
    in_ring();
    now += QN_S;
    look(0, 1, 0);
    look(QN_RING_CALM / 2, 1, 0);
    cr_assert_not(look(QN_RING_CALM - 1, 0, 0));
    expect(false, QN_RING_SUSPECTED, 1);
    cr_assert(look(1, 0, 0));
    expect(true, QN_RING_IN_STEP, 0);
}

/* A member that stands still lacks the mark all the time. */
Test(ring_choice, it_does_not_return_while_a_member_stands_still)
{
    in_ring();
    qn_ring_choice_sent(&c, 1, now);
    for (uint32_t i = 0; i < 10000; i++) {
        qn_ring_choice_sent(&c, 2 + i, now);
        look(QN_MS, 0, 8);
    }
    expect(false, QN_RING_BEHIND, 8);
    cr_assert_eq(qn_ring_choice_mark(&c), 1u);
    look(QN_MS, 0, 0);
    look(QN_MS, 0, 0);
    cr_assert(look(2 * QN_RING_CALM, 0, 0));
}

/* @return how long it takes to return to the ring. */
static qn_time_t returns_after(void)
{
    qn_time_t left = now;
    cr_assert(look(0, 1, 0));
    while (!look(QN_MS, 0, 0)) {
    }
    return now - left;
}

Test(ring_choice, a_ring_that_does_not_last_waits_twice_as_long_up_to_10_s)
{
    in_ring();
    qn_time_t want = QN_RING_CALM;
    for (uint32_t i = 0; i < 12; i++) {
        want = QN_MIN(2 * want, QN_RING_CALM_MAX);
        cr_assert_eq(returns_after(), want, "time %u", i);
    }
    cr_assert_eq(want, QN_RING_CALM_MAX);
    now += QN_RING_CALM_MAX;
    cr_assert_eq(returns_after(), QN_RING_CALM, "it has lasted");
}

/* One broadcast after the other; `n` are under way at once. */
static void load(uint32_t n)
{
    for (uint32_t i = 0; i < 2000; i++) {
        qn_ring_choice_sent(&c, c.sent + 1, now);
        while (qn_ring_choice_mark(&c) != 0 &&
               c.sent - qn_ring_choice_mark(&c) + 1 >= n) {
            look(0, 0, 0);
        }
        look(100 * QN_US, 0, qn_ring_choice_mark(&c) != 0 ? 1 : 0);
    }
}

Test(ring_choice, it_is_taken_for_pipelines_only_if_so_wanted)
{
    begin(4, 0);
    load(3);
    expect(false, QN_RING_SHALLOW, 0);
    load(4);
    expect(true, QN_RING_IN_STEP, 0);
    load(2);
    expect(true, QN_RING_IN_STEP, 0);
    load(1);
    expect(false, QN_RING_SHALLOW, 0);
    cr_assert_eq(c.calm, QN_RING_CALM, "that was no trouble");
}

Test(ring_choice, reasons_are_words)
{
    char text[QN_RING_TEXT_MAX];
    in_ring();
    cr_assert_str_eq(qn_ring_choice_text(&c, text), "all are in step");
    look(0, UINT64_C(1) << 63, 0);
    cr_assert_str_eq(qn_ring_choice_text(&c, text), "replica 63 is suspected");
    for (int r = 0; r < QN_RING_REASONS; r++) {
        c.reason = (enum qn_ring_reason)r;
        cr_assert_lt(strlen(qn_ring_choice_text(&c, text)),
                     QN_RING_TEXT_MAX - 1);
    }
}

Test(ring_choice, a_limit_below_2_ms_aborts, .signal = SIGABRT)
{
    qn_ring_choice_init(&c, 1, QN_RING_LAG - 1);
}

/* ---- random -------------------------------------------------------------- */

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % n;
}

/* Members learn, stand still and are suspected at random. It is never the ring
 * while one is suspected, or after one has lacked a broadcast for so long in
 * looks that are close together; and it comes back when all is well. */
static void random_run(uint64_t s)
{
    qn_slot_t learned[4] = {0};
    bool still[4] = {false};
    uint64_t suspected = 0;
    qn_time_t lacks_since = 0;
    seed = s;
    begin(1, 0);
    qn_slot_t sent = 0;
    for (uint32_t step = 0; step < 20000; step++) {
        uint32_t i = (uint32_t)draw(4);
        still[i] = draw(still[i] ? 50 : 2000) == 0 ? !still[i] : still[i];
        suspected = draw(2000) == 0 ? UINT64_C(1) << i : suspected;
        suspected = draw(50) == 0 ? 0 : suspected;
        if (draw(2) == 0) {
            qn_ring_choice_sent(&c, ++sent, now);
        }
        uint64_t behind = 0;
        for (uint32_t k = 0; k < 4; k++) {
            learned[k] = still[k] ? learned[k] : sent - draw(2) * (sent > 0);
            learned[k] = !still[k] && draw(2) == 0 ? sent : learned[k];
            behind |=
                learned[k] < qn_ring_choice_mark(&c) ? UINT64_C(1) << k : 0;
        }
        bool watched = qn_ring_choice_mark(&c) != 0;
        lacks_since = behind == 0 || !watched ? 0
                      : lacks_since == 0      ? now
                                              : lacks_since;
        look(draw(HALF), suspected, behind);
        cr_assert(suspected == 0 || !c.ring, "seed %lu", (unsigned long)s);
        cr_assert(lacks_since == 0 || now - lacks_since < QN_RING_LAG + HALF ||
                      !c.ring,
                  "seed %lu, step %u", (unsigned long)s, step);
    }
    for (uint32_t k = 0; k < 20 && !c.ring; k++) {
        look(QN_S, 0, 0);
    }
    cr_assert(c.ring, "seed %lu", (unsigned long)s);
    cr_assert_gt(c.changes, 4u);
}

Test(ring_choice, no_schedule_keeps_a_ring_with_a_slow_member)
{
    for (uint64_t s = 1; s <= 20; s++) {
        random_run(s);
    }
}
