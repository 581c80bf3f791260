#include "paxos/flow/flow.h"

#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

/* Node 0 leads; batches have 10 bytes unless a test says otherwise. */

enum { LAG = 100, STOP = 400, BATCH = 10 };

static struct qn_flow f;
static qn_time_t now;
static qn_slot_t decided, lo;
static qn_slot_t applied[QN_NODES_MAX];

static const struct qn_flow_limits limits = {.lag_bytes = LAG,
                                             .stop_bytes = STOP,
                                             .lag_slots = 1000,
                                             .stop_slots = 4000,
                                             .timeout = QN_S};

/* Bytes that the followers have read, beside what they have applied. */
static uint64_t read_too[QN_NODES_MAX];

static struct qn_flow_place place(qn_node_t n)
{
    return (struct qn_flow_place){.applied = applied[n],
                                  .read = read_too[n],
                                  .bytes = (decided - applied[n]) * BATCH,
                                  .kept = applied[n] + 1 >= lo};
}

static void begin(uint32_t nodes, uint32_t min)
{
    struct qn_flow_limits l = limits;
    struct qn_flow_place at[QN_NODES_MAX];
    l.min_awaited = min;
    now = 5 * QN_S;
    decided = 0;
    lo = 1;
    memset(applied, 0, sizeof applied);
    memset(read_too, 0, sizeof read_too);
    for (qn_node_t n = 0; n < nodes; n++) {
        at[n] = place(n);
    }
    qn_flow_init(&f, 0, nodes, &l);
    qn_flow_begin(&f, now, (1u << nodes) - 1, at);
}

static void setup(void)
{
    begin(3, 0);
}

#define CASE(name) Test(flow, name, .init = setup)

Test(flow, the_leader_is_no_member_that_ends, .init = setup, .signal = SIGABRT)
{
    qn_flow_down(&f, now, 0);
}

Test(flow, limits_let_lag_be_no_more_than_stop, .signal = SIGABRT)
{
    struct qn_flow_limits l = limits;
    l.stop_bytes = l.lag_bytes - 1;
    qn_flow_init(&f, 0, 3, &l);
}

/* @return how many batches were decided of `most`. */
static uint64_t decide(uint64_t most)
{
    for (uint64_t k = 0; k < most; k++) {
        struct qn_flow_by by;
        do {
            by = qn_flow_shuts(&f, now, BATCH);
        } while (qn_flow_look(&f, now, by));
        if (by.members != 0 || by.holds != 0) {
            return k;
        }
        decided++;
        qn_flow_decided(&f, BATCH);
    }
    return most;
}

static void applies(qn_node_t n, uint64_t slots)
{
    applied[n] = QN_MIN(applied[n] + slots, decided);
    qn_flow_heard(&f, now, n, place(n));
}

static void passes(qn_time_t ns)
{
    now += ns;
}

CASE(nobody_runs_further_ahead_than_the_mark)
{
    cr_assert_eq(decide(1000), LAG / BATCH);
    cr_assert_eq(decide(1000), 0);
    applies(1, 4);
    cr_assert_eq(decide(1000), 0, "the other one has applied nothing");
    applies(2, 3);
    cr_assert_eq(decide(1000), 3);
}

CASE(slots_count_as_bytes_do)
{
    f.limits.lag_slots = 3;
    f.member[1].mark_slots = f.member[2].mark_slots = 3;
    cr_assert_eq(decide(1000), 3);
}

CASE(a_batch_longer_than_the_mark_goes_alone)
{
    cr_assert_eq(qn_flow_shuts(&f, now, 5 * STOP).members, 0);
    cr_assert_eq(decide(1), 1);
    cr_assert_eq(qn_flow_shuts(&f, now, 5 * STOP).members, 6);
}

CASE(a_short_stop_costs_nobody_anything)
{
    passes(QN_FLOW_QUIET + 1);
    cr_assert_eq(decide(1000), STOP / BATCH);
}

CASE(who_goes_on_after_a_stop_keeps_the_lag_that_it_has)
{
    passes(QN_FLOW_QUIET + 1);
    applies(2, 0);
    decide(1000);
    applies(1, 1);
    applies(2, 1);
    cr_assert_eq(decide(1000), 0, "the lag that it has is its mark");
    applies(1, 6);
    applies(2, 6);
    cr_assert_eq(decide(1000), 3, "which falls half as fast as it applies");
    for (uint32_t k = 0; k < 3; k++) {
        applies(1, 1000);
        applies(2, 1000);
        decide(1000);
    }
    applies(1, 1000);
    applies(2, 1000);
    cr_assert_eq(decide(1000), LAG / BATCH, "to what it was");
}

