/*
 * Processes that meet at a name and keep one state (group_world.h), die and
 * come back, and share their processes with their hosts.
 */
#include "paxos/group/group.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tests/unit/paxos/group/group_case.h"
#include "transports/registry.h"

/* ---- a group ------------------------------------------------------------- */

CASE(one_process_is_a_group)
{
    w.opts.members = 1;
    start_all(1);
    group_world_propose(&w, 0, 100, LONG);
    group_world_wait(&w, 0, has_ended, 100);
    group_world_barrier(&w, 0, 3);
    group_world_wait(&w, 0, has_barriers, 3);
    const struct group_world_report r = group_world_report(&w, 0);
    cr_expect_eq(r.applied, 100);
    cr_expect_eq(r.wrong, 0);
    cr_expect_eq(r.status.members, 1);
    cr_expect_eq(r.status.deaths, 0);
}

CASE(three_processes_apply_the_same)
{
    start_all(3);
    propose_everywhere(3, 500);
    cr_expect_eq(expect_alike(3), 1500);
    group_world_wait(&w, 0, has_copies, 3);
    const struct group_world_report r = group_world_report(&w, 1);
    cr_expect_eq(r.applied, 500);
    cr_expect_eq(r.status.members, 7);
    cr_expect_eq(r.status.deaths, 1);
    cr_expect_eq(r.state.of_seat[r.status.seat], 500);
}

CASE(a_host_that_waits_for_edges_misses_none)
{
    w.loop = LOOP_EPOLL_EDGE;
    start_all(3);
    for (uint32_t round = 1; round <= 20; round++) {
        for (uint32_t i = 0; i < 3; i++) {
            group_world_propose(&w, i, 7, LONG);
            group_world_wait(&w, i, has_ended, UINT64_C(7) * round);
        }
    }
    cr_expect_eq(expect_alike(3), 420);
}

/* A barrier's state has all that any member had shown before. */
CASE(a_barrier_shows_what_others_have_applied)
{
    start_all(3);
    for (uint64_t round = 1; round <= 30; round++) {
        group_world_propose(&w, 0, 5, LONG);
        group_world_wait(&w, 0, has_ended, 5 * round);
        group_world_barrier(&w, 2, 1);
        group_world_wait(&w, 2, has_barriers, round);
        cr_expect_geq(group_world_report(&w, 2).state.commands, 5 * round);
    }
}

/* ---- meeting ------------------------------------------------------------- */

CASE(ten_at_once_are_one_group_and_the_name_is_free_after_them)
{
    w.opts.members = 10;
    for (uint32_t round = 0; round < 3; round++) {
        start_all(10);
        propose_everywhere(10, 10);
        cr_expect_eq(expect_alike(10), 100, "round %u", round);
        for (uint32_t i = 0; i < 10; i++) {
            group_world_kill(&w, i);
        }
    }
}

/* A socket of their parent is the place, though it has no name and though the
 * child of a dead member has it, too. */
CASE(processes_meet_at_a_socket_of_their_parent)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(listen(fd, 1), -1, "it has no name");
    w.opts.name = NULL;
    w.opts.socket_fd = fd;
    start_all(3);
    propose_everywhere(3, 10);
    cr_expect_eq(expect_alike(3), 30);
    const uint64_t mask = group_world_report(&w, 1).status.members;
    const uint32_t seat = group_world_report(&w, 0).status.seat;
    cr_expect_eq(group_world_fork(&w, 0), 0);
    group_world_kill(&w, 0);
    group_world_wait(&w, 1, has_members, mask & ~(UINT64_C(1) << seat));
    start_all(3);
    cr_expect_eq(expect_alike(3), 30, "it has come back");
    for (uint32_t i = 0; i < 3; i++) {
        group_world_kill(&w, i);
    }
    start_all(3);
    cr_expect_eq(expect_alike(3), 0, "the place was free");
    close(fd);
}

static void expect_refused(const char *why, int err)
{
    group_world_start(&w, 5);
    group_world_wait(&w, 5, has_failed, 0);
    const struct group_world_report r = group_world_report(&w, 5);
    cr_expect_eq(r.turn, err);
    cr_expect_eq(r.status.err, err);
    cr_expect_str_eq(r.why, why);
    group_world_kill(&w, 5);
}

