/*
 * Positions without drivers: each decision at its boundary values.
 */
#include "paxos/driver/positions.h"

#include <signal.h>

#include "tests/support/test.h"

/* Node 1 of three; it has applied slots up to 100. */
enum { SELF = 1, NODES = 3, HAVE = 100 };
#define ALL   UINT64_C(7)
#define START ((qn_time_t)5 * QN_S)

static struct qn_positions p;

static void setup(void)
{
    qn_positions_init(&p, SELF, NODES, START);
    qn_positions_jump(&p, HAVE);
    qn_positions_published(&p, 0);
}

#define CASE(name)  Test(positions, name, .init = setup)
#define ABORT(name) Test(positions, name, .init = setup, .signal = SIGABRT)

static bool says(qn_node_t peer, qn_slot_t applied, qn_slot_t learned,
                 qn_slot_t bound)
{
    const struct qn_position claim = {applied, learned};
    return qn_positions_credible(&p, peer, &claim, bound);
}

static void take(qn_node_t peer, qn_slot_t applied, qn_slot_t learned,
                 qn_time_t now)
{
    const struct qn_position claim = {applied, learned};
    cr_assert(qn_positions_credible(&p, peer, &claim, UINT64_MAX));
    qn_positions_take(&p, peer, &claim, now);
}

/* ---- own ----------------------------------------------------------------- */

CASE(a_slot_is_visible_with_its_first_command_and_applied_with_its_last)
{
    qn_positions_slot_begin(&p, HAVE + 1);
    cr_assert_eq(p.visible_slot, HAVE + 1);
    cr_assert_eq(p.applied, HAVE);
    qn_positions_slot_begin(&p, HAVE + 1); /* more commands of it */
    qn_positions_slot_end(&p, HAVE + 1);
    cr_assert_eq(p.applied, HAVE + 1);
    cr_assert_eq(p.published, HAVE, "the caller has not published it yet");
}

ABORT(a_slot_that_is_skipped_aborts)
{
    qn_positions_slot_begin(&p, HAVE + 1);
    qn_positions_slot_end(&p, HAVE + 2);
}

ABORT(a_jump_inside_a_slot_aborts)
{
    qn_positions_slot_begin(&p, HAVE + 1);
    qn_positions_jump(&p, HAVE + 5);
}

ABORT(a_jump_backwards_aborts)
{
    qn_positions_jump(&p, HAVE - 1);
}

CASE(the_read_index_is_judged_by_what_was_published_seen_and_applied)
{
    qn_positions_slot_begin(&p, HAVE + 1);
    cr_assert_eq(qn_positions_index_check(&p, HAVE - 1), QN_INDEX_LOWERED);
    cr_assert_eq(qn_positions_index_check(&p, HAVE), QN_INDEX_LOW);
    cr_assert_eq(qn_positions_index_check(&p, HAVE + 1), QN_INDEX_AHEAD,
                 "a part of the slot is not applied yet");
    qn_positions_slot_end(&p, HAVE + 1);
    cr_assert_eq(qn_positions_index_check(&p, HAVE), QN_INDEX_LOW);
    cr_assert_eq(qn_positions_index_check(&p, HAVE + 1), QN_INDEX_APPLIED);
    cr_assert_eq(qn_positions_index_check(&p, HAVE + 2), QN_INDEX_AHEAD);
    qn_positions_published(&p, 1);
    cr_assert_eq(qn_positions_index_check(&p, HAVE), QN_INDEX_LOWERED);
}

CASE(the_read_index_is_looked_at_after_applying_and_now_and_then)
{
    const qn_time_t at = QN_S;
    qn_positions_published(&p, at);
    cr_assert(!qn_positions_index_due(&p, at));
    cr_assert(!qn_positions_index_due(&p, at + QN_INDEX_LOOK - 1));
    cr_assert(qn_positions_index_due(&p, at + QN_INDEX_LOOK));
    qn_positions_slot_begin(&p, HAVE + 1);
    cr_assert(qn_positions_index_due(&p, at), "a part of it is visible");
    qn_positions_published(&p, at);
    qn_positions_slot_end(&p, HAVE + 1);
    cr_assert(!qn_positions_index_due(&p, at));
}