CASE(who_applies_nothing_is_given_up_after_the_timeout)
{
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    applies(1, 1000);
    passes(QN_S - 1);
    cr_assert_eq(decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&f), 6);
    passes(1);
    cr_assert_gt(decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&f), 2);
    cr_assert_eq(f.given, 1);
}

CASE(a_floor_of_progress_keeps_it_awaited_and_less_does_not)
{
    decide(1000);
    applies(2, 1000);
    for (uint32_t second = 0; second < 5; second++) {
        passes(QN_S / 2);
        applies(1, 1);
        applies(2, 1000);
        decide(1000);
        passes(QN_S / 2);
        applies(2, 1000);
        decide(1000);
        cr_assert_eq(qn_flow_awaited(&f), 6, "1 slot: 10 of 100 bytes");
    }
    f.limits.lag_bytes = 10 * LAG; /* 10 are less than a sixteenth */
    f.limits.stop_bytes = 10 * STOP;
    for (uint32_t second = 0; second < 12; second++) {
        passes(QN_S);
        applies(1, 1);
        applies(2, 1000);
        decide(1000);
    }
    cr_assert_eq(qn_flow_awaited(&f), 4, "one slot now and then holds all");
}

CASE(given_up_it_is_awaited_again_when_it_applies_what_is_kept)
{
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    applies(2, 1000);
    decide(1000);
    passes(QN_S);
    decide(10);
    cr_assert_eq(qn_flow_awaited(&f), 4);
    lo = applied[1] + 5;
    applies(1, 1);
    cr_assert_eq(qn_flow_awaited(&f), 4, "its next slot is gone");
    applies(1, 10);
    cr_assert_eq(qn_flow_awaited(&f), 6);
    cr_assert_eq(decide(1000), 0, "its mark is what it lacks");
}

CASE(what_an_awaited_member_lacks_is_kept)
{
    decide(5);
    applies(1, 3);
    applies(2, 4);
    cr_assert_eq(qn_flow_first(&f), 4);
    cr_assert_eq(qn_flow_oldest(&f).members, 2);
    qn_flow_down(&f, now, 1);
    cr_assert_eq(qn_flow_first(&f), 5);
    qn_flow_down(&f, now, 2);
    cr_assert_eq(qn_flow_first(&f), UINT64_MAX);
    cr_assert_eq(decide(1000), 1000, "the last one serves alone");
}

Test(flow, the_last_one_that_must_be_awaited_holds_writes)
{
    begin(3, 1);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S);
    cr_assert_eq(decide(1000), 0);
    cr_assert(f.held);
    cr_assert_eq(__builtin_popcountll(qn_flow_awaited(&f)), 1);
    passes(100 * QN_S);
    cr_assert_eq(decide(1000), 0);
    qn_node_t left = (qn_node_t)__builtin_ctzll(qn_flow_awaited(&f));
    applies(left, 10);
    cr_assert_eq(decide(1000), 5, "its mark falls half as fast");
    applies(left, 1000);
    cr_assert_gt(decide(1000), 0);
    cr_assert(!f.held);
}

Test(flow, the_dead_do_not_count_as_missing)
{
    begin(3, 1);
    decide(1000);
    qn_flow_down(&f, now, 1);
    cr_assert_eq(decide(1000), 0, "the living one is behind");
    qn_flow_down(&f, now, 2);
    cr_assert_eq(decide(1000), 1000);
}

/* An operator does not wait for them any longer. */
Test(flow, writes_that_are_held_go_on_when_the_limit_falls)
{
    begin(3, 1);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S);
    cr_assert_eq(decide(1000), 0);
    cr_assert(f.held);
    qn_flow_change(&f, QN_S, 0);
    cr_assert_eq(decide(1000), 1000, "both are given up at once");
    cr_assert(!f.held);
    cr_assert_eq(qn_flow_awaited(&f), 0);
}