CASE(another_program_is_refused_in_one_line)
{
    const struct qn_transport *ump = w.opts.transport;
    w.opts.members = w.opts.capacity = 1;
    start_all(1);
    w.opts.application = "other";
    expect_refused("the group is of test, not of other", QN_EINVAL);
    w.opts.application = "test";
    w.opts.version = 2;
    expect_refused("the group has version 1 of test, not 2", QN_EINVAL);
    w.opts.version = 1;
    w.opts.transport = qn_transport_find("ffq");
    expect_refused("the group has transport ump, not ffq", QN_EINVAL);
    w.opts.transport = ump;
    expect_refused("all seats of the group are taken", QN_EBUSY);
}

CASE(a_group_whose_founder_ends_before_it_begins_is_founded_again)
{
    group_world_start(&w, 0);
    group_world_start(&w, 1);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_eq(group_world_report(&w, i).status.phase, QN_GROUP_MEETING);
    }
    group_world_kill(&w, 0);
    group_world_start(&w, 0);
    group_world_start(&w, 2);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
    propose_everywhere(3, 10);
    cr_expect_eq(expect_alike(3), 30);
}

/* Its child keeps the guests' connections open, and the listening socket. */
CASE(a_child_keeps_no_founder_alive_that_has_ended)
{
    group_world_found(&w, 0);
    group_world_start(&w, 1);
    group_world_wait(&w, 0, has_guests, 1);
    (void)group_world_fork(&w, 0);
    const pid_t child = w.process[0].child;
    group_world_kill(&w, 0);
    group_world_start(&w, 0);
    group_world_start(&w, 2);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
    cr_expect_eq(kill(child, 0), 0, "it lives");
}

CASE(a_guest_that_ends_before_the_group_begins_is_replaced)
{
    group_world_start(&w, 0);
    group_world_start(&w, 1);
    (void)group_world_report(&w, 1);
    group_world_kill(&w, 1);
    group_world_start(&w, 1);
    group_world_start(&w, 2);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
    propose_everywhere(3, 10);
    cr_expect_eq(expect_alike(3), 30);
}

/* ---- deaths -------------------------------------------------------------- */

static bool has_beyond(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands > n;
}

/* Under load a member is killed, and another process takes its seat. Of the
 * killed one's proposals those that it knew as applied are in the state; of the
 * others all. */
static void kill_and_return(uint32_t victim)
{
    const struct group_world_report was = group_world_report(&w, victim);
    uint64_t asked[3];
    for (uint32_t i = 0; i < 3; i++) {
        asked[i] = group_world_report(&w, i).applied + 300;
        group_world_propose(&w, i, 300, LONG);
    }
    group_world_wait(&w, victim, has_beyond, was.state.commands + 50);
    const struct group_world_report last = group_world_report(&w, victim);
    group_world_kill(&w, victim);
    for (uint32_t i = 0; i < 3; i++) {
        if (i != victim) {
            group_world_wait(&w, i, has_ended, asked[i]);
            cr_expect_eq(group_world_report(&w, i).unknown, 0);
        }
    }
    group_world_start(&w, victim);
    group_world_wait(&w, victim, serves, 0);
    (void)expect_alike(3);
    const struct group_world_report r = group_world_report(&w, victim);
    cr_expect_eq(r.status.seat, was.status.seat);
    cr_expect_gt(r.status.incarnation, was.status.incarnation);
    cr_expect_geq(r.state.of_seat[was.status.seat],
                  was.state.of_seat[was.status.seat] + last.applied -
                      was.applied);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, has_members, 7);
    }
}

CASE(each_member_may_die_under_load_and_return)
{
    start_all(3);
    for (uint32_t round = 0; round < 6; round++) {
        const uint32_t leader =
            at_seat(group_world_report(&w, 0).status.leader);
        kill_and_return((leader + round) % 3);
    }
}

