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
#define STEP  (QN_RING_LAG / QN_RING_SPANS)

static struct qn_ring_choice c;
static qn_time_t now;

static void begin(uint32_t from, qn_slot_t learned)
{
    now = START;
    qn_ring_choice_init(&c, from, QN_RING_LAG);
    qn_ring_choice_begin(&c, learned, now);
}

/* All have `learned`, these no more. @return true: it has changed. */
static bool look_with(qn_time_t later, qn_slot_t learned, uint64_t behind)
{
    const struct qn_ring_facts f = {.learned = learned, .behind = behind};
    now += later;
    return qn_ring_choice_look(&c, &f, now);
}

/* `behind` have learned nothing, or all have all that was sent. */
static bool look(qn_time_t later, uint64_t suspected, uint64_t behind)
{
    const struct qn_ring_facts f = {.suspected = suspected,
                                    .learned = behind != 0 ? 0 : c.sent,
                                    .behind = behind};
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
    cr_assert(qn_ring_choice_watches(&c), "a member may lack 7");
    look_with(1, 6, 2);
    cr_assert(qn_ring_choice_watches(&c));
    look_with(1, 7, 2);
    cr_assert_not(qn_ring_choice_watches(&c));
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

/* It wakes as asked, and it is left at the limit. */
Test(ring_choice, it_is_looked_at_in_time)
{
    in_ring();
    cr_assert_eq(qn_ring_choice_deadline(&c), QN_TIME_NEVER);
    qn_ring_choice_sent(&c, 9, now);
    cr_assert_eq(qn_ring_choice_deadline(&c), now + HALF / 2);
    look(HALF / 2, 0, 2);
    cr_assert_eq(qn_ring_choice_deadline(&c), now + HALF / 2);
    look(HALF, 0, 2);
    look(HALF / 2 - 7, 0, 2);
    cr_assert_eq(qn_ring_choice_deadline(&c), now + 7);
    cr_assert(look(7, 0, 2));
    cr_assert_eq(qn_ring_choice_deadline(&c), QN_TIME_NEVER, "it is left");
}

/* A turn in between, and then it sleeps. */
Test(ring_choice, one_that_sleeps_until_it_is_due_leaves_it_at_the_limit)
{
    for (qn_time_t turn = 0; turn < HALF; turn += 10 * QN_US) {
        in_ring();
        qn_time_t sent_at = now;
        qn_ring_choice_sent(&c, 9, now);
        look(turn, 0, 2);
        while (c.ring) {
            look(qn_ring_choice_deadline(&c) - now, 0, 2);
        }
        cr_assert_eq(now - sent_at, QN_RING_LAG);
    }
}

/* Its timer has whole ms, rounded up: that costs no more than one. */
Test(ring_choice, a_timer_in_ms_leaves_it_one_ms_later_at_most)
{
    for (qn_time_t turn = 0; turn < HALF; turn += 10 * QN_US) {
        in_ring();
        qn_time_t sent_at = now;
        qn_ring_choice_sent(&c, 9, now);
        look(turn, 0, 2);
        while (c.ring) {
            qn_time_t sleep = qn_ring_choice_deadline(&c) - now;
            look((sleep + QN_MS - 1) / QN_MS * QN_MS, 0, 2);
        }
        cr_assert_leq(now - sent_at, QN_RING_LAG + QN_MS);
    }
}

/* What is sent while another is under way is as old as it is. */
Test(ring_choice, the_next_one_is_watched_with_its_true_age)
{
    in_ring();
    qn_ring_choice_sent(&c, 1, now);
    look_with(STEP, 0, 2);
    qn_ring_choice_sent(&c, 2, now);
    for (qn_time_t t = STEP; t < QN_RING_LAG - STEP; t += STEP) {
        cr_assert_not(look_with(STEP, 0, 2));
    }
    cr_assert_not(look_with(STEP - 1, 1, 2), "1 has come in time");
    cr_assert_not(look_with(STEP, 1, 2));
    cr_assert(look_with(1, 1, 2), "2 was sent 2 ms ago");
    expect(false, QN_RING_BEHIND, 2);
}

/* The root sends every 0.1 ms. A member publishes at the end of each turn what
 * had come when it began: it lacks LEARNs for up to two turns. */
static bool stays_with_turns_of(qn_time_t turn)
{
    const qn_time_t every = 100 * QN_US;
    qn_slot_t learned = 0, read = 0;
    in_ring();
    for (qn_slot_t s = 1; s < 100000 && c.ring; s++) {
        qn_ring_choice_sent(&c, s, now);
        if (s * every / turn != (s - 1) * every / turn) {
            learned = read;
            read = s;
        }
        look_with(every, learned, 4);
    }
    return c.ring;
}

Test(ring_choice, a_member_with_long_turns_ends_it)
{
    cr_assert(stays_with_turns_of(900 * QN_US));
    cr_assert_not(stays_with_turns_of(1100 * QN_US));
    cr_assert_not(stays_with_turns_of(1900 * QN_US));
}

/* As many spans as there are; more are sent, and the newest span has them. */
Test(ring_choice, the_bound_of_spans_is_an_age_of_the_limit)
{
    begin(1, 0);
    for (qn_slot_t s = 1; s <= 3 * QN_RING_SPANS; s++) {
        qn_ring_choice_sent(&c, s, now);
        cr_assert_eq(c.spans, QN_MIN(s, QN_RING_SPANS));
        look_with(STEP, 0, 2);
        cr_assert_eq(c.reason == QN_RING_BEHIND, s >= QN_RING_SPANS);
    }
    look_with(0, 3 * QN_RING_SPANS - 1, 2);
    cr_assert_eq(c.spans, 1u);
    look_with(0, 3 * QN_RING_SPANS, 2);
    cr_assert_eq(c.spans, 0u);
}

Test(ring_choice, a_member_that_is_left_out_is_not_in_step)
{
    struct qn_ring_facts f = {.left_out = 8, .learned = UINT64_MAX};
    begin(1, 0);
    now += QN_S;
    cr_assert_not(qn_ring_choice_look(&c, &f, now), "nothing is under way");
    expect(false, QN_RING_BEHIND, 8);
    cr_assert_not(look(QN_RING_CALM - 1, 0, 0));
    cr_assert(look(1, 0, 0));
    cr_assert(qn_ring_choice_look(&c, &f, now));
    expect(false, QN_RING_BEHIND, 8);
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

/* A stalled member lacks the mark all the time. */
Test(ring_choice, it_does_not_return_while_a_member_is_stalled)
{
    in_ring();
    qn_ring_choice_sent(&c, 1, now);
    for (uint32_t i = 0; i < 10000; i++) {
        qn_ring_choice_sent(&c, 2 + i, now);
        look(QN_MS, 0, 8);
    }
    expect(false, QN_RING_BEHIND, 8);
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
static void load(qn_slot_t n)
{
    for (uint32_t i = 0; i < 2000; i++) {
        qn_ring_choice_sent(&c, c.sent + 1, now);
        look_with(100 * QN_US, c.sent >= n ? c.sent - n + 1 : 0, 1);
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
    cr_assert_str_eq(qn_ring_choice_text(&c, text), "member 63 is suspected");
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

enum { STEPS = 20000 };

static qn_time_t sent_at[STEPS + 1]; /* of slots, from 1 on */

/* How long members have lacked the oldest one that any of them lacks. */
static qn_time_t greatest_lag(qn_slot_t least)
{
    return least < c.sent ? now - sent_at[least + 1] : 0;
}

/* Members learn, stall and are suspected at random. In looks that are close
 * together it is never the ring while one is suspected, or lacks a broadcast
 * that was sent longer ago than the limit; it is not left for one that lacks
 * none as old as the limit less a span; and it comes back when all is well. */
static void random_run(uint64_t s)
{
    qn_slot_t learned[4] = {0};
    bool still[4] = {false};
    uint64_t suspected = 0;
    seed = s;
    begin(1, 0);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t i = (uint32_t)draw(4);
        still[i] = draw(still[i] ? 50 : 2000) == 0 ? !still[i] : still[i];
        suspected = draw(2000) == 0 ? UINT64_C(1) << i : suspected;
        suspected = draw(50) == 0 ? 0 : suspected;
        if (draw(2) == 0) {
            sent_at[c.sent + 1] = now;
            qn_ring_choice_sent(&c, c.sent + 1, now);
        }
        qn_slot_t least = UINT64_MAX;
        for (uint32_t k = 0; k < 4; k++) {
            if (!still[k] && draw(4) != 0) {
                learned[k] = c.sent - draw(2) * draw(c.sent - learned[k] + 1);
            }
            least = QN_MIN(least, learned[k]);
        }
        now += draw(HALF / 4);
        bool before = c.ring;
        const struct qn_ring_facts f = {suspected, 0, least, 1};
        (void)qn_ring_choice_look(&c, &f, now);
        cr_assert(suspected == 0 || !c.ring, "seed %lu", (unsigned long)s);
        cr_assert(greatest_lag(least) < QN_RING_LAG || !c.ring,
                  "seed %lu, step %u", (unsigned long)s, step);
        cr_assert(!before || c.ring || suspected != 0 ||
                      greatest_lag(least) > QN_RING_LAG - STEP,
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