/* The window began when the gate was shut, not when the limit was changed. */
Test(flow, a_shorter_timeout_counts_from_where_the_gate_was_shut)
{
    begin(3, 0);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S / 2);
    cr_assert_eq(decide(1000), 0);
    qn_flow_change(&f, QN_S / 2, 0);
    cr_assert_eq(decide(1000), 1000);
}

Test(flow, a_longer_timeout_waits_on)
{
    begin(3, 0);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S / 2);
    cr_assert_eq(decide(1000), 0);
    qn_flow_change(&f, 10 * QN_S, 0);
    passes(9 * QN_S);
    cr_assert_eq(decide(1000), 0);
    passes(QN_S);
    cr_assert_eq(decide(1000), 1000);
}

/* Who was given up stays so; nobody else is. A new leadership begins with the
 * limits of now. */
Test(flow, a_raised_minimum_gives_nobody_up_from_then_on)
{
    struct qn_flow_place at[QN_NODES_MAX];
    begin(3, 0);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S);
    applies(1, 1000);
    cr_assert_gt(decide(1), 0, "node 2 is given up");
    cr_assert_eq(qn_flow_awaited(&f), 2);
    qn_flow_change(&f, QN_S, 1);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S);
    cr_assert_eq(decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&f), 2);
    for (qn_node_t n = 0; n < 3; n++) {
        at[n] = place(n);
    }
    qn_flow_begin(&f, now, 7, at);
    cr_assert_eq(f.limits.min_awaited, 1);
}

/* One of the three, and none when the leader alone votes. */
Test(flow, a_minority_of_the_voters_changes_with_them)
{
    begin(3, QN_FLOW_MINORITY);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S);
    cr_assert_eq(decide(1000), 0);
    cr_assert(f.held);
    cr_assert_eq(__builtin_popcountll(qn_flow_awaited(&f)), 1);
    qn_flow_voters(&f, 1);
    cr_assert_gt(decide(1000), 0);
    cr_assert_eq(qn_flow_awaited(&f), 0);
    qn_flow_voters(&f, 0); /* not known yet */
    cr_assert_gt(decide(1000), 0);
}

Test(flow, a_new_life_is_awaited_when_it_has_its_snapshot)
{
    begin(3, 1);
    qn_flow_down(&f, now, 1);
    decide(8);
    applies(2, 8);
    lo = 5;
    applied[1] = 0;
    qn_flow_heard(&f, now, 1, place(1)); /* it has begun */
    cr_assert_eq(qn_flow_awaited(&f), 4);
    applies(1, 6);
    cr_assert_eq(qn_flow_awaited(&f), 6);
}

CASE(who_reads_a_long_batch_stays_awaited)
{
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    applies(2, 1000);
    for (uint32_t k = 1; k < 5; k++) {
        struct qn_flow_place at = place(1);
        passes(QN_S);
        at.read = k * LAG; /* it has applied nothing yet */
        qn_flow_heard(&f, now, 1, at);
        decide(1000);
        cr_assert_eq(qn_flow_awaited(&f), 6);
    }
    passes(QN_S);
    decide(1);
    passes(QN_S);
    decide(1);
    cr_assert_eq(qn_flow_awaited(&f), 4, "it reads no more");
}

/* Each would begin a new window with a slot now and then. */
CASE(two_that_hardly_apply_do_not_hold_all_in_turn)
{
    f.limits.lag_bytes = 100 * LAG; /* a slot is less than the floor */
    f.limits.stop_bytes = 200 * LAG;
    applies(1, 0);
    passes(QN_FLOW_QUIET + 1);
    decide(100000);
    for (uint32_t k = 0; k < 10; k++) {
        passes(QN_S);
        applies(k % 2 + 1, 1);
        decide(0);
        (void)decide(100);
    }
    cr_assert_eq(qn_flow_awaited(&f), 0);
    cr_assert_eq(decide(1000), 1000);
    applies(1, 70);
    cr_assert_eq(qn_flow_awaited(&f), 2, "it has applied the floor");
}

/* ---- who is slow --------------------------------------------------------- */

/* A follower that applies so many slots in one of so many turns of 10 ms. */
struct follower {
    uint64_t slots, turns;
};

static const struct follower well = {1000, 1}, squeezed = {20, 100},
                             stopped = {0, 1};