/* Most of their turns are the driver's only. */
CASE(members_that_spin_find_that_one_dies_and_returns)
{
    w.opts.spin_ns = QN_MS;
    start_all(3);
    kill_and_return(at_seat(group_world_report(&w, 0).status.leader));
}

/* While it is away more is decided than the log keeps: so its successor needs a
 * snapshot. */
CASE(a_member_that_leaves_is_replaced)
{
    start_all(3);
    propose_everywhere(3, 20);
    group_world_leave(&w, 1);
    for (uint64_t i = 1; i <= 30; i++) {
        group_world_propose_once(&w, 0, 300000, LONG);
        group_world_wait(&w, 0, has_ended, 20 + i);
    }
    group_world_start(&w, 1);
    group_world_wait(&w, 1, serves, 0);
    cr_expect_eq(expect_alike(3), 90);
    const struct group_world_report r = group_world_report(&w, 1);
    cr_expect_geq(r.status.snapshots_installed, 1);
    cr_expect_lt(r.status.commands, 90);
}

CASE(the_ends_of_a_snapshot_are_named)
{
    w.opts.members = 2;
    start_all(2);
    cr_expect_eq(group_world_report(&w, 0).status.joiner,
                 group_world_report(&w, 0).status.capacity);
    for (uint32_t i = 0; i < 2; i++) {
        group_world_hold(&w, i, true);
    }
    group_world_start(&w, 2);
    group_world_wait(&w, 2, has_donor, 0);
    const struct qn_group_status s = group_world_report(&w, 2).status;
    const uint32_t donor = at_seat(s.donor);
    cr_assert_lt(donor, 2);
    cr_expect_eq(group_world_report(&w, donor).status.joiner, s.seat);
    cr_expect_eq(group_world_report(&w, donor).status.donor, s.capacity);
    cr_expect_eq(s.joiner, s.capacity);
    for (uint32_t i = 0; i < 2; i++) {
        group_world_hold(&w, i, false);
    }
    group_world_wait(&w, 2, serves, 0);
    group_world_wait(&w, donor, has_given, 1);
    cr_expect_not(has_donor(
        &(struct group_world_report){.status =
                                         group_world_report(&w, 2).status},
        0));
}

/* A member that is stopped does not answer; the guest hears of it by the member
 * that it has asked, and goes on. When the stopped one continues, it maps the
 * guest. */
CASE(a_stopped_member_holds_up_no_guest)
{
    start_all(3);
    const uint32_t leader = at_seat(group_world_report(&w, 0).status.leader);
    const uint32_t stopped = (leader + 1) % 3, guest = (leader + 2) % 3;
    group_world_kill(&w, guest);
    group_world_stop(&w, stopped, true);
    group_world_start(&w, guest);
    group_world_wait(&w, guest, serves, 0);
    group_world_propose(&w, guest, 10, LONG);
    group_world_wait(&w, guest, has_ended, 10);
    group_world_stop(&w, stopped, false);
    group_world_wait(&w, stopped, has_members, 7);
    group_world_propose(&w, stopped, 10, LONG);
    group_world_wait(&w, stopped, has_ended, 10);
    cr_expect_eq(expect_alike(3), 20);
}

/* Kill two of three, the leader with them. @return the one that is left, which
 * does not lead: one that had been suspected meanwhile may have lost its role
 * to it, and then both come back. */
static uint32_t leave_a_follower(void)
{
    for (;;) {
        const uint32_t leader =
            at_seat(group_world_report(&w, 0).status.leader);
        const uint32_t last = (leader + 1) % 3, other = (leader + 2) % 3;
        group_world_kill(&w, other);
        group_world_kill(&w, leader);
        const struct group_world_report r = group_world_report(&w, last);
        if (r.status.leader != r.status.seat) {
            return last;
        }
        start_all(3);
    }
}

/* A follower alone cannot lead: what it proposes has no outcome, and then it
 * takes nothing more, until another member is back. */
