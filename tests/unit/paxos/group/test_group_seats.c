/*
 * Groups that grow and shrink: processes that take vacant seats, and orders to
 * change the voters (group_world.h).
 */
#include <signal.h>
#include <stdio.h>

#include "core/base/bits.h"
#include "paxos/group/group.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, 0); /* with its creator */
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_seats, name, .init = init, .fini = fini, .timeout = 100)

#define LONG ((uint64_t)60 * 1000000000)

enum { CAPACITY = 8 };

/* ---- what is waited for -------------------------------------------------- */

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown == n;
}

static bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands == n;
}

static bool has_voters(const struct group_world_report *r, uint64_t mask)
{
    return r->status.voters == mask;
}

static bool has_members(const struct group_world_report *r, uint64_t mask)
{
    return r->status.members == mask;
}

static bool has_failed(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_ENDED;
}

static bool has_guests(const struct group_world_report *r, uint64_t n)
{
    return r->guests == n;
}

static bool has_changes(const struct group_world_report *r, uint64_t n)
{
    return r->changes == n;
}

static bool survives(const struct group_world_report *r, uint64_t deaths)
{
    return r->status.deaths == deaths;
}

static uint64_t bit(uint32_t seat)
{
    return UINT64_C(1) << seat;
}

static uint32_t seat_of(uint32_t i)
{
    return group_world_report(&w, i).status.seat;
}

static uint32_t at_seat(uint32_t seat)
{
    for (uint32_t i = 0; i < GROUP_WORLD_MAX; i++) {
        if (w.process[i].pid != 0 && seat_of(i) == seat) {
            return i;
        }
    }
    return GROUP_WORLD_MAX;
}

static void start(uint32_t i)
{
    group_world_start(&w, i);
    group_world_wait(&w, i, serves, 0);
}

/* Processes 0 to n - 1, each a voter. */
static void begin(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        start(i);
        group_world_wait(&w, 0, has_voters, bit(i + 1) - 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(seat_of(i), i);
        group_world_wait(&w, i, has_voters, bit(n) - 1);
        group_world_wait(&w, i, has_members, bit(n) - 1);
    }
}

/* On a machine with much load a leader may be replaced before it answers: then
 * it is asked again. */
static int ask(uint32_t at, const struct qn_group_change *c, uint64_t timeout)
{
    int err;
    do {
        err = group_world_change(&w, at, c, timeout);
    } while (err == QN_EUNKNOWN);
    return err;
}

static int vote(uint32_t at, uint32_t seat, bool votes)
{
    const struct qn_group_change c = {.seat = seat, .votes = votes};
    return ask(at, &c, LONG);
}

static int force(uint32_t at, uint32_t seat, bool votes)
{
    const struct qn_group_change c = {
        .seat = seat, .votes = votes, .forced = true};
    return ask(at, &c, LONG);
}

/* Commands of process `i` are applied by it. */
static void goes_on(uint32_t i)
{
    const struct group_world_report r = group_world_report(&w, i);
    group_world_propose(&w, i, 20, LONG);
    group_world_wait(&w, i, has_ended, r.applied + r.unknown + 20);
    cr_expect_eq(group_world_report(&w, i).unknown, r.unknown);
}

/* All that live have the same state. */
static void expect_alike(void)
{
    uint64_t most = 0, digest = 0;
    for (uint32_t i = 0; i < GROUP_WORLD_MAX; i++) {
        if (w.process[i].pid != 0) {
            most = QN_MAX(most, group_world_report(&w, i).state.commands);
        }
    }
    for (uint32_t i = 0; i < GROUP_WORLD_MAX; i++) {
        if (w.process[i].pid != 0) {
            group_world_wait(&w, i, has_commands, most);
            const struct group_world_report r = group_world_report(&w, i);
            digest = digest != 0 ? digest : r.state.digest;
            cr_expect_eq(r.state.digest, digest, "process %u", i);
            cr_expect_eq(r.wrong, 0);
        }
    }
}

/* Its turn says that it is no member any more; it ends. */
static void expect_removed(uint32_t i)
{
    group_world_wait(&w, i, has_failed, 0);
    const struct group_world_report r = group_world_report(&w, i);
    cr_expect_eq(r.turn, QN_EREMOVED);
    cr_expect_eq(r.status.err, QN_EREMOVED);
    cr_expect_str_eq(r.why, "this member was removed from the group");
    cr_expect_eq(r.asked, r.applied + r.unknown);
    group_world_kill(&w, i);
}

/* ---- growing ------------------------------------------------------------- */