/* So many seconds, in which as much as may be is decided. @return slots. */
static uint64_t seconds(uint64_t count, struct follower one,
                        struct follower two)
{
    qn_slot_t before = decided;
    for (uint64_t turn = 0; turn < 100 * count; turn++) {
        passes(10 * QN_MS);
        applies(1, turn % one.turns == 0 ? one.slots : 0);
        applies(2, turn % two.turns == 0 ? two.slots : 0);
        decide(8);
    }
    return decided - before;
}

CASE(one_that_is_much_slower_than_another_is_given_up)
{
    seconds(2, well, well);
    cr_assert_lt(seconds(3, squeezed, well), 300);
    cr_assert_eq(qn_flow_awaited(&f), 6, "it applies more than the floor");
    seconds(2, squeezed, well);
    cr_assert_eq(qn_flow_awaited(&f), 4);
    cr_assert_eq(f.member[1].pause, QN_FLOW_PAUSE * QN_S);
    cr_assert_eq(seconds(5, squeezed, well), 4000, "nobody waits");
}

/* The log that is kept lasts for 5 s. By then the leader knows that the
 * follower is slow, and does not wait for it when it shuts the gate. */
CASE(one_that_is_on_its_way_to_shut_the_gate_is_judged_before)
{
    f.limits.stop_bytes = 5 * 800 * BATCH;
    seconds(2, well, well);
    uint64_t before = seconds(4, squeezed, well);
    cr_assert_eq(qn_flow_awaited(&f), 6);
    cr_assert_gt(before + seconds(4, squeezed, well), 8 * 800 * 8 / 10);
    cr_assert_eq(qn_flow_awaited(&f), 4);
}

/* With the process acceptor a follower is sent again what it has dropped. */
CASE(what_is_read_in_vain_is_no_pace)
{
    seconds(2, well, well);
    for (uint32_t k = 0; k < 6; k++) {
        read_too[1] += 800 * BATCH;
        seconds(1, squeezed, well);
    }
    cr_assert_eq(qn_flow_awaited(&f), 4);
}

/* A stalled follower is not slow: it applies at full speed when it resumes. */
CASE(one_that_has_stopped_is_not_slow)
{
    f.limits.stop_bytes = 6 * 800 * BATCH;
    seconds(2, well, well);
    seconds(5, stopped, well);
    cr_assert_eq(qn_flow_awaited(&f), 6);
    seconds(5, (struct follower){12, 1}, well);
    cr_assert_eq(qn_flow_awaited(&f), 6);
    cr_assert_eq(f.given, 0);
}

/* The leader forgets the paces that it measured before. */
CASE(after_a_time_without_load_all_begin_anew)
{
    f.limits.stop_bytes = 6 * 800 * BATCH;
    seconds(2, well, well);
    seconds(5, squeezed, well);
    cr_assert_geq(f.member[1].slow, QN_FLOW_SLOW_LOOKS - 1);
    applies(1, 100000);
    passes(60 * QN_S);
    seconds(1, well, well);
    cr_assert_eq(f.member[1].slow, 0);
    cr_assert_eq(qn_flow_awaited(&f), 6);
}

/* One core, a third of the turns for each: now this one, now that one has more
 * to do for what it applies, and shuts the gate. */
CASE(all_that_share_a_core_stay_awaited)
{
    const struct follower third = {2, 3}, rest = {4, 3};
    for (uint32_t k = 0; k < 20; k++) {
        seconds(4, third, rest);
        seconds(4, rest, third);
    }
    cr_assert_gt(qn_flow_shut_by(&f, 1, now), 40 * QN_S);
    cr_assert_eq(qn_flow_awaited(&f), 6);
    cr_assert_eq(f.given, 0);
}

CASE(short_stops_cost_nobody_its_place)
{
    seconds(2, well, well);
    for (uint32_t turn = 0; turn < 4000; turn++) {
        passes(10 * QN_MS);
        applies(1, turn % 200 < 180 ? 1000 : 0); /* 0.2 s in every 2 s */
        applies(2, 1000);
        decide(8);
    }
    cr_assert_eq(qn_flow_awaited(&f), 6);
}

CASE(two_that_are_slow_alike_are_waited_for)
{
    seconds(2, well, well);
    seconds(20, squeezed, squeezed);
    cr_assert_eq(qn_flow_awaited(&f), 6, "they apply more than the floor");
}

Test(flow, who_is_slow_is_waited_for_if_min_says_so)
{
    begin(3, 2);
    seconds(2, well, well);
    seconds(20, squeezed, well);
    cr_assert_eq(qn_flow_awaited(&f), 6);
    cr_assert_eq(qn_flow_followed(&f), 4, "but the gate alone waits for it");
}