CASE(without_a_majority_proposals_end_as_unknown_and_then_are_refused)
{
    start_all(3);
    const uint32_t last = leave_a_follower();
    group_world_propose_once(&w, last, 8, 1);
    group_world_wait(&w, last, has_unknown, 1);
    group_world_propose_once(&w, last, 8, 1);
    cr_expect_eq(group_world_report(&w, last).last, QN_ENOQUORUM);
    group_world_start(&w, (last + 1) % 3);
    group_world_wait(&w, last, has_commands, 1);
    group_world_propose(&w, last, 10, LONG);
    group_world_wait(&w, last, has_ended, 11);
    cr_expect_eq(group_world_report(&w, last).applied, 10);
}

static bool is_held(uint32_t i)
{
    const struct group_world_report r = group_world_report(&w, i);
    return r.last == QN_EAGAIN && r.reason == QN_GROUP_HELD;
}

/* A callback is told the same as the program between two turns. */
static void expect_held_inside(uint32_t i)
{
    const uint64_t taken = group_world_report(&w, i).asked;
    group_world_propose_at_barrier(&w, i, 8);
    group_world_wait(&w, i, has_barriers, 1);
    cr_expect(is_held(i));
    cr_expect_eq(group_world_report(&w, i).asked, taken);
}

/* With three of five voters stalled the leader may give up two of them, and
 * waits for the third. A follower that is told so, and asks again when its
 * descriptor is readable, goes on when that one resumes. */
CASE(a_follower_goes_on_when_the_leader_is_held_no_more)
{
    w.opts.members = 5;
    w.opts.log_bytes = 1 << 20;
    start_all(5);
    const uint32_t leader = at_seat(group_world_report(&w, 0).status.leader);
    const uint32_t asks = (leader + 1) % 5;
    for (uint32_t k = 2; k < 5; k++) {
        group_world_stop(&w, (leader + k) % 5, true);
    }
    do {
        group_world_propose_once(&w, leader, 16 << 10, LONG);
    } while (!is_held(leader));
    group_world_propose(&w, asks, 10, LONG);
    cr_expect(is_held(asks));
    expect_held_inside(leader);
    group_world_stop(&w, (leader + 2) % 5, false);
    group_world_wait(&w, asks, has_ended, 10);
    cr_expect_eq(group_world_report(&w, asks).applied, 10);
}

/* ---- a guest in its process ---------------------------------------------- */

/* The child of a member has all of its descriptors: neither does it speak for
 * the member, nor keep it alive. */
CASE(a_forked_child_is_no_member)
{
    start_all(3);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(group_world_report(&w, i).kept_by_exec, 0);
    }
    cr_expect_eq(group_world_fork(&w, 1), 0);
    const pid_t child = w.process[1].child;
    const uint64_t seat = group_world_report(&w, 1).status.seat;
    group_world_propose(&w, 1, 10, LONG);
    group_world_wait(&w, 1, has_ended, 10);
    group_world_kill(&w, 1);
    group_world_start(&w, 1);
    group_world_wait(&w, 1, serves, 0);
    cr_expect_eq(group_world_report(&w, 1).status.seat, seat);
    cr_expect_eq(kill(child, 0), 0, "it lives");
}

/* As those of a database would be: recovered by the next that locks them, not
 * lost with the process that had them. */
CASE(robust_mutexes_of_the_host_are_recovered)
{
    group_world_robust(&w);
    start_all(3);
    propose_everywhere(3, 10);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(pthread_mutex_trylock(&w.robust[i]), EBUSY);
        group_world_kill(&w, i);
        cr_expect_eq(pthread_mutex_lock(&w.robust[i]), EOWNERDEAD);
        cr_expect_eq(pthread_mutex_consistent(&w.robust[i]), 0);
        pthread_mutex_unlock(&w.robust[i]);
        group_world_start(&w, i);
        group_world_wait(&w, i, serves, 0);
    }
}

CASE(a_locked_robust_mutex_keeps_its_list)
{
    group_world_robust(&w);
    w.opts.robust_list = true;
    group_world_start(&w, 0);
    group_world_wait(&w, 0, has_failed, 0);
    const struct group_world_report r = group_world_report(&w, 0);
    cr_expect_eq(r.status.err, QN_EBUSY);
    cr_expect_str_eq(r.why, "this thread has locked a robust mutex, or is a "
                            "member of another group");
}
