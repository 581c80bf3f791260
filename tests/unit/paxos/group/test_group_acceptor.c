/*
 * Groups in which another member decides than the one that leads: they begin
 * with all their members, which end and return (group_world.h).
 */
#include "core/base/bits.h"
#include "paxos/group/group.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, 3);
    w.opts.process_acceptor = true;
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_acceptor, name, .init = init, .fini = fini, .timeout = 100)

#define LONG ((uint64_t)60 * 1000000000)

/* ---- what is waited for -------------------------------------------------- */

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_failed(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_ENDED;
}

static bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown == n;
}

static bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands == n;
}

static bool has_beyond(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands > n;
}

static bool survives(const struct group_world_report *r, uint64_t deaths)
{
    return r->status.deaths == deaths;
}

static bool has_halted(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.halted;
}

/* ---- processes ----------------------------------------------------------- */

static void start_all(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (w.process[i].pid == 0) {
            group_world_start(&w, i);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, serves, 0);
    }
}

static uint32_t at_seat(uint32_t seat)
{
    uint32_t i = 0;
    while (i < GROUP_WORLD_MAX &&
           (w.process[i].pid == 0 ||
            group_world_report(&w, i).status.seat != seat)) {
        i++;
    }
    return i;
}

/* Each has this many commands, applied in the same order. */
static void expect_alike(uint32_t n, uint64_t commands)
{
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, has_commands, commands);
        const struct group_world_report r = group_world_report(&w, i);
        cr_expect_eq(r.state.digest, group_world_report(&w, 0).state.digest);
        cr_expect_eq(r.wrong, 0);
    }
}

/* Own proposals of process `i` are applied. */
static void goes_on(uint32_t i, uint64_t n)
{
    const struct group_world_report r = group_world_report(&w, i);
    group_world_propose(&w, i, n, LONG);
    group_world_wait(&w, i, has_ended, r.applied + r.unknown + n);
    cr_expect_eq(group_world_report(&w, i).unknown, r.unknown);
}

/* ---- a group ------------------------------------------------------------- */

CASE(its_members_are_all_and_stay_so)
{
    const struct qn_group_change remove = {.seat = 1};
    start_all(3);
    goes_on(0, 100);
    goes_on(2, 100);
    expect_alike(3, 200);
    group_world_wait(&w, 0, survives, 1);
    const struct qn_group_status st = group_world_report(&w, 0).status;
    cr_expect_eq(st.capacity, 3);
    cr_expect_eq(st.members, 7);
    cr_expect_eq(st.voters, 7);
    cr_expect_neq(st.acceptor, st.leader);
    cr_expect_eq(st.in_sync, UINT64_C(1) << st.leader | 1u << st.acceptor);
    cr_expect_eq(group_world_change(&w, 0, &remove, LONG), QN_ENOSYS);
}

CASE(it_begins_when_all_have_come)
{
    group_world_found(&w, 0);
    group_world_start(&w, 1);
    cr_expect_eq(group_world_report(&w, 0).status.phase, QN_GROUP_MEETING);
    start_all(3);
    goes_on(1, 10);
    expect_alike(3, 10);
}

CASE(an_observer_is_refused)
{
    group_world_found(&w, 0);
    w.opts.process_acceptor = false; /* what is founded counts */
    w.opts.observer = true;
    group_world_start(&w, 1);
    group_world_wait(&w, 1, has_failed, 0);
    cr_expect_eq(group_world_report(&w, 1).turn, QN_EINVAL);
    group_world_kill(&w, 1);
    w.opts.observer = false;
    start_all(3);
    goes_on(2, 10);
}

/* ---- deaths -------------------------------------------------------------- */

/* Under load it is killed, and another process takes its seat. What the others
 * have proposed is applied. */
static void kill_and_return(uint32_t victim)
{
    const struct group_world_report was = group_world_report(&w, victim);
    uint64_t asked[3];
    for (uint32_t i = 0; i < 3; i++) {
        asked[i] = group_world_report(&w, i).applied + 200;
        group_world_propose(&w, i, 200, LONG);
    }
    group_world_wait(&w, victim, has_beyond, was.state.commands + 50);
    group_world_kill(&w, victim);
    for (uint32_t i = 0; i < 3; i++) {
        if (i != victim) {
            group_world_wait(&w, i, has_ended, asked[i]);
            cr_expect_eq(group_world_report(&w, i).unknown, 0);
        }
    }
    start_all(3);
    goes_on(victim, 10);
    const struct group_world_report r = group_world_report(&w, victim);
    expect_alike(3, r.state.commands);
    cr_expect_eq(r.status.seat, was.status.seat);
    cr_expect_gt(r.status.incarnation, was.status.incarnation);
    group_world_wait(&w, 0, survives, 1);
}