CASE(after_its_pause_it_is_awaited_when_it_has_caught_up)
{
    seconds(2, well, well);
    seconds(5, squeezed, well);
    cr_assert_eq(qn_flow_awaited(&f), 4);
    seconds(10, well, well);
    cr_assert_eq(qn_flow_awaited(&f), 4, "its pause is not over");
    seconds(10, well, well);
    cr_assert_eq(qn_flow_awaited(&f), 6);
}

/* It is well for a moment whenever it might be awaited again. */
CASE(each_trial_in_vain_doubles_the_pause)
{
    seconds(2, well, well);
    seconds(3, squeezed, well);
    for (uint64_t pause = QN_FLOW_PAUSE; pause <= 128; pause *= 2) {
        seconds(3, squeezed, well);
        cr_assert_eq(qn_flow_awaited(&f), 4);
        cr_assert_eq(f.member[1].pause, pause * QN_S);
        seconds(pause - 4, well, well);
        cr_assert_eq(qn_flow_awaited(&f), 4, "it does not flap");
        seconds(5, well, well);
        cr_assert_eq(qn_flow_awaited(&f), 6);
    }
    seconds(200, well, well);
    seconds(5, squeezed, well);
    cr_assert_eq(f.member[1].pause, QN_FLOW_PAUSE * QN_S, "all is forgotten");
}

CASE(the_pause_has_a_bound)
{
    seconds(2, well, well);
    f.member[1].pause = QN_FLOW_PAUSE_MOST * QN_S;
    f.member[1].back_at = now;
    seconds(5, squeezed, well);
    cr_assert_eq(f.member[1].pause, QN_FLOW_PAUSE_MOST * QN_S);
}

/* ---- stamps -------------------------------------------------------------- */

/* Rings of so many slots, a quarter of which nobody may lack but for stamps:
 * writes are held for a hundred days. */
CASE(stamps_that_pass_the_gate_last_for_months)
{
    const uint64_t rings[] = {131072, 1024, 256};
    const qn_time_t day = UINT64_C(24) * 3600 * QN_S;
    for (uint32_t r = 0; r < 3; r++) {
        uint64_t stamps = 0;
        f.limits.stop_slots = rings[r] / 4 * 3;
        qn_time_t end = now + 100 * day;
        qn_flow_stamped(&f, now, false);
        for (; now < end && stamps < rings[r]; stamps++) {
            qn_flow_stamped(&f, now, true);
            passes(f.stamp_at - now);
        }
        cr_assert_lt(stamps, rings[r] / 4, "%llu of %llu",
                     (unsigned long long)stamps, (unsigned long long)rings[r]);
    }
    qn_flow_stamped(&f, now, false);
    cr_assert_eq(f.stamp_at, now + QN_FLOW_STAMP, "it was open");
}

/* ---- holds --------------------------------------------------------------- */

static void hold(qn_slot_t slot, uint32_t done)
{
    const struct qn_flow_hold h = {slot, done};
    uint64_t slots = slot == 0 ? 0 : decided + 1 - slot;
    const struct qn_flow_kept since = {
        .bytes = slots * BATCH, .slots = slots, .kept = slot >= lo};
    qn_flow_keep(&f, now, 2, h, since);
}

/* Batches decided while the others follow at once. */
static uint64_t run(uint64_t most)
{
    uint64_t k = 0;
    while (k < most && decide(1) == 1) {
        k++;
        applies(1, 1);
        applies(2, 1);
    }
    return k;
}

CASE(a_hold_lets_the_leader_go_as_far_as_the_join_has_come)
{
    hold(1, 0);
    cr_assert_eq(run(1000), STOP / 8 / BATCH);
    cr_assert_eq(qn_flow_first(&f), 1);
    hold(1, QN_HOLD_DONE / 2);
    run(1000);
    cr_assert_gt(decided, STOP / 8 / BATCH);
    cr_assert_lt(decided, STOP * 2 / 3 / BATCH);
    hold(1, QN_HOLD_DONE);
    run(1000);
    cr_assert_geq(decided, STOP / BATCH - 1);
    cr_assert_leq(decided, STOP / BATCH);
    hold(0, 0);
    cr_assert_eq(run(1000), 1000);
}