CASE(the_creator_serves_at_once_and_the_group_grows)
{
    start(0);
    goes_on(0);
    struct group_world_report r = group_world_report(&w, 0);
    cr_expect_eq(r.status.capacity, CAPACITY);
    cr_expect_eq(r.status.voters, 1);
    cr_expect_eq(r.status.deaths, 0);
    begin(0);
    for (uint32_t i = 1; i < 5; i++) {
        start(i);
        group_world_wait(&w, i, has_voters, bit(i + 1) - 1);
        goes_on(i);
    }
    group_world_wait(&w, 0, survives, 2);
    for (uint32_t i = 0; i < 5; i++) {
        goes_on(i);
    }
    expect_alike();
    r = group_world_report(&w, 4);
    cr_expect_eq(r.seat[4].incarnation, r.status.incarnation);
    cr_expect(r.seat[4].lives && r.seat[4].votes && r.seat[0].lives);
    cr_expect_eq(r.seat[5].incarnation, 0);
    cr_expect_not(r.seat[5].lives);
    group_world_kill(&w, 0);
    goes_on(4);
    cr_expect_eq(group_world_report(&w, 4).status.voters, bit(5) - 1);
}

/* A group of 10 has room for all; one of eight refuses two. */
CASE(ten_at_once_are_one_group_whoever_comes_first)
{
    for (w.opts.capacity = 10; w.opts.capacity >= 8; w.opts.capacity -= 2) {
        uint32_t failed = 0;
        for (uint32_t i = 0; i < 10; i++) {
            group_world_start(&w, i);
        }
        for (uint32_t i = 0; i < 10; i++) {
            struct group_world_report r = group_world_report(&w, i);
            while (!serves(&r, 0) && !has_failed(&r, 0)) {
                r = group_world_report(&w, i);
            }
            if (has_failed(&r, 0)) {
                cr_expect_eq(r.turn, QN_EBUSY);
                cr_expect_str_eq(r.why, "all seats of the group are taken");
                group_world_kill(&w, i);
                failed++;
            }
        }
        cr_expect_eq(failed, 10 - w.opts.capacity);
        for (uint32_t i = 0; i < 10; i++) {
            if (w.process[i].pid != 0) {
                const uint64_t all = bit(w.opts.capacity) - 1;
                group_world_wait(&w, i, has_voters, all);
                group_world_wait(&w, i, has_members, all);
                goes_on(i);
            }
        }
        expect_alike();
        for (uint32_t i = 0; i < 10; i++) {
            if (w.process[i].pid != 0) {
                group_world_kill(&w, i);
            }
        }
    }
}

CASE(an_observer_serves_and_votes_when_it_is_ordered_to)
{
    begin(2);
    w.opts.observer = true;
    start(2);
    goes_on(2);
    group_world_kill(&w, 1);
    start(3); /* it takes no voter's seat */
    goes_on(3);
    expect_alike();
    struct group_world_report r = group_world_report(&w, 3);
    cr_expect_eq(r.status.voters, 3);
    cr_expect_eq(r.status.seat, 3);
    cr_expect_eq(r.status.in_sync, 1);
    cr_expect_eq(r.status.deaths, 0);
    w.opts.observer = false;
    start(1);
    cr_expect_eq(seat_of(1), 1);
    cr_expect_eq(vote(3, 2, true), QN_OK);
    group_world_wait(&w, 0, has_voters, 7);
    group_world_wait(&w, 0, survives, 1);
    goes_on(2);
}

/* Two are to begin it; an observer is none of them. */
CASE(a_group_does_not_begin_with_an_observer)
{
    w.opts.members = 2;
    group_world_found(&w, 0);
    w.opts.observer = true;
    group_world_start(&w, 1);
    group_world_wait(&w, 0, has_guests, 1);
    cr_expect_eq(group_world_report(&w, 0).status.phase, QN_GROUP_MEETING);
    w.opts.observer = false;
    group_world_start(&w, 2);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
    const struct group_world_report r = group_world_report(&w, 1);
    cr_expect_eq(r.status.voters, 7 & ~bit(r.status.seat));
    goes_on(1);
    expect_alike();
}

/* It has no lanes to the newcomer's seat, and does not answer. */
CASE(a_stopped_member_meets_a_newcomer_when_it_goes_on)
{
    begin(3);
    const uint32_t leader = group_world_report(&w, 0).status.leader;
    const uint32_t stopped = (leader + 1) % 3;
    group_world_stop(&w, stopped, true);
    group_world_start(&w, 3);
    group_world_wait(&w, 3, serves, 0);
    goes_on(3);
    group_world_wait(&w, 3, has_members, 15 & ~bit(stopped));
    group_world_stop(&w, stopped, false);
    for (uint32_t i = 0; i < 4; i++) {
        group_world_wait(&w, i, has_members, 15);
        group_world_wait(&w, i, has_voters, 15);
    }
    goes_on(stopped);
    expect_alike();
}