/* ---- the bound ----------------------------------------------------------- */

CASE(the_accept_word_bounds_the_log)
{
    struct qn_bound_facts f = {.memory = true, .accepted = HAVE + 7};
    cr_assert_eq(qn_positions_bound(&p, &f), HAVE + 7);
    f.accepted = HAVE;
    cr_assert_eq(qn_positions_bound(&p, &f), HAVE);
    f.accepted = HAVE - 1; /* what is applied is decided: that is garbage */
    cr_assert_eq(qn_positions_bound(&p, &f), QN_POSITIONS_UNBOUNDED);
}

CASE(an_acceptor_process_bounds_the_log_only_if_it_is_surely_the_newest)
{
    for (unsigned known = 0; known < 8; known++) {
        const struct qn_bound_facts f = {.lives = known & 1,
                                         .no_later_vote = known & 2,
                                         .knows_tenure = known & 4,
                                         .accepted = HAVE + 3};
        cr_assert_eq(qn_positions_bound(&p, &f),
                     known == 7 ? HAVE + 3 : QN_POSITIONS_UNBOUNDED, "%u",
                     known);
    }
}

CASE(a_majority_of_all_nodes_has_never_voted_for_a_later_entry)
{
    const uint64_t voted[NODES] = {3, 4, 3}; /* entries 0 to 3 are known */
    cr_assert(qn_positions_no_later_vote(&p, ALL, voted, ALL, 4));
    cr_assert(qn_positions_no_later_vote(&p, ALL, voted, 5, 4));
    cr_assert_not(qn_positions_no_later_vote(&p, ALL, voted, 6, 4));
    cr_assert_not(qn_positions_no_later_vote(&p, ALL, voted, 1, 4));
    cr_assert_not(qn_positions_no_later_vote(&p, ALL, voted, ALL, 3));
    cr_assert(qn_positions_no_later_vote(&p, ALL, voted, 3, 5));
}

CASE(half_of_the_nodes_are_no_majority)
{
    const uint64_t voted[4] = {0};
    qn_positions_init(&p, SELF, 4, START);
    cr_assert_not(qn_positions_no_later_vote(&p, 15, voted, 3, 1));
    cr_assert(qn_positions_no_later_vote(&p, 15, voted, 7, 1));
}

CASE(only_voters_count_and_only_they_are_counted)
{
    const uint64_t voted[6] = {0};
    qn_positions_init(&p, SELF, 6, START);
    cr_assert_not(qn_positions_no_later_vote(&p, 7, voted, 0x39, 1));
    cr_assert(qn_positions_no_later_vote(&p, 7, voted, 0x3b, 1));
    cr_assert(qn_positions_no_later_vote(&p, 2, voted, 2, 1));
    cr_assert_not(qn_positions_no_later_vote(&p, 0, voted, 0x3f, 1));
}

CASE(all_are_at_a_position_only_if_each_living_peer_is)
{
    qn_slot_t learned[NODES] = {50, 0, 50}; /* its own does not count */
    cr_assert(qn_positions_all_at(&p, learned, ALL, ALL, 50));
    cr_assert_not(qn_positions_all_at(&p, learned, ALL, ALL, 49));
    cr_assert_not(qn_positions_all_at(&p, learned, ALL, ALL, 51));
    learned[2] = 51;
    cr_assert_not(qn_positions_all_at(&p, learned, ALL, ALL, 50));
    cr_assert(qn_positions_all_at(&p, learned, 3, 3, 50), "node 2 has ended");
}

CASE(a_peer_that_may_have_begun_anew_is_at_no_known_position)
{
    const qn_slot_t learned[NODES] = {50, 50, 50};
    cr_assert_not(qn_positions_all_at(&p, learned, ALL, 3, 50));
}

/* ---- peers --------------------------------------------------------------- */

CASE(a_claim_up_to_the_bound_is_credible)
{
    cr_assert(says(0, 10, 20, 20));
    cr_assert_not(says(0, 10, 21, 20));
    cr_assert(says(0, 20, 20, 20));
    cr_assert_not(says(0, 21, 20, 30), "applied more than it has learned");
}