/* Else a join of small batches fills the ring's slots at full speed, and then
 * no write is decided until it ends. */
CASE(slots_count_as_bytes_do_for_a_hold)
{
    f.limits.stop_slots = 16;
    hold(1, 0);
    cr_assert_eq(run(1000), 2);
    hold(1, QN_HOLD_DONE / 2);
    cr_assert_eq(run(1000), 7, "so writes slow down and do not stop");
    hold(1, QN_HOLD_DONE);
    cr_assert_eq(run(1000), 7);
    hold(0, 0);
    cr_assert_eq(run(1000), 1000);
}

CASE(a_hold_that_does_not_grow_is_given_up)
{
    hold(1, 0);
    run(1000);
    passes(QN_S);
    hold(1, 1);
    passes(2 * QN_S - 1);
    cr_assert_eq(run(1000), 0);
    passes(1);
    cr_assert_eq(run(1000), 1000);
    cr_assert_eq(f.holds, 1);
    hold(1, 2);
    cr_assert_eq(run(1000), 1000, "it is over");
    hold(decided + 1, 0);
    cr_assert_lt(run(1000), 1000, "the next one counts");
}

/* It grows, but who joins was slow: it costs no more than a part of the pause.
 */
CASE(a_hold_for_one_that_was_slow_has_a_bound)
{
    seconds(2, well, well);
    seconds(5, squeezed, well);
    cr_assert_eq(qn_flow_awaited(&f), 4);
    hold(decided + 1, 0);
    cr_assert_eq(f.member[2].hold.slot, 0, "nothing is held in its pause");
    lo = decided;
    seconds(16, stopped, well);
    qn_slot_t cut = decided + 1;
    hold(cut, 0);
    run(1000);
    cr_assert_eq(run(1000), 0, "it is worth a trial");
    for (uint32_t k = 1; k < 400; k++) { /* of 10 ms: a quarter of 16 s */
        passes(10 * QN_MS);
        hold(cut, k);
        run(1000);
        cr_assert_eq(f.holds, 0);
    }
    passes(10 * QN_MS);
    cr_assert_eq(run(1000), 1000);
    cr_assert_eq(f.holds, 1);
    cr_assert_eq(f.member[1].pause, 2 * QN_FLOW_PAUSE * QN_S);
    hold(decided + 1, 0);
    cr_assert_eq(run(1000), 1000, "the next pause has begun");
}

CASE(a_hold_ends_with_its_giver)
{
    hold(1, 0);
    run(1000);
    qn_flow_down(&f, now, 2);
    cr_assert_eq(run(1000), 1000);
}

CASE(what_is_gone_is_not_held)
{
    lo = 7;
    hold(3, 0);
    cr_assert_eq(qn_flow_first(&f), 1, "that of the members");
    cr_assert_eq(run(1000), 1000);
}

CASE(the_time_is_counted)
{
    decide(1000);
    decide(1);
    applies(2, 1000);
    decide(1);
    passes(50 * QN_MS);
    decide(1);
    cr_assert_eq(qn_flow_shut_by(&f, 1, now), 50 * QN_MS);
    cr_assert_eq(qn_flow_shut_by(&f, 2, now), 0);
    cr_assert_eq(qn_flow_shut(&f, now), 50 * QN_MS);
    applies(1, 1000);
    decide(1);
    passes(QN_S);
    decide(1);
    cr_assert_eq(qn_flow_shut(&f, now), 50 * QN_MS);
}

/* ---- any schedule -------------------------------------------------------- */

/* A ring of so many slots, members that apply, are slow, stop, die and come
 * back with a snapshot, and after each step what is promised. */
enum { RING = 64, STEPS = 4000 };

static uint64_t rng;

static uint64_t any(uint64_t n)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (rng >> 33) % n;
}

static struct {
    bool dead;
    uint64_t share; /* applies in one of so many steps; 0: stopped */
    uint64_t most;  /* it may lack */
} member[QN_NODES_MAX];

static bool fits(void)
{
    return decided - lo + 1 < RING || qn_flow_first(&f) > lo;
}