/* ---- shrinking ----------------------------------------------------------- */

CASE(a_group_grows_and_shrinks_under_load_while_members_die)
{
    begin(5);
    for (uint32_t i = 0; i < 5; i++) {
        group_world_propose(&w, i, 2000, LONG);
    }
    const uint32_t leader = group_world_report(&w, 0).status.leader;
    const uint32_t dead = (leader + 1) % 5, other = (leader + 2) % 5;
    const uint32_t left[2] = {(leader + 3) % 5, (leader + 4) % 5};
    cr_expect_eq(vote(left[0], leader, false), QN_OK);
    expect_removed(leader);
    group_world_kill(&w, dead);
    cr_expect_eq(vote(left[1], dead, false), QN_OK);
    cr_expect_eq(vote(other, other, false), QN_OK, "itself");
    expect_removed(other);
    for (uint32_t k = 0; k < 2; k++) {
        group_world_wait(&w, left[k], has_voters, bit(left[0]) | bit(left[1]));
        group_world_wait(&w, left[k], has_ended, 2000);
        cr_expect_eq(group_world_report(&w, left[k]).unknown, 0);
    }
    start(5);
    group_world_wait(&w, left[0], survives, 1);
    goes_on(5);
    expect_alike();
    group_world_kill(&w, left[0]);
    goes_on(left[1]);
}

CASE(a_stopped_member_is_removed_without_its_help_and_finds_out)
{
    begin(3);
    const uint32_t leader = group_world_report(&w, 0).status.leader;
    const uint32_t at = (leader + 1) % 3;
    const uint64_t inc = group_world_report(&w, leader).status.incarnation;
    group_world_stop(&w, leader, true);
    group_world_propose_once(&w, at, 8, LONG); /* it waits for the leader */
    cr_expect_eq(vote(at, leader, false), QN_OK);
    group_world_wait(&w, at, has_voters, 7 & ~bit(leader));
    start(3); /* the seat is not vacant yet */
    cr_expect_eq(seat_of(3), 3);
    const struct qn_group_change again = {
        .seat = leader, .incarnation = inc, .votes = true};
    cr_expect_eq(ask(at, &again, 1), QN_EBUSY);
    group_world_stop(&w, leader, false);
    expect_removed(leader);
    start(4);
    cr_expect_eq(seat_of(4), leader);
    cr_expect_gt(group_world_report(&w, 4).status.incarnation, inc);
    group_world_wait(&w, 4, has_voters, 15);
    cr_expect_eq(ask(at, &again, LONG), QN_OK, "it is so");
    goes_on(4);
    expect_alike();
}

/* ---- coming back --------------------------------------------------------- */

/* A further one comes and votes, and is removed again. */
static void changes_again(uint32_t at, uint64_t voters)
{
    start(9);
    const uint32_t seat = seat_of(9);
    group_world_wait(&w, at, has_voters, voters | bit(seat));
    cr_expect_eq(vote(at, seat, false), QN_OK);
    expect_removed(9);
    group_world_wait(&w, at, has_voters, voters);
}

CASE(one_death_of_two_voters_is_repaired_by_coming_back)
{
    begin(2);
    for (uint32_t round = 0; round < 2; round++) {
        const uint32_t leader = group_world_report(&w, 0).status.leader;
        const uint32_t dead = round == 0 ? 1 - leader : leader;
        group_world_kill(&w, dead);
        start(dead);
        cr_expect_eq(seat_of(dead), dead);
        goes_on(1 - dead);
        goes_on(dead);
        changes_again(dead, 3);
    }
    expect_alike();
}

CASE(two_deaths_of_three_voters_are_repaired_by_coming_back)
{
    begin(3);
    for (uint32_t round = 0; round < 3; round++) {
        const uint32_t last = at_seat(round);
        group_world_wait(&w, last, survives, 1);
        group_world_kill(&w, at_seat((round + 1) % 3));
        group_world_kill(&w, at_seat((round + 2) % 3));
        start(5 + round); /* in one of their seats */
        const uint32_t dead = 3 - round - seat_of(5 + round);
        goes_on(last);
        goes_on(5 + round);
        cr_expect_eq(vote(last, dead, false), QN_OK);
        start(8 + round);
        group_world_wait(&w, last, has_voters, 7);
    }
    expect_alike();
}