CASE(whichever_role_dies_under_load_it_goes_on_and_the_seat_returns)
{
    start_all(3);
    for (uint32_t round = 0; round < 2; round++) {
        const struct qn_group_status st = group_world_report(&w, 0).status;
        kill_and_return(at_seat(3 - st.leader - st.acceptor));
        kill_and_return(at_seat(group_world_report(&w, 0).status.acceptor));
        kill_and_return(at_seat(group_world_report(&w, 0).status.leader));
    }
}

/* It votes with its record: without it the acceptor alone would be no majority
 * that gives it a vote, or the leader's role. */
CASE(a_seat_that_returns_votes_at_once)
{
    start_all(3);
    goes_on(0, 20);
    const struct qn_group_status st = group_world_report(&w, 0).status;
    const uint32_t other = at_seat(3 - st.leader - st.acceptor);
    const uint32_t leader = at_seat(st.leader);
    const uint32_t acceptor = at_seat(st.acceptor);
    group_world_kill(&w, other);
    group_world_kill(&w, leader);
    group_world_start(&w, other);
    group_world_wait(&w, other, serves, 0);
    goes_on(other, 20);
    goes_on(acceptor, 20);
    start_all(3);
    goes_on(leader, 20);
    expect_alike(3, 80);
}

/* More is decided meanwhile than the log keeps. */
CASE(a_member_that_was_away_gets_a_snapshot)
{
    w.opts.log_bytes = 1 << 20;
    start_all(3);
    const struct qn_group_status st = group_world_report(&w, 0).status;
    const uint32_t away = at_seat(3 - st.leader - st.acceptor);
    group_world_leave(&w, away);
    const uint32_t other = (away + 1) % 3;
    for (uint64_t i = 1; i <= 30; i++) {
        group_world_propose_once(&w, other, 300000, LONG);
        group_world_wait(&w, other, has_ended, i);
    }
    group_world_start(&w, away);
    group_world_wait(&w, away, serves, 0);
    expect_alike(3, 30);
    cr_expect_geq(group_world_report(&w, away).status.snapshots_installed, 1);
}

/* Of five they alone have what was decided last. A majority knows that. */
CASE(leader_and_acceptor_together_halt_it)
{
    w.opts.members = 5;
    start_all(5);
    goes_on(0, 20);
    group_world_wait(&w, 0, survives, 1);
    const struct qn_group_status st = group_world_report(&w, 0).status;
    const uint32_t acceptor = at_seat(st.acceptor), leader = at_seat(st.leader);
    group_world_stop(&w, acceptor, true); /* it does not lead meanwhile */
    group_world_kill(&w, leader);
    group_world_kill(&w, acceptor);
    for (uint32_t i = 0; i < 5; i++) {
        if (w.process[i].pid != 0) {
            group_world_wait(&w, i, has_halted, 0);
            cr_expect_eq(group_world_report(&w, i).status.deaths, 0);
            group_world_propose_once(&w, i, 8, LONG);
            cr_expect_eq(group_world_report(&w, i).last, QN_ENOQUORUM);
        }
    }
}

/* ---- options ------------------------------------------------------------- */

CASE(its_capacity_is_its_members)
{
    struct qn_group_needs by_memory, by_process;
    struct qn_group_opts o = w.opts;
    cr_expect_eq(qn_group_needs(&o, &by_process), QN_OK);
    o.process_acceptor = false;
    o.capacity = 3;
    cr_expect_eq(qn_group_needs(&o, &by_memory), QN_OK);
    cr_expect_lt(by_process.shared, by_memory.shared, "no ring");
    o.process_acceptor = true;
    o.capacity = 5;
    cr_expect_eq(qn_group_needs(&o, &by_memory), QN_EINVAL, "more seats");
    o.members = o.capacity = 2;
    cr_expect_eq(qn_group_needs(&o, &by_memory), QN_EINVAL, "none may end");
    o.members = o.capacity = 3;
    o.observer = true;
    cr_expect_eq(qn_group_needs(&o, &by_memory), QN_EINVAL);
    o.observer = false;
    o.members = o.capacity = 1;
    cr_expect_eq(qn_group_needs(&o, &by_process), QN_OK);
}