/* The leader, with a ring that overwrites what nobody awaited needs. */
static void leader_turn(uint64_t most)
{
    for (uint64_t k = 0; k < most; k++) {
        struct qn_flow_by by;
        do {
            by = qn_flow_shuts(&f, now, BATCH);
            if (by.members == 0 && by.holds == 0 && !fits()) {
                by = qn_flow_oldest(&f);
            }
        } while (qn_flow_look(&f, now, by));
        if (by.members != 0 || by.holds != 0) {
            return;
        }
        decided++;
        qn_flow_decided(&f, BATCH);
        lo = decided - lo >= RING ? lo + 1 : lo;
    }
}

static void member_turn(qn_node_t n)
{
    if (any(300) == 0) {
        member[n].dead = !member[n].dead;
        if (member[n].dead) {
            qn_flow_down(&f, now, n);
        } else {
            applied[n] = 0;
        }
    }
    if (any(60) == 0) {
        member[n].share = any(3) == 0 ? 0 : 1 + any(8);
    }
    if (member[n].dead || member[n].share == 0 || any(member[n].share) != 0) {
        return;
    }
    if (applied[n] + 1 < lo) {
        applied[n] = decided; /* a snapshot */
        qn_flow_heard(&f, now, n, place(n));
        return;
    }
    applies(n, 1 + any(10));
}

static uint32_t awaited_or_dead(uint32_t nodes)
{
    uint32_t count = 0;
    for (qn_node_t n = 1; n < nodes; n++) {
        count += f.member[n].awaited || member[n].dead;
    }
    return count;
}

static void check(uint32_t nodes, uint64_t seed)
{
    for (qn_node_t n = 1; n < nodes; n++) {
        const struct qn_flow_member *m = &f.member[n];
        if (m->awaited) {
            cr_assert(applied[n] + 1 >= lo,
                      "seed %llu: an awaited member lacks what is gone",
                      (unsigned long long)seed);
            uint64_t lacks = decided - applied[n];
            member[n].most =
                QN_MAX(QN_MIN(lacks, member[n].most), STOP / BATCH);
            cr_assert(lacks <= member[n].most, "seed %llu: the leader ran away",
                      (unsigned long long)seed);
        } else {
            member[n].most = RING; /* that it comes back with */
        }
    }
}

static void schedule(uint64_t seed)
{
    rng = seed;
    uint32_t nodes = 3 + (uint32_t)any(3);
    uint32_t min = (uint32_t)any(nodes);
    begin(nodes, min);
    memset(member, 0, sizeof member);
    for (uint32_t k = 0; k < STEPS; k++) {
        passes(any(20) * QN_MS);
        for (qn_node_t n = 1; n < nodes; n++) {
            uint64_t given = f.given;
            member_turn(n);
            cr_assert_eq(f.given, given);
        }
        uint32_t before = awaited_or_dead(nodes);
        uint64_t given = f.given;
        leader_turn(any(30));
        check(nodes, seed);
        if (f.given != given) {
            uint32_t dead = 0;
            for (qn_node_t n = 1; n < nodes; n++) {
                dead += member[n].dead;
            }
            cr_assert(
                awaited_or_dead(nodes) - dead >= QN_MIN(min, nodes - 1 - dead),
                "seed %llu: too few are awaited", (unsigned long long)seed);
            cr_assert(awaited_or_dead(nodes) < before);
        }
    }
    /* All go on: nothing holds anybody. */
    for (qn_node_t n = 1; n < nodes; n++) {
        member[n].share = 1;
        if (!member[n].dead) {
            applied[n] = applied[n] + 1 < lo ? decided : applied[n];
            applies(n, 1000);
        }
    }
    qn_slot_t at = decided;
    leader_turn(5);
    cr_assert(decided == at + 5, "seed %llu: writes wait for ever",
              (unsigned long long)seed);
}

Test(flow, any_schedule_keeps_what_is_promised)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        schedule(seed);
    }
}

/* Both are stalled, and one must stay: the one that votes, though it comes
 * first. */
Test(flow, a_member_that_does_not_vote_does_not_count)
{
    begin(3, 1);
    qn_flow_voters(&f, 0x3);
    passes(QN_FLOW_QUIET + 1);
    decide(1000);
    passes(QN_S);
    cr_assert_eq(decide(1000), 0);
    cr_assert(f.held);
    cr_assert_eq(qn_flow_awaited(&f), 0x2);
    qn_flow_voters(&f, 0x5);
    cr_assert_gt(decide(1000), 0, "now it does not vote");
    cr_assert_eq(qn_flow_awaited(&f), 0);
}