/* It has no driver yet when it ends, so it wrote no record by itself. */
CASE(a_process_that_ends_before_it_starts_has_a_vote_record)
{
    w.opts.members = 3;
    group_world_found(&w, 0);
    group_world_start(&w, 1);
    group_world_wait(&w, 0, has_guests, 1);
    group_world_stop(&w, 1, true);
    group_world_start(&w, 2);
    group_world_wait(&w, 0, serves, 0);
    group_world_wait(&w, 2, serves, 0);
    group_world_kill(&w, 1);
    group_world_kill(&w, 2);
    start(1); /* with the founder a majority, if it votes */
    cr_expect_eq(seat_of(1), 1);
    cr_expect_eq(vote(1, 2, false), QN_OK);
    goes_on(1);
}

/* ---- refused ------------------------------------------------------------- */

CASE(a_change_that_cannot_be_is_refused_with_its_reason)
{
    w.opts.members = 2;
    group_world_found(&w, 0);
    cr_expect_eq(vote(0, 0, false), QN_EAGAIN, "no member yet");
    group_world_start(&w, 1);
    group_world_wait(&w, 0, serves, 0);
    group_world_wait(&w, 1, serves, 0);
    cr_expect_eq(vote(0, 5, true), QN_EINVAL, "no member ever had it");
    cr_expect_eq(vote(0, CAPACITY, true), QN_EINVAL);
    const uint64_t inc = group_world_report(&w, 1).status.incarnation;
    const struct qn_group_change other = {.seat = 1, .incarnation = inc - 1};
    cr_expect_eq(ask(0, &other, LONG), QN_ESTALE);
    group_world_kill(&w, 1);
    start(2);
    cr_expect_eq(seat_of(2), 1);
    start(3);
    group_world_wait(&w, 3, has_voters, 7);
    group_world_kill(&w, 2);
    goes_on(3);
    goes_on(0);
    group_world_wait(&w, 0, has_members, 5);
    cr_expect_eq(vote(0, seat_of(3), false), QN_ENOQUORUM);
    cr_expect_eq(group_world_report(&w, 0).status.voters, 7);
    cr_expect_eq(force(0, seat_of(3), false), QN_OK);
    expect_removed(3);
    start(2);
    cr_expect_eq(seat_of(2), 1, "a voter's");
    cr_expect_eq(vote(0, 0, false), QN_OK);
    expect_removed(0);
    cr_expect_eq(vote(2, 1, false), QN_EINVAL, "no voter would be left");
    goes_on(2);
}

/* The other one of two voters has ended, or does not turn: a change is refused
 * at once, and no force replaces a voter that has ended. */
CASE(a_change_without_a_majority_is_refused_at_once)
{
    begin(2);
    const uint32_t dead = 1 - group_world_report(&w, 0).status.leader;
    const uint32_t last = 1 - dead;
    group_world_kill(&w, dead);
    group_world_wait(&w, last, has_members, bit(last));
    const struct qn_group_change remove = {.seat = dead};
    cr_expect_eq(group_world_change(&w, last, &remove, LONG), QN_ENOQUORUM);
    cr_expect_eq(force(last, dead, false), QN_ENOQUORUM);
    cr_expect_eq(group_world_report(&w, last).status.voters, 3);
    start(dead);
    goes_on(dead);
    goes_on(last);
    expect_alike();
}

/* What is forced is begun, though a voter is stalled without which it cannot be
 * done: its end is unknown, and it is done when that one resumes. */
CASE(a_forced_change_that_has_begun_may_still_be_done)
{
    const struct qn_group_change c = {.seat = 1, .votes = true};
    begin(2);
    const uint32_t stalled = 1 - group_world_report(&w, 0).status.leader;
    const uint32_t last = 1 - stalled;
    const struct qn_group_change remove = {.seat = stalled, .forced = true};
    group_world_stop(&w, stalled, true);
    group_world_ask(&w, last, &remove, 1);
    cr_expect_eq(group_world_change(&w, last, &c, LONG), QN_EBUSY);
    const uint64_t before = group_world_report(&w, last).changes;
    group_world_wait(&w, last, has_changes, before + 1);
    cr_expect_eq(group_world_report(&w, last).change, QN_EUNKNOWN);
    cr_expect_eq(group_world_report(&w, last).status.voters, 3);
    group_world_stop(&w, stalled, false);
    group_world_wait(&w, last, has_voters, bit(last));
    goes_on(last);
}
