/*
 * The verdict without drivers: each decision at its boundary values.
 */
#include "paxos/halt/halt.h"

#include <signal.h>

#include "paxos/wire/msg.h"
#include "tests/support/test.h"

/* Node 0 of three leads epoch 7 and has learned slots up to 40. */
enum { SELF = 0, NODES = 3, EPOCH = 7 };
#define LOST  UINT64_C(8)
#define GAP   (LOST | QN_HALT_LOG_INCOMPLETE)
#define START ((qn_time_t)5 * QN_S)

static struct qn_halt h;
static struct qn_halt_facts view;

static void setup(void)
{
    qn_halt_init(&h, SELF, NODES);
    view = (struct qn_halt_facts){
        .leads = true, .no_later_vote = true, .epoch = EPOCH, .learned = 40};
}

#define CASE(name)  Test(halt, name, .init = setup)
#define ABORT(name) Test(halt, name, .init = setup, .signal = SIGABRT)

/* A turn; what it says is the node's word from then on. */
static uint64_t turn(qn_time_t now)
{
    view.word = qn_halt_word(&h, &view, now);
    return view.word;
}

/* ---- process acceptor ---------------------------------------------------- */

CASE(a_leader_that_lost_the_log_says_so_at_once)
{
    cr_assert_eq(turn(START), 0);
    view.lost = true;
    cr_assert_eq(turn(START), LOST);
    cr_assert_eq(turn(START + 1), LOST);
}

CASE(only_the_leader_says_it)
{
    view.leads = false;
    view.lost = true;
    cr_assert_eq(turn(START), 0);
}

CASE(nothing_is_said_while_a_later_epoch_is_possible)
{
    view.lost = true;
    view.no_later_vote = false;
    cr_assert_eq(turn(START), 0);
    view.no_later_vote = true;
    cr_assert_eq(turn(START), LOST);
    view.no_later_vote = false;
    cr_assert_eq(turn(START), LOST, "it is not withdrawn");
}

CASE(nothing_is_said_while_a_node_goes_on_by_force)
{
    view.lost = view.by_force = true;
    cr_assert_eq(turn(START), 0);
}

CASE(a_leader_that_serves_ends_the_recovery_by_force)
{
    view.by_force = true;
    view.word = QN_HALT_BY_FORCE;
    cr_assert_eq(turn(START), QN_HALT_BY_FORCE);
    view.served = true;
    cr_assert_eq(turn(START), 0);
}

CASE(what_was_said_of_an_earlier_epoch_stays_while_the_group_serves)
{
    view.word = LOST;
    view.served = true;
    cr_assert_eq(turn(START), LOST);
}

CASE(a_gap_is_said_after_a_second)
{
    view.lacks = true;
    cr_assert_eq(turn(START), 0);
    cr_assert_eq(turn(START + QN_DRIVER_LACKS - 1), 0);
    cr_assert_eq(turn(START + QN_DRIVER_LACKS), GAP);
}

CASE(a_gap_that_moves_is_a_new_one)
{
    view.lacks = true;
    turn(START);
    view.learned++;
    cr_assert_eq(turn(START + QN_DRIVER_LACKS), 0);
    cr_assert_eq(turn(START + 2 * QN_DRIVER_LACKS - 1), 0);
    cr_assert_eq(turn(START + 2 * QN_DRIVER_LACKS), GAP);
}

CASE(a_gap_that_is_filled_is_withdrawn)
{
    view.lacks = true;
    turn(START);
    cr_assert_eq(turn(START + QN_DRIVER_LACKS), GAP);
    view.lacks = false;
    cr_assert_eq(turn(START + QN_DRIVER_LACKS), 0);
    view.lacks = true;
    cr_assert_eq(turn(START + QN_DRIVER_LACKS + 1), 0, "the second is over");
}

CASE(a_gap_is_withdrawn_by_a_node_that_no_longer_leads)
{
    view.word = GAP;
    view.lacks = true;
    view.leads = false;
    cr_assert_eq(turn(START), 0);
}

CASE(a_lost_log_counts_more_than_a_gap)
{
    view.lacks = true;
    turn(START);
    view.lost = true;
    cr_assert_eq(turn(START + QN_DRIVER_LACKS), LOST);
}

CASE(a_word_means_something_in_its_own_epoch_only)
{
    cr_assert_eq(qn_halt_read(LOST, EPOCH), QN_HALT_REASON_LOST);
    cr_assert_eq(qn_halt_read(GAP, EPOCH), QN_HALT_REASON_GAP);
    cr_assert_eq(qn_halt_read(0, EPOCH), QN_HALT_REASON_NONE);
    cr_assert_eq(qn_halt_read(QN_HALT_BY_FORCE, EPOCH), QN_HALT_REASON_NONE);
    cr_assert_eq(qn_halt_read(LOST, EPOCH + 1), QN_HALT_REASON_NONE);
    cr_assert_eq(qn_halt_read(GAP, EPOCH - 1), QN_HALT_REASON_NONE);
}

ABORT(a_word_by_force_without_force_aborts)
{
    view.word = QN_HALT_BY_FORCE;
    turn(START);
}

/* ---- memory acceptor ----------------------------------------------------- */

CASE(an_incarnation_has_ended_when_a_later_one_is_known_or_it_is_down)
{
    cr_assert(qn_halt_has_ended(4, 5, true));
    cr_assert(qn_halt_has_ended(4, 4, false));
    cr_assert_not(qn_halt_has_ended(4, 4, true));
    cr_assert_not(qn_halt_has_ended(5, 4, false), "it is not known yet");
}