CASE(no_slot_is_as_high_as_garbage)
{
    cr_assert(says(0, 0, QN_SLOT_MAX, QN_POSITIONS_UNBOUNDED));
    cr_assert_not(says(0, 0, QN_SLOT_MAX + 1, QN_POSITIONS_UNBOUNDED));
}

CASE(a_claim_never_falls_within_an_incarnation)
{
    take(0, 10, 20, START);
    cr_assert(says(0, 10, 20, 99));
    cr_assert_not(says(0, 9, 20, 99));
    cr_assert_not(says(0, 10, 19, 99));
    qn_positions_peer_down(&p, 0);
    qn_positions_peer_up(&p, 0, START);
    cr_assert(says(0, 0, 1, 99), "the next incarnation begins anew");
}

ABORT(taking_a_claim_that_falls_aborts)
{
    take(0, 10, 20, START);
    qn_positions_take(&p, 0, &(struct qn_position){9, 20}, START);
}

/* The root has learned 500; node 0 has too, node 2 only 499. */
static uint64_t look(qn_time_t now)
{
    return qn_positions_laggards(&p, 500, ALL, 0, true, now);
}

static void one_lags(void)
{
    take(0, 500, 500, START);
    take(2, 499, 499, START);
    cr_assert_eq(look(START), 0, "before this look nothing was learned");
    cr_assert_eq(look(START), 0);
}

CASE(a_member_lags_when_it_makes_no_progress_for_ten_ms)
{
    one_lags();
    cr_assert_eq(look(START + QN_DRIVER_LAG - 1), 0);
    cr_assert_eq(look(START + QN_DRIVER_LAG), 1 << 2);
}

CASE(a_member_that_learns_something_does_not_lag)
{
    take(2, 0, 400, START);
    look(START);
    take(2, 0, 401, START + QN_DRIVER_LAG - 1);
    cr_assert_eq(look(START + QN_DRIVER_LAG) & 4, 0);
    cr_assert_eq(look(START + 2 * QN_DRIVER_LAG - 2) & 4, 0);
    cr_assert_eq(look(START + 2 * QN_DRIVER_LAG - 1) & 4, 4);
}

CASE(a_laggard_is_back_when_it_has_what_the_root_had_at_the_look_before)
{
    one_lags();
    look(START + QN_DRIVER_LAG);
    take(2, 499, 500, START + QN_S);
    cr_assert_eq(qn_positions_laggards(&p, 900, ALL, 0, true, START + QN_S), 0,
                 "900 is learned in this look");
    cr_assert_eq(qn_positions_laggards(&p, 900, ALL, 0, true, START + QN_S), 0,
                 "it has moved now");
}

CASE(a_node_that_is_no_such_root_judges_no_peer)
{
    one_lags();
    cr_assert_eq(
        qn_positions_laggards(&p, 500, ALL, 0, false, START + QN_DRIVER_LAG),
        0);
    cr_assert_eq(look(START + QN_DRIVER_LAG), 1 << 2);
}

CASE(one_that_is_suspected_lags_until_it_is_not_and_has_caught_up)
{
    take(0, 500, 500, START);
    take(2, 500, 500, START);
    look(START);
    cr_assert_eq(qn_positions_laggards(&p, 501, ALL, 4, true, START), 4);
    cr_assert_eq(qn_positions_laggards(&p, 501, ALL, 4, true, START), 4);
    take(0, 501, 501, START);
    cr_assert_eq(qn_positions_laggards(&p, 501, ALL, 0, true, START), 4);
    take(2, 501, 501, START);
    cr_assert_eq(qn_positions_laggards(&p, 501, ALL, 0, true, START), 0);
    qn_positions_lag(&p, 5);
    cr_assert_eq(p.lagging, 5);
    cr_assert_eq(qn_positions_laggards(&p, 501, ALL, 0, true, START), 0);
}

CASE(a_laggard_that_ends_or_a_new_epoch_is_forgiven)
{
    one_lags();
    look(START + QN_DRIVER_LAG);
    qn_positions_peer_down(&p, 2);
    cr_assert_eq(p.lagging, 0);
    cr_assert_eq(qn_positions_laggards(&p, 500, 3, 0, true, START + QN_S), 0,
                 "a node that has ended is not judged");
    look(START + QN_S);
    cr_assert_eq(p.lagging, 1 << 2);
    qn_positions_forgive(&p);
    cr_assert_eq(p.lagging, 0);
}