CASE(a_member_has_heard_when_it_receives_from_living_incarnations_only)
{
    const uint64_t newest[NODES] = {3, 5, 9};
    uint64_t hears[NODES] = {3, 77, 9}; /* of itself it says nothing */
    cr_assert(qn_halt_has_heard(&h, 1, hears, newest, 7));
    cr_assert_not(qn_halt_has_heard(&h, 1, hears, newest, 3));
    hears[2] = 8;
    cr_assert_not(qn_halt_has_heard(&h, 1, hears, newest, 7));
    hears[2] = 0;
    cr_assert(qn_halt_has_heard(&h, 1, hears, newest, 3));
    hears[0] = 2;
    cr_assert_not(qn_halt_has_heard(&h, 1, hears, newest, 3));
}

CASE(a_node_is_late_for_incarnations_that_had_ended_when_it_began)
{
    qn_halt_born(&h, 1, 5, true);
    qn_halt_born(&h, 2, 5, false);
    cr_assert(qn_halt_born_late(&h, 1, 5));
    cr_assert_not(qn_halt_born_late(&h, 1, 6));
    cr_assert(qn_halt_born_late(&h, 2, 4));
    cr_assert_not(qn_halt_born_late(&h, 2, 5));
}

CASE(a_peer_is_late_if_it_says_so_or_came_after_the_end)
{
    cr_assert(qn_halt_is_late(&h, 1, EPOCH + 1, EPOCH));
    cr_assert_not(qn_halt_is_late(&h, 1, EPOCH, EPOCH));
    qn_halt_peer_up(&h, 1, EPOCH + 1);
    cr_assert(qn_halt_is_late(&h, 1, 0, EPOCH));
    cr_assert_not(qn_halt_is_late(&h, 1, 0, EPOCH + 1));
    qn_halt_peer_up(&h, 1, 0);
    cr_assert_not(qn_halt_is_late(&h, 1, 0, EPOCH));
}

static const struct qn_verdict none, waiting = {.kind = QN_VERDICT_WAITING,
                                                .awaited = 6,
                                                .kept = 40,
                                                .lo = 50,
                                                .hi = 60};
static const struct qn_verdict stopped = {
    .kind = QN_VERDICT_STOPPED, .kept = 40, .lo = 50, .hi = 60};

CASE(a_group_halts_once_per_verdict)
{
    cr_assert_not(qn_halt_take(&h, &none, START));
    cr_assert(qn_halt_take(&h, &stopped, START));
    cr_assert_not(qn_halt_take(&h, &stopped, START), "it has halted already");
    cr_assert_not(qn_halt_take(&h, &waiting, START));
    cr_assert(qn_halt_take(&h, &stopped, START), "it was withdrawn before");
}

CASE(an_overwritten_register_halts_for_good)
{
    const struct qn_verdict damaged = {.kind = QN_VERDICT_DAMAGED};
    cr_assert(qn_halt_take(&h, &damaged, START));
    cr_assert_not(qn_halt_take(&h, &damaged, START));
    cr_assert_not(qn_halt_take(&h, &none, START));
    cr_assert_not(qn_halt_take(&h, &stopped, START));
    cr_assert_eq(h.verdict.kind, QN_VERDICT_DAMAGED);
}

CASE(members_are_waited_for_after_a_second)
{
    qn_halt_take(&h, &waiting, START);
    cr_assert_eq(qn_halt_waits_for(&h, START + QN_DRIVER_LACKS - 1), 0);
    qn_halt_take(&h, &waiting, START + QN_DRIVER_LACKS - 1);
    cr_assert_eq(qn_halt_waits_for(&h, START + QN_DRIVER_LACKS), 6);
    qn_halt_take(&h, &none, START + QN_DRIVER_LACKS);
    cr_assert_eq(qn_halt_waits_for(&h, START + 2 * QN_DRIVER_LACKS), 0);
}

ABORT(a_verdict_that_waits_for_no_member_aborts)
{
    const struct qn_verdict wrong = {.kind = QN_VERDICT_WAITING, .lo = 9};
    qn_halt_take(&h, &wrong, START);
}

ABORT(a_verdict_that_waits_for_a_node_outside_the_group_aborts)
{
    struct qn_verdict wrong = waiting;
    wrong.awaited = 1 << NODES;
    qn_halt_take(&h, &wrong, START);
}

/* ---- for people ---------------------------------------------------------- */

CASE(the_highest_position_is_of_all_that_is_known)
{
    cr_assert_eq(qn_halt_highest(&h, 10, 5, false), 10);
    cr_assert_eq(qn_halt_highest(&h, 10, 15, false), 15);
    qn_halt_note(&h, 20);
    qn_halt_note(&h, 18);
    cr_assert_eq(qn_halt_highest(&h, 10, 15, false), 20);
    qn_halt_take(&h, &stopped, START);
    cr_assert_eq(qn_halt_highest(&h, 10, 15, false), 20);
    cr_assert_eq(qn_halt_highest(&h, 10, 15, true), 60, "hi of the lost ring");
    qn_halt_recovered(&h);
    cr_assert_eq(qn_halt_highest(&h, 10, 15, true), 15);
}

CASE(garbage_is_no_position)
{
    qn_halt_note(&h, QN_SLOT_MAX + 1);
    cr_assert_eq(qn_halt_highest(&h, 10, QN_SLOT_MAX + 1, false), 10);
    qn_halt_note(&h, QN_SLOT_MAX);
    cr_assert_eq(qn_halt_highest(&h, 10, 0, false), QN_SLOT_MAX);
}