/* ---- reminders ----------------------------------------------------------- */

/* Look twice: this node has learned 500 in the meantime. */
static uint64_t remind(void)
{
    uint64_t mask = qn_positions_remind(&p, ALL);
    look(START);
    return mask;
}

CASE(a_peer_that_lacks_something_and_learns_nothing_is_reminded_once)
{
    take(0, 500, 500, START);
    take(2, 499, 499, START);
    cr_assert(qn_positions_may_remind(&p, ALL, 500));
    cr_assert_eq(remind(), 0, "its LEARN may be on its way");
    cr_assert_eq(remind(), 1 << 2);
    cr_assert_eq(remind(), 0, "it has that reminder, or will read it");
    cr_assert_not(qn_positions_may_remind(&p, ALL, 500));
    cr_assert_not(qn_positions_may_remind(&p, 1, 500));
}

CASE(a_peer_that_was_reminded_and_has_moved_may_be_reminded_again)
{
    take(0, 500, 500, START);
    take(2, 490, 490, START);
    remind();
    cr_assert_eq(remind(), 1 << 2);
    take(2, 491, 491, START);
    cr_assert(qn_positions_may_remind(&p, ALL, 500));
    cr_assert_eq(remind(), 0, "it learns");
    cr_assert_eq(remind(), 1 << 2);
    take(2, 500, 500, START);
    cr_assert_not(qn_positions_may_remind(&p, ALL, 500));
    cr_assert_eq(remind(), 0);
}

CASE(a_peer_that_has_ended_is_not_reminded)
{
    take(2, 499, 499, START);
    remind();
    cr_assert_eq(qn_positions_remind(&p, 1) & 1 << 2, 0);
    cr_assert_not(qn_positions_may_remind(&p, 0, 500));
}

/* ---- the hold ------------------------------------------------------------ */

CASE(a_hold_is_over_a_while_after_the_joiner_has_the_snapshot)
{
    qn_positions_hold(&p, 2, 9, 80); /* from slot 81 on */
    take(2, 79, 79, START);
    cr_assert_not(qn_positions_hold_over(&p, true, START));
    take(2, 80, 80, START);
    cr_assert_not(qn_positions_hold_over(&p, true, START));
    qn_time_t end = START + QN_HOLD_REST;
    cr_assert_not(qn_positions_hold_over(&p, true, end - 1));
    cr_assert(qn_positions_hold_over(&p, true, end));
}

CASE(a_hold_is_over_at_once_when_the_joiner_has_ended)
{
    qn_positions_hold(&p, 2, 9, 80);
    cr_assert(qn_positions_hold_over(&p, false, START));
    qn_positions_hold_end(&p);
    cr_assert_not(qn_positions_hold_over(&p, false, START), "nothing is held");
}

CASE(a_hold_said_again_begins_anew)
{
    qn_positions_hold(&p, 2, 9, 80);
    take(2, 80, 80, START);
    cr_assert_not(qn_positions_hold_over(&p, true, START));
    qn_positions_hold(&p, 2, 9, 80);
    cr_assert_not(qn_positions_hold_over(&p, true, START + QN_HOLD_REST));
    cr_assert(qn_positions_hold_over(&p, true, START + 2 * QN_HOLD_REST));
}

/* ---- when to look -------------------------------------------------------- */

CASE(a_planned_look_is_neither_delayed_nor_forgotten)
{
    cr_assert_not(qn_positions_look_due(&p, START), "none is planned");
    qn_positions_look_once(&p, 50);
    qn_positions_look_once(&p, 40);
    cr_assert_eq(p.heartbeat_at, 50, "one was planned");
    qn_positions_look_by(&p, 60);
    cr_assert_eq(p.heartbeat_at, 50);
    qn_positions_look_by(&p, 30);
    cr_assert_not(qn_positions_look_due(&p, 29));
    cr_assert(qn_positions_look_due(&p, 30));
    cr_assert_not(qn_positions_look_due(&p, 31), "the look is done");
    cr_assert_eq(p.heartbeat_at, QN_TIME_NEVER);
}
